/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c: from the lines of the model to forward operators.
 *
 * Every line is read where it stands, block instance by block instance, in order, so operators come out in the order
 * of the model.  An operator takes its operands from `in:` by position, from keys of their names, or the value
 * before it as the first.  Some lines become other operators than they name:
 *
 *   Split                a Slice a part
 *   Flatten              a Reshape
 *   GlobalAvgPool        a Mean
 *   InstanceNorm         a GroupNorm with a group a channel
 *   Attention packed     AttentionPacked
 *   `documents`          a row with that operand besides, the last one; the line's, or that of the model
 *   `top` of a loss      a HitReport behind it: expand.c
 *   BatchNorm            BatchStat and BatchNormalize: expand.c
 *   Round                Round and Unpack: expand.c
 *   LSTM                 Linear and Recur: expand_lstm.c
 *   Concat of more than eight   nested Concats: eight are joined first, the result takes their place
 *   Add, Scale of losses        LossAdd, LossScale: a loss is f32 in every job, and one number
 *   a f32 data input in a bf16 job gets one Cast; the loss of the model a LossReport at the end
 *
 * needs: Model.  fills: operators with in, par, attr, names and places; tensors and parameters without shapes.
 * keeps: a tensor has one producer, which stands before its readers.  fails: bad() for each mistake, up to 20.
 */
#include "build.h"

/* Names of `op:` that are not rows of ops.def, the row they are made of, and their keys as there. */
static const struct { const char *name, *op, *keys; } composite[] = {
    {"Split", "Slice", "axis z -1; parts n -; sizes l -"}, {"Flatten", "Reshape", ""},
    {"GlobalAvgPool", "Mean", "keep b false"}, {"InstanceNorm", "GroupNorm", "eps f 1e-5; affine b false"},
    {"BatchNorm", "BatchNormalize", "eps f 1e-5; momentum f 0.1; track=each w step micro; over w micro step"},
    {"LSTM", "Recur", "hidden n; bidirectional b false; weight_dropout=drop f 0"},
};
enum { COMPOSITES = sizeof composite / sizeof *composite };

static Strs op_names(void)
{
    Strs names = {0};
    for (int i = 0; i < row_count(); i++)
        if (!row(i)->internal)
            *PUSH(&names) = row(i)->name;
    for (int i = 0; i < COMPOSITES; i++)
        *PUSH(&names) = composite[i].name;
    return names;
}

static int row_of(const char *op)
{
    for (int i = 0; i < COMPOSITES; i++)
        if (!strcmp(op, composite[i].name))
            return row_find(composite[i].op);
    int r = row_find(op);
    return r >= 0 && row(r)->internal ? -1 : r;
}

static const char *keys_of(const char *op)
{
    for (int i = 0; i < COMPOSITES; i++)
        if (!strcmp(op, composite[i].name))
            return composite[i].keys;
    return row(row_of(op))->keys;
}

static int tensor_new(Builder *b, Tensor t, char type)
{
    *PUSH(&b->type) = type;
    *PUSH(&b->g->tensor) = t;
    return b->g->tensor.n - 1;
}

int op_new(Scope *s, const Node *line, const char *path, int r, Op o)
{
    Builder *b = s->b;
    Graph *g = b->g;
    if (g->op.n >= MAX_OPS)
        err(line->loc, NULL, "the model has more than %d operators", MAX_OPS);
    o.name = claim(s, line, path);
    o.layer = s->layer;
    o.row = r;
    o.fwd = g->op.n;
    o.loc = line->loc;
    for (int i = 0; i < row(r)->out.n; i++) {
        const Operand *out = &row(r)->out.at[i];
        const char *name = i ? claim(s, line, path_join(path, out->name)) : path;
        Type type = out->type == 'f' ? F32 : out->type == 'i' ? I32 : g->compute;
        Tensor t = {.name = name, .kind = T_ACT, .type = type, .op = o.fwd, .of = -1, .loc = o.loc};
        int index = tensor_new(b, t, out->type);
        *PUSH(&o.out) = index;
    }
    params(s, line, &o, o.fwd);
    *PUSH(&g->op) = o;
    return o.fwd;
}

/* ---- operands -------------------------------------------------------------------------------------------------- */

/* Operands that a line gives: those of dpgen's own are behind them. */
static int given(const Row *r)
{
    int n = r->in.n;
    while (n > 0 && r->in.at[n - 1].fixed)
        n--;
    return n;
}

static const char *takes(const Row *r)
{
    const char *text = "";
    for (int i = 0; i < given(r); i++)
        text = strf("%s%s%s%s", text, i ? ", " : "", r->in.at[i].name, r->in.at[i].optional ? "?" : "");
    return strf("it takes (%s)", text);
}

/* One result a branch; every branch begins with the same value. */
static void branch_values(Scope *s, const Node *line, const Node *branches, Ints *list)
{
    const Node *in = node_get(line, "in");
    int from = in ? value_of(s, in) : value_last(s, line);
    if (branches->kind != LIST)
        WRONG(s->b, branches->loc, "write branches: [[...], [...]]", "'branches' is a list of lists");
    for (int i = 0; branches->kind == LIST && i < branches->n; i++) {
        s->last = from;
        body_lines(s, branches->at[i]);
        *PUSH(list) = s->last;
    }
}

static void listed(Scope *s, const Node *line, Ints *list)
{
    const Node *in = node_get(line, "in"), *branches = node_get(line, "branches");
    if (branches)
        branch_values(s, line, branches, list);
    else if (in && in->kind == LIST)
        for (int i = 0; i < in->n; i++) {
            int t = value_of(s, in->at[i]);
            *PUSH(list) = t;
        }
    else if (in)
        *PUSH(list) = value_of(s, in);
}

static bool fits(Scope *s, const Node *line, const char *op, const Operand *want, int t)
{
    static const char *const what[] = {"real numbers", "i32 data", "a loss"};
    if (t == UNKNOWN || t == -1)
        return t == -1;
    char got = s->b->type.at[t];
    if (got == want->type)
        return true;
    int i = want->type == 'r' ? 0 : want->type == 'i' ? 1 : 2, k = got == 'r' ? 0 : got == 'i' ? 1 : 2;
    WRONG(s->b, line->loc, NULL, "%s: operand %s takes %s, and %s is %s", op, want->name, what[i],
          s->b->g->tensor.at[t].name, what[k]);
    return false;
}

/* Operands in the order of the row, -1 the absent ones. */
static bool place(Scope *s, const Node *line, const char *op, const Row *r, const Ints *list, Ints *in)
{
    bool ok = true, first = !list->n && r->in.n && !node_get(line, r->in.at[0].name);
    if (list->n > given(r)) {
        WRONG(s->b, node_get(line, "in") ? node_get(line, "in")->loc : line->loc, takes(r),
              "%s has %d operands too many", op, list->n - given(r));
        return false;
    }
    for (int i = 0; i < given(r); i++) {
        const Node *key = node_get(line, r->in.at[i].name);
        if (!key && !strcmp(r->in.at[i].name, "documents"))
            key = s->b->m->documents;
        if (i < list->n && key)
            WRONG(s->b, key->loc, NULL, "operand %s of %s is given by 'in' already", r->in.at[i].name, op);
        int t = i < list->n ? list->at[i] : key ? value_of(s, key) : first && !i ? value_last(s, line) : -1;
        *PUSH(in) = t;
        if (t == -1 && !r->in.at[i].optional) {
            WRONG(s->b, line->loc, takes(r), "%s lacks operand %s", op, r->in.at[i].name);
            ok = false;
        }
        ok &= fits(s, line, op, &r->in.at[i], t);
    }
    return ok;
}

/* ---- lines that become other operators ------------------------------------------------------------------------- */

static const struct { const char *plain, *with; } documented[] = {
    {"Attention", "AttentionGeneral"}, {"AttentionPacked", "AttentionPackedDocuments"}, {"Rotary", "RotaryDocuments"},
    {"PositionEmbedding", "PositionDocuments"},
};

/* The row that reads documents besides; -1: there is none. */
static int with_documents(int r)
{
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++)
        if (!strcmp(documented[i].plain, row(r)->name))
            return row_find(documented[i].with);
    return -1;
}

static bool is_loss(const Scope *s, const Ints *list, const Node *line)
{
    int t = list->n ? list->at[0] : node_get(line, "a") || node_get(line, "x") ? -1 : s->last;
    return t >= 0 && s->b->type.at[t] == 'f';
}

static int row_for(Scope *s, const Node *line, const char *op, const Ints *list)
{
    bool one = !strcmp(op, "Attention") && !strcmp(attr_word(line, "packed"), "qkv");
    int plain = one ? row_find("AttentionPacked") : row_of(op);
    if (with_documents(plain) >= 0)
        return node_get(line, "documents") || node_get(line, "sinks") || s->b->m->documents ? with_documents(plain) : plain;
    if (!strcmp(op, "Add") && is_loss(s, list, line))
        return row_find("LossAdd");
    if (!strcmp(op, "Scale") && is_loss(s, list, line))
        return row_find("LossScale");
    return row_of(op);
}

/* Concat of more than eight: join the first eight, put the result in their place, until eight are left. */
static Ints nest(Scope *s, const Node *line, const char *path, const Op *like, Ints list)
{
    const int most = row(row_find("Concat"))->in.n;
    for (int level = 1; list.n > most; level++) {
        Op o = {.attr = {NULL, 0, 0}};
        attr_set(&o, "axis", attr_int(like, "axis"));
        for (int i = 0; i < most; i++)
            *PUSH(&o.in) = list.at[i];
        int op = op_new(s, line, strf("%s.%d", path, level), row_find("Concat"), o);
        Ints next = {0};
        *PUSH(&next) = s->b->g->op.at[op].out.at[0];
        for (int i = most; i < list.n; i++)
            *PUSH(&next) = list.at[i];
        list = next;
    }
    return list;
}

/* Split: one Slice a part; with `sizes` the last must end where the axis does, which shape checks by `total`. */
static Ints split(Scope *s, const Node *line, const char *path, int x, const Op *like)
{
    bool equal = attr_find(like, "parts"), sizes = attr_find(like, "sizes");
    int64_t n = attr_int(like, equal ? "parts" : "sizes"), from = 0;
    Ints out = {0};
    if (equal == sizes || n > MAX_REPEAT) {
        WRONG(s->b, line->loc, "parts: 3, or sizes: [a, b, c]", "Split needs either 'parts' or 'sizes', at most %d",
              MAX_REPEAT);
        return out;
    }
    claim(s, line, path);                   /* the parts are path.0, path.1, ... */
    for (int i = 0; i < n; i++) {
        Op o = {.attr = {NULL, 0, 0}};
        *PUSH(&o.in) = x;
        ATTRS(&o, {"axis", attr_int(like, "axis")}, {"part", i});
        if (attr_find(like, "parts")) {
            attr_set(&o, "parts", attr_int(like, "parts"));
        } else {
            ATTRS(&o, {"start", from}, {"length", attr_int(like, strf("sizes.%d", i))});
        }
        int op = op_new(s, line, strf("%s.%d", path, i), row_find("Slice"), o);
        int t = s->b->g->op.at[op].out.at[0];
        *PUSH(&out) = t;
        from += equal ? 0 : attr_int(like, strf("sizes.%d", i));
    }
    if (!equal)
        for (int i = 0; i < n; i++)
            attr_set(&s->b->g->op.at[s->b->g->tensor.at[out.at[i]].op], "total", from);
    return out;
}

/* ---- one line -------------------------------------------------------------------------------------------------- */

static bool line_keys(Scope *s, const Node *line, const char *op)
{
    static const char *const common[] = {"op", "name", "in", "as", "when"};
    const Row *r = row(row_of(op));
    Strs keys = {0};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        *PUSH(&keys) = common[i];
    for (int i = 0; i < given(r); i++)
        *PUSH(&keys) = r->in.at[i].name;
    for (int i = 0; i < r->par.n; i++)
        if (r->par.at[i].optional)
            *PUSH(&keys) = r->par.at[i].name;
    if (r->par.n) {
        *PUSH(&keys) = "init";
        *PUSH(&keys) = "tie";
        if (strcmp(op, "LSTM"))             /* its names are PyTorch's */
            *PUSH(&keys) = "names";
    }
    if (given(r) > 1)
        *PUSH(&keys) = "branches";
    if (!strcmp(op, "Attention"))
        *PUSH(&keys) = strcmp(attr_word(line, "packed"), "qkv") ? "sinks" : "qkv";
    if (with_documents(row_of(op)) >= 0)
        *PUSH(&keys) = "documents";
    attr_keys(op, keys_of(op), &keys);
    return keys_ok(s->b, line, op, &keys);
}

static const char *op_of(Scope *s, const Node *line)
{
    const Node *op = node_get(line, "op");
    if (op && op->kind == SCALAR && row_of(op->text) >= 0)
        return op->text;
    Strs names = op_names();
    if (!op || op->kind != SCALAR)
        WRONG(s->b, line->loc, "write {op: ..., ...} or {use: ..., ...}", "this line has no operator");
    else
        WRONG(s->b, op->loc, did_you_mean(op->text, names.at, names.n, "docs/operators.md lists them"),
              "there is no operator %s", op->text);
    return NULL;
}

static void finish(Scope *s, const Node *line, const Ints *results)
{
    s->last = results->at[results->n - 1];
    values_name(s, node_get(line, "as"), results);
}

static void expand(Scope *s, const Node *line, const char *op)
{
    Ints list = {0}, in = {0}, results = {0};
    Op o = {.attr = {NULL, 0, 0}};
    const char *path = path_of(s, line, op);
    listed(s, line, &list);
    attr_read(s, line, op, keys_of(op), &o);
    if (!strcmp(op, "Flatten"))
        attr_set(&o, "flatten", 1);
    if (!strcmp(op, "Concat"))
        list = nest(s, line, path, &o, list);
    int r = row_for(s, line, op, &list);
    if (!place(s, line, op, row(r), &list, &in)) {
        values_lost(s, line);
        return;
    }
    if (!strcmp(op, "Split")) {
        results = split(s, line, path, in.at[0], &o);
    } else {
        o.in = in;
        int index = !strcmp(op, "BatchNorm") ? batch_norm(s, line, path, o)
            : !strcmp(op, "LSTM") ? lstm(s, line, path, o)
            : !strcmp(op, "Round") ? rounded(s, line, path, o)
            : !strcmp(op, "Linear") && match_any(&s->b->m->adapt.match, path) ? adapt(s, line, path, o)
            : attr_find(&o, "top") && r != row_find("Route") ? hits(s, line, path, r, o) : op_new(s, line, path, r, o);
        *PUSH(&results) = s->b->g->op.at[index].out.at[0];
        bool numbers = false;
        for (int i = 0; i < row(r)->out.n; i++)
            numbers |= row(r)->out.at[i].type == 'i';
        for (int i = 1; numbers && i < row(r)->out.n; i++)
            *PUSH(&results) = s->b->g->op.at[index].out.at[i];
    }
    if (results.n)
        finish(s, line, &results);
    else
        values_lost(s, line);
}

void op_line(Scope *s, const Node *line)
{
    const char *op = op_of(s, line);
    if (!op || !line_keys(s, line, op)) {
        values_lost(s, line);
    } else if (!is_on(s, line)) {
        const Node *in = node_get(line, "in");
        bool none = !in || (in->kind == LIST && !in->n);
        Ints one = {0};
        *PUSH(&one) = none ? value_last(s, line) : value_of(s, in->kind == LIST ? in->at[0] : in);
        finish(s, line, &one);
    } else {
        expand(s, line, op);
    }
}

/* ---- the graph ------------------------------------------------------------------------------------------------- */

static Shape input_shape(Scope *s, const Input *in)
{
    const Node *n = in->shape;              /* a list that begins with B: model has seen to it */
    Shape shape = {n->n, {0}};
    for (int i = 0; i < n->n; i++) {
        shape.d[i] = eval_int(s, n->at[i]);
        if (shape.d[i] < 1)
            WRONG(s->b, n->at[i]->loc, NULL, "input %s: a dimension must be at least 1, not %lld", in->name,
                  (long long)shape.d[i]);
    }
    if (!s->b->failed && shape_size(&shape, 0, shape.n) > MAX_BYTES / 4)
        WRONG(s->b, n->loc, NULL, "input %s: one micro-batch takes 2^48 bytes or more", in->name);
    return shape;
}

/* Does a set of known size fit, and do mean and std? */
static void check_picture(Builder *b, const Input *in, const Shape *shape, int input)
{
    static const Shape picture = {4, {0, 32, 32, 3}};
    const DataSet *set[] = {&b->m->data, &b->m->eval};
    int64_t channels = shape->n > 1 ? shape->d[shape->n - 1] : 1;
    for (int k = 0; k < 2 && !b->failed; k++)
        for (int i = 0; i < set[k]->input.n; i++) {
            bool same = shape->n == picture.n;
            for (int j = 1; same && j < picture.n; j++)
                same = shape->d[j] == picture.d[j];
            if (set[k]->input.at[i] == input && !strcmp(set[k]->role.at[i], "image") && !set[k]->path.at[i] && !same)
                WRONG(b, in->shape->loc, "shape: [B, 32, 32, 3]", "input %s has the shape %s, a picture of %s has 32 x 32 "
                      "pixels of 3 bytes", in->name, shape_text(shape), set[k]->format);
        }
    for (int k = 0; k < 2 && !b->failed; k++) {
        const Channels *x = k ? &in->std : &in->mean;
        if (x->n > 1 && x->n != channels)
            WRONG(b, in->loc, NULL, "input %s: %s has %d numbers, and the last axis is %lld: one, or as many, are expected",
                  in->name, k ? "std" : "mean", x->n, (long long)channels);
    }
}

static void inputs(Scope *s)
{
    Builder *b = s->b;
    for (int i = 0; i < b->m->inputs.n; i++) {
        const Input *in = &b->m->inputs.at[i];
        Node here = {.kind = SCALAR, .loc = in->loc};
        Tensor t = {.name = claim(s, &here, in->name), .kind = T_INPUT, .type = in->type, .op = -1, .of = i,
                    .loc = in->loc};
        t.shape = input_shape(s, in);
        t.bytes = shape_size(&t.shape, 0, t.shape.n) * type_bytes(t.type);
        check_picture(b, in, &t.shape, i);
        int index = tensor_new(b, t, in->type == I32 ? 'i' : 'r');
        *PUSH(&b->input) = index;
    }
    for (int i = 0; b->g->compute == BF16 && i < b->m->inputs.n; i++)
        if (b->m->inputs.at[i].type == F32) {
            Node here = {.kind = MAP, .loc = b->m->inputs.at[i].loc};
            Op o = {.attr = {NULL, 0, 0}};
            *PUSH(&o.in) = b->input.at[i];
            int op = op_new(s, &here, strf("%s.cast", b->m->inputs.at[i].name), row_find("Cast"), o);
            b->input.at[i] = b->g->op.at[op].out.at[0];
        }
}

/* plan.mode infer: each value that leaves the job. */
static void outputs(Scope *s)
{
    Builder *b = s->b;
    for (int i = 0; i < b->m->outputs.n; i++) {
        Loc at = mark_of(b->m, b->m->outputs.at[i], b->m->plan.mode_at);
        Node name = {.kind = SCALAR, .loc = at, .text = b->m->outputs.at[i]}, here = {.kind = MAP, .loc = at};
        int t = value_of(s, &name);
        if (t >= 0 && b->type.at[t] != 'r')
            WRONG(b, at, "name real numbers: scores, or what a loss reads", "output %s is %s", name.text,
                  b->type.at[t] == 'f' ? "a loss, one number of a micro-batch" : "i32");
        if (t < 0 || b->type.at[t] != 'r')
            continue;
        Op o = {.attr = {NULL, 0, 0}};
        *PUSH(&o.in) = t;
        attr_set(&o, "output", i);
        op_new(s, &here, path_of(s, &here, strf("output.%d", i)), row_find("Output"), o);
    }
}

/* The loss that the model names, and its report. */
static void loss(Scope *s)
{
    Builder *b = s->b;
    const Model *m = b->m;
    Node name = {.kind = SCALAR, .loc = m->loss_loc, .text = m->loss}, here = {.kind = MAP, .loc = m->loss_loc};
    int t = m->loss ? value_of(s, &name) : -1;
    if (t < 0)
        return;
    if (b->type.at[t] != 'f') {
        WRONG(b, m->loss_loc, "end with SoftmaxCrossEntropy, LinearCrossEntropy, BinaryCrossEntropy or MeanSquaredError",
              "%s is no loss", m->loss);
        return;
    }
    Op o = {.attr = {NULL, 0, 0}};
    *PUSH(&o.in) = t;
    b->loss = t;
    if (infers(m))
        return;
    op_new(s, &here, path_of(s, &here, "loss_report"), row_find("LossReport"), o);
    b->g->loss = t;
}

/* Marks what the loss, and outputs, depend on. */
static bool *needed_by_loss(const Graph *g, int loss)
{
    bool *need = alloc((size_t)g->tensor.n + (size_t)g->op.n + 1), *op = need + g->tensor.n;
    for (int i = 0; i < g->op.n; i++)
        op[i] = op_is(&g->op.at[i], TRAIT_END);
    if (loss >= 0)
        need[loss] = true;
    for (int i = g->op.n - 1; i >= 0; i--) {
        for (int k = 0; k < g->op.at[i].out.n; k++)
            op[i] |= need[g->op.at[i].out.at[k]];
        for (int k = 0; op[i] && k < g->op.at[i].in.n; k++)
            if (g->op.at[i].in.at[k] >= 0)
                need[g->op.at[i].in.at[k]] = true;
    }
    return need;
}

/* Complains about results that lead nowhere: of a chain, about its end; of a split, once. */
static void unused(Builder *b)
{
    Graph *g = b->g;
    const bool *need = needed_by_loss(g, b->loss);
    bool *read = alloc((size_t)g->tensor.n);
    Loc shown = {0, 0, 0};
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].in.n; k++)
            if (g->op.at[i].in.at[k] >= 0)
                read[g->op.at[i].in.at[k]] = true;
    for (int i = 0; i < g->op.n; i++) {
        const Op *o = &g->op.at[i];
        if (need[g->tensor.n + i] || (o->out.n && read[o->out.at[0]]) || row(o->row)->internal ||
            (shown.file == o->loc.file && shown.line == o->loc.line && shown.col == o->loc.col))
            continue;
        shown = o->loc;
        WRONG(b, o->loc, "remove the line, or use its value",
              "nothing uses the result of %s: the loss does not depend on it", o->name);
    }
    for (int i = 0; i < b->m->inputs.n; i++)
        if (!need[i])
            WRONG(b, b->m->inputs.at[i].loc, "remove it, or use it", "the loss does not depend on data input %s",
                  b->m->inputs.at[i].name);
}

Graph *build(const Model *m)
{
    Graph *g = alloc(sizeof *g);
    Builder b = {.m = m, .g = g, .loss = -1};
    Scope top = {.b = &b, .path = "", .layer = "", .body = m->graph, .first = -1, .last = -1};
    g->name = m->name;
    g->compute = m->train.compute;
    g->gpus = on_gpus(m) ? m->devices.at[0].arch : NULL;
    g->batch = m->train.batch ? m->train.batch : 1;
    g->micro = m->train.micro;
    g->groups = m->train.groups;
    g->blocks = m->train.blocks > 1 ? m->train.blocks : 0;
    g->vals = g->loss = -1;
    inputs(&top);
    body_lines(&top, m->graph);
    loss(&top);
    if (infers(m))
        outputs(&top);
    bad_stop();
    unused(&b);
    linears_named(&b, &m->adapt.match, m->adapt.loc, "adapt.match");
    choose_params(&b);
    bad_stop();
    quantize(&b);
    bad_stop();
    g->nf = g->nb = g->op.n;
    return g;
}
