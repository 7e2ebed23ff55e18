/* SPDX-License-Identifier: Apache-2.0
 *
 * positions.c: plan.positions: norms, residuals and Dropout between divided operators, on rows that the devices share.
 *
 * Problem.  What stands between regions of divided operators (divide.c) is whole: each device of a stage computes and keeps
 * all of it.  V. Korthikanti et al. (Reducing Activation Recomputation in Large Transformer Models, 2022, section 4.2.2) give
 * each device some positions of a sequence there.
 *
 * Method.  An operator may have a part of the rows if one axis is in front in all of its tensors, and no parameter has it.
 * Where it sums over rows or draws, ops.def has a row for parts.  A part is a contiguous one of all rows of a micro-batch,
 * samples first, in whole blocks of the sums over rows (docs/bits.md).  Such operators that touch each other are divided
 * together, if one of them reads a sum over the devices.
 *
 * Where two operators disagree about a tensor, one of two rows stands between them.  Gather makes rows whole; Part takes those
 * of the device.  Each is the other's way back.  Terms of a gradient are added in the order of readers, by rows: so grad cuts
 * each term of what was gathered, and gives it to what was not.  Behind grad, a sum of which only the device's rows are wanted
 * becomes a call that closes no other ones.
 *
 * needs   a divided Graph before grad; join_parts: behind it    fills   rows, sizes, Gather and Part    fails   status 3, where
 * there is nothing to divide
 *
 * Rows that the blocks do not divide have blocks of one length too, the last one shorter and those behind it empty.  Each
 * device has the room of the largest part, with zeros behind a shorter one.
 *
 * Cost: linear in operators and their operands.  Not handled: sums over samples that have another order (PositionEmbedding),
 * which stay whole.  What a divided LinearCrossEntropy adds is closed for all devices, and cut then.
 */
#include "divide.h"
#include "rewrite.h"

typedef struct {
    Graph *g;
    const Divide *d;
    Names taken;
    Tensor *was;                /* as one device has them */
    int *number, *other;        /* by operator: behind the pass; by tensor: its other form, -1: not there yet */
    int64_t *rows;              /* by tensor of which a device has a part somewhere: how many are cut */
    bool *shared;               /* by tensor: some operators want rows of it, and some all: each term of its gradient is added
                                   in the order of the readers, so each reader of rows has a Part of its own */
    Op *op;                     /* those behind the pass */
    int n, room;
} Positions;

/* ---- which ------------------------------------------------------------------------------------------------------------ */

/* The attribute of which each device has a part, along that axis.  Of an axis that stays whole, as a sample, each has a part of
 * what is behind it: together that is one piece of all samples. */
static const Attr *part_attr(const Op *o, const RowAxes *a, int axis)
{
    bool behind = a->axis[axis].whole && axis + 1 < a->axes;
    const Attr *attr = attr_find(o, a->axis[behind ? axis + 1 : axis].name);
    return attr && attr->is_int ? attr : NULL;
}

static bool in_front(const Graph *g, const Divide *d, const Op *o, const RowAxes *a, int axis, bool sums)
{
    const Row *r = row(o->row);
    for (int k = 0; k < a->lists; k++) {
        int thing = divide_thing(o, r, k);
        bool par = k >= r->in.n && k < r->in.n + r->par.n;
        int64_t front = divide_front(o, a, k, axis);
        if (thing >= 0 && par && (front || !sums))
            return false;
        const Type type = thing >= 0 && !par ? g->tensor.at[thing].type : I32;      /* Part takes numbers of the compute type */
        if (thing >= 0 && !par &&
            (front != 1 || (d->of[thing].outer && !d->everywhere) || type == I32 || (k < r->in.n && type != g->compute)))
            return false;
    }
    return true;
}

/* Rows, or elements, along that axis, of all samples. */
static int64_t all_along(const Op *o, const RowAxes *a, int axis)
{
    const Attr *attr = part_attr(o, a, axis);
    return strcmp(attr->name, a->axis[axis].name) ? attr->i * attr_int(o, a->axis[axis].name) : attr->i;
}

/* Rows that are rows of all its tensors, too; of statistics, elements. */
static int64_t rows_of(const Graph *g, const Op *o, int axis)
{
    const RowAxes a = row_axes(row(o->row));
    int64_t rows = all_along(o, &a, axis);
    for (int k = 0; k < a.lists; k++) {
        int t = divide_thing(o, row(o->row), k), out = k - row(o->row)->in.n - row(o->row)->par.n;
        if (t < 0 || (k >= row(o->row)->in.n && out < 0))
            continue;
        const Shape *s = &g->tensor.at[t].shape;
        bool counts = out >= 0 && row(o->row)->out.at[out].type == 'f';
        rows = number_common(rows, shape_elements(s) / (s->n > 1 && !counts ? s->d[s->n - 1] : 1));
    }
    return rows;
}

/* The axis of its rows, if the devices may share them; else -1.  Where these are coarser than those of what it reads, as
 * samples of positions, its neighbours are not cut so for its sake. */
static int rows_axis(const Graph *g, const Divide *d, const Op *o)
{
    const RowAxes a = row_axes(row(o->row));
    for (int axis = 0; axis < a.axes && a.lists; axis++) {
        const int form = row_part(row(o->row), a.axis[axis].name);
        const bool part = form >= 0 && (d->everywhere || !*row_swaps(row(form), PH_W));
        if ((!part && a.axis[axis].whole) || !part_attr(o, &a, axis) || !in_front(g, d, o, &a, axis, part))
            continue;
        const Shape *x = &g->tensor.at[o->in.at[0]].shape;
        const int64_t rows = rows_of(g, o, axis);
        return rows < shape_elements(x) / (x->n > 1 ? x->d[x->n - 1] : 1) ? -1 : axis;
    }
    return -1;
}

static int root(const int *group, int i)
{
    while (group[i] != i)
        i = group[i];
    return i;
}

/* Operators that make or read one tensor are divided together, or not at all. */
static void join_groups(const Graph *g, const int *axis, int *group)
{
    int *toucher = alloc(sizeof *toucher * (size_t)g->tensor.n);
    for (int i = 0; i < g->nf; i++)
        group[i] = i;
    for (int i = 0; i < g->nf; i++)
        for (int k = 0; k < g->op.at[i].in.n + g->op.at[i].out.n && axis[i] >= 0; k++) {
            const Ints *in = &g->op.at[i].in, *out = &g->op.at[i].out;
            int t = k < in->n ? in->at[k] : out->at[k - in->n];
            if (t >= 0 && toucher[t])
                group[root(group, i)] = root(group, toucher[t] - 1);
            if (t >= 0)
                toucher[t] = i + 1;
        }
}

/* Has the operator a sum over rows with other blocks than those that are cut, such as a norm of each head?  Then why. */
static const char *other_blocks(const Divide *d, const Op *o, int axis, int64_t rows)
{
    const RowAxes a = row_axes(row(o->row));
    const int part = row_part(row(o->row), a.axis[axis].name);
    const bool sums = part >= 0 && (*row_swaps(row(part), PH_I) || *row_swaps(row(part), PH_W));
    const int64_t all = sums ? all_along(o, &a, axis) : rows;
    return divide_room(d, all) == divide_room(d, rows) * (all / rows) ? NULL
         : strf("its sum over %lld rows has other blocks than the %lld that are cut", (long long)all, (long long)rows);
}

/* By root of a group: its rows, and whether one of it reads a sum over the devices. */
static void find_groups(const Graph *g, const Divide *d, const int *axis, int *group, int64_t *rows, bool *sum)
{
    memset(rows, 0, sizeof *rows * (size_t)g->nf);
    memset(sum, 0, sizeof *sum * (size_t)g->nf);
    join_groups(g, axis, group);
    for (int i = 0; i < g->nf; i++) {
        const int at = root(group, i);
        for (int k = 0; k < g->op.at[i].in.n && axis[i] >= 0; k++) {
            int t = g->op.at[i].in.at[k], maker = t < 0 ? -1 : g->tensor.at[t].op;
            sum[at] |= maker >= 0 && d->axis[maker] >= 0;
        }
        rows[at] = axis[i] >= 0 ? number_common(rows_of(g, &g->op.at[i], axis[i]), rows[at]) : rows[at];
    }
}

RowCut *positions_find(const Graph *g, const Divide *d)
{
    int *axis = alloc(sizeof *axis * (size_t)g->nf), *group = alloc(sizeof *group * (size_t)g->nf);
    int64_t *rows = alloc(sizeof *rows * (size_t)g->nf);
    bool *sum = alloc(sizeof *sum * (size_t)g->nf);
    RowCut *cut = alloc(sizeof *cut * (size_t)g->nf);
    for (int i = 0; i < g->nf; i++)
        axis[i] = d->axis[i] >= 0 ? -1 : rows_axis(g, d, &g->op.at[i]);
    for (bool again = true; again;) {
        again = false;
        find_groups(g, d, axis, group, rows, sum);
        for (int i = 0; i < g->nf; i++) {
            cut[i].why = axis[i] >= 0 ? other_blocks(d, &g->op.at[i], axis[i], rows[root(group, i)]) : cut[i].why;
            again |= axis[i] >= 0 && cut[i].why;
            axis[i] = cut[i].why ? -1 : axis[i];
        }
    }
    for (int i = 0; i < g->nf; i++) {
        const int64_t all = rows[root(group, i)];
        bool fits = all && divide_room(d, all) < all, one = axis[i] >= 0 && (d->everywhere || sum[root(group, i)]);
        cut[i] = (RowCut){one && fits ? axis[i] : -1, all,
                          one && !fits ? strf("one device has room for all its %lld rows", (long long)all) : cut[i].why};
    }
    return cut;
}

/* ---- the graph of one device ------------------------------------------------------------------------------------------ */

/* Rows of a part, and what a row has, if rows can be told: of so many rows that are cut. */
static void part_shape(const Divide *d, Tensor *t, int64_t rows)
{
    int64_t all = shape_elements(&t->shape), width = t->shape.n > 1 ? t->shape.d[t->shape.n - 1] : 1;
    int64_t room = all / rows * divide_room(d, rows);
    t->shape = t->shape.n > 1 && all / width % rows == 0 ? (Shape){2, {room / width, width}} : (Shape){1, {room}};
    t->bytes = t->bytes / all * room;
}

/* Of an axis that stays whole a part has n elements, of all samples. */
static void part_op(Positions *p, Op *o, RowCut c)
{
    const RowAxes a = row_axes(row(o->row));
    const Attr *attr = part_attr(o, &a, c.axis);
    const int64_t all = all_along(o, &a, c.axis);
    int part = row_part(row(o->row), a.axis[c.axis].name);
    if (part >= 0)
        attr_set(o, "whole", all);
    attr_set(o, strcmp(attr->name, a.axis[c.axis].name) ? "n" : attr->name, all / c.rows * divide_room(p->d, c.rows));
    for (int k = 0; k < a.products; k++)            /* its other factors stand in front, and are 1 */
        for (int i = 0; i < a.product[k].of.n; i++) {
            const Attr *product = attr_find(o, a.product[k].attr);
            if (a.product[k].of.dim[i] == c.axis && product && product->i == all)
                attr_set(o, product->name, all / c.rows * divide_room(p->d, c.rows));
        }
    o->row = part < 0 ? o->row : part;
    const int64_t bias = attr_int(o, "out") + attr_int(o, "width");         /* there is room for one, absent or not */
    Bytes sums = 0;
    for (int k = 0; k < row(o->row)->par.n; k++) {
        bool there = k < o->par.n && o->par.at[k] >= 0;
        sums += type_bytes(F32) * (there ? shape_elements(&p->g->state.at[o->par.at[k]].shape) : bias);
    }
    for (Phase phase = PH_I; part >= 0 && phase <= PH_W; phase++)
        if (*row_swaps(row(part), phase))
            attr_set(o, phase == PH_I ? "tmp.I" : "tmp.W", sums);
}

static Op *put(Positions *p, Op o)
{
    if (p->n == p->room)
        die("more than %d operators between rows", p->room);
    o.fwd = p->n;
    for (int k = 0; k < o.out.n; k++)
        p->g->tensor.at[o.out.at[k]].op = p->n;
    p->op[p->n] = o;
    return &p->op[p->n++];
}

/* Gather or Part behind tensor t, near operator `by`. */
static int move(Positions *p, bool gathers, int t, const Op *by, const char *name)
{
    Graph *g = p->g;
    Tensor y = p->was[t];
    y.name = name;
    y.kind = T_ACT;
    y.of = -1;
    if (!gathers)
        part_shape(p->d, &y, p->rows[t]);
    *PUSH(&g->tensor) = y;
    Op o = {.name = y.name, .layer = by->layer, .row = row_find(gathers ? "Gather" : "Part"), .phase = PH_F, .loc = by->loc};
    *PUSH(&o.in) = t;
    *PUSH(&o.out) = g->tensor.n - 1;
    attr_set(&o, "n", shape_elements(&g->tensor.at[gathers ? t : g->tensor.n - 1].shape));
    attr_set(&o, "whole", shape_elements(&p->was[t].shape));
    bind_forward(g, put(p, o));
    return p->other[t] = g->tensor.n - 1;
}

/* Around attention, with plan.positions: everywhere: rows of all heads become all rows of some, or the other way round.  Each
 * reader has a move of its own, so that terms of a gradient are added in the order of readers. */
static int exchange(Positions *p, bool heads, int t, const Op *by)
{
    Graph *g = p->g;
    const Cut c = p->d->of[t];
    const int64_t rows = p->rows[t], room = divide_room(p->d, rows);
    Tensor y = p->was[t];
    const int64_t all = shape_elements(&y.shape) * (heads ? 1 : p->d->devices), each = y.bytes / shape_elements(&y.shape);
    if (heads)
        divide_shape(p->d, c, &y.shape, &y.bytes);
    else
        y.shape = (Shape){2, {room, all / rows}}, y.bytes = room * (all / rows) * each;
    y.name = grad_name(&p->taken, strf("%s.%s", y.name, heads ? "heads" : "rows"));
    y.kind = T_ACT;
    y.of = -1;
    *PUSH(&g->tensor) = y;
    Op o = {.name = y.name, .layer = by->layer, .row = row_find(heads ? "Heads" : "Rows"), .phase = PH_F, .loc = by->loc};
    *PUSH(&o.in) = t;
    *PUSH(&o.out) = g->tensor.n - 1;
    ATTRS(&o, {"rows", rows}, {"mine", room}, {"pieces", c.outer / rows}, {"width", all / c.outer});
    bind_forward(g, put(p, o));
    return g->tensor.n - 1;
}

/* A sum that is wanted by rows alone: its part has the name, since it is what is kept. */
static const char *part_name(Positions *p, int t, Op *maker)
{
    const char *name = p->g->tensor.at[t].name;
    maker->name = p->g->tensor.at[t].name = grad_name(&p->taken, strf("%s.whole", name));
    return name;
}

/* How an operator makes or reads a tensor; -1: nobody makes it. */
enum { WHOLE, ROWS, HEADS };
static int form_of(const Positions *p, const RowCut *cut, int op, int t)
{
    return op < 0 ? WHOLE : cut[op].axis >= 0 ? ROWS : p->d->axis[op] >= 0 && p->d->of[t].outer ? HEADS : WHOLE;
}

/* Attention has heads, and its neighbour no rows of positions. */
static void refuse_whole(const Positions *p, const RowCut *cut, int i, int t, bool reader)
{
    const Op *o = &p->g->op.at[i];
    const char *maker = p->g->tensor.at[t].name, *why = cut[reader ? i : p->was[t].op].why;
    err(o->loc, "plan.positions: divided, or a micro-batch of rows that train.blocks divides",
        "plan.positions: everywhere: %s is whole%s%s, and each device has a part of %s", reader ? o->name : maker,
        why ? ": " : "", why ? why : "", reader ? maker : o->name);
}

/* Operands in the form that the operator wants.  Moves stand from its last operand to its first: where it takes a tensor twice,
 * backward, which meets the last move first, adds their terms in operand order. */
static bool take(Positions *p, const RowCut *cut, int i)
{
    Op *o = &p->g->op.at[i];
    bool moved = false;
    for (int k = o->in.n - 1; k >= 0; k--) {
        int t = o->in.at[k];
        bool rows = cut[i].axis >= 0;
        const int has = t < 0 ? WHOLE : form_of(p, cut, p->was[t].op, t), wants = t < 0 ? WHOLE : form_of(p, cut, i, t);
        if (has == wants)
            continue;
        const char *name = p->g->tensor.at[t].name;
        if ((has == HEADS || wants == HEADS) && (has + wants != ROWS + HEADS || p->d->of[t].outer % p->rows[t]))
            refuse_whole(p, cut, i, t, has == HEADS);
        if (has == HEADS || wants == HEADS) {
            o->in.at[k] = exchange(p, wants == HEADS, t, o);
            moved = true;
            continue;
        }
        if (p->other[t] < 0 || (rows && p->was[t].op >= 0 && p->shared[t]))
            move(p, !rows, t, o, grad_name(&p->taken, strf("%s.%s", name, rows ? "part" : "gather")));
        o->in.at[k] = p->other[t];
        moved = true;
    }
    return moved;
}

/* Does an operator want this in rows, and does one want it whole? */
static void wanted(const Positions *p, const RowCut *cut, int t, bool *rows, bool *whole)
{
    *rows = false;
    *whole = t == p->g->loss;
    for (int i = 0; i < p->g->nf; i++)
        for (int k = 0; k < p->g->op.at[i].in.n; k++)
            if (p->g->op.at[i].in.at[k] == t)
                *(cut[i].axis >= 0 ? rows : whole) = true;
}

static void rewrite(Positions *p, const RowCut *cut)
{
    Graph *g = p->g;
    for (int i = 0; i < g->nf; i++) {
        Op *o = &g->op.at[i];
        bool moved = take(p, cut, i), rows, whole;
        if (cut[i].axis >= 0)
            part_op(p, o, cut[i]);
        if (moved || cut[i].axis >= 0)
            bind_forward(g, o);
        p->number[i] = p->n;
        Op *made = put(p, *o);
        for (int k = 0; k < o->out.n && cut[i].axis < 0; k++) {
            int t = o->out.at[k];
            if (form_of(p, cut, i, t) != WHOLE)
                continue;
            wanted(p, cut, t, &rows, &whole);
            p->shared[t] = rows && whole;
            if (rows && !whole)         /* right behind it: join_parts */
                move(p, false, t, o, o->out.n > 1 ? grad_name(&p->taken, strf("%s.part", g->tensor.at[t].name))
                     : part_name(p, t, made));
        }
    }
    g->op.n = 0;
    for (int i = 0; i < p->n; i++)
        *PUSH(&g->op) = p->op[i];
    g->nf = g->nb = p->n;
    for (int s = 0; s < g->state.n; s++)
        g->state.at[s].op = g->state.at[s].op >= 0 ? p->number[g->state.at[s].op] : g->state.at[s].op;
    for (int i = 0; i < g->count.n; i++)
        g->count.at[i].op = p->number[g->count.at[i].op];
}

bool positions(Graph *g, const Divide *d)
{
    const RowCut *cut = positions_find(g, d);
    const size_t tensors = (size_t)g->tensor.n;
    Positions p = {.g = g, .d = d, .was = alloc(sizeof *p.was * tensors), .other = alloc(sizeof *p.other * tensors),
                   .number = alloc(sizeof *p.number * (size_t)g->nf), .shared = alloc(sizeof *p.shared * tensors),
                   .rows = alloc(sizeof *p.rows * tensors),
                   .room = 4 * g->nf + 2 * g->tensor.n};
    bool any = false;
    p.op = alloc(sizeof *p.op * (size_t)p.room);
    for (int t = 0; t < g->tensor.n; t++) {
        p.was[t] = g->tensor.at[t];
        p.other[t] = -1;
        names_put(&p.taken, name_as_c(g->tensor.at[t].name), 0);
        if (form_of(&p, cut, p.was[t].op, t) == ROWS)
            part_shape(d, &g->tensor.at[t], cut[p.was[t].op].rows);
    }
    for (int i = 0; i < g->nf; i++) {
        const Ints *in = &g->op.at[i].in, *out = &g->op.at[i].out;
        names_put(&p.taken, name_as_c(g->op.at[i].name), 0);
        for (int k = 0; k < in->n + out->n && cut[i].axis >= 0; k++)
            if ((k < in->n ? in->at[k] : out->at[k - in->n]) >= 0)
                p.rows[k < in->n ? in->at[k] : out->at[k - in->n]] = cut[i].rows;
        any |= cut[i].axis >= 0;
    }
    if (any)
        rewrite(&p, cut);
    return any;
}

/* ---- sums of which a device wants its rows ------------------------------------------------------------------------------ */

static Arg *first_of(Op *o, ArgKind kind, const char *token)
{
    for (int i = 0; i < o->arg.n; i++)
        if (token ? !strcmp(o->arg.at[i].token, token) : o->arg.at[i].kind == kind)
            return &o->arg.at[i];
    return NULL;
}

/* The row of a call that closes its sum for one device's rows; -1: it is none, or more is wanted.  *room: rows that a device
 * has room for. */
static int kept_row(const int *reads, Op *o, Op *part, int64_t *room)
{
    int kept = row_part(row(o->row), "kept");
    const Arg *y = first_of(o, ARG_WRITE, NULL), *rows = first_of(o, ARG_INT, "n");      /* words of a table; rows of it */
    rows = rows ? rows : first_of(o, ARG_INT, "rows");
    bool sums = kept >= 0 && rows && *row(kept)->call[o->phase] && *row_swaps(row(kept), o->phase);
    bool cut = !strcmp(part->call, "part_forward");
    if (!sums || !cut || !y || first_of(part, ARG_READ, "x")->index != y->index || reads[y->index] != 1)
        return -1;
    const int64_t n = first_of(part, ARG_INT, "n")->i, width = first_of(part, ARG_INT, "whole")->i / rows->i;
    *room = n / width;
    return n % width ? -1 : kept;
}

/* The way back of that part gathers a gradient of what is no tensor any more. */
static void gradient_of_all(Graph *g, int part, int all, int kept)
{
    for (int t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].kind == T_GRAD && g->tensor.at[t].of == all)
            g->tensor.at[t].of = kept;
    for (int i = g->nf; i < g->nb; i++) {
        Op *o = &g->op.at[i];
        if (o->fwd != part || strcmp(o->call, "gather_forward"))
            continue;
        o->row = row_find("Gather");
        first_of(o, 0, "dx")->token = "y";
        first_of(o, 0, "dy")->token = "x";
    }
}

void join_parts(Graph *g)
{
    int *into = match_all(g), *reads = graph_reads(g, 0, g->op.n);
    for (int i = 0; i + 1 < g->nb && g->team; i++) {
        Op *o = &g->op.at[i], *part = o + 1, both = *o;
        int64_t room;
        int kept = kept_row(reads, o, part, &room);
        if (kept < 0)
            continue;
        Arg *y = first_of(&both, ARG_WRITE, NULL);
        const Tensor *all = &g->tensor.at[y->index], *mine = &g->tensor.at[first_of(part, ARG_WRITE, NULL)->index];
        const char *call = row(kept)->call[o->phase];
        gradient_of_all(g, i + 1, y->index, first_of(part, ARG_WRITE, NULL)->index);
        both.row = kept;
        both.call = strf("%.*s", (int)strcspn(call, "("), call);
        both.moved += mine->bytes - all->bytes;
        if (first_of(&both, 0, "tmp")) {
            both.tmp = o->tmp ? o->tmp : all->bytes / type_bytes(all->type) * type_bytes(F32);
            both.moved += 2 * (both.tmp - o->tmp);
            first_of(&both, 0, "tmp")->kind = ARG_TMP;
        }
        y->index = first_of(part, ARG_WRITE, NULL)->index;
        *PUSH(&both.arg) = (Arg){.token = "mine", .kind = ARG_INT, .i = room};
        both.name = part->name;
        both.layer = part->layer;
        both.fwd = part->fwd;
        both.loc = part->loc;
        *part = both;
        into[i] = i + 1;
    }
    match_drop(g, into);
}
