/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.c: plan.tensor: the devices of a stage share its operators.
 *
 * Problem.  A layer is too wide for one device.  Megatron-LM (M. Shoeybi et al., 2019) wrote down by hand which products are
 * divided by columns and which by rows, and its sums have another order for each number of devices.  Here the layout follows
 * from the axes of the table, and the sums from the blocks of the model.
 *
 * Method.  A tensor is whole, or divided: so many stretches of memory, each in contiguous parts, one a device.  A region is a
 * set of operators between whole tensors.  It grows from a Linear or Conv that is divided by columns, an Embedding by words, a
 * LinearCrossEntropy by words.  A divided tensor wants its maker and all its readers divided so that the parts are the same
 * memory, and a divided parameter all its readers.  One that has no such axis ends the attempt.  A Linear or Conv whose sum
 * goes over the axis ends the region, and so does a loss.  So columns, then heads, elements or channels, then rows come out by
 * themselves, and a table with the head that is tied to it.  Of two regions that would meet, as in a row of convolutions, the
 * one with more work for each byte of its sums is taken.  GSPMD (Y. Xu et al., 2021) spreads annotations of a user in this
 * way; here the seeds are tried, and no message is made inside a region.
 *
 * The graph is then that of one device: sizes of the part, and rows whose calls add over the devices.  A sum is closed for each
 * reader of a tensor, not once for all as in Megatron-LM: one device rounds the gradient of each reader before it adds them.
 *
 * needs   a Graph behind shape    fills   Graph.team, State.outer, sizes, rows and calls of divided operators
 * fails   status 3, where nothing can be divided
 * A region may have an axis that the blocks do not divide, if all its calls take a last part that is shorter.  That of a
 * vocabulary has: W blocks of ceil(V/W) words.  Each device has the room of the largest part.
 *
 * Cost: a region is as large as its layer; operators times seeds of it.  Not handled: regions that meet in one tensor.
 */
#include "divide.h"
#include "build/build.h"

/* uneven, rows, most: of its tensors (Cut). */
typedef struct {
    const Graph *g;
    Divide *d;
    Ints ops, tensors, states;
    int64_t uneven, rows, most;
    bool closed;
    const char *wrong;
} Region;

static int64_t number_of(const void *ctx, const char *word)
{
    const Op *o = ctx;
    const Arg *literal = op_arg(o, word);
    if (literal)
        return literal->kind == ARG_INT ? literal->i : -1;
    const Attr *a = attr_find(o, word);
    return a && a->is_int ? a->i : -1;
}

/* Elements in front of an axis in an operand; 0: the operand has it not. */
int64_t divide_front(const Op *o, const RowAxes *a, int list, int axis)
{
    int64_t n = 1;
    for (int i = 0; i < a->list[list].n; i++) {
        if (a->list[list].dim[i] == axis || a->axis[a->list[list].dim[i]].by == axis + 1)
            return n;
        n *= axis_size(a, a->list[list].dim[i], number_of, o);
    }
    return 0;
}

/* An operand, parameter or result by its number in the row's axes; -1: absent. */
int divide_thing(const Op *o, const Row *r, int list)
{
    int par = list - r->in.n, out = par - r->par.n;
    return par < 0 ? o->in.at[list] : out < 0 ? o->par.at[par] : o->out.at[out];
}

/* The row of a part along the axis, whose calls add over the devices; -1: there is none.  Rows are those of positions.c. */
static int part_row(const Op *o, const RowAxes *a, int axis)
{
    const int part = row_part(row(o->row), a->axis[axis].name);
    return part >= 0 && *row_swaps(row(part), PH_W) ? -1 : part;
}

static bool is_linear(const Op *o) { return !strcmp(row(o->row)->shape, "linear") || !strcmp(row(o->row)->shape, "grouped"); }

static bool is_conv(const Op *o) { return !strcmp(row(o->row)->shape, "conv"); }

/* Do its calls know how much there is, so that the last part may be shorter? */
static bool knows_whole(int part)
{
    return part >= 0 && (strstr(row(part)->call[PH_F], ", whole)") || strstr(row(part)->call[PH_I], ", whole)"));
}

static bool swaps(int part) { return part >= 0 && (*row_swaps(row(part), PH_F) || *row_swaps(row(part), PH_I)); }

static bool is_attention(const Op *o) { return !strncmp(row(o->row)->shape, "attention", 9); }

static bool is_axis(const RowAxes *a, int axis, const char *name) { return !strcmp(a->axis[axis].name, name); }

static bool draws(const Op *o)
{
    for (int i = 0; i < o->arg.n; i++)
        if (arg_role(&o->arg.at[i]) == ROLE_DROP && o->arg.at[i].f != 0)
            return true;
    return false;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void take_tensor(Region *r, int t, int64_t outer);
static void join(Region *r, int i, int list, int64_t outer);

/* Each operator that reads the parameter is divided along it: none may want it whole. */
static void take_state(Region *r, int s, int64_t outer)
{
    Cut *is = &r->d->of_state[s];
    if (is->outer && is->outer != outer)
        r->wrong = strf("%s would be divided in two ways", r->g->state.at[s].name);
    if (is->outer)
        return;
    *is = (Cut){outer, r->uneven, 0, 0};
    *PUSH(&r->states) = s;
    for (int i = 0; i < r->g->nf && !r->wrong; i++)
        for (int k = 0; k < r->g->op.at[i].par.n && !r->wrong; k++)
            if (r->g->op.at[i].par.at[k] == s)
                join(r, i, row(r->g->op.at[i].row)->in.n + k, outer);
}

/* Only some rows add over the devices: of others every tensor and parameter has the axis, but for masks and statistics, whose
 * accumulators are no sums over it. */
static bool sums_elsewhere(const Op *o, const Row *r, const RowAxes *a, int axis)
{
    for (int k = 0; k < a->lists; k++) {
        const int par = k - r->in.n;
        const bool adds = par < 0 ? r->in.at[k].type != 'i' && !r->in.at[k].fixed : par >= r->par.n || !r->par.at[par].tracked;
        if (divide_thing(o, r, k) >= 0 && !divide_front(o, a, k, axis) && adds)
            return true;
    }
    return false;
}

static void take_op(Region *r, int i, int axis, int64_t pieces)
{
    const Op *o = &r->g->op.at[i];
    const Row *row_ = row(o->row);
    const RowAxes a = row_axes(row_);
    if (r->d->axis[i] >= 0) {
        if (r->d->axis[i] != axis)
            r->wrong = strf("%s would be divided along two axes", o->name);
        return;
    }
    if (draws(o) && !is_attention(o) && part_row(o, &a, axis) < 0)
        r->wrong = strf("%s draws random numbers, and those of a part are not those of the whole", o->name);
    else if (part_row(o, &a, axis) < 0 && sums_elsewhere(o, row_, &a, axis))
        r->wrong = strf("%s would add over the devices", o->name);
    r->d->axis[i] = axis;
    *PUSH(&r->ops) = i;
    bool closed = part_row(o, &a, axis) >= 0;
    for (int k = 0; closed && k < row_->out.n; k++)
        closed = !divide_front(o, &a, row_->in.n + row_->par.n + k, axis);
    r->closed |= closed;
    for (int k = 0; k < a.lists && !r->wrong; k++) {
        int thing = divide_thing(o, row_, k);
        bool par = k >= row_->in.n && k < row_->in.n + row_->par.n;
        int64_t outer = divide_front(o, &a, k, axis) * pieces;
        if (thing >= 0 && outer && par)
            take_state(r, thing, outer);
        else if (thing >= 0 && outer)
            take_tensor(r, thing, outer);
        else if (thing >= 0 && k < row_->in.n && r->d->of[thing].outer)
            r->wrong = strf("%s wants all of %s", o->name, r->g->tensor.at[thing].name);
    }
}

/* Parts of an axis: of a sum they are whole blocks of it. */
static int64_t parts_of(const Divide *d, const Op *o, const RowAxes *a, int axis)
{
    return swaps(part_row(o, a, axis)) && !axis_leads(a, axis) ? d->blocks : d->devices;
}

/* Rows of which the data say who has them: an operator knows of that, or goes element by element. */
static bool goes_with(const Region *r, const Op *o, const RowAxes *a, int axis)
{
    bool elements = true;
    for (int k = 0; k < a->lists; k++)
        elements &= a->list[k].n == 1 && a->list[k].dim[0] == axis;
    return axis_leads(a, axis) ? r->rows > 0 : !r->rows || (elements && part_row(o, a, axis) < 0);
}

/* The operator must have a free axis that cuts this operand into the same parts. */
static void join(Region *r, int i, int list, int64_t outer)
{
    const Op *o = &r->g->op.at[i];
    const RowAxes a = row_axes(row(o->row));
    const int part = row_part(row(o->row), "rows");
    const bool border = r->d->everywhere && part >= 0 && (is_linear(o) || *row_swaps(row(part), PH_I));
    if (border) {           /* all of the weight; rows of x, unless it has columns */
        const int par = list - row(o->row)->in.n;
        if (par < 0 ? r->d->axis[i] >= 0 && !divide_front(o, &a, list, r->d->axis[i]) : par < o->par.n && r->d->axis[i] < 0)
            r->wrong = strf("%s wants all of it", o->name);
        return;
    }
    bool adds = false;          /* then along axes that have such a row, and no others */
    for (int axis = 0; axis < a.axes; axis++)
        adds |= swaps(part_row(o, &a, axis));
    for (int axis = 0; axis < a.axes && a.lists; axis++) {
        int64_t front = divide_front(o, &a, list, axis), size = axis_size(&a, axis, number_of, o);
        int64_t parts = parts_of(r->d, o, &a, axis);
        bool no = adds ? part_row(o, &a, axis) < 0 || outer != front : a.axis[axis].whole;
        no |= front && outer == front * size && outer < dims_size(&a, &a.list[list], number_of, o);  /* it is in front */
        if (no || !front || outer % front || size % (outer / front) || !goes_with(r, o, &a, axis))
            continue;
        bool fits = r->rows && !axis_leads(&a, axis) ? size % r->rows == 0
                  : r->uneven ? size == r->uneven && outer == front && knows_whole(part_row(o, &a, axis))
                  : size / (outer / front) % parts == 0;
        if (fits && a.axis[axis].several && size / (outer / front) <= parts)
            r->wrong = strf("%s adds one column otherwise than several", o->name);
        if (r->wrong)
            return;
        if (!fits) {
            const int64_t by = r->rows && !axis_leads(&a, axis) ? r->rows : r->uneven ? r->d->blocks : parts;
            r->wrong = strf("%s of %s is %lld, no multiple of %lld", a.axis[axis].name, o->name,
                            (long long)(size / (outer / front)), (long long)by);
            return;
        }
        take_op(r, i, axis, outer / front);
        return;
    }
    r->wrong = strf("%s wants all of it", o->name);
}

static void take_tensor(Region *r, int t, int64_t outer)
{
    const Graph *g = r->g;
    if (r->d->of[t].outer) {
        if (r->d->of[t].outer != outer)
            r->wrong = strf("%s would be divided in two ways", g->tensor.at[t].name);
        return;
    }
    r->d->of[t] = (Cut){outer, r->uneven, r->rows, r->most};
    *PUSH(&r->tensors) = t;
    if (g->tensor.at[t].kind == T_INPUT || t == g->loss)
        r->wrong = strf("%s is whole", g->tensor.at[t].name);
    for (int i = 0; i < g->nf && !r->wrong; i++) {
        const Op *o = &g->op.at[i];
        for (int k = 0; k < o->in.n && !r->wrong; k++)
            if (o->in.at[k] == t)
                join(r, i, k, outer);
        for (int k = 0; k < o->out.n && !r->wrong; k++)
            if (o->out.at[k] == t)
                join(r, i, row(o->row)->in.n + row(o->row)->par.n + k, outer);
    }
}

/* What is a sum: results without the axis, and gradients of operands without it. */
static void count_sums(const Graph *g, const Op *o, int axis, Bytes *forward, Bytes *backward)
{
    const Row *r = row(o->row);
    const RowAxes a = row_axes(r);
    for (int k = 0; k < a.lists; k++) {
        int thing = divide_thing(o, r, k);
        bool in = k < r->in.n, out = k >= r->in.n + r->par.n;
        if (thing < 0 || (!in && !out) || divide_front(o, &a, k, axis) || axis_leads(&a, axis))
            continue;
        const Tensor *t = &g->tensor.at[thing];
        *forward += out ? t->bytes : 0;
        *backward += in && t->kind == T_ACT && t->type != I32 ? t->bytes : 0;
    }
}

/* The work of the region that begins there, for each byte of its sums; -1: there is none. */
static int64_t grow(const Graph *g, Divide *d, int seed, int axis, bool keep)
{
    const Op *o = &g->op.at[seed];
    const RowAxes a = row_axes(row(o->row));
    const int64_t size = axis_size(&a, axis, number_of, o);
    Region r = {.g = g, .d = d, .uneven = size % parts_of(d, o, &a, axis) ? size : 0};
    for (int i = a.axes - 1; i >= 0; i--)
        r.rows = a.axis[i].by == axis + 1 ? axis_size(&a, i, number_of, o) : r.rows;
    int64_t work = 0, bytes = 1;
    r.most = r.rows ? attr_int(o, "most") : 0;
    take_op(&r, seed, axis, 1);
    if (!r.wrong && !r.closed && !is_attention(o))
        r.wrong = "no operator behind it adds the parts";
    for (int i = 0; i < r.ops.n; i++) {
        work += g->op.at[r.ops.at[i]].flop;
        count_sums(g, &g->op.at[r.ops.at[i]], d->axis[r.ops.at[i]], &bytes, &bytes);
    }
    const bool undo = r.wrong || !keep;
    for (int i = 0; undo && i < r.ops.n; i++)
        d->axis[r.ops.at[i]] = -1;
    for (int i = 0; undo && i < r.tensors.n; i++)
        d->of[r.tensors.at[i]] = (Cut){0};
    for (int i = 0; undo && i < r.states.n; i++)
        d->of_state[r.states.at[i]] = (Cut){0};
    d->why[seed] = r.wrong;
    return r.wrong ? -1 : work / bytes;
}

/* A region begins where all operands are whole. */
static bool begins(const Op *o, const RowAxes *a, int axis)
{
    bool whole = true;
    for (int k = 0; k < row(o->row)->in.n; k++)
        whole &= !divide_front(o, a, k, axis);
    return whole;
}

int64_t divide_room(const Divide *d, int64_t n) { return (n + d->blocks - 1) / d->blocks * (d->blocks / d->devices); }

/* What a device has of n elements: equal parts, or the room of the largest of uneven ones. */
static int64_t room_of(const Divide *d, int64_t n, Cut c)
{
    return c.rows ? n / c.rows * c.most : c.uneven == n ? divide_room(d, n) : n / d->devices;
}

/* Why no region begins with this operator and axis; NULL: one may. */
static const char *no_seed(const Divide *d, const Op *o, const RowAxes *a, int axis)
{
    const int64_t size = axis_size(a, axis, number_of, o), parts = parts_of(d, o, a, axis);
    const long long n = (long long)size;
    /* What a table has, four numbers an element, against its result, which would be sent: the types of BERT's tokens. */
    if (!strcmp(row(o->row)->name, "Embedding") && 4 * attr_int(o, "rows") < attr_int(o, "n"))
        return "its table, with gradient and moments, is smaller than its result";
    return size % parts == 0 ? NULL
         : axis_leads(a, axis) || is_attention(o)
             ? strf("its %lld %s are no multiple of %d devices", n, a->axis[axis].name, d->devices)
         : room_of(d, size, (Cut){.uneven = size}) >= size ? strf("one device has room for all its %lld columns", n)
         : knows_whole(part_row(o, a, axis)) ? NULL
         : strf("its %lld columns are no multiple of %lld blocks", n, (long long)parts);
}

typedef struct { int op, axis; int64_t work; } Seed;

ORDER(by_work, Seed, order_of(y->work, x->work), order_of(x->op, y->op))

void divide_find(const Graph *g, int devices, const PlanSpec *p, Divide *to)
{
    *to = (Divide){.devices = devices, .experts = p->experts == EXPERTS_DEVICES,
                   .everywhere = p->positions == POSITIONS_EVERYWHERE, .blocks = g->blocks > devices ? g->blocks : devices,
                   .axis = alloc((size_t)g->nf * sizeof *to->axis), .of = alloc((size_t)g->tensor.n * sizeof *to->of),
                   .of_state = alloc((size_t)g->state.n * sizeof *to->of_state),
                   .why = alloc((size_t)g->nf * sizeof *to->why)};
    VEC(Seed) seed = {0};
    for (int i = 0; i < g->nf; i++)
        to->axis[i] = -1;
    for (int i = 0; i < g->nf; i++) {
        const Op *o = &g->op.at[i];
        const RowAxes a = row_axes(row(o->row));
        for (int axis = 0; axis < a.axes; axis++) {
            const bool heads = to->everywhere && is_attention(o) && !a.axis[axis].whole;
            if (!heads && (part_row(o, &a, axis) < 0 || !begins(o, &a, axis) || (axis_leads(&a, axis) && !to->experts)))
                continue;
            const int64_t work = (to->why[i] = no_seed(to, o, &a, axis)) ? -1 : grow(g, to, i, axis, false);
            if (work >= 0)
                *PUSH(&seed) = (Seed){i, axis, work};
        }
    }
    SORT(seed.at, seed.n, by_work);
    for (int i = 0; i < seed.n; i++)
        if (to->axis[seed.at[i].op] < 0)
            grow(g, to, seed.at[i].op, seed.at[i].axis, true);
    for (int i = 0; i < g->nf; i++)
        if (to->axis[i] >= 0)
            count_sums(g, &g->op.at[i], to->axis[i], &to->forward, &to->backward);
}

/* ---- the graph of one device --------------------------------------------------------------------------------------- */

/* The axis of a shape that has `outer` stretches in front of its parts. */
static int axis_of(const Shape *s, int64_t outer)
{
    int k = 0;
    int64_t front = 1;
    for (; k < s->n - 1 && front * s->d[k] <= outer; k++)
        front *= s->d[k];
    return k;
}

static void shrink_attr(const Divide *d, Op *o, const char *name, int64_t uneven)
{
    const Attr *a = attr_find(o, name);
    if (a && a->is_int && (a->i % d->devices == 0 || a->i == uneven))
        attr_set(o, a->name, room_of(d, a->i, (Cut){.uneven = uneven}));
}

/* A part may read more than its row does: results of what has made another operand. */
static void add_operands(const Graph *g, Op *o)
{
    const Row *part = row(o->row);
    for (int k = o->in.n; k < part->in.n; k++)
        for (int i = 0; i < o->in.n && o->in.n == k; i++) {
            const Tensor *t = &g->tensor.at[o->in.at[i]];
            const Op *maker = t->kind == T_ACT ? &g->op.at[t->op] : NULL;
            for (int j = 0; maker && j < maker->out.n && o->in.n == k; j++)
                if (!strcmp(row(maker->row)->out.at[j].name, part->in.at[k].name))
                    *PUSH(&o->in) = maker->out.at[j];
        }
    if (o->in.n != part->in.n)
        die("%s: no operand %s", o->name, part->in.at[o->in.n].name);
}

/* Of the operand's or result's rows that go with an axis, as many as a device may have; `all` says how many there are. */
static void spread_attr(Op *o, const char *name, Cut c)
{
    const Attr *a = attr_find(o, name);
    if (!a || !c.rows)
        return;
    ATTRS(o, {"all", a->i}, {a->name, room_of(NULL, a->i, c)});
}

static void spread_op(const Graph *g, const Divide *d, Op *o, const RowAxes *a, int axis)
{
    for (int i = 0; i < a->axes; i++)
        if (a->axis[i].by == axis + 1)
            spread_attr(o, a->axis[i].name, d->of[o->out.at[0]]);
    shrink_attr(d, o, a->axis[axis].name, 0);
    attr_set(o, "devices", d->devices);
    o->row = part_row(o, a, axis);
    add_operands(g, o);
}

/* Its sizes, and those that are products of the axis. */
static void shrink_op(Graph *g, const Divide *d, Op *o, int axis)
{
    const RowAxes a = row_axes(row(o->row));
    int part = part_row(o, &a, axis), x = o->in.n ? o->in.at[0] : -1;
    if (axis_leads(&a, axis))
        spread_op(g, d, o, &a, axis);
    else if (x >= 0 && d->of[x].rows)
        spread_attr(o, a.axis[axis].name, d->of[x]);
    if (axis_leads(&a, axis) || (x >= 0 && d->of[x].rows))
        return;
    int64_t pieces = divide_front(o, &a, 0, axis) && x >= 0 ? d->of[x].outer / divide_front(o, &a, 0, axis) : 0;
    const Bytes scratch = is_attention(o) ? attr_int(o, "tmp.I") : 0;
    const int64_t heads = is_attention(o) ? attr_int(o, "heads") : 0;
    int64_t whole = attr_int(o, a.axis[axis].name), uneven = whole % parts_of(d, o, &a, axis) ? whole : 0;
    shrink_attr(d, o, a.axis[axis].name, uneven);
    for (int p = 0; p < a.products; p++)
        for (int k = 0; k < a.product[p].of.n; k++)
            if (a.product[p].of.dim[k] == axis) {
                whole = attr_int(o, a.product[p].attr);
                shrink_attr(d, o, a.product[p].attr, 0);
            }
    attr_set(o, "whole", whole);
    if (part < 0) {
        const Attr *alibi = attr_find(o, "alibi");
        if (is_attention(o) && (draws(o) || (alibi && alibi->f > 0)))       /* its heads are not the first of all */
            attr_set(o, "site", ~attr_int(o, "site"));
        shrink_attr(d, o, "tmp.F", 0);
        shrink_attr(d, o, "tmp.I", 0);
        if (is_attention(o))
            attention_room(o, scratch, heads);
        return;
    }
    o->row = part;
    if (!swaps(part))
        attr_set(o, "pieces", pieces);
    if (!strcmp(row(part)->shape, "linear_xent"))
        linear_xent_room(g, o, g->blocks / d->devices);
    if (!is_linear(o) && !is_conv(o))
        return;
    bool columns = !is_axis(&a, axis, "in");
    int64_t sums = shape_elements(&g->tensor.at[columns ? o->in.at[0] : o->out.at[0]].shape) * type_bytes(F32);
    if (columns && !attr_int(o, "pieces"))      /* a word of Linear */
        attr_set(o, "pieces", 1);
    attr_set(o, columns ? "tmp.I" : "tmp.F", g->compute == F32 ? 0 : sums);     /* f32: the result is the room */
}

void divide_shape(const Divide *d, Cut c, Shape *s, Bytes *bytes)
{
    if (c.rows && s->d[0] % c.rows)         /* rows that a Reshape has hidden */
        *s = (Shape){1, {shape_elements(s)}};
    int64_t *n = &s->d[axis_of(s, c.outer)], each = *bytes / *n;
    *n = room_of(d, *n, c);
    *bytes = each * *n;
}

/* The most devices that have whole experts each, in all layers. */
static int devices_of(const Graph *g, int most)
{
    for (int i = 0; i < g->nf; i++) {
        const RowAxes a = row_axes(row(g->op.at[i].row));
        for (int axis = 0; axis < a.axes; axis++)
            while (axis_leads(&a, axis) && axis_size(&a, axis, number_of, &g->op.at[i]) % most)
                most /= 2;
    }
    return most;
}

/* Experts that were to be whole, and are not. */
static void refuse_experts(const Graph *g, const Model *m, const Divide *d)
{
    bool any = false;
    for (int i = 0; i < g->nf && d->experts; i++) {
        const RowAxes a = row_axes(row(g->op.at[i].row));
        for (int axis = 0; axis < a.axes; axis++) {
            any |= axis_leads(&a, axis);
            if (!axis_leads(&a, axis) || d->axis[i] == axis || !begins(&g->op.at[i], &a, axis))
                continue;
            const int most = devices_of(g, d->devices);
            err(m->plan.experts_at, most > 1 && most < d->devices ? strf("plan.tensor: %d, or plan.experts: divided", most)
                : "plan.experts: divided", "plan.experts: devices, and plan.tensor: %d: %s: %s", d->devices,
                g->op.at[i].name, d->why[i]);
        }
    }
    if (d->experts && !any)
        err(m->plan.experts_at, "delete it", "plan.experts: devices: the model has no experts");
}

/* auto is open until a search names one. */
static bool has_rows(const Model *m)
{
    return m->plan.positions == POSITIONS_DIVIDED || m->plan.positions == POSITIONS_EVERYWHERE;
}

void divide(Graph *g, const Model *m)
{
    Divide d;
    if (m->plan.tensor < 2)
        return;
    divide_find(g, m->plan.tensor, &m->plan, &d);
    refuse_experts(g, m, &d);
    g->team = m->plan.tensor;
    bool any = false;
    for (int i = 0; i < g->tensor.n; i++)
        if (d.of[i].outer && d.axis[g->tensor.at[i].op] >= 0)
            divide_shape(&d, d.of[i], &g->tensor.at[i].shape, &g->tensor.at[i].bytes);
    for (int i = 0; i < g->state.n; i++)
        if (d.of_state[i].outer) {
            State *s = &g->state.at[i];
            s->outer = d.of_state[i].outer;
            s->dim = axis_of(&s->shape, s->outer);
            s->whole = s->shape.d[s->dim];
            for (int k = 0; k < 2 && (k == 0 || (i + 1 < g->state.n && s[1].kind == S_COPY)); k++)
                divide_shape(&d, d.of_state[i], &s[k].shape, &s[k].bytes);
        }
    for (int i = 0; i < g->nf; i++) {
        Op *o = &g->op.at[i];
        if (d.axis[i] < 0)
            continue;
        any = true;
        shrink_op(g, &d, o, d.axis[i]);
        bind_forward(g, o);
    }
    const bool rows = has_rows(m) && (any || d.everywhere) && positions(g, &d);
    if (has_rows(m) && any && !rows)
        err(m->plan.positions_at, "plan.positions: whole, or a micro-batch of more rows",
            "plan.positions: %s: no norm, residual or Dropout behind a divided operator has rows for more than one "
            "device, in %" PRId64 " blocks", d.everywhere ? "everywhere" : "divided", g->blocks);
    any |= rows;
    for (int i = 0; i < g->nf && !any; i++)
        if (d.why[i])
            err(m->plan.tensor_at, "delete it", "plan.tensor: %d: no operator can be divided; the first that might be, %s: %s",
                m->plan.tensor, g->op.at[i].name, d.why[i]);
    if (!any)
        err(m->plan.tensor_at, "delete it", "plan.tensor: %d: the model has no operator that can be divided", m->plan.tensor);
}

/* ---- for people ---------------------------------------------------------------------------------------------------- */

static const char *sum_text(const Graph *g, int t, const char *what)
{
    return strf("; %s is a sum over them, %s a micro-batch in f32", what,
                size_text(shape_elements(&g->tensor.at[t].shape) * type_bytes(F32)));
}

/* Along what, and what is a sum then. */
static const char *axis_text(const Graph *g, const Divide *d, int op)
{
    const Op *o = &g->op.at[op];
    const RowAxes a = row_axes(row(o->row));
    int64_t size = axis_size(&a, d->axis[op], number_of, o);
    const Cut c = d->of[o->out.at[0]].rows ? d->of[o->out.at[0]] : d->of[o->in.at[0]];
    if (axis_leads(&a, d->axis[op]))
        return strf("%" PRId64 " %s among %d devices; of %" PRId64 " rows each may have %" PRId64, size,
                    a.axis[d->axis[op]].name, d->devices, c.rows, c.most);
    if (o->in.n && o->in.at[0] >= 0 && d->of[o->in.at[0]].rows)
        return strf("rows of the experts that each of %d devices has", d->devices);
    const bool sums = (is_linear(o) || is_conv(o)) && part_row(o, &a, d->axis[op]) >= 0;
    const bool columns = sums && !is_axis(&a, d->axis[op], "in");
    const char *const names[] = {"columns of the weight", "columns of the result", "channels of x", "channels of the result"};
    const char *name = sums ? names[2 * is_conv(o) + columns] : a.axis[d->axis[op]].name;
    name = !strcmp(name, "n") || !strcmp(name, "per") ? "elements" : !strcmp(name, "inner") ? "columns" : name;
    return strf("%" PRId64 " %s%s among %d devices%s", size, name,
                columns && is_axis(&a, d->axis[op], "part") ? strf(" in each of %d pieces", (int)attr_int(o, "pieces")) : "",
                d->devices, columns ? sum_text(g, o->in.at[0], "the gradient of x")
                : sums ? sum_text(g, o->out.at[0], "the result") : "");
}

const char *divide_text(const Model *m, const char *name)
{
    Divide d;
    int i = 0;
    if (m->plan.tensor < 2)
        return NULL;
    Graph *g = build(m);
    shape(g, m);
    divide_find(g, m->plan.tensor, &m->plan, &d);
    while (i < g->nf && strcmp(g->op.at[i].name, name))
        i++;
    if (i == g->nf)
        return NULL;
    const RowCut c = has_rows(m) ? positions_find(g, &d)[i] : (RowCut){-1, 0, NULL};
    return d.axis[i] >= 0 ? strf("divided: %s", axis_text(g, &d, i))
         : c.axis >= 0 ? strf("divided: %" PRId64 " rows among %d devices%s", c.rows, d.devices, c.rows % d.blocks == 0 ? ""
                              : strf(", %" PRId64 " at most on each", divide_room(&d, c.rows)))
         : strf("whole on each of %d devices: %s", d.devices, d.why[i] ? d.why[i] : c.why ? c.why
                : "no product in front of it is divided");
}
