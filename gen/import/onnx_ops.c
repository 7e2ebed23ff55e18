/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_ops.c: the operators of ONNX: a table of names, and a function that reads attributes and operands of each kind.
 *
 * Where opsets differ, an attribute that became an operand, both forms are read.
 */
#include "net.h"
#include <math.h>

typedef struct { Net *g; const OnnxNode *n; int opset; Ints *results; const char *op; } OnnxCall;

static int operand(const OnnxCall *c, int i)
{
    return i >= 0 && i < c->n->in.n ? c->n->in.at[i] : -1;
}

static NetValue *value_of(const OnnxCall *c, int i)
{
    int v = operand(c, i);
    if (v < 0)
        net_refuse(c->g, "operand %d is missing", i);
    return &c->g->value.at[v];
}

/* Integers of an operand, or of an attribute; *n of them, at most `most`; false: neither is there. */
static bool list_of(const OnnxCall *c, int in, const char *name, int64_t *to, int most, int *n)
{
    const Attribute *a = node_attribute(c->n, name);
    const double *x = NULL;
    *n = 0;
    if (operand(c, in) >= 0) {
        x = net_known(c->g, operand(c, in));
        *n = (int)dims_elements(&value_of(c, in)->dims);
        if (!x)
            net_advise(c->g, c->g->remedy, "operand %d depends on the data: sizes have to be fixed", in);
    } else if (a) {
        x = a->list.at, *n = a->list.n;
    }
    if (*n > most)
        net_refuse(c->g, "%s has %d numbers, at most %d are expected", name, *n, most);
    for (int i = 0; i < *n; i++)
        to[i] = net_bounded(x[i]);
    return x || *n;
}

static double real_of(const OnnxCall *c, int in, const char *name, double otherwise)
{
    const double *x = net_known(c->g, operand(c, in));
    if (operand(c, in) >= 0 && (!x || dims_elements(&value_of(c, in)->dims) != 1))
        net_refuse(c->g, "operand %d is no number of the file", in);
    return x ? *x : node_real(c->n, name, otherwise);
}

/* ---- images ------------------------------------------------------------------------------------------------------------ */

static NetWindow window_of(const OnnxCall *c, bool conv)
{
    NetWindow w = {.kernel = {1, 1}, .stride = {1, 1}, .dilate = {1, 1}, .groups = node_integer(c->n, "group", 1)};
    const Attribute *automatic = node_attribute(c->n, "auto_pad");
    int64_t pad[4] = {0};
    int rank = value_of(c, 0)->dims.n - 2, n;
    if (rank < 1 || rank > 2)
        net_refuse(c->g, "its images have %d axes, and 1 or 2 are done", rank);
    if (automatic && strcmp(automatic->s, "NOTSET") && strcmp(automatic->s, "VALID") && *automatic->s)
        net_refuse(c->g, "auto_pad %s is not done", automatic->s);
    if (!list_of(c, -1, "kernel_shape", w.kernel, 2, &n) && conv)
        memcpy(w.kernel, value_of(c, 1)->dims.d + 2, (size_t)rank * sizeof *w.kernel);
    list_of(c, -1, "strides", w.stride, 2, &n);
    list_of(c, -1, "dilations", w.dilate, 2, &n);
    list_of(c, -1, "pads", pad, 4, &n);
    for (int i = 0; i < n && n == 2 * rank; i++)
        w.pad[rank == 2 ? i : 2 * i] = pad[i];
    if (rank == 1)
        w.stride[1] = w.stride[0], w.dilate[1] = w.dilate[0];
    w.ceil = node_integer(c->n, "ceil_mode", 0);
    w.count_pad = node_integer(c->n, "count_include_pad", 0);
    return w;
}

static int conv(OnnxCall *c)
{
    NetWindow w = window_of(c, true);
    value_of(c, 1);
    return ops_conv(c->g, operand(c, 0), operand(c, 1), operand(c, 2), &w);
}

static int conv_transpose(OnnxCall *c)
{
    NetWindow w = window_of(c, true);
    int64_t extra[2] = {0};
    int n;
    value_of(c, 1);
    if (node_attribute(c->n, "output_shape"))
        net_refuse(c->g, "output_shape is not done: give pads");
    if (list_of(c, -1, "output_padding", extra, 2, &n) && n == 1)
        extra[1] = extra[0];
    return ops_conv_transpose(c->g, operand(c, 0), operand(c, 1), operand(c, 2), &w, extra);
}

/* Pads of all axes: those that begin, then those that end */
static int pad(OnnxCall *c)
{
    const Attribute *mode = node_attribute(c->n, "mode");
    int64_t at[8] = {0};
    int n;
    list_of(c, 1, "pads", at, 8, &n);
    bool edge = mode && !strcmp(mode->s, "edge"), mirror = edge || (mode && !strcmp(mode->s, "reflect"));
    if (mode && *mode->s && !mirror && strcmp(mode->s, "constant"))
        net_refuse(c->g, "it pads by mode '%s': constant, reflect and edge are done", mode->s);
    if (operand(c, 3) >= 0)
        net_refuse(c->g, "it names the axes that it pads: pads of all axes are done");
    if (n != 8 || at[0] || at[1] || at[4] || at[5])
        net_refuse(c->g, "it pads other axes than those of images");
    const int64_t pads[] = {at[2], at[3], at[6], at[7]};
    return mirror ? ops_mirror(c->g, operand(c, 0), pads, edge)
                  : ops_pad(c->g, operand(c, 0), pads, real_of(c, 2, "value", 0));
}

static bool is_word(const OnnxCall *c, const char *attribute, const char *otherwise, const char *word)
{
    const Attribute *a = node_attribute(c->n, attribute);
    return !strcmp(a && *a->s ? a->s : otherwise, word);
}

/* By factors or to sizes */
static int resize(OnnxCall *c)
{
    static const char place[] = "coordinate_transformation_mode", usual[] = "half_pixel";
    const Dims d = value_of(c, 0)->dims;
    bool sizes = operand(c, 3) >= 0, linear = is_word(c, "mode", "nearest", "linear");
    const double *x = net_known(c->g, operand(c, sizes ? 3 : 2));
    bool half = is_word(c, place, usual, usual) || is_word(c, place, usual, "pytorch_half_pixel");
    bool align = is_word(c, place, usual, "align_corners"), first = is_word(c, place, usual, "asymmetric");
    bool known = linear ? half || align
        : (half && !is_word(c, "nearest_mode", "round_prefer_floor", "floor") &&
           !is_word(c, "nearest_mode", "round_prefer_floor", "ceil")) ||
          (first && is_word(c, "nearest_mode", "round_prefer_floor", "floor"));
    if (!known || (!linear && !is_word(c, "mode", "nearest", "nearest")))
        net_refuse(c->g, "of its modes, nearest by whole pixels and linear by half pixels or corners are done");
    if (!x || d.n != 4 || dims_elements(&value_of(c, sizes ? 3 : 2)->dims) != 4)
        net_refuse(c->g, "it has no four factors or sizes that are numbers of the file");
    double factor[4];
    for (int i = 0; i < 4; i++)
        factor[i] = sizes ? x[i] / (double)d.d[i] : x[i];
    if (factor[0] != 1 || factor[1] != 1)
        net_refuse(c->g, "it resizes other axes than those of images");
    return ops_upsample(c->g, operand(c, 0), factor + 2, linear, align);
}

static int lstm(OnnxCall *c)
{
    net_advise(c->g, "export the model with torch.export.save(torch.export.export(model.train(), (x,)), 'model.pt2'), which "
               "keeps them", "weights of a recurrent layer are rearranged in ONNX");
}

static const char masks[] = "make the model without it, or end the graph before it; where it makes the mask of an attention, "
    "that stays whole in a .pt2 of torch.export, and models of transformers are imported from their config.json, dpgen import "
    "DIR";

static int choose(OnnxCall *c)
{
    net_advise(c->g, masks, "it chooses between elements, which dpgen does not do");
}

/* A tensor of the file for each sample.  Grids of detectors, masks and codes of one hot repeat something else. */
static int expand(OnnxCall *c)
{
    const NetValue *x = value_of(c, 0);
    int64_t size[MOST_DIMS];
    Dims to = {0};
    if (x->kind == VALUE_ACT)
        net_refuse(c->g, "it repeats an activation, for which dpgen has no operator");
    list_of(c, 1, "shape", size, MOST_DIMS, &to.n);
    int lacks = to.n - x->dims.n;
    for (int i = 0; i < to.n; i++)
        to.d[i] = size[i] == 1 && i >= lacks ? x->dims.d[i - lacks] : size[i];
    Dims one = to;
    one.d[0] = 1;
    if (x->kind != VALUE_WEIGHT || to.n < 1 || to.d[0] != c->g->batch || !dims_same(&one, &x->dims))
        net_advise(c->g, masks, "it repeats numbers of the file, as for a grid of places or a mask: dpgen has no constants of "
                   "several numbers");
    return ops_expand(c->g, operand(c, 0), to);
}

static int pool(OnnxCall *c)
{
    NetWindow w = window_of(c, false);
    return ops_pool(c->g, c->op, operand(c, 0), &w);
}

static int global_pool(OnnxCall *c)
{
    value_of(c, 0);
    return ops_global_pool(c->g, operand(c, 0), true);
}

static int global_max(OnnxCall *c)
{
    value_of(c, 0);
    return ops_global_max(c->g, operand(c, 0), true);
}

/* Of pixels */
static int largest(OnnxCall *c)
{
    int64_t axis[2] = {0};
    int n, rank = value_of(c, 0)->dims.n;
    list_of(c, 1, "axes", axis, 2, &n);
    for (int i = 0; i < n; i++)
        axis[i] += axis[i] < 0 ? rank : 0;
    if (n != 2 || axis[0] + axis[1] != 5 || axis[0] < 2 || axis[1] < 2)
        net_refuse(c->g, "the largest over other axes than those of images is not done");
    return ops_global_max(c->g, operand(c, 0), node_integer(c->n, "keepdims", 1));
}

static int prelu(OnnxCall *c)
{
    value_of(c, 0), value_of(c, 1);
    return ops_prelu(c->g, operand(c, 0), operand(c, 1));
}

static int batch_norm(OnnxCall *c)
{
    int weight[5];
    for (int i = 0; i < 4; i++)
        weight[i] = operand(c, i + 1);
    weight[4] = -1;
    value_of(c, 0);
    return ops_batch_norm(c->g, operand(c, 0), weight, node_real(c->n, "epsilon", 1e-5), 1 - node_real(c->n, "momentum", 0.9));
}

/* ---- products and norms ------------------------------------------------------------------------------------------------ */

static int gemm(OnnxCall *c)
{
    if (node_real(c->n, "alpha", 1) != 1 || node_real(c->n, "beta", 1) != 1 || node_integer(c->n, "transA", 0))
        net_refuse(c->g, "alpha, beta and transA other than 1, 1 and 0 are not done");
    value_of(c, 0), value_of(c, 1);
    return ops_linear(c->g, operand(c, 0), operand(c, 1), operand(c, 2), !node_integer(c->n, "transB", 0));
}

static int matmul(OnnxCall *c)
{
    value_of(c, 0), value_of(c, 1);
    return ops_linear(c->g, operand(c, 0), operand(c, 1), -1, true);
}

static int layer_norm(OnnxCall *c)
{
    int64_t axis = node_integer(c->n, "axis", -1), rank = value_of(c, 0)->dims.n;
    if (axis != -1 && axis != rank - 1)
        net_refuse(c->g, "it is over more than the last axis");
    return ops_layer_norm(c->g, operand(c, 0), operand(c, 1), operand(c, 2), node_real(c->n, "epsilon", 1e-5));
}

static int instance_norm(OnnxCall *c)
{
    value_of(c, 0), value_of(c, 1), value_of(c, 2);
    return ops_instance_norm(c->g, operand(c, 0), operand(c, 1), operand(c, 2), node_real(c->n, "epsilon", 1e-5));
}

static int gather(OnnxCall *c)
{
    NetValue *x = value_of(c, 0), *ids = value_of(c, 1);
    int64_t axis = node_integer(c->n, "axis", 0);
    if (x->kind == VALUE_WEIGHT && axis == 0 && net_known(c->g, operand(c, 1)) && ids->dims.n > 0)
        return ops_positions(c->g, operand(c, 1), operand(c, 0));
    if (x->kind == VALUE_WEIGHT && axis == 0)
        return ops_embedding(c->g, operand(c, 1), operand(c, 0));
    axis += axis < 0 ? x->dims.n : 0;
    if (axis < 1 || axis >= x->dims.n || ids->dims.n)
        net_refuse(c->g, "it gathers along the samples, or several places of an axis: one place is done, and rows of a table");
    int64_t at = net_integer(c->g, operand(c, 1), 0);
    Dims d = {x->dims.n - 1, {0}};
    for (int i = 0, k = 0; i < x->dims.n; i++)
        if (i != axis)
            d.d[k++] = x->dims.d[i];
    return ops_reshape(c->g, ops_slice(c->g, operand(c, 0), axis, at < 0 ? at + x->dims.d[axis] : at, 1), d);
}

/* ---- element by element ------------------------------------------------------------------------------------------------ */

static int unary(OnnxCall *c)
{
    value_of(c, 0);
    return ops_unary(c->g, c->op, "", operand(c, 0));
}

static int binary(OnnxCall *c)
{
    value_of(c, 0), value_of(c, 1);
    return ops_binary(c->g, c->n->op, operand(c, 0), operand(c, 1));
}

/* A draw from 0 to 1, which Less makes 0 or 1 */
static int uniform(OnnxCall *c)
{
    if (node_real(c->n, "low", 0) != 0 || node_real(c->n, "high", 1) != 1)
        net_refuse(c->g, "it draws from other bounds than 0 and 1");
    return ops_draw(c->g, value_of(c, 0)->dims, 1);
}

static int less(OnnxCall *c)
{
    const Made *l = net_made(c->g, operand(c, 0));
    if (!l || strcmp(l->op, "?Draw"))
        net_refuse(c->g, "only draws are compared, as stochastic depth does");
    return ops_draw(c->g, value_of(c, 0)->dims, real_of(c, 1, "", 1));
}

static int negative(OnnxCall *c)
{
    value_of(c, 0);
    return ops_scale(c->g, operand(c, 0), -1);
}

static int power(OnnxCall *c)
{
    value_of(c, 0);
    return ops_power(c->g, operand(c, 0), real_of(c, 1, "", 1));
}

static int gelu(OnnxCall *c)
{
    const Attribute *a = node_attribute(c->n, "approximate");
    value_of(c, 0);
    return ops_unary(c->g, "Gelu", a && !strcmp(a->s, "tanh") ? ", approximate: tanh" : "", operand(c, 0));
}

static int clip(OnnxCall *c)
{
    double low = real_of(c, 1, "min", -INFINITY), high = real_of(c, 2, "max", INFINITY);
    value_of(c, 0);
    if (low == 0 && high > 3e38)
        return ops_unary(c->g, "Relu", "", operand(c, 0));
    if (!(fabs(low) < 1e30) || !(fabs(high) < 1e30))
        net_refuse(c->g, "a bound is missing");
    return ops_unary(c->g, "Clip", strf(", min: %g, max: %g", low, high), operand(c, 0));
}

static int leaky(OnnxCall *c)
{
    value_of(c, 0);
    return ops_unary(c->g, "LeakyRelu", strf(", slope: %g", node_real(c->n, "alpha", 0.01)), operand(c, 0));
}

static int elu(OnnxCall *c)
{
    value_of(c, 0);
    return ops_unary(c->g, "Elu", strf(", alpha: %g", node_real(c->n, "alpha", 1)), operand(c, 0));
}

static int hard_sigmoid(OnnxCall *c)
{
    double alpha = node_real(c->n, "alpha", 0.2), beta = node_real(c->n, "beta", 0.5);
    value_of(c, 0);
    if (beta != 0.5 || !(fabs(alpha) < 1e30))
        net_refuse(c->g, "a beta of %g is not done: it is 0.5", beta);
    int x = fabs(alpha - 1.0 / 6) > 1e-6 ? ops_scale(c->g, operand(c, 0), 6 * alpha) : operand(c, 0);
    return ops_unary(c->g, "HardSigmoid", "", x);
}

static int softmax(OnnxCall *c)
{
    const NetValue *x = value_of(c, 0);
    int64_t axis = node_integer(c->n, "axis", c->opset < 13 ? 1 : -1);
    if (axis != -1 && axis != x->dims.n - 1)
        net_refuse(c->g, "it is over another axis than the last one");
    return unary(c);
}

static int dropout(OnnxCall *c)
{
    double p = real_of(c, 1, "ratio", 0.5);
    value_of(c, 0);
    if (!(p >= 0 && p < 1))
        net_refuse(c->g, "it drops with probability %g", p);
    return p == 0 ? operand(c, 0) : ops_unary(c->g, "Dropout", strf(", p: %g", p), operand(c, 0));
}

/* A weight too: its axes may be swapped. */
static int same(OnnxCall *c)
{
    value_of(c, 0);
    return operand(c, 0);
}

static int constant(OnnxCall *c)
{
    const Attribute *a = node_attribute(c->n, "value"), *b = node_attribute(c->n, "value_float");
    const Attribute *i = node_attribute(c->n, "value_int"), *list = node_attribute(c->n, "value_ints");
    if (a && a->tensor >= 0)
        return a->tensor;
    if (!b && !i && !list)
        net_refuse(c->g, "it has no value of numbers");
    double *x = alloc(sizeof *x);
    *x = b ? b->f : i ? (double)i->i : 0;
    int v = list ? net_numbers(c->g, (Dims){1, {list->list.n}}, list->list.at) : net_numbers(c->g, (Dims){0, {0}}, x);
    c->g->value.at[v].whole = !b;
    return v;
}

/* ---- axes -------------------------------------------------------------------------------------------------------------- */

static int mean(OnnxCall *c)
{
    int64_t axis[2];
    int n;
    value_of(c, 0);
    list_of(c, 1, "axes", axis, 2, &n);
    return ops_mean(c->g, operand(c, 0), axis, n, node_integer(c->n, "keepdims", 1));
}

static int concat(OnnxCall *c)
{
    for (int i = 0; i < c->n->in.n; i++)
        value_of(c, i);
    if (c->n->in.n == 0)
        net_refuse(c->g, "it has no operands");
    return c->n->in.n == 1 ? operand(c, 0) : ops_concat(c->g, &c->n->in, node_integer(c->n, "axis", 1));
}

static int slice(OnnxCall *c)
{
    int64_t from[2], to[2], axis[2], step[2] = {1, 1};
    int n, k, axes, steps;
    const NetValue *x = value_of(c, 0);
    list_of(c, 1, "starts", from, 1, &n);
    list_of(c, 2, "ends", to, 1, &k);
    if (!list_of(c, 3, "axes", axis, 1, &axes))
        axis[0] = 0;
    list_of(c, 4, "steps", step, 1, &steps);
    axis[0] += axis[0] < 0 ? x->dims.n : 0;
    if (n != 1 || k != 1 || step[0] != 1 || axis[0] < 0 || axis[0] >= x->dims.n)
        net_refuse(c->g, "it takes every n-th, or is not along one axis");
    int64_t all = x->dims.d[axis[0]];
    from[0] += from[0] < 0 ? all : 0;
    to[0] = to[0] < 0 ? to[0] + all : to[0] > all ? all : to[0];
    if (from[0] == 0 && to[0] == all)
        return operand(c, 0);
    return ops_slice(c->g, operand(c, 0), axis[0], from[0], to[0] - from[0]);
}

static int split(OnnxCall *c)
{
    int64_t part[64], axis = node_integer(c->n, "axis", 0), at = 0;
    const NetValue *x = value_of(c, 0);
    int n;
    axis += axis < 0 ? x->dims.n : 0;
    if (axis < 1 || axis >= x->dims.n || c->n->out.n > 64)
        net_refuse(c->g, "it splits the samples, or into more than 64");
    if (!list_of(c, 1, "split", part, 64, &n))
        for (n = 0; n < c->n->out.n; n++)
            part[n] = (x->dims.d[axis] + c->n->out.n - 1) / c->n->out.n;
    if (n > 0 && part[0] * n > x->dims.d[axis] && operand(c, 1) < 0 && !node_attribute(c->n, "split"))
        part[n - 1] = x->dims.d[axis] - part[0] * (n - 1);
    for (int i = 0; i < n; i++) {
        *PUSH(c->results) = ops_slice(c->g, operand(c, 0), axis, at, part[i]);
        at += part[i];
    }
    return -1;
}

static int reshape(OnnxCall *c)
{
    int64_t to[MOST_DIMS], known = 1;
    Dims d = value_of(c, 0)->dims, y = {0};
    int n, open = -1;
    list_of(c, 1, "shape", to, MOST_DIMS, &n);
    y.n = n;
    for (int i = 0; i < n; i++) {
        bool copy = to[i] == 0 && !node_integer(c->n, "allowzero", 0) && i < d.n;
        y.d[i] = copy ? d.d[i] : to[i];
        if (y.d[i] == -1 && open < 0)
            open = i;
        else if (y.d[i] <= 0 || known > INT32_MAX / y.d[i])
            net_refuse(c->g, "its shape has an axis of %lld", (long long)y.d[i]);
        else
            known *= y.d[i];
    }
    if (open >= 0)
        y.d[open] = dims_elements(&d) / known;
    if (value_of(c, 0)->kind != VALUE_WEIGHT && (n == 0 || y.d[0] != c->g->batch))
        net_advise(c->g, c->g->remedy, "it mixes samples: the first axis becomes %lld, and there are %lld samples",
                   (long long)y.d[0], (long long)c->g->batch);
    return ops_reshape(c->g, operand(c, 0), y);
}

static int flatten(OnnxCall *c)
{
    Dims d = value_of(c, 0)->dims;
    if (node_integer(c->n, "axis", 1) != 1 || c->g->batch < 1)
        net_refuse(c->g, "it flattens at another axis than 1");
    if (value_of(c, 0)->kind == VALUE_WEIGHT && d.n > 0 && d.d[0] > 0)
        return ops_reshape(c->g, operand(c, 0), (Dims){2, {d.d[0], dims_elements(&d) / d.d[0]}});
    return ops_reshape(c->g, operand(c, 0), (Dims){2, {c->g->batch, dims_elements(&d) / c->g->batch}});
}

static int transpose(OnnxCall *c)
{
    int64_t perm[MOST_DIMS] = {1, 0};
    NetValue *x = value_of(c, 0);
    int n;
    list_of(c, -1, "perm", perm, MOST_DIMS, &n);
    if (x->kind == VALUE_WEIGHT && x->dims.n == 2 && perm[0] == 1 && perm[1] == 0) {
        NetValue turned = *x;
        turned.turned = !turned.turned;
        *PUSH(&c->g->value) = turned;
        return c->g->value.n - 1;
    }
    if (n != x->dims.n)
        net_refuse(c->g, "it has no order for each axis");
    return ops_transpose(c->g, operand(c, 0), perm);
}

static int squeeze(OnnxCall *c)
{
    int64_t axis[MOST_DIMS];
    Dims d = value_of(c, 0)->dims, y = {0};
    int n;
    bool out[2 * MOST_DIMS] = {false}, more = *c->n->op == 'U';
    bool some = list_of(c, 1, "axes", axis, MOST_DIMS, &n);
    int rank = more ? d.n + n : d.n;
    for (int i = 0; i < n; i++) {
        axis[i] += axis[i] < 0 ? rank : 0;
        if (axis[i] < (value_of(c, 0)->kind != VALUE_WEIGHT) || axis[i] >= rank)
            net_refuse(c->g, "axis %lld: it is that of the samples, or there is none", (long long)axis[i]);
        out[axis[i]] = true;
    }
    for (int i = 0, from = 0; i < rank && y.n <= MOST_DIMS; i++) {
        int64_t size = more && out[i] ? 1 : d.d[from++];
        bool leaves = !more && (out[i] || (!some && i > 0 && size == 1));
        if (!leaves && y.n < MOST_DIMS)
            y.d[y.n++] = size;
    }
    return ops_reshape(c->g, operand(c, 0), y);
}

static const struct { const char *name; int (*make)(OnnxCall *c); const char *op; } table[] = {
    {"Conv", conv, NULL}, {"ConvTranspose", conv_transpose, NULL}, {"Pad", pad, NULL}, {"Resize", resize, NULL},
    {"LSTM", lstm, NULL}, {"GRU", lstm, NULL}, {"RNN", lstm, NULL}, {"Expand", expand, NULL},
    {"Trilu", choose, NULL}, {"Where", choose, NULL}, {"BatchNormalization", batch_norm, NULL}, {"MaxPool", pool, "MaxPool"},
    {"AveragePool", pool, "AvgPool"}, {"GlobalAveragePool", global_pool, NULL},
    {"GlobalMaxPool", global_max, NULL}, {"ReduceMax", largest, NULL}, {"PRelu", prelu, NULL}, {"Gemm", gemm, NULL},
    {"MatMul", matmul, NULL},
    {"LayerNormalization", layer_norm, NULL}, {"InstanceNormalization", instance_norm, NULL},
    {"Gather", gather, NULL}, {"Relu", unary, "Relu"}, {"Sigmoid", unary, "Sigmoid"},
    {"Tanh", unary, "Tanh"}, {"HardSwish", unary, "HardSwish"}, {"HardSigmoid", hard_sigmoid, "HardSigmoid"},
    {"Elu", elu, NULL}, {"Softplus", unary, "Softplus"},
    {"LeakyRelu", leaky, NULL}, {"Clip", clip, NULL}, {"Gelu", gelu, NULL}, {"Erf", unary, "?Erf"}, {"Sqrt", unary, "?Sqrt"},
    {"Reciprocal", unary, "?Reciprocal"}, {"Pow", power, NULL}, {"Neg", negative, NULL},
    {"RandomUniformLike", uniform, NULL}, {"Less", less, NULL}, {"Add", binary, NULL},
    {"Sub", binary, NULL}, {"Mul", binary, NULL}, {"Div", binary, NULL}, {"Softmax", softmax, "Softmax"},
    {"LogSoftmax", softmax, "?LogSoftmax"}, {"Dropout", dropout, NULL}, {"Identity", same, NULL}, {"Cast", same, NULL},
    {"CastLike", same, NULL}, {"Constant", constant, NULL}, {"ReduceMean", mean, NULL}, {"Concat", concat, NULL},
    {"Slice", slice, NULL}, {"Split", split, NULL}, {"Reshape", reshape, NULL}, {"Flatten", flatten, NULL},
    {"Transpose", transpose, NULL}, {"Squeeze", squeeze, NULL}, {"Unsqueeze", squeeze, NULL}
};

void onnx_node(Net *g, const OnnxNode *n, int opset, Ints *results)
{
    int folded = onnx_fold(g, n);
    if (folded >= 0) {
        *PUSH(results) = folded;
        return;
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, n->op)) {
            OnnxCall c = {g, n, opset, results, table[i].op};
            int y = table[i].make(&c);
            if (y >= 0)
                *PUSH(results) = y;
            return;
        }
    net_refuse(g, "dpgen does not read this operator");
}
