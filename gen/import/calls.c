/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c: what a call of another framework says, by name; and the operators that ONNX and PyTorch both have: a table with both
 * names, and a function of each kind.
 *
 * Names are those of PyTorch.  A row names ONNX's operands in their order, `p:ratio` where ONNX has another name for an
 * attribute.  Where opsets differ, an attribute that became an operand, both forms are read.  Arguments that are left out have
 * the defaults of native_functions.yaml, and those of ONNX where `operands` is set.
 */
#include "net.h"
#include <math.h>

/* ---- arguments --------------------------------------------------------------------------------------------------------- */

const NetArgument *node_argument(const NetNode *n, const char *name)
{
    int i = INDEX_OF(n->argument.at, n->argument.n, name);
    return i < 0 || n->argument.at[i].none ? NULL : &n->argument.at[i];
}

double node_real(const NetNode *n, const char *name, double otherwise)
{
    const NetArgument *a = node_argument(n, name);
    return a && a->number.n ? a->number.at[0] : otherwise;
}

int64_t node_integer(const NetNode *n, const char *name, int64_t otherwise)
{
    return net_bounded(node_real(n, name, (double)otherwise));
}

/* Its place among the operands of ONNX, or -1; *also: what ONNX calls it as an attribute. */
static int place_of(const NetCall *c, const char *name, const char **also)
{
    size_t n = strlen(name);
    int i = 0;
    *also = name;
    for (const char *p = c->operands; p && *p; p += strcspn(p, " "), p += *p == ' ', i++)
        if (!strncmp(p, name, n) && (p[n] == ' ' || p[n] == ':' || !p[n])) {
            if (p[n] == ':')
                *also = strf("%.*s", (int)strcspn(p + n + 1, " "), p + n + 1);
            return i;
        }
    return -1;
}

int arg_tensor(const NetCall *c, const char *name)
{
    const char *also;
    if (c->operands) {
        int i = place_of(c, name, &also);
        return i >= 0 && i < c->n->in.n ? c->n->in.at[i] : -1;
    }
    const NetArgument *a = node_argument(c->n, name);
    return a && a->tensor.n == 1 ? a->tensor.at[0] : -1;
}

int arg_need(const NetCall *c, const char *name)
{
    int v = arg_tensor(c, name);
    if (v < 0)
        net_refuse(c->g, "its operand '%s' is missing", name);
    return v;
}

int arg_first(const NetCall *c)
{
    const Ints *all = c->operands ? &c->n->in : c->n->argument.n ? &c->n->argument.at[0].tensor : NULL;
    if (!all || all->n < 1 || (!c->operands && all->n > 1) || all->at[0] < 0)
        net_refuse(c->g, "its first operand is no tensor");
    return all->at[0];
}

NetValue *arg_value(const NetCall *c, int v)
{
    return &c->g->value.at[v];
}

/* Of an operand, or of an attribute; *n: how many, 0: it is left out, -1: only a run knows.  *name becomes that of the file. */
static const double *numbers_of(const NetCall *c, const char **name, int *n)
{
    int v = c->operands ? arg_tensor(c, *name) : -1;
    place_of(c, *name, name);
    const NetArgument *a = node_argument(c->n, *name);
    const double *x = v >= 0 ? net_known(c->g, v) : a ? a->number.at : NULL;
    *n = v < 0 ? a ? a->number.n : 0 : x ? (int)dims_elements(&arg_value(c, v)->dims) : -1;
    return x;
}

bool arg_list(const NetCall *c, const char *name, int64_t *to, int most, int *n)
{
    const double *x = numbers_of(c, &name, n);
    if (*n < 0)
        net_advise(c->g, c->g->remedy, "its operand '%s' depends on the data: sizes have to be fixed", name);
    if (*n > most)
        net_refuse(c->g, "%s has %d numbers, at most %d are expected", name, *n, most);
    for (int i = 0; i < *n; i++)
        to[i] = net_bounded(x[i]);
    return x;
}

double arg_real(const NetCall *c, const char *name, double otherwise)
{
    int n;
    const double *x = numbers_of(c, &name, &n);
    if (x ? n != 1 : n != 0)
        net_refuse(c->g, "its '%s' is not one number of the file", name);
    return x ? *x : otherwise;
}

int64_t arg_integer(const NetCall *c, const char *name, int64_t otherwise)
{
    return net_bounded(arg_real(c, name, (double)otherwise));
}

const char *arg_word(const NetCall *c, const char *name, const char *otherwise)
{
    const NetArgument *a = node_argument(c->n, name);
    return a && *a->text ? a->text : otherwise;
}

int64_t arg_axis(const NetCall *c, int x, const char *name, int64_t otherwise)
{
    int64_t axis = arg_integer(c, name, otherwise), rank = arg_value(c, x)->dims.n;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        net_refuse(c->g, "there is no axis %lld", (long long)axis);
    return axis;
}

/* ---- images ------------------------------------------------------------------------------------------------------------ */

static int pair_of(const NetCall *c, const char *name, int64_t to[2])
{
    int n;
    arg_list(c, name, to, 2, &n);
    if (n == 1)
        to[1] = to[0];
    return n;
}

/* weight: -1: it has none, and says the size of its window */
static NetWindow window_of(const NetCall *c, int weight)
{
    bool onnx = c->operands;
    NetWindow w = {.kernel = {1, 1}, .stride = {1, 1}, .dilate = {1, 1}};
    const char *automatic = arg_word(c, onnx ? "auto_pad" : "padding", "NOTSET");
    int64_t pad[4] = {0};
    const Dims *d = &arg_value(c, weight < 0 ? arg_first(c) : weight)->dims;
    int rank = d->n - 2, n;
    if (rank < 1 || rank > 2 || (!onnx && weight < 0 && rank != 2))
        net_refuse(c->g, "its images have %d axes, and %s done", rank, onnx || weight >= 0 ? "1 or 2 are" : "2 are");
    if (strcmp(automatic, "NOTSET") && strcmp(automatic, "VALID"))
        net_refuse(c->g, "padding by the word %s is not done", automatic);
    if (!pair_of(c, onnx ? "kernel_shape" : "kernel_size", w.kernel) && weight >= 0)
        memcpy(w.kernel, d->d + 2, (size_t)rank * sizeof *w.kernel);
    if (rank == 1)
        w.kernel[1] = 1;
    if (!onnx && weight < 0)
        memcpy(w.stride, w.kernel, sizeof w.stride);
    pair_of(c, onnx ? "strides" : "stride", w.stride);
    pair_of(c, onnx ? "dilations" : "dilation", w.dilate);
    arg_list(c, onnx ? "pads" : "padding", pad, 4, &n);
    for (int i = 0; i < 2 * rank && (onnx ? n == 2 * rank : n > 0); i++)        /* those that begin, then those that end */
        w.pad[rank == 2 ? i : 2 * i] = pad[onnx ? i : n == 1 ? 0 : i % rank];
    w.groups = arg_integer(c, onnx ? "group" : "groups", 1);
    w.ceil = arg_integer(c, "ceil_mode", 0);
    w.count_pad = arg_integer(c, "count_include_pad", !onnx);
    return w;
}

static int conv(const NetCall *c)
{
    int weight = arg_need(c, "weight");
    NetWindow w = window_of(c, weight);
    return ops_conv(c->g, arg_first(c), weight, arg_tensor(c, "bias"), &w);
}

static int conv_transpose(const NetCall *c)
{
    int weight = arg_need(c, "weight");
    NetWindow w = window_of(c, weight);
    int64_t extra[2] = {0};
    if (node_argument(c->n, "output_shape"))
        net_refuse(c->g, "output_shape is not done: give pads");
    pair_of(c, "output_padding", extra);
    return ops_conv_transpose(c->g, arg_first(c), weight, arg_tensor(c, "bias"), &w, extra);
}

static int pool(const NetCall *c)
{
    NetWindow w = window_of(c, -1);
    if (node_argument(c->n, "divisor_override"))
        net_refuse(c->g, "it divides by another number than that of its elements");
    return ops_pool(c->g, c->op, arg_first(c), &w);
}

static int batch_norm(const NetCall *c)
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    int weight[5] = {[4] = -1};
    for (int i = 0; i < 4; i++)
        weight[i] = arg_tensor(c, names[i]);
    const char *mean = weight[2] < 0 ? "" : arg_value(c, weight[2])->name, *part = strstr(mean, "running_mean");
    if (c->operands)
        return ops_batch_norm(c->g, arg_first(c), weight, arg_real(c, "epsilon", 1e-5), 1 - arg_real(c, "momentum", 0.9));
    if (arg_integer(c, "training", 0) == 0)
        net_advise(c->g, c->g->remedy, "it does not train");
    if (part)
        weight[4] = net_named(c->g, strf("%.*snum_batches_tracked", (int)(part - mean), mean));
    return ops_batch_norm(c->g, arg_first(c), weight, arg_real(c, "eps", 1e-5), arg_real(c, "momentum", 0.1));
}

/* ---- products and norms ------------------------------------------------------------------------------------------------ */

static int matmul(const NetCall *c)
{
    return ops_linear(c->g, arg_first(c), arg_need(c, "other"), -1, true);
}

static int layer_norm(const NetCall *c)
{
    int64_t shape[MOST_DIMS], rank = arg_value(c, arg_first(c))->dims.n, axis = arg_integer(c, "axis", -1);
    int n;
    arg_list(c, "normalized_shape", shape, MOST_DIMS, &n);
    if (c->operands ? axis != -1 && axis != rank - 1 : n != 1)
        net_refuse(c->g, "it is over more than the last axis");
    return ops_layer_norm(c->g, arg_first(c), arg_tensor(c, "weight"), arg_tensor(c, "bias"),
                          arg_real(c, c->operands ? "epsilon" : "eps", 1e-5));
}

/* ---- element by element ------------------------------------------------------------------------------------------------ */

static int unary(const NetCall *c)
{
    return ops_unary(c->g, c->op, "", arg_first(c));
}

/* A tensor or a number; counters of BatchNorm are not of the graph. */
static int binary(const NetCall *c)
{
    int a = arg_first(c), b = c->operands ? arg_need(c, "other") : arg_tensor(c, "other");
    if (!c->operands && arg_value(c, a)->kind == VALUE_WEIGHT && arg_value(c, a)->whole)
        return a;
    if (b < 0) {
        double *x = alloc(sizeof *x);
        *x = arg_real(c, "other", NAN);
        b = net_numbers(c->g, (Dims){0, {0}}, x);
        if (isnan(*x))
            net_refuse(c->g, "its second operand is neither a tensor nor a number");
    }
    if (arg_real(c, "alpha", 1) != 1)
        net_refuse(c->g, "alpha other than 1 is not done");
    return ops_binary(c->g, c->op, a, b);
}

static int negative(const NetCall *c)
{
    return ops_scale(c->g, arg_first(c), -1);
}

static int power(const NetCall *c)
{
    return ops_power(c->g, arg_first(c), arg_real(c, "exponent", 1));
}

static int gelu(const NetCall *c)
{
    bool tanh = !strcmp(arg_word(c, "approximate", ""), "tanh");
    return ops_unary(c->g, "Gelu", tanh ? ", approximate: tanh" : "", arg_first(c));
}

static int leaky(const NetCall *c)
{
    double slope = arg_real(c, c->operands ? "alpha" : "negative_slope", 0.01);
    return ops_unary(c->g, "LeakyRelu", strf(", slope: %g", slope), arg_first(c));
}

static int elu(const NetCall *c)
{
    if (arg_real(c, "scale", 1) != 1 || arg_real(c, "input_scale", 1) != 1)
        net_refuse(c->g, "its result or its operand has a scale");
    return ops_unary(c->g, "Elu", strf(", alpha: %g", arg_real(c, "alpha", 1)), arg_first(c));
}

static int softplus(const NetCall *c)
{
    double beta = arg_real(c, "beta", 1), threshold = arg_real(c, "threshold", 20);
    if (beta != 1 || threshold < 20)
        net_refuse(c->g, "its beta is %g and its threshold %g: dpgen has 1, and no threshold", beta, threshold);
    return unary(c);
}

static int softmax(const NetCall *c)
{
    int64_t axis = arg_integer(c, c->operands ? "axis" : "dim", c->operands && c->opset < 13 ? 1 : -1);
    if (axis != -1 && axis != arg_value(c, arg_first(c))->dims.n - 1)
        net_refuse(c->g, "it is over another axis than the last one");
    return unary(c);
}

static int dropout(const NetCall *c)
{
    double p = arg_real(c, "p", 0.5);
    if (!(p >= 0 && p < 1))
        net_refuse(c->g, "it drops with probability %g", p);
    if (p == 0 || (!c->operands && arg_integer(c, "train", 1) == 0))
        return arg_first(c);
    return ops_unary(c->g, "Dropout", strf(", p: %g", p), arg_first(c));
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static int mean(const NetCall *c)
{
    int64_t axis[2];
    int n;
    arg_list(c, "dim", axis, 2, &n);
    return ops_mean(c->g, arg_first(c), axis, n, arg_integer(c, c->operands ? "keepdims" : "keepdim", c->operands != NULL));
}

static int concat(const NetCall *c)
{
    const Ints *all = c->operands ? &c->n->in : c->n->argument.n ? &c->n->argument.at[0].tensor : NULL;
    if (!all || all->n == 0)
        net_refuse(c->g, "it has no operands");
    for (int i = 0; i < all->n; i++)
        if (all->at[i] < 0)
            net_refuse(c->g, "operand %d is missing", i);
    return all->n == 1 ? all->at[0]
                       : ops_concat(c->g, all, arg_integer(c, c->operands ? "axis" : "dim", c->operands != NULL));
}

static int slice(const NetCall *c)
{
    int x = arg_first(c);
    int64_t axis = arg_axis(c, x, "dim", 0), all = arg_value(c, x)->dims.d[axis];
    int64_t from = arg_integer(c, "start", 0), to = arg_integer(c, "end", all);
    from += from < 0 ? all : 0;
    to = to < 0 ? to + all : to > all ? all : to;
    if (arg_integer(c, "step", 1) != 1)
        net_refuse(c->g, "it takes every n-th");
    return from == 0 && to == all ? x : ops_slice(c->g, x, axis, from, to - from);
}

int net_pick(const NetCall *c, int x, int64_t axis, int64_t at)
{
    Dims d = arg_value(c, x)->dims, y = {0};
    for (int i = 0; i < d.n; i++)
        if (i != axis)
            y.d[y.n++] = d.d[i];
    return ops_reshape(c->g, ops_slice(c->g, x, axis, at < 0 ? at + d.d[axis] : at, 1), y);
}

/* Parts of given sizes; or so many, or of one size, and the last has what is left. */
static int split(const NetCall *c)
{
    int x = arg_first(c), n;
    int64_t part[64], at = 0, axis = arg_axis(c, x, c->operands ? "axis" : "dim", 0), all = arg_value(c, x)->dims.d[axis];
    arg_list(c, "split_sizes", part, 64, &n);
    int64_t chunks = c->operands ? c->n->out.n : arg_integer(c, "chunks", 0);
    int64_t size = chunks > 0 ? (all + chunks - 1) / chunks : arg_integer(c, "split_size", 0);
    if (axis == 0 || (n == 0 && size < 1) || (c->operands && chunks > 64))
        net_refuse(c->g, "it splits the samples, or into nothing, or into more than 64");
    for (int i = 0; at < all && (n == 0 || i < n) && i < 64; i++) {
        int64_t count = n ? part[i] : size < all - at ? size : all - at;
        *PUSH(c->results) = ops_slice(c->g, x, axis, at, count);
        at += count;
    }
    return -1;
}

/* One axis may be -1: what is left.  In ONNX 0 is the axis of the operand. */
static int reshape(const NetCall *c)
{
    int x = arg_first(c), open = -1;
    Dims d = arg_value(c, x)->dims, y = {0};
    int64_t known = 1;
    arg_list(c, !c->operands && node_argument(c->n, "size") ? "size" : "shape", y.d, MOST_DIMS, &y.n);
    for (int i = 0; i < y.n; i++) {
        if (c->operands && y.d[i] == 0 && i < d.n && !arg_integer(c, "allowzero", 0))
            y.d[i] = d.d[i];
        if (y.d[i] == -1 && open < 0)
            open = i;
        else if (y.d[i] <= 0 || known > INT32_MAX / y.d[i])
            net_refuse(c->g, "its shape has an axis of %lld", (long long)y.d[i]);
        else
            known *= y.d[i];
    }
    if (open >= 0)
        y.d[open] = dims_elements(&d) / known;
    if (!c->operands && y.n == 0)
        net_refuse(c->g, "its result has no axes");
    if (c->operands && arg_value(c, x)->kind != VALUE_WEIGHT && (y.n == 0 || y.d[0] != c->g->batch))
        net_advise(c->g, c->g->remedy, "it mixes samples: the first axis becomes %lld, and there are %lld samples",
                   (long long)y.d[0], (long long)c->g->batch);
    return ops_reshape(c->g, x, y);
}

int net_transpose(const NetCall *c, int x, const int64_t *perm, int n)
{
    NetValue turned = *arg_value(c, x);
    if (n != turned.dims.n)
        net_refuse(c->g, "it has no order for each axis");
    if (turned.kind != VALUE_WEIGHT || n != 2 || perm[0] != 1 || perm[1] != 0)
        return ops_transpose(c->g, x, perm);
    turned.turned = !turned.turned;
    *PUSH(&c->g->value) = turned;
    return c->g->value.n - 1;
}

/* ---- both names -------------------------------------------------------------------------------------------------------- */

/* A weight too: its axes may be swapped. */
static int same(const NetCall *c)
{
    return arg_first(c);
}

static const NetRow rows[] = {
    {"Conv", "conv2d.default", "input weight bias", conv, NULL},
    {"Conv", "conv1d.default", "input weight bias", conv, NULL},
    {"ConvTranspose", "conv_transpose2d.input", "input weight bias", conv_transpose, NULL},
    {"MaxPool", "max_pool2d.default", "input", pool, "MaxPool"},
    {"AveragePool", "avg_pool2d.default", "input", pool, "AvgPool"},
    {"BatchNormalization", "batch_norm.default", "input weight bias running_mean running_var", batch_norm, NULL},
    {"MatMul", "matmul.default", "input other", matmul, NULL},
    {"LayerNormalization", "layer_norm.default", "input weight bias", layer_norm, NULL},
    {"Relu", "relu.default", "input", unary, "Relu"},
    {"Sigmoid", "sigmoid.default", "input", unary, "Sigmoid"},
    {"Tanh", "tanh.default", "input", unary, "Tanh"},
    {"HardSwish", "hardswish.default", "input", unary, "HardSwish"},
    {"Erf", "erf.default", "input", unary, "?Erf"},
    {NULL, "silu.default", NULL, unary, "Silu"},
    {NULL, "hardsigmoid.default", NULL, unary, "HardSigmoid"},
    {"Sqrt", NULL, "input", unary, "?Sqrt"},
    {"Reciprocal", NULL, "input", unary, "?Reciprocal"},
    {"Softplus", "softplus.default", "input", softplus, "Softplus"},
    {"Elu", "elu.default", "input", elu, NULL},
    {"LeakyRelu", "leaky_relu.default", "input", leaky, NULL},
    {"Gelu", "gelu.default", "input", gelu, NULL},
    {"Pow", "pow.Tensor_Scalar", "input exponent", power, NULL},
    {"Neg", "neg.default", "input", negative, NULL},
    {"Add", "add.Tensor", "input other", binary, "Add"},
    {"Sub", "sub.Tensor", "input other", binary, "Sub"},
    {"Mul", "mul.Tensor", "input other", binary, "Mul"},
    {"Div", "div.Tensor", "input other", binary, "Div"},
    {NULL, "add.Scalar", NULL, binary, "Add"},
    {NULL, "mul.Scalar", NULL, binary, "Mul"},
    {NULL, "div.Scalar", NULL, binary, "Div"},
    {"Softmax", "softmax.int", "input", softmax, "Softmax"},
    {"LogSoftmax", "log_softmax.int", "input", softmax, "?LogSoftmax"},
    {"Dropout", "dropout.default", "input p:ratio", dropout, NULL},
    {"Identity", "contiguous.default", "input", same, NULL},
    {"Cast", "clone.default", "input", same, NULL},
    {"CastLike", "alias.default", "input", same, NULL},
    {"ReduceMean", "mean.dim", "input dim:axes", mean, NULL},
    {"Concat", "cat.default", "input", concat, NULL},
    {"Slice", "slice.Tensor", "input start:starts end:ends dim:axes step:steps", slice, NULL},
    {"Split", "split.Tensor", "input split_sizes:split", split, NULL},
    {NULL, "chunk.default", NULL, split, NULL},
    {NULL, "split_with_sizes.default", NULL, split, NULL},
    {"Reshape", "reshape.default", "input shape", reshape, NULL},
    {NULL, "view.default", NULL, reshape, NULL},
    {NULL, NULL, NULL, NULL, NULL}
};

bool net_call(Net *g, const NetNode *n, const NetRow *first, int opset, Ints *results)
{
    const NetRow *all[] = {first, rows};
    for (int i = 0; i < 2; i++)
        for (const NetRow *r = all[i]; r->make; r++) {
            const char *name = opset ? r->onnx : r->aten;
            if (!name || strcmp(name, n->op))
                continue;
            NetCall c = {g, n, opset ? r->operands : NULL, opset, results, r->op};
            int y = r->make(&c);
            if (y >= 0)
                *PUSH(results) = y;
            return true;
        }
    return false;
}
