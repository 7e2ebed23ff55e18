/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_ops.c: the operators that only ONNX has, or that say there what calls.c does not read.
 */
#include "net.h"
#include <math.h>

/* ---- images ------------------------------------------------------------------------------------------------------------ */

/* Pads of all axes: those that begin, then those that end */
static int pad(const NetCall *c)
{
    const char *mode = arg_word(c, "mode", "constant");
    bool edge = !strcmp(mode, "edge"), mirror = edge || !strcmp(mode, "reflect");
    int64_t at[8] = {0};
    int n;
    arg_list(c, "pads", at, 8, &n);
    if (!mirror && strcmp(mode, "constant"))
        net_refuse(c->g, "it pads by mode '%s': constant, reflect and edge are done", mode);
    if (arg_tensor(c, "axes") >= 0)
        net_refuse(c->g, "it names the axes that it pads: pads of all axes are done");
    if (n != 8 || at[0] || at[1] || at[4] || at[5])
        net_refuse(c->g, "it pads other axes than those of images");
    const int64_t pads[] = {at[2], at[3], at[6], at[7]};
    return mirror ? ops_mirror(c->g, arg_first(c), pads, edge) : ops_pad(c->g, arg_first(c), pads, arg_real(c, "value", 0));
}

/* By factors or to sizes */
static int resize(const NetCall *c)
{
    const Dims d = arg_value(c, arg_first(c))->dims;
    const char *mode = arg_word(c, "mode", "nearest"), *round = arg_word(c, "nearest_mode", "round_prefer_floor");
    const char *place = arg_word(c, "coordinate_transformation_mode", "half_pixel");
    int by = arg_tensor(c, "sizes");
    bool sizes = by >= 0, linear = !strcmp(mode, "linear"), floors = !strcmp(round, "floor");
    by = sizes ? by : arg_tensor(c, "scales");
    const double *x = net_known(c->g, by);
    bool half = !strcmp(place, "half_pixel") || !strcmp(place, "pytorch_half_pixel"), align = !strcmp(place, "align_corners");
    bool known = linear ? half || align
        : (half && !floors && strcmp(round, "ceil")) || (!strcmp(place, "asymmetric") && floors);
    if (!known || (!linear && strcmp(mode, "nearest")))
        net_refuse(c->g, "of its modes, nearest by whole pixels and linear by half pixels or corners are done");
    if (!x || d.n != 4 || dims_elements(&arg_value(c, by)->dims) != 4)
        net_refuse(c->g, "it has no four factors or sizes that are numbers of the file");
    double factor[4];
    for (int i = 0; i < 4; i++)
        factor[i] = sizes ? x[i] / (double)d.d[i] : x[i];
    if (factor[0] != 1 || factor[1] != 1)
        net_refuse(c->g, "it resizes other axes than those of images");
    return ops_upsample(c->g, arg_first(c), factor + 2, linear, align);
}

static int lstm(const NetCall *c)
{
    net_advise(c->g, "export the model with torch.export.save(torch.export.export(model.train(), (x,)), 'model.pt2'), which "
               "keeps them", "weights of a recurrent layer are rearranged in ONNX");
}

static const char masks[] = "make the model without it, or end the graph before it; where it makes the mask of an attention, "
    "that stays whole in a .pt2 of torch.export, and models of transformers are imported from their config.json, dpgen import "
    "DIR";

static int choose(const NetCall *c)
{
    net_advise(c->g, masks, "it chooses between elements, which dpgen does not do");
}

/* A tensor of the file for each sample.  Grids of detectors, masks and codes of one hot repeat something else. */
static int expand(const NetCall *c)
{
    const NetValue *x = arg_value(c, arg_first(c));
    int64_t size[MOST_DIMS];
    Dims to = {0};
    if (x->kind == VALUE_ACT)
        net_refuse(c->g, "it repeats an activation, for which dpgen has no operator");
    arg_list(c, "shape", size, MOST_DIMS, &to.n);
    int lacks = to.n - x->dims.n;
    for (int i = 0; i < to.n; i++)
        to.d[i] = size[i] == 1 && i >= lacks ? x->dims.d[i - lacks] : size[i];
    Dims one = to;
    one.d[0] = 1;
    if (x->kind != VALUE_WEIGHT || to.n < 1 || to.d[0] != c->g->batch || !dims_same(&one, &x->dims))
        net_advise(c->g, masks, "it repeats numbers of the file, as for a grid of places or a mask: dpgen has no constants of "
                   "several numbers");
    return ops_expand(c->g, arg_first(c), to);
}

static int global_pool(const NetCall *c)
{
    return ops_global_pool(c->g, arg_first(c), true);
}

static int global_max(const NetCall *c)
{
    return ops_global_max(c->g, arg_first(c), true);
}

/* Of pixels */
static int largest(const NetCall *c)
{
    int64_t axis[2] = {0};
    int n, rank = arg_value(c, arg_first(c))->dims.n;
    arg_list(c, "axes", axis, 2, &n);
    for (int i = 0; i < n; i++)
        axis[i] += axis[i] < 0 ? rank : 0;
    if (n != 2 || axis[0] + axis[1] != 5 || axis[0] < 2 || axis[1] < 2)
        net_refuse(c->g, "the largest over other axes than those of images is not done");
    return ops_global_max(c->g, arg_first(c), node_integer(c->n, "keepdims", 1));
}

static int prelu(const NetCall *c)
{
    return ops_prelu(c->g, arg_first(c), arg_need(c, "slope"));
}

/* ---- products and norms ------------------------------------------------------------------------------------------------ */

static int gemm(const NetCall *c)
{
    if (node_real(c->n, "alpha", 1) != 1 || node_real(c->n, "beta", 1) != 1 || node_integer(c->n, "transA", 0))
        net_refuse(c->g, "alpha, beta and transA other than 1, 1 and 0 are not done");
    return ops_linear(c->g, arg_first(c), arg_need(c, "weight"), arg_tensor(c, "bias"), !node_integer(c->n, "transB", 0));
}

static int instance_norm(const NetCall *c)
{
    return ops_instance_norm(c->g, arg_first(c), arg_need(c, "weight"), arg_need(c, "bias"),
                             node_real(c->n, "epsilon", 1e-5));
}

static int gather(const NetCall *c)
{
    int table = arg_first(c), ids = arg_need(c, "indices");
    const NetValue *x = arg_value(c, table);
    int64_t axis = node_integer(c->n, "axis", 0);
    if (x->kind == VALUE_WEIGHT && axis == 0)
        return (net_known(c->g, ids) && arg_value(c, ids)->dims.n > 0 ? ops_positions : ops_embedding)(c->g, ids, table);
    axis += axis < 0 ? x->dims.n : 0;
    if (axis < 1 || axis >= x->dims.n || arg_value(c, ids)->dims.n)
        net_refuse(c->g, "it gathers along the samples, or several places of an axis: one place is done, and rows of a table");
    return net_pick(c, table, axis, net_integer(c->g, ids));
}

/* ---- element by element ------------------------------------------------------------------------------------------------ */

/* A draw from 0 to 1, which Less makes 0 or 1 */
static int uniform(const NetCall *c)
{
    if (node_real(c->n, "low", 0) != 0 || node_real(c->n, "high", 1) != 1)
        net_refuse(c->g, "it draws from other bounds than 0 and 1");
    return ops_draw(c->g, arg_value(c, arg_first(c))->dims, 1);
}

static int less(const NetCall *c)
{
    const Made *l = net_made(c->g, arg_first(c));
    if (!l || strcmp(l->op, "?Draw"))
        net_refuse(c->g, "only draws are compared, as stochastic depth does");
    return ops_draw(c->g, arg_value(c, arg_first(c))->dims, arg_real(c, "other", 1));
}

static int clip(const NetCall *c)
{
    double low = arg_real(c, "min", -INFINITY), high = arg_real(c, "max", INFINITY);
    if (low == 0 && high > 3e38)
        return ops_unary(c->g, "Relu", "", arg_first(c));
    if (!(fabs(low) < 1e30) || !(fabs(high) < 1e30))
        net_refuse(c->g, "a bound is missing");
    return ops_unary(c->g, "Clip", strf(", min: %g, max: %g", low, high), arg_first(c));
}

static int hard_sigmoid(const NetCall *c)
{
    double alpha = node_real(c->n, "alpha", 0.2), beta = node_real(c->n, "beta", 0.5);
    if (beta != 0.5 || !(fabs(alpha) < 1e30))
        net_refuse(c->g, "a beta of %g is not done: it is 0.5", beta);
    int x = fabs(alpha - 1.0 / 6) > 1e-6 ? ops_scale(c->g, arg_first(c), 6 * alpha) : arg_first(c);
    return ops_unary(c->g, "HardSigmoid", "", x);
}

static int constant(const NetCall *c)
{
    const NetArgument *a = node_argument(c->n, "value"), *real = node_argument(c->n, "value_float");
    const NetArgument *one = real ? real : node_argument(c->n, "value_int"), *list = node_argument(c->n, "value_ints");
    if (a && a->tensor.n)
        return a->tensor.at[0];
    if (!one && !list)
        net_refuse(c->g, "it has no value of numbers");
    int v = list ? net_numbers(c->g, (Dims){1, {list->number.n}}, list->number.at)
                 : net_numbers(c->g, (Dims){0, {0}}, one->number.at);
    c->g->value.at[v].whole = !real;
    return v;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static int flatten(const NetCall *c)
{
    Dims d = arg_value(c, arg_first(c))->dims;
    if (node_integer(c->n, "axis", 1) != 1 || c->g->batch < 1)
        net_refuse(c->g, "it flattens at another axis than 1");
    if (arg_value(c, arg_first(c))->kind == VALUE_WEIGHT && d.n > 0 && d.d[0] > 0)
        return ops_reshape(c->g, arg_first(c), (Dims){2, {d.d[0], dims_elements(&d) / d.d[0]}});
    return ops_reshape(c->g, arg_first(c), (Dims){2, {c->g->batch, dims_elements(&d) / c->g->batch}});
}

static int transpose(const NetCall *c)
{
    int64_t perm[MOST_DIMS] = {1, 0};
    int n, x = arg_first(c);
    if (!arg_list(c, "perm", perm, MOST_DIMS, &n) && arg_value(c, x)->dims.n == 2)
        n = 2;
    return net_transpose(c, x, perm, n);
}

static int squeeze(const NetCall *c)
{
    int64_t axis[MOST_DIMS];
    int n, x = arg_first(c);
    Dims d = arg_value(c, x)->dims, y = {0};
    bool out[2 * MOST_DIMS] = {false}, more = *c->n->op == 'U';
    bool some = arg_list(c, "axes", axis, MOST_DIMS, &n);
    int rank = more ? d.n + n : d.n;
    for (int i = 0; i < n; i++) {
        axis[i] += axis[i] < 0 ? rank : 0;
        if (axis[i] < (arg_value(c, x)->kind != VALUE_WEIGHT) || axis[i] >= rank)
            net_refuse(c->g, "axis %lld: it is that of the samples, or there is none", (long long)axis[i]);
        out[axis[i]] = true;
    }
    for (int i = 0, from = 0; i < rank && y.n <= MOST_DIMS; i++) {
        int64_t size = more && out[i] ? 1 : d.d[from++];
        bool leaves = !more && (out[i] || (!some && i > 0 && size == 1));
        if (!leaves && y.n < MOST_DIMS)
            y.d[y.n++] = size;
    }
    return ops_reshape(c->g, arg_first(c), y);
}

static const NetRow rows[] = {
    {"Pad", NULL, "input pads value axes", pad, NULL}, {"Resize", NULL, "input roi scales sizes", resize, NULL},
    {"LSTM", NULL, "input", lstm, NULL}, {"GRU", NULL, "input", lstm, NULL}, {"RNN", NULL, "input", lstm, NULL},
    {"Expand", NULL, "input shape", expand, NULL}, {"Trilu", NULL, "input", choose, NULL},
    {"Where", NULL, "input", choose, NULL}, {"GlobalAveragePool", NULL, "input", global_pool, NULL},
    {"GlobalMaxPool", NULL, "input", global_max, NULL}, {"ReduceMax", NULL, "input axes", largest, NULL},
    {"PRelu", NULL, "input slope", prelu, NULL}, {"Gemm", NULL, "input weight bias", gemm, NULL},
    {"InstanceNormalization", NULL, "input weight bias", instance_norm, NULL},
    {"Gather", NULL, "input indices", gather, NULL}, {"HardSigmoid", NULL, "input", hard_sigmoid, NULL},
    {"Clip", NULL, "input min max", clip, NULL}, {"RandomUniformLike", NULL, "input", uniform, NULL},
    {"Less", NULL, "input other", less, NULL}, {"Constant", NULL, "", constant, NULL},
    {"Flatten", NULL, "input", flatten, NULL}, {"Transpose", NULL, "input", transpose, NULL},
    {"Squeeze", NULL, "input axes", squeeze, NULL}, {"Unsqueeze", NULL, "input axes", squeeze, NULL},
    {NULL, NULL, NULL, NULL, NULL}
};

void onnx_node(Net *g, const NetNode *n, int opset, Ints *results)
{
    int folded = onnx_fold(g, n);
    if (folded >= 0)
        *PUSH(results) = folded;
    else if (!net_call(g, n, rows, opset, results))
        net_refuse(g, "dpgen does not read this operator");
}
