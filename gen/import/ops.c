/* SPDX-License-Identifier: Apache-2.0
 *
 * ops.c: operators of neural networks as lines of a model file.
 *
 * Images have channels behind the batch in files, and here they are the last axis: ops_axes.c.
 */
#include "net.h"
#include <math.h>

static const char *pair_text(const char *key, const int64_t x[2], int64_t otherwise)
{
    if (x[0] == otherwise && x[1] == otherwise)
        return "";
    return x[0] == x[1] ? strf(", %s: %lld", key, (long long)x[0])
                        : strf(", %s: [%lld, %lld]", key, (long long)x[0], (long long)x[1]);
}

const char *net_real(double x)
{
    const char *text = "";
    for (int digits = 6; digits <= 17; digits++) {
        text = strf("%.*g", digits, x);
        if (number_decimal(text, strlen(text)) == x || (float)number_decimal(text, strlen(text)) == (float)x)
            break;
    }
    return text;
}

/* ---- images ------------------------------------------------------------------------------------------------------------ */

/* conv: its strides are 1 where nothing is said, those of pools are the kernel */
static const char *window_text(const Net *g, const NetWindow *w, bool conv, bool positions)
{
    const int64_t *const both[] = {w->stride, w->dilate};
    for (int i = 0; i < 1 + conv; i++)
        if (both[i][0] != both[i][1])
            net_refuse(g, "its %s are [%lld, %lld]: dpgen has one for both axes", i ? "dilations" : "strides",
                       (long long)both[i][0], (long long)both[i][1]);
    const int64_t *p = w->pad, ends[] = {p[0], p[2]};
    if (positions)              /* their width is 1 */
        return strf(", kernel: %lld, stride: %lld%s", (long long)w->kernel[0], (long long)w->stride[0],
                    pair_text("pad", ends, 0));
    const char *pad = p[0] == p[2] && p[1] == p[3] ? pair_text("pad", p, 0)
        : strf(", pad: [%lld, %lld, %lld, %lld]", (long long)p[0], (long long)p[1], (long long)p[2], (long long)p[3]);
    return strf("%s, stride: %lld%s", pair_text("kernel", w->kernel, -1), (long long)w->stride[0], pad);
}

/* Strides that differ: a window of the stride that both have, of whose results every n-th is taken. */
static NetWindow even_window(const NetWindow *w, int64_t by[2])
{
    NetWindow even = *w;
    for (int i = 0; i < 2; i++)
        even.dilate[i] = w->kernel[i] == 1 ? w->dilate[1 - i] : w->dilate[i];      /* one pixel has no gaps */
    int64_t a = w->stride[0] > 0 ? w->stride[0] : 1, b = w->stride[1] > 0 ? w->stride[1] : 1;
    for (int i = 0; i < 2; i++) {
        by[i] = w->stride[0] == w->stride[1] ? 1 : w->stride[i] / number_common(a, b);
        even.stride[i] = w->stride[i] / by[i];
    }
    return even;
}

static Dims window_dims(const Net *g, Dims d, const NetWindow *w)
{
    for (int i = 2; i < d.n; i++) {
        int64_t k = w->dilate[i - 2] * (w->kernel[i - 2] - 1) + 1, room = d.d[i] + w->pad[i - 2] + w->pad[i] - k;
        if (room < 0 || w->stride[i - 2] < 1)
            net_refuse(g, "its window is larger than the image");
        d.d[i] = (w->ceil ? room + w->stride[i - 2] - 1 : room) / w->stride[i - 2] + 1;
        if (w->ceil && (d.d[i] - 1) * w->stride[i - 2] >= room + k - w->pad[i])
            d.d[i]--;           /* it would begin outside */
    }
    return d;
}

int ops_conv(Net *g, int x, int weight, int bias, const NetWindow *any)
{
    int64_t by[2];
    const NetWindow even = even_window(any, by), *w = &even;
    x = net_channels_last(g, x);
    const NetValue *k = value_of(g, weight);
    Dims d = window_dims(g, value_of(g, x)->dims, w);
    net_want_weight(g, weight, "weight");
    if (k->dims.n != d.n || w->groups < 1 || k->dims.d[1] * w->groups != d.d[1])
        net_refuse(g, "its weight does not fit");
    d.d[1] = k->dims.d[0];
    const int64_t dilate[] = {w->dilate[0], w->dilate[d.n == 4]};
    const char *text = strf(", out: %lld%s%s", (long long)d.d[1], window_text(g, w, true, d.n == 3),
                            pair_text("dilate", dilate, 1));
    text = strf("%s%s%s", text, w->groups > 1 ? strf(", groups: %lld", (long long)w->groups) : "",
                bias < 0 ? ", bias: false" : "");
    Dims of = k->dims;
    int y = net_line(g, "Conv", text, x, d, true);
    net_role(g, y, "weight", weight, false, of);
    net_role(g, y, "bias", bias, false, (Dims){1, {d.d[1]}});
    return d.n == 4 ? ops_every(g, y, by) : y;
}

int ops_conv_transpose(Net *g, int x, int weight, int bias, const NetWindow *w, const int64_t extra[2])
{
    x = net_channels_last(g, x);
    const NetValue *k = value_of(g, weight);
    Dims d = value_of(g, x)->dims, of = k->dims;
    net_want_weight(g, weight, "weight");
    if (d.n != 4 || of.n != 4 || w->groups < 1 || of.d[0] != d.d[1] || extra[0] != extra[1])
        net_refuse(g, "its weight does not fit, it is of no images, or output_padding differs between the axes");
    d.d[1] = of.d[1] * w->groups;
    for (int i = 0; i < 2; i++)
        d.d[2 + i] = (d.d[2 + i] - 1) * w->stride[i] + w->dilate[i] * (w->kernel[i] - 1) + 1 + extra[i] -
            w->pad[i] - w->pad[2 + i];
    const char *text = strf(", out: %lld%s%s%s%s%s", (long long)d.d[1], window_text(g, w, true, false),
                            pair_text("dilate", w->dilate, 1),
                            w->groups > 1 ? strf(", groups: %lld", (long long)w->groups) : "",
                            extra[0] ? strf(", extra: %lld", (long long)extra[0]) : "", bias < 0 ? ", bias: false" : "");
    int y = net_line(g, "ConvTranspose", text, x, d, true);
    net_role(g, y, "weight", weight, false, of);
    net_role(g, y, "bias", bias, false, (Dims){1, {d.d[1]}});
    return y;
}

/* pad: top, left, bottom, right */
int ops_pad(Net *g, int x, const int64_t pad[4], double value)
{
    net_want_act(g, x);
    if (value_of(g, x)->dims.n != 4)
        net_refuse(g, "it pads no images");
    x = net_channels_last(g, x);
    Dims d = value_of(g, x)->dims;
    d.d[2] += pad[0] + pad[2], d.d[3] += pad[1] + pad[3];
    const char *text = strf(", pad: [%lld, %lld, %lld, %lld]%s", (long long)pad[0], (long long)pad[1], (long long)pad[2],
                            (long long)pad[3], value == 0 ? "" : strf(", value: %s", net_real(value)));
    return net_line(g, "Pad", text, x, d, true);
}

/* factor: of height and width, whole numbers */
int ops_upsample(Net *g, int x, const double factor[2], bool bilinear, bool align)
{
    net_want_act(g, x);
    if (value_of(g, x)->dims.n != 4)
        net_refuse(g, "it resizes no images");
    x = net_channels_last(g, x);
    Dims d = value_of(g, x)->dims;
    int64_t f[2];
    for (int i = 0; i < 2; i++) {
        f[i] = factor[i] >= 1 && factor[i] < 4096 ? (int64_t)factor[i] : 0;
        if ((double)f[i] != factor[i])
            net_refuse(g, "it resizes by a factor of %g, which is no whole number", factor[i]);
        d.d[2 + i] *= f[i];
    }
    const char *mode = bilinear ? ", mode: bilinear" : "";
    return net_line(g, "Upsample", strf("%s%s%s", pair_text("factor", f, -1), mode, align ? ", align: true" : ""), x, d, true);
}

int ops_pool(Net *g, const char *op, int x, const NetWindow *any)
{
    int64_t by[2];
    const NetWindow even = even_window(any, by), *w = &even;
    x = net_channels_last(g, x);
    if (w->dilate[0] != 1 || w->dilate[1] != 1)
        net_refuse(g, "its window is dilated, which dpgen does not do");
    bool mean = *op == 'A', positions = value_of(g, x)->dims.n == 3;
    if (mean && w->ceil)
        net_refuse(g, "a mean over windows that end outside (ceil_mode) is not done");
    bool pads = w->pad[0] || w->pad[1] || w->pad[2] || w->pad[3];
    const char *more = w->ceil ? ", ceil: true" : mean && pads && !w->count_pad ? ", count_pad: false" : "";
    Dims d = window_dims(g, value_of(g, x)->dims, w);
    if (w->ceil && (by[0] > 1 || by[1] > 1))
        net_refuse(g, "its strides differ, and windows end outside (ceil_mode), which is not done");
    int y = net_line(g, op, strf("%s%s", window_text(g, w, false, positions), more), x, d, true);
    return positions ? y : ops_every(g, y, by);
}

int ops_global_pool(Net *g, int x, bool keep)
{
    x = net_channels_last(g, x);
    Dims d = value_of(g, x)->dims;
    for (int i = 2; i < d.n; i++)
        d.d[i] = 1;
    if (d.n != 4)
        net_refuse(g, "a mean over all positions of a sequence is not done");
    return keep ? net_line(g, "GlobalAvgPool", ", keep: true", x, d, true)
                : net_line(g, "GlobalAvgPool", "", x, (Dims){2, {d.d[0], d.d[1]}}, false);
}

/* Files of ONNX have no count of steps: 0, under the name that PyTorch gives it. */
static int no_steps(Net *g, int mean)
{
    const char *name = value_of(g, mean)->name, *part = strstr(name, "running_mean");
    const char *stem = part ? strf("%.*s", (int)(part - name), name) : strf("%s.", name);
    return net_weight(g, strf("%snum_batches_tracked", stem), "F32", (Dims){0, {0}}, alloc(4), 4);
}

int ops_batch_norm(Net *g, int x, const int weight[5], double eps, double momentum)
{
    static const char *const role[] = {"weight", "bias", "running_mean", "running_var"};
    net_want_act(g, x);
    Dims d = value_of(g, x)->dims;
    if (d.n > 2)
        x = net_channels_last(g, x);
    const char *text = strf("%s%s", (float)eps == 1e-5f ? "" : strf(", eps: %s", net_real(eps)),
                            fabs(momentum - 0.1) < 1e-6 ? "" : strf(", momentum: %s", net_real((float)momentum)));
    int y = net_line(g, "BatchNorm", text, x, d, d.n > 2);
    for (int i = 0; i < 4; i++) {
        const NetValue *v = weight[i] < 0 ? NULL : value_of(g, weight[i]);
        if (!v || v->kind != VALUE_WEIGHT || dims_elements(&v->dims) != d.d[1])
            net_refuse(g, "its %s is no tensor of the file with a number a channel", role[i]);
        net_role(g, y, role[i], weight[i], false, (Dims){1, {d.d[1]}});
    }
    net_role(g, y, "num_batches_tracked", weight[4] < 0 ? no_steps(g, weight[2]) : weight[4], false, (Dims){0, {0}});
    return y;
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

int ops_layer_norm(Net *g, int x, int weight, int bias, double eps)
{
    net_want_act(g, x);
    const NetValue *v = value_of(g, x);
    Dims d = v->dims;
    bool last = v->last;
    if (last)
        net_refuse(g, "it is over the last axis of the file, which is none of channels");
    if (weight < 0 || value_of(g, weight)->kind != VALUE_WEIGHT || dims_elements(&value_of(g, weight)->dims) != d.d[d.n - 1])
        net_refuse(g, "it has no weight for each number of the last axis");
    int y = net_line(g, "LayerNorm", strf("%s%s", (float)eps == 1e-5f ? "" : strf(", eps: %s", net_real(eps)),
                                          bias < 0 ? ", bias: false" : ""), x, d, false);
    net_role(g, y, "weight", weight, false, (Dims){1, {d.d[d.n - 1]}});
    net_role(g, y, "bias", bias, false, (Dims){1, {d.d[d.n - 1]}});
    return y;
}

/* Constants that change nothing are no parameters: weights of 1 and biases of 0, where a norm has none. */
static bool is_all(Net *g, int value, double number)
{
    const double *x = net_known(g, value);
    for (int64_t i = 0; x && i < dims_elements(&value_of(g, value)->dims); i++)
        if (x[i] != number)
            return false;
    return x && !value_of(g, value)->learns;
}

int ops_instance_norm(Net *g, int x, int weight, int bias, double eps)
{
    x = net_channels_last(g, x);
    Dims d = value_of(g, x)->dims;
    bool plain = is_all(g, weight, 1) && is_all(g, bias, 0);
    int y = net_line(g, "InstanceNorm", strf("%s%s", (float)eps == 1e-5f ? "" : strf(", eps: %s", net_real(eps)),
                                             plain ? "" : ", affine: true"), x, d, true);
    net_role(g, y, "weight", plain ? -1 : weight, false, (Dims){1, {d.d[1]}});
    net_role(g, y, "bias", plain ? -1 : bias, false, (Dims){1, {d.d[1]}});
    return y;
}

int ops_linear(Net *g, int x, int weight, int bias, bool turned)
{
    net_want_act(g, x);
    const NetValue *w = value_of(g, weight);
    bool swap = turned != w->turned;
    if (w->kind == VALUE_ACT)
        net_refuse_attention(g, "it multiplies two activations");
    net_want_weight(g, weight, "weight");
    if (w->dims.n != 2)
        net_refuse(g, "its weight '%s' is no matrix", w->name);
    int64_t in = w->dims.d[swap ? 0 : 1], out = w->dims.d[swap ? 1 : 0];
    Dims d = value_of(g, x)->dims;
    if (d.n < 2 || d.d[d.n - 1] != in)
        net_refuse(g, "its weight does not fit");
    if (value_of(g, x)->view)
        return view_linear(g, x, weight, bias, turned);
    if (value_of(g, x)->last)
        x = net_plain(g, x);
    d.d[d.n - 1] = out;
    int y = net_line(g, "Linear", strf(", out: %lld%s", (long long)out, bias < 0 ? ", bias: false" : ""), x, d, false);
    net_role(g, y, "weight", weight, swap, (Dims){2, {out, in}});
    net_role(g, y, "bias", bias, false, (Dims){1, {out}});
    return y;
}

int ops_embedding(Net *g, int ids, int weight)
{
    const NetValue *w = value_of(g, weight);
    net_want_act(g, ids);
    if (!value_of(g, ids)->whole || w->kind != VALUE_WEIGHT || w->dims.n != 2 || w->turned)
        net_refuse(g, "it looks up no rows of a matrix by an input of integers");
    Dims d = value_of(g, ids)->dims;
    if (d.n == MOST_DIMS)
        net_refuse(g, "it has too many axes");
    d.d[d.n++] = w->dims.d[1];
    Dims of = w->dims;
    int y = net_line(g, "Embedding", strf(", rows: %lld, out: %lld", (long long)of.d[0], (long long)of.d[1]), ids, d, false);
    net_role(g, y, "weight", weight, false, of);
    return y;
}

/* ---- one operand ------------------------------------------------------------------------------------------------------- */

int ops_unary(Net *g, const char *op, const char *attributes, int x)
{
    net_want_act(g, x);
    if (value_of(g, x)->view)
        return view_unary(g, op, attributes, x);
    return net_line(g, op, attributes, x, value_of(g, x)->dims, value_of(g, x)->last);
}

static int with_number(Net *g, const char *op, const char *attributes, int x, double number)
{
    int y = ops_unary(g, op, attributes, x);
    g->line.at[value_of(g, y)->line].factor = number;
    return y;
}

int ops_scale(Net *g, int x, double factor)
{
    int y = factor == 1 ? x : with_number(g, "Scale", strf(", factor: %s", net_real(factor)), x, factor);
    int whole = factor == 1 ? -1 : idiom_of_product(g, y);
    return whole < 0 ? y : whole;
}

static int ops_plus(Net *g, int x, double number)
{
    return number == 0 ? x : with_number(g, "?Plus", "", x, number);
}

int ops_power(Net *g, int x, double number)
{
    return number == 1 ? x : with_number(g, "?Pow", "", x, number);
}

/* ---- two operands ------------------------------------------------------------------------------------------------------ */

/* A tensor of the file as an operand: the same for every sample.  Its shape has a 1 in front. */
static int parameter(Net *g, int weight, const Dims *like, bool last)
{
    net_want_weight(g, weight, "operand");
    Dims d = value_of(g, weight)->dims, stored = value_of(g, weight)->stored, of = {.n = like->n};
    int lacks = like->n - d.n;
    if (value_of(g, weight)->turned)
        net_refuse(g, "its operand '%s' is a matrix whose axes are exchanged", value_of(g, weight)->name);
    for (int i = 0; i < like->n; i++)
        of.d[i] = i < lacks ? 1 : d.d[i - lacks];
    if (lacks < 0 || of.d[0] != 1)
        net_refuse(g, "an operand of the file has an axis for the samples");
    Dims y = of;
    if (last && dims_elements(&of) != of.d[1])
        net_refuse(g, "a tensor of the file with pixels is an operand beside an image, which is not done");
    if (last)                           /* a number a channel: the same order here */
        of.d[of.n - 1] = of.d[1], of.d[1] = 1;
    const char *text = "1";
    for (int i = 1; i < of.n; i++)
        text = strf("%s, %lld", text, (long long)of.d[i]);
    y.d[0] = g->batch;
    const char *kept = "";
    for (int i = 0; i < stored.n; i++)
        kept = strf("%s%s%lld", kept, i ? ", " : "", (long long)stored.d[i]);
    bool other = !dims_same(&stored, &of) && stored.n > 0;      /* in files it keeps its shape */
    const char *shape = strf(", shape: [%s]%s", text, other ? strf(", stored: [%s]", kept) : "");
    int value = net_line(g, "Parameter", shape, -1, y, last);
    net_role(g, value, "weight", weight, false, other ? stored : of);
    return value;
}

/* A tensor of the file that is the same for each sample */
int ops_expand(Net *g, int x, Dims to)
{
    Dims d = value_of(g, x)->dims;
    for (int i = 0; i < to.n; i++)
        to.d[i] = to.d[i] == -1 && i >= to.n - d.n ? d.d[i - (to.n - d.n)] : to.d[i];
    if (value_of(g, x)->kind == VALUE_ACT && dims_same(&d, &to))
        return x;
    Dims like = to;
    like.d[0] = 1;
    if (value_of(g, x)->kind != VALUE_WEIGHT || to.n < 1 || to.d[0] != g->batch || !dims_same(&d, &like))
        net_refuse(g, "it repeats other axes than that of the samples");
    return parameter(g, x, &to, false);
}

/* A number for each place of the axis of channels, and 1 elsewhere, as the file has axes */
static bool is_channels(const NetValue *act, const Dims *d)
{
    int axis = act->last ? 1 : act->dims.n - 1, at = axis - (act->dims.n - d->n);
    return at >= 0 && d->n <= act->dims.n && d->d[at] == act->dims.d[axis] && dims_elements(d) == d->d[at];
}

/* Bias of a product without one */
static int biased(Net *g, int a, int b)
{
    static const char *const products[] = {"Linear", "Conv", "ConvTranspose"}, none[] = ", bias: false";
    const Made *l = net_made(g, a);
    const NetValue *v = value_of(g, b);
    bool product = false;
    for (size_t i = 0; l && i < sizeof products / sizeof *products; i++)
        product |= !strcmp(l->op, products[i]);
    const char *at = product ? strstr(l->attributes, none) : NULL;
    if (!at || v->kind != VALUE_WEIGHT || !is_channels(value_of(g, a), &v->dims))
        return -1;
    Made same = *l;
    NetValue *y, was = *value_of(g, a);
    y = value_of(g, net_line(g, same.op, strf("%.*s%s", (int)(at - same.attributes), same.attributes, at + sizeof none - 1),
                             same.in.at[0], was.dims, was.last));
    int n = (int)(y - g->value.at);
    for (int i = 0; i < same.roles; i++)
        net_role(g, n, same.role[i].role, same.role[i].value, same.role[i].turned, same.role[i].dims);
    net_role(g, n, "bias", b, false, (Dims){1, {dims_elements(&v->dims)}});
    return n;
}

static int number_and(Net *g, const char *op, int x, double n, bool first)
{
    if (!strcmp(op, "Mul"))
        return ops_scale(g, x, n);
    if (!strcmp(op, "Add") || !strcmp(op, "Sub"))
        return *op == 'A' ? ops_plus(g, x, n) : first ? ops_plus(g, ops_scale(g, x, -1), n) : ops_plus(g, x, -n);
    if (first || n == 0)
        net_refuse(g, "it divides by data, or by 0");
    return ops_scale(g, x, 1 / n);
}

int ops_draw(Net *g, Dims dims, double keep)
{
    if (!(keep > 0 && keep <= 1))
        net_refuse(g, "it draws with probability %g", keep);
    int y = net_line(g, "?Draw", "", -1, dims, false);
    g->line.at[value_of(g, y)->line].factor = keep;
    return y;
}

/* The shortest p that leaves this probability, which may be a float, and is the same float as 1 less it, if it is none. */
static const char *dropped(double keep)
{
    const char *text = "0";
    bool narrow = (double)(float)keep == keep;
    for (int digits = 1; digits <= 17; digits++) {
        text = strf("%.*g", digits, 1 - keep);
        double p = number_decimal(text, strlen(text));
        if (narrow ? (float)(1 - p) == (float)keep : (float)p == (float)(1 - keep))
            break;
    }
    return text;
}

/* x times one draw a sample, divided by its probability; -1: it is not that. */
static int whole_samples(Net *g, int x, int draw)
{
    const Made *l = net_made(g, draw);
    double factor = l && !strcmp(l->op, "Scale") ? l->factor : 1;
    l = factor == 1 ? l : net_made(g, l->in.at[0]);
    Dims d = value_of(g, draw)->dims;
    const char *axes = "";
    if (!l || strcmp(l->op, "?Draw") || fabs(factor * l->factor - 1) > 1e-5 || dims_elements(&d) != d.d[0] || d.n < 2)
        return -1;
    for (int i = 1; i < d.n; i++)
        axes = strf("%s%s%d", axes, i > 1 ? ", " : "", i);
    return l->factor == 1 ? x : ops_unary(g, "Dropout", strf(", p: %s, shared: [%s]", dropped(l->factor), axes), x);
}

/* b has the axes of a, or 1 in places, or lacks the leading ones. */
static bool repeats(const Dims *a, const Dims *b)
{
    int lacks = a->n - b->n;
    for (int i = lacks; i < a->n && lacks >= 0; i++)
        if (b->d[i - lacks] != a->d[i] && (b->d[i - lacks] != 1 || i == 0))
            return false;
    return lacks >= 0;
}

/* Axes of a that b is repeated over are neighbours here, as Add and Mul want them. */
static bool is_one_run(const NetValue *a, const NetValue *b)
{
    int n = a->dims.n, from = n, to = 0;
    int64_t x[MOST_DIMS], y[MOST_DIMS];
    if (b->dims.n != n)
        return true;
    for (int i = 0; i < n; i++) {
        int k = !a->last || i == 0 ? i : i + 1 < n ? i + 1 : 1;
        x[i] = a->dims.d[k], y[i] = b->dims.d[k];
        if (x[i] != y[i])
            from = from < n ? from : i, to = i + 1;
    }
    for (int i = from; i < to; i++)
        if (y[i] != 1)
            return false;
    return true;
}

int ops_binary(Net *g, const char *op, int a, int b)
{
    if (value_of(g, a)->view || value_of(g, b)->view)
        net_refuse(g, "the first axis of an operand is not that of the samples");
    bool act[] = {value_of(g, a)->kind == VALUE_ACT, value_of(g, b)->kind == VALUE_ACT};
    for (int i = 0; i < 2; i++) {
        int n = i ? a : b, x = i ? b : a;
        bool one = !act[1 - i] && dims_elements(&value_of(g, n)->dims) == 1 && net_known(g, n) && !value_of(g, n)->learns;
        if (act[i] && one)
            return number_and(g, op, x, *net_known(g, n), i == 1);
    }
    if (!strcmp(op, "Div"))
        net_advise(g, strf("from opset 17 on a LayerNorm is whole: %s; a division by data is not done", g->remedy),
                   "it divides by data: a norm in parts is not put together again");
    if (*op == 'A' && act[0] != act[1]) {
        int y = act[0] ? biased(g, a, b) : biased(g, b, a);
        if (y >= 0)
            return y;
    }
    if (act[0] != act[1]) {
        const NetValue *v = value_of(g, act[0] ? a : b);
        Dims like = v->dims;
        *(act[0] ? &b : &a) = parameter(g, act[0] ? b : a, &like, v->last);
    }
    net_want_act(g, a), net_want_act(g, b);
    if (!strcmp(op, "Sub"))
        return ops_binary(g, "Add", a, ops_scale(g, b, -1));
    for (int i = 0; i < 2 && *op == 'M'; i++) {
        int y = whole_samples(g, i ? a : b, i ? b : a);
        if (y >= 0)
            return y;
    }
    if (value_of(g, a)->last != value_of(g, b)->last)
        a = net_plain(g, a), b = net_plain(g, b);
    if (!repeats(&value_of(g, a)->dims, &value_of(g, b)->dims)) {
        int swap = a;
        a = b, b = swap;
    }
    if (!repeats(&value_of(g, a)->dims, &value_of(g, b)->dims))
        net_refuse(g, "its operands do not fit, or both are repeated");
    if (!is_one_run(value_of(g, a), value_of(g, b)))
        net_refuse(g, "an operand is repeated over axes that are no neighbours, which dpgen does not do");
    int y = net_line(g, op, "", a, value_of(g, a)->dims, value_of(g, a)->last);
    net_also(g, y, b);
    int whole = *op == 'M' ? idiom_of_product(g, y) : -1;
    return whole < 0 ? y : whole;
}
