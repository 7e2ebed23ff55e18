/* SPDX-License-Identifier: Apache-2.0
 *
 * aten.c: the operators that only PyTorch has, or that say there what calls.c does not read.
 */
#include "net.h"
#include <math.h>

/* ---- images ------------------------------------------------------------------------------------------------------------ */

/* Pairs of the last axis first */
static int pad(const NetCall *c)
{
    const char *mode = arg_word(c, "mode", "constant");
    int64_t at[4] = {0};
    int n;
    arg_list(c, "pad", at, 4, &n);
    if (strcmp(mode, "constant"))
        net_refuse(c->g, "it pads by mode %s, and constant is done", mode);
    return ops_pad(c->g, arg_first(c), (int64_t[]){at[2], at[0], at[3], at[1]}, arg_real(c, "value", 0));
}

static int upsample(const NetCall *c)
{
    const NetArgument *a = node_argument(c->n, "scale_factors");
    int64_t size[2];
    double factor[2];
    const Dims *d = &arg_value(c, arg_first(c))->dims;
    bool given = a && a->number.n == 2;
    int n;
    if (!given && (!arg_list(c, "output_size", size, 2, &n) || n != 2 || d->n != 4))
        net_refuse(c->g, "it has neither two factors nor two sizes");
    for (int i = 0; i < 2; i++)
        factor[i] = given ? a->number.at[i] : (double)size[i] / (double)d->d[2 + i];
    return ops_upsample(c->g, arg_first(c), factor, *c->op == 'B', arg_integer(c, "align_corners", 0));
}

static int global_pool(const NetCall *c)
{
    int64_t size[2] = {0};
    Dims d = arg_value(c, arg_first(c))->dims;
    int n;
    NetWindow w = {.dilate = {1, 1}, .groups = 1};
    arg_list(c, "output_size", size, 2, &n);
    size[1] = n == 1 ? size[0] : size[1];
    if (size[0] == 1 && size[1] == 1)
        return ops_global_pool(c->g, arg_first(c), true);
    if (d.n != 4 || size[0] < 1 || size[1] < 1 || d.d[2] % size[0] || d.d[3] % size[1])
        net_refuse(c->g, "its windows differ in size, which is not done");
    for (int i = 0; i < 2; i++)
        w.kernel[i] = w.stride[i] = d.d[2 + i] / size[i];
    return w.kernel[0] == 1 && w.kernel[1] == 1 ? arg_first(c) : ops_pool(c->g, "AvgPool", arg_first(c), &w);
}

/* ---- products and norms ------------------------------------------------------------------------------------------------ */

static int linear(const NetCall *c)
{
    return ops_linear(c->g, arg_first(c), arg_need(c, "weight"), arg_tensor(c, "bias"), false);
}

static int embedding(const NetCall *c)
{
    int ids = arg_need(c, "indices");
    return (arg_value(c, ids)->kind == VALUE_NUMBERS ? ops_positions : ops_embedding)(c->g, ids, arg_first(c));
}

static int attention(const NetCall *c)
{
    int heads[3] = {arg_tensor(c, "query"), arg_tensor(c, "key"), arg_tensor(c, "value")};
    if (arg_tensor(c, "attn_mask") >= 0)
        net_advise(c->g, "leave it out and say is_causal; models of transformers, which make one, are imported from their "
                   "config.json, dpgen import DIR", "it has a mask");
    return ops_attention(c->g, heads, arg_integer(c, "is_causal", 0), arg_real(c, "dropout_p", 0), arg_real(c, "scale", 0));
}

/* Its last states are results that nobody may read. */
static int lstm(const NetCall *c)
{
    const NetArgument *states = node_argument(c->n, "hx"), *weights = node_argument(c->n, "params");
    for (int i = 0; states && i < states->tensor.n; i++) {
        const double *x = net_known(c->g, states->tensor.at[i]);
        for (int64_t k = 0, n = dims_elements(&arg_value(c, states->tensor.at[i])->dims); !x || k < n; k++)
            if (!x || x[k] != 0)
                net_refuse(c->g, "it begins with other states than zeros, which are not carried from batch to batch");
    }
    if (!weights || !arg_integer(c, "batch_first", 0))
        net_advise(c->g, "make it with batch_first=True", "its first axis is that of the steps");
    return ops_lstm(c->g, arg_first(c), &weights->tensor, arg_integer(c, "num_layers", 1), arg_integer(c, "bidirectional", 0),
                    arg_integer(c, "has_biases", 1), arg_integer(c, "train", 1) ? arg_real(c, "dropout", 0) : 0);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------------- */

static int arange(const NetCall *c)
{
    double from = arg_real(c, "start", 0), to = arg_real(c, "end", 0);
    bool whole = from == floor(from) && to == floor(to) && arg_integer(c, "step", 1) == 1;
    if (!whole || !(from >= 0 && to > from && to - from <= 1 << 20))
        net_refuse(c->g, "it counts otherwise than 0, 1, 2, ...");
    int64_t n = (int64_t)(to - from);
    double *x = alloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = from + (double)i;
    return net_numbers(c->g, (Dims){1, {n}}, x);
}

static int zeros(const NetCall *c)
{
    Dims d = {0};
    arg_list(c, "size", d.d, MOST_DIMS, &d.n);
    int64_t n = dims_elements(&d);
    if (n < 0 || n > 1 << 24)
        net_refuse(c->g, "it has an axis below 0, or too many zeros");
    return net_numbers(c->g, d, alloc((size_t)n * sizeof(double) + 1));
}

/* ---- element by element ------------------------------------------------------------------------------------------------ */

static int clip(const NetCall *c)
{
    bool six = strstr(c->n->op, "relu6");
    double low = six ? 0 : arg_real(c, "min_val", arg_real(c, "min", -1));
    double high = six ? 6 : arg_real(c, "max_val", arg_real(c, "max", 1));
    return ops_unary(c->g, "Clip", strf(", min: %g, max: %g", low, high), arg_first(c));
}

/* Room for draws, which bernoulli_ fills */
static int empty(const NetCall *c)
{
    Dims d = {0};
    arg_list(c, "size", d.d, MOST_DIMS, &d.n);
    return ops_draw(c->g, d, 1);
}

static int bernoulli(const NetCall *c)
{
    return ops_draw(c->g, arg_value(c, arg_first(c))->dims, arg_real(c, "p", 0.5));
}

/* No gradient comes back through it; a weight or a constant stays what it is. */
static int detach(const NetCall *c)
{
    int x = arg_first(c);
    return arg_value(c, x)->kind == VALUE_ACT ? ops_unary(c->g, "StopGradient", "", x) : x;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static int flatten(const NetCall *c)
{
    int x = arg_first(c);
    Dims d = arg_value(c, x)->dims, y = {0};
    int64_t from = arg_axis(c, x, "start_dim", 0), to = arg_axis(c, x, "end_dim", -1);
    for (int i = 0; i < d.n; i++)
        if (i > from && i <= to)
            y.d[y.n - 1] *= d.d[i];
        else
            y.d[y.n++] = d.d[i];
    return ops_reshape(c->g, x, y);
}

/* An axis as several, one of them perhaps -1 */
static int unflatten(const NetCall *c)
{
    int x = arg_first(c);
    int64_t to[MOST_DIMS], axis = arg_axis(c, x, "dim", 0), known = 1;
    int n;
    arg_list(c, "sizes", to, MOST_DIMS, &n);
    Dims d = arg_value(c, x)->dims, y = {0};
    if (n < 1 || d.n - 1 + n > MOST_DIMS)
        net_refuse(c->g, "it has no axes, or too many");
    for (int i = 0; i < n; i++)
        if (to[i] > 0 && known <= INT32_MAX / to[i])
            known *= to[i];
        else if (to[i] != -1)
            net_refuse(c->g, "it has an axis of %lld", (long long)to[i]);
    for (int i = 0; i < d.n; i++)
        for (int k = 0; k < (i == axis ? n : 1); k++)
            y.d[y.n++] = i != axis ? d.d[i] : to[k] == -1 ? d.d[i] / known : to[k];
    return ops_reshape(c->g, x, y);
}

static int expand(const NetCall *c)
{
    Dims to = {0};
    arg_list(c, "size", to.d, MOST_DIMS, &to.n);
    return ops_expand(c->g, arg_first(c), to);
}

static int one_axis(const NetCall *c)
{
    int x = arg_first(c);
    bool more = strstr(c->n->op, "unsqueeze");
    Dims d = arg_value(c, x)->dims, y = {0};
    int rank = d.n + more;
    int64_t axis = arg_integer(c, "dim", 0);
    axis += axis < 0 ? rank : 0;
    if (arg_value(c, x)->kind == VALUE_NUMBERS)
        return x;               /* only their order matters */
    if (axis < 0 || axis >= rank || rank > MOST_DIMS || rank < 2)
        net_refuse(c->g, "there is no such axis, or too many");
    for (int i = 0; i < rank; i++) {
        int64_t size = more && i == axis ? 1 : d.d[i - (more && i > axis)];
        if (more || i != axis || size != 1)
            y.d[y.n++] = size;
    }
    return ops_reshape(c->g, x, y);
}

static int transpose(const NetCall *c)
{
    int x = arg_first(c);
    int64_t perm[MOST_DIMS];
    int rank = arg_value(c, x)->dims.n, n;
    arg_list(c, "dims", perm, MOST_DIMS, &n);
    bool two = strstr(c->n->op, "transpose"), flip = !strcmp(c->n->op, "t.default");
    for (int i = 0; i < rank && (two || flip); i++)
        perm[i] = i, n = rank;
    if (two || (flip && rank == 2)) {
        int64_t a = two ? arg_axis(c, x, "dim0", 0) : 0, b = two ? arg_axis(c, x, "dim1", 1) : 1;
        perm[a] = b, perm[b] = a;
    }
    for (int i = 0; i < n; i++)
        perm[i] += perm[i] < 0 ? rank : 0;
    return net_transpose(c, x, perm, n);
}

static int pick(const NetCall *c)
{
    int x = arg_first(c);
    int64_t axis = arg_axis(c, x, "dim", 0), at = arg_integer(c, "index", 0);
    if (axis == 0 || arg_value(c, x)->view)
        return view_pick(c->g, x, axis, at < 0 ? at + arg_value(c, x)->dims.d[axis] : at);
    return net_pick(c, x, axis, at);
}

static const NetRow rows[] = {
    {NULL, "adaptive_avg_pool2d.default", NULL, global_pool, NULL}, {NULL, "linear.default", NULL, linear, NULL},
    {NULL, "embedding.default", NULL, embedding, NULL}, {NULL, "hardtanh.default", NULL, clip, NULL},
    {NULL, "relu6.default", NULL, clip, NULL}, {NULL, "pad.default", NULL, pad, NULL},
    {NULL, "constant_pad_nd.default", NULL, pad, NULL}, {NULL, "upsample_nearest2d.vec", NULL, upsample, "Nearest"},
    {NULL, "upsample_bilinear2d.vec", NULL, upsample, "Bilinear"},
    {NULL, "scaled_dot_product_attention.default", NULL, attention, NULL}, {NULL, "lstm.input", NULL, lstm, NULL},
    {NULL, "arange.default", NULL, arange, NULL}, {NULL, "arange.start", NULL, arange, NULL},
    {NULL, "zeros.default", NULL, zeros, NULL}, {NULL, "empty.memory_format", NULL, empty, NULL},
    {NULL, "bernoulli.float", NULL, bernoulli, NULL}, {NULL, "detach.default", NULL, detach, NULL},
    {NULL, "flatten.using_ints", NULL, flatten, NULL}, {NULL, "squeeze.dim", NULL, one_axis, NULL},
    {NULL, "unsqueeze.default", NULL, one_axis, NULL}, {NULL, "permute.default", NULL, transpose, NULL},
    {NULL, "transpose.int", NULL, transpose, NULL}, {NULL, "t.default", NULL, transpose, NULL},
    {NULL, "unflatten.int", NULL, unflatten, NULL}, {NULL, "expand.default", NULL, expand, NULL},
    {NULL, "select.int", NULL, pick, NULL}, {NULL, NULL, NULL, NULL, NULL}
};

void aten_node(Net *g, const NetNode *n, Ints *results)
{
    static const char front[] = "torch.ops.aten.";
    const char *name = strncmp(n->op, front, sizeof front - 1) ? n->op : n->op + sizeof front - 1;
    const char *dot = strchr(name, '.');
    bool place = dot && dot > name && dot[-1] == '_';       /* relu_ is relu: pt2.c sees to its operand */
    NetNode plain = *n;
    plain.op = place ? strf("%.*s%s", (int)(dot - name) - 1, name, dot) : name;
    if (!net_call(g, &plain, rows, 0, results))
        net_advise(g, "make the model without it, or end the graph before it; models of transformers are imported from their "
                   "config.json, dpgen import DIR", "dpgen does not read this operator");
}
