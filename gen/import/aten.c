/* SPDX-License-Identifier: Apache-2.0
 *
 * aten.c: the operators of PyTorch, by their names in a program of torch.export: a table, and a function of each kind.
 *
 * Arguments that are left out have the defaults of native_functions.yaml.
 */
#include "net.h"
#include <math.h>

typedef struct { Net *g; const Pt2Node *n; Ints *results; const char *op; } AtenCall;

static int tensor(const AtenCall *c, const char *name)
{
    const Argument *a = node_argument(c->n, name);
    return a && a->tensor.n == 1 ? a->tensor.at[0] : -1;
}

static int first(const AtenCall *c)
{
    int v = c->n->in.n && c->n->in.at[0].tensor.n == 1 ? c->n->in.at[0].tensor.at[0] : -1;
    if (v < 0)
        net_refuse(c->g, "its first argument is no tensor");
    return v;
}

static NetValue *value_of(const AtenCall *c, int v)
{
    return &c->g->value.at[v];
}

static double real_of(const AtenCall *c, const char *name, double otherwise)
{
    const Argument *a = node_argument(c->n, name);
    return a && a->number.n == 1 ? a->number.at[0] : otherwise;
}

static int64_t integer(const AtenCall *c, const char *name, int64_t otherwise)
{
    return net_bounded(real_of(c, name, (double)otherwise));
}

/* At most `most` integers; their number */
static int list_of(const AtenCall *c, const char *name, int64_t *to, int most)
{
    const Argument *a = node_argument(c->n, name);
    int n = a ? a->number.n : 0;
    if (n > most)
        net_refuse(c->g, "%s has %d numbers, at most %d are expected", name, n, most);
    for (int i = 0; i < n; i++)
        to[i] = net_bounded(a->number.at[i]);
    return n;
}

static int64_t axis_of(const AtenCall *c, int x, const char *name, int64_t otherwise)
{
    int64_t axis = integer(c, name, otherwise), rank = value_of(c, x)->dims.n;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        net_refuse(c->g, "there is no axis %lld", (long long)axis);
    return axis;
}

/* ---- images ------------------------------------------------------------------------------------------------------------ */

static void pair_of(const AtenCall *c, const char *name, int64_t to[2])
{
    if (list_of(c, name, to, 2) == 1)
        to[1] = to[0];
}

static int conv(AtenCall *c)
{
    NetWindow w = {.stride = {1, 1}, .dilate = {1, 1}, .groups = integer(c, "groups", 1)};
    int weight = tensor(c, "weight");
    int64_t pad[2] = {0};
    if (weight < 0 || value_of(c, weight)->dims.n < 3 || value_of(c, weight)->dims.n > 4)
        net_refuse(c->g, "its weight has no window of 1 or 2 axes");
    if (node_argument(c->n, "padding") && *node_argument(c->n, "padding")->text)
        net_refuse(c->g, "padding by a word is not done");
    bool image = value_of(c, weight)->dims.n == 4;
    w.kernel[0] = value_of(c, weight)->dims.d[2];
    w.kernel[1] = image ? value_of(c, weight)->dims.d[3] : 1;
    pair_of(c, "stride", w.stride);
    pair_of(c, "dilation", w.dilate);
    pair_of(c, "padding", pad);
    w.pad[0] = w.pad[2] = pad[0];
    w.pad[1] = w.pad[3] = image ? pad[1] : 0;
    return ops_conv(c->g, first(c), weight, tensor(c, "bias"), &w);
}

static int conv_transpose(AtenCall *c)
{
    NetWindow w = {.stride = {1, 1}, .dilate = {1, 1}, .groups = integer(c, "groups", 1)};
    int64_t pad[2] = {0}, extra[2] = {0};
    int weight = tensor(c, "weight");
    if (weight < 0 || value_of(c, weight)->dims.n != 4)
        net_refuse(c->g, "its weight has no window of 2 axes");
    memcpy(w.kernel, value_of(c, weight)->dims.d + 2, sizeof w.kernel);
    pair_of(c, "stride", w.stride);
    pair_of(c, "dilation", w.dilate);
    pair_of(c, "padding", pad);
    pair_of(c, "output_padding", extra);
    w.pad[0] = w.pad[2] = pad[0], w.pad[1] = w.pad[3] = pad[1];
    return ops_conv_transpose(c->g, first(c), weight, tensor(c, "bias"), &w, extra);
}

/* Pairs of the last axis first */
static int pad(AtenCall *c)
{
    int64_t at[4] = {0};
    const Argument *mode = node_argument(c->n, "mode");
    list_of(c, "pad", at, 4);
    if (mode && *mode->text && strcmp(mode->text, "constant"))
        net_refuse(c->g, "it pads by mode %s, and constant is done", mode->text);
    return ops_pad(c->g, first(c), (int64_t[]){at[2], at[0], at[3], at[1]}, real_of(c, "value", 0));
}

static int upsample(AtenCall *c)
{
    const Argument *a = node_argument(c->n, "scale_factors");
    int64_t size[2];
    double factor[2];
    const Dims *d = &value_of(c, first(c))->dims;
    bool given = a && a->number.n == 2;
    if (!given && (list_of(c, "output_size", size, 2) != 2 || d->n != 4))
        net_refuse(c->g, "it has neither two factors nor two sizes");
    for (int i = 0; i < 2; i++)
        factor[i] = given ? a->number.at[i] : (double)size[i] / (double)d->d[2 + i];
    return ops_upsample(c->g, first(c), factor, *c->op == 'B', integer(c, "align_corners", 0));
}

static int pool(AtenCall *c)
{
    NetWindow w = {.stride = {0, 0}, .dilate = {1, 1}, .groups = 1, .count_pad = integer(c, "count_include_pad", 1)};
    int64_t pad[2] = {0};
    if (value_of(c, first(c))->dims.n != 4 || node_argument(c->n, "divisor_override"))
        net_refuse(c->g, "it is of no images, or divides by another number");
    pair_of(c, "kernel_size", w.kernel);
    memcpy(w.stride, w.kernel, sizeof w.kernel);
    pair_of(c, "stride", w.stride);
    pair_of(c, "dilation", w.dilate);
    pair_of(c, "padding", pad);
    w.pad[0] = w.pad[2] = pad[0], w.pad[1] = w.pad[3] = pad[1];
    w.ceil = integer(c, "ceil_mode", 0);
    return ops_pool(c->g, c->op, first(c), &w);
}

static int global_pool(AtenCall *c)
{
    int64_t size[2] = {0};
    Dims d = value_of(c, first(c))->dims;
    NetWindow w = {.dilate = {1, 1}, .groups = 1};
    pair_of(c, "output_size", size);
    if (size[0] == 1 && size[1] == 1)
        return ops_global_pool(c->g, first(c), true);
    if (d.n != 4 || size[0] < 1 || size[1] < 1 || d.d[2] % size[0] || d.d[3] % size[1])
        net_refuse(c->g, "its windows differ in size, which is not done");
    for (int i = 0; i < 2; i++)
        w.kernel[i] = w.stride[i] = d.d[2 + i] / size[i];
    return w.kernel[0] == 1 && w.kernel[1] == 1 ? first(c) : ops_pool(c->g, "AvgPool", first(c), &w);
}

static int batch_norm(AtenCall *c)
{
    int weight[5] = {tensor(c, "weight"), tensor(c, "bias"), tensor(c, "running_mean"), tensor(c, "running_var"), -1};
    const char *mean = weight[2] < 0 ? "" : value_of(c, weight[2])->name, *part = strstr(mean, "running_mean");
    if (integer(c, "training", 0) == 0)
        net_advise(c->g, c->g->remedy, "it does not train");
    if (part)
        weight[4] = net_named(c->g, strf("%.*snum_batches_tracked", (int)(part - mean), mean));
    return ops_batch_norm(c->g, first(c), weight, real_of(c, "eps", 1e-5), real_of(c, "momentum", 0.1));
}

/* ---- products and norms ------------------------------------------------------------------------------------------------ */

static int linear(AtenCall *c)
{
    int weight = tensor(c, "weight");
    if (weight < 0)
        net_refuse(c->g, "it has no weight");
    return ops_linear(c->g, first(c), weight, tensor(c, "bias"), false);
}

static int matmul(AtenCall *c)
{
    int other = tensor(c, "other");
    if (other < 0)
        net_refuse(c->g, "it has no second operand");
    return ops_linear(c->g, first(c), other, -1, true);
}

static int layer_norm(AtenCall *c)
{
    int64_t shape[MOST_DIMS];
    if (list_of(c, "normalized_shape", shape, MOST_DIMS) != 1)
        net_refuse(c->g, "it is over more than the last axis");
    return ops_layer_norm(c->g, first(c), tensor(c, "weight"), tensor(c, "bias"), real_of(c, "eps", 1e-5));
}

static int embedding(AtenCall *c)
{
    int ids = tensor(c, "indices");
    if (ids < 0)
        net_refuse(c->g, "it has no ids");
    if (value_of(c, ids)->kind == VALUE_NUMBERS)
        return ops_positions(c->g, ids, first(c));
    return ops_embedding(c->g, ids, first(c));
}

static int attention(AtenCall *c)
{
    int heads[3] = {tensor(c, "query"), tensor(c, "key"), tensor(c, "value")};
    if (tensor(c, "attn_mask") >= 0)
        net_advise(c->g, "leave it out and say is_causal; models of transformers, which make one, are imported from their "
                   "config.json, dpgen import DIR", "it has a mask");
    return ops_attention(c->g, heads, integer(c, "is_causal", 0), real_of(c, "dropout_p", 0), real_of(c, "scale", 0));
}

/* Its last states are results that nobody may read. */
static int lstm(AtenCall *c)
{
    const Argument *states = node_argument(c->n, "hx"), *weights = node_argument(c->n, "params");
    for (int i = 0; states && i < states->tensor.n; i++) {
        const double *x = net_known(c->g, states->tensor.at[i]);
        for (int64_t k = 0, n = dims_elements(&value_of(c, states->tensor.at[i])->dims); !x || k < n; k++)
            if (!x || x[k] != 0)
                net_refuse(c->g, "it begins with other states than zeros, which are not carried from batch to batch");
    }
    if (!weights || !integer(c, "batch_first", 0))
        net_advise(c->g, "make it with batch_first=True", "its first axis is that of the steps");
    return ops_lstm(c->g, first(c), &weights->tensor, integer(c, "num_layers", 1), integer(c, "bidirectional", 0),
                    integer(c, "has_biases", 1), integer(c, "train", 1) ? real_of(c, "dropout", 0) : 0);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------------- */

static int arange(AtenCall *c)
{
    double from = real_of(c, "start", 0), to = real_of(c, "end", 0);
    bool whole = from == floor(from) && to == floor(to) && integer(c, "step", 1) == 1;
    if (!whole || !(from >= 0 && to > from && to - from <= 1 << 20))
        net_refuse(c->g, "it counts otherwise than 0, 1, 2, ...");
    int64_t n = (int64_t)(to - from);
    double *x = alloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = from + (double)i;
    return net_numbers(c->g, (Dims){1, {n}}, x);
}

static int zeros(AtenCall *c)
{
    Dims d = {0};
    d.n = list_of(c, "size", d.d, MOST_DIMS);
    int64_t n = dims_elements(&d);
    if (n < 0 || n > 1 << 24)
        net_refuse(c->g, "it has an axis below 0, or too many zeros");
    return net_numbers(c->g, d, alloc((size_t)n * sizeof(double) + 1));
}

/* ---- element by element ------------------------------------------------------------------------------------------------ */

static int unary(AtenCall *c)
{
    return ops_unary(c->g, c->op, "", first(c));
}

static int gelu(AtenCall *c)
{
    const Argument *a = node_argument(c->n, "approximate");
    return ops_unary(c->g, "Gelu", a && !strcmp(a->text, "tanh") ? ", approximate: tanh" : "", first(c));
}

static int clip(AtenCall *c)
{
    bool six = strstr(c->n->target, "relu6");
    double low = six ? 0 : real_of(c, "min_val", real_of(c, "min", -1));
    double high = six ? 6 : real_of(c, "max_val", real_of(c, "max", 1));
    return ops_unary(c->g, "Clip", strf(", min: %g, max: %g", low, high), first(c));
}

static int leaky(AtenCall *c)
{
    return ops_unary(c->g, "LeakyRelu", strf(", slope: %g", real_of(c, "negative_slope", 0.01)), first(c));
}

static int elu(AtenCall *c)
{
    if (real_of(c, "scale", 1) != 1 || real_of(c, "input_scale", 1) != 1)
        net_refuse(c->g, "its result or its operand has a scale");
    return ops_unary(c->g, "Elu", strf(", alpha: %g", real_of(c, "alpha", 1)), first(c));
}

static int softplus(AtenCall *c)
{
    if (real_of(c, "beta", 1) != 1 || real_of(c, "threshold", 20) < 20)
        net_refuse(c->g, "its beta is %g and its threshold %g: dpgen has 1, and no threshold", real_of(c, "beta", 1),
                   real_of(c, "threshold", 20));
    return unary(c);
}

static int dropout(AtenCall *c)
{
    double p = real_of(c, "p", 0.5);
    if (!(p >= 0 && p < 1))
        net_refuse(c->g, "it drops with probability %g", p);
    return p == 0 || integer(c, "train", 1) == 0 ? first(c) : ops_unary(c->g, "Dropout", strf(", p: %g", p), first(c));
}

static int softmax(AtenCall *c)
{
    if (axis_of(c, first(c), "dim", -1) != value_of(c, first(c))->dims.n - 1)
        net_refuse(c->g, "it is over another axis than the last one");
    return unary(c);
}

/* A tensor or a number; counters of BatchNorm are not of the graph. */
static int binary(AtenCall *c)
{
    int a = first(c), b = tensor(c, "other");
    if (value_of(c, a)->kind == VALUE_WEIGHT && value_of(c, a)->whole)
        return a;
    if (b < 0) {
        double *x = alloc(sizeof *x);
        *x = real_of(c, "other", NAN);
        b = net_numbers(c->g, (Dims){0, {0}}, x);
        if (isnan(*x))
            net_refuse(c->g, "its second operand is neither a tensor nor a number");
    }
    if (real_of(c, "alpha", 1) != 1)
        net_refuse(c->g, "alpha other than 1 is not done");
    return ops_binary(c->g, c->op, a, b);
}

/* Room for draws, which bernoulli_ fills */
static int empty(AtenCall *c)
{
    Dims d = {0};
    d.n = list_of(c, "size", d.d, MOST_DIMS);
    return ops_draw(c->g, d, 1);
}

static int bernoulli(AtenCall *c)
{
    return ops_draw(c->g, value_of(c, first(c))->dims, real_of(c, "p", 0.5));
}

static int power(AtenCall *c)
{
    return ops_power(c->g, first(c), real_of(c, "exponent", 1));
}

static int negative(AtenCall *c)
{
    return ops_scale(c->g, first(c), -1);
}

static int same(AtenCall *c)
{
    return first(c);
}

/* No gradient comes back through it; a weight or a constant stays what it is. */
static int detach(AtenCall *c)
{
    int x = first(c);
    return value_of(c, x)->kind == VALUE_ACT ? ops_unary(c->g, "StopGradient", "", x) : x;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static int mean(AtenCall *c)
{
    int64_t axis[2];
    int n = list_of(c, "dim", axis, 2);
    return ops_mean(c->g, first(c), axis, n, integer(c, "keepdim", 0));
}

static int flatten(AtenCall *c)
{
    int x = first(c);
    Dims d = value_of(c, x)->dims, y = {0};
    int64_t from = axis_of(c, x, "start_dim", 0), to = axis_of(c, x, "end_dim", -1);
    for (int i = 0; i < d.n; i++)
        if (i > from && i <= to)
            y.d[y.n - 1] *= d.d[i];
        else
            y.d[y.n++] = d.d[i];
    return ops_reshape(c->g, x, y);
}

static int reshape(AtenCall *c)
{
    int x = first(c);
    int64_t to[MOST_DIMS], known = 1;
    Dims d = value_of(c, x)->dims, y = {0};
    const char *name = node_argument(c->n, "size") ? "size" : "shape";
    int open = -1;
    y.n = list_of(c, name, to, MOST_DIMS);
    for (int i = 0; i < y.n; i++) {
        y.d[i] = to[i];
        if (to[i] == -1 && open < 0)
            open = i;
        else if (to[i] <= 0 || known > INT32_MAX / to[i])
            net_refuse(c->g, "its shape has an axis of %lld", (long long)to[i]);
        else
            known *= to[i];
    }
    if (open >= 0)
        y.d[open] = dims_elements(&d) / known;
    if (y.n == 0)
        net_refuse(c->g, "its result has no axes");
    return ops_reshape(c->g, x, y);
}

/* An axis as several, one of them perhaps -1 */
static int unflatten(AtenCall *c)
{
    int x = first(c);
    int64_t to[MOST_DIMS], axis = axis_of(c, x, "dim", 0), known = 1;
    int n = list_of(c, "sizes", to, MOST_DIMS);
    Dims d = value_of(c, x)->dims, y = {0};
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

static int expand(AtenCall *c)
{
    Dims to = {0};
    to.n = list_of(c, "size", to.d, MOST_DIMS);
    return ops_expand(c->g, first(c), to);
}

static int one_axis(AtenCall *c)
{
    int x = first(c);
    bool more = strstr(c->n->target, "unsqueeze");
    Dims d = value_of(c, x)->dims, y = {0};
    int rank = d.n + more;
    int64_t axis = integer(c, "dim", 0);
    axis += axis < 0 ? rank : 0;
    if (value_of(c, x)->kind == VALUE_NUMBERS)
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

static int transpose(AtenCall *c)
{
    int x = first(c);
    int64_t perm[MOST_DIMS];
    NetValue *v = value_of(c, x);
    int rank = v->dims.n, n = list_of(c, "dims", perm, MOST_DIMS);
    bool two = strstr(c->n->target, "transpose"), flip = !strcmp(c->n->target, "torch.ops.aten.t.default");
    for (int i = 0; i < rank && (two || flip); i++)
        perm[i] = i, n = rank;
    if (two || (flip && rank == 2)) {
        int64_t a = two ? axis_of(c, x, "dim0", 0) : 0, b = two ? axis_of(c, x, "dim1", 1) : 1;
        perm[a] = b, perm[b] = a;
    }
    if (n != rank)
        net_refuse(c->g, "it has no order for each axis");
    for (int i = 0; i < rank; i++)
        perm[i] += perm[i] < 0 ? rank : 0;
    if (v->kind != VALUE_WEIGHT)
        return ops_transpose(c->g, x, perm);
    if (rank != 2 || perm[0] != 1)
        net_refuse(c->g, "axes of a weight that is no matrix are moved");
    NetValue turned = *v;
    turned.turned = !turned.turned;
    *PUSH(&c->g->value) = turned;
    return c->g->value.n - 1;
}

static int concat(AtenCall *c)
{
    const Argument *a = c->n->in.n ? &c->n->in.at[0] : NULL;
    if (!a || a->tensor.n == 0)
        net_refuse(c->g, "it has no operands");
    return a->tensor.n == 1 ? a->tensor.at[0] : ops_concat(c->g, &a->tensor, integer(c, "dim", 0));
}

static int slice(AtenCall *c)
{
    int x = first(c);
    int64_t axis = axis_of(c, x, "dim", 0), all = value_of(c, x)->dims.d[axis];
    int64_t from = integer(c, "start", 0), to = integer(c, "end", all);
    from += from < 0 ? all : 0;
    to = to < 0 ? to + all : to > all ? all : to;
    if (integer(c, "step", 1) != 1)
        net_refuse(c->g, "it takes every n-th");
    return from == 0 && to == all ? x : ops_slice(c->g, x, axis, from, to - from);
}

static int pick(AtenCall *c)
{
    int x = first(c);
    int64_t axis = axis_of(c, x, "dim", 0), at = integer(c, "index", 0);
    Dims d = value_of(c, x)->dims, y = {0};
    if (axis == 0 || value_of(c, x)->view)
        return view_pick(c->g, x, axis, at < 0 ? at + d.d[axis] : at);
    for (int i = 0; i < d.n; i++)
        if (i != axis)
            y.d[y.n++] = d.d[i];
    return ops_reshape(c->g, ops_slice(c->g, x, axis, at < 0 ? at + d.d[axis] : at, 1), y);
}

/* chunk: so many parts, split: parts of one size, split_with_sizes: of these */
static int split(AtenCall *c)
{
    int x = first(c);
    int64_t part[64], axis = axis_of(c, x, "dim", 0), all = value_of(c, x)->dims.d[axis], at = 0;
    int n = list_of(c, "split_sizes", part, 64);
    int64_t chunks = integer(c, "chunks", 0), size = chunks > 0 ? (all + chunks - 1) / chunks : integer(c, "split_size", 0);
    if (axis == 0 || (n == 0 && size < 1))
        net_refuse(c->g, "it splits the samples, or into nothing");
    for (int i = 0; at < all && (n == 0 || i < n) && i < 64; i++) {
        int64_t count = n ? part[i] : size < all - at ? size : all - at;
        *PUSH(c->results) = ops_slice(c->g, x, axis, at, count);
        at += count;
    }
    return -1;
}

static const struct { const char *name; int (*make)(AtenCall *c); const char *op; } table[] = {
    {"conv1d.default", conv, NULL}, {"conv2d.default", conv, NULL}, {"batch_norm.default", batch_norm, NULL},
    {"max_pool2d.default", pool, "MaxPool"}, {"avg_pool2d.default", pool, "AvgPool"},
    {"adaptive_avg_pool2d.default", global_pool, NULL}, {"linear.default", linear, NULL}, {"matmul.default", matmul, NULL},
    {"layer_norm.default", layer_norm, NULL}, {"embedding.default", embedding, NULL}, {"relu.default", unary, "Relu"},
    {"sigmoid.default", unary, "Sigmoid"}, {"tanh.default", unary, "Tanh"}, {"silu.default", unary, "Silu"},
    {"hardswish.default", unary, "HardSwish"}, {"hardsigmoid.default", unary, "HardSigmoid"}, {"erf.default", unary, "?Erf"},
    {"gelu.default", gelu, NULL}, {"hardtanh.default", clip, NULL}, {"relu6.default", clip, NULL},
    {"elu.default", elu, NULL}, {"softplus.default", softplus, "Softplus"},
    {"leaky_relu.default", leaky, NULL}, {"dropout.default", dropout, NULL}, {"softmax.int", softmax, "Softmax"},
    {"log_softmax.int", softmax, "?LogSoftmax"}, {"add.Tensor", binary, "Add"}, {"sub.Tensor", binary, "Sub"},
    {"mul.Tensor", binary, "Mul"}, {"div.Tensor", binary, "Div"}, {"pow.Tensor_Scalar", power, NULL},
    {"add.Scalar", binary, "Add"}, {"mul.Scalar", binary, "Mul"}, {"div.Scalar", binary, "Div"},
    {"conv_transpose2d.input", conv_transpose, NULL}, {"pad.default", pad, NULL},
    {"constant_pad_nd.default", pad, NULL}, {"upsample_nearest2d.vec", upsample, "Nearest"},
    {"upsample_bilinear2d.vec", upsample, "Bilinear"}, {"scaled_dot_product_attention.default", attention, NULL},
    {"lstm.input", lstm, NULL}, {"arange.default", arange, NULL}, {"arange.start", arange, NULL},
    {"zeros.default", zeros, NULL},
    {"empty.memory_format", empty, NULL}, {"bernoulli.float", bernoulli, NULL},
    {"neg.default", negative, NULL}, {"contiguous.default", same, NULL}, {"clone.default", same, NULL},
    {"alias.default", same, NULL}, {"detach.default", detach, NULL}, {"mean.dim", mean, NULL},
    {"flatten.using_ints", flatten, NULL},
    {"view.default", reshape, NULL}, {"reshape.default", reshape, NULL}, {"squeeze.dim", one_axis, NULL},
    {"unsqueeze.default", one_axis, NULL}, {"permute.default", transpose, NULL}, {"transpose.int", transpose, NULL},
    {"t.default", transpose, NULL},
    {"unflatten.int", unflatten, NULL}, {"expand.default", expand, NULL},
    {"cat.default", concat, NULL}, {"slice.Tensor", slice, NULL}, {"select.int", pick, NULL},
    {"chunk.default", split, NULL}, {"split.Tensor", split, NULL}, {"split_with_sizes.default", split, NULL}
};

void aten_node(Net *g, const Pt2Node *n, Ints *results)
{
    static const char front[] = "torch.ops.aten.";
    const char *name = strncmp(n->target, front, sizeof front - 1) ? n->target : n->target + sizeof front - 1;
    const char *dot = strchr(name, '.');
    bool place = dot && dot > name && dot[-1] == '_';       /* relu_ is relu: pt2.c sees to its operand */
    const char *plain = place ? strf("%.*s%s", (int)(dot - name) - 1, name, dot) : name;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, plain)) {
            AtenCall c = {g, n, results, table[i].op};
            int y = table[i].make(&c);
            if (y >= 0)
                *PUSH(results) = y;
            return;
        }
    net_advise(g, "make the model without it, or end the graph before it; models of transformers are imported from their "
               "config.json, dpgen import DIR", "dpgen does not read this operator");
}
