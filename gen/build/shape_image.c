/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_image.c: the shape rules of images: windows that slide over [B, height, width, channels].
 *
 * On [B, positions, channels] a window slides over positions, and the width is 1.  Along an axis there are
 * floor((size + pads - reach) / stride) + 1 windows, where a kernel with gaps reaches over dilate*(kernel - 1) + 1 pixels.  A
 * window that has no pixel inside is refused.
 */
#include "build.h"

/* How far an operator of windows may reach: sums of such numbers stay far below 2^63. */
enum { FAR = 1 << 20 };

/* A value for each of the n axes from an attribute that is one number or n. */
static bool each_axis(Sizer *z, const char *name, int n, int64_t *value)
{
    int64_t given = attr_int(z->o, name);
    if (given != 1 && given != n)
        return refuse(z, NULL, "%s has %lld numbers: %s", name, (Num)given, n == 1 ? "one is expected"
                      : "one, or [height, width], are expected");
    for (int i = 0; i < n; i++)
        value[i] = attr_int(z->o, strf("%s.%d", name, given == 1 ? 0 : i));
    return true;
}

/* pad: in front of and behind each axis, from one number, one an axis, or [top, left, bottom, right] */
static bool each_side(Sizer *z, int n, int64_t before[2], int64_t behind[2])
{
    int64_t given = attr_int(z->o, "pad");
    bool all = given == 2 * n;
    if (!all && given != 1 && given != n)
        return refuse(z, NULL, "pad has %lld numbers: one, %s, are expected", (Num)given, n == 1 ? "or [before, behind]"
                      : "[height, width] or [top, left, bottom, right]");
    if (!all && !each_axis(z, "pad", n, before))
        return false;
    for (int i = 0; i < n; i++) {
        if (all)
            before[i] = attr_int(z->o, strf("pad.%d", i));
        behind[i] = all ? attr_int(z->o, strf("pad.%d", n + i)) : before[i];
    }
    return true;
}

/* One axis: how many windows.  `most` is the largest pad; -1: any. */
static bool windows(Sizer *z, int64_t size, int64_t kernel, int64_t before, int64_t behind, int64_t most, int64_t *n)
{
    int64_t stride = attr_int(z->o, "stride"), dilate = attr_int(z->o, "dilate") ? attr_int(z->o, "dilate") : 1;
    if (kernel < 1 || kernel > FAR || stride < 1 || stride > FAR || dilate > FAR || before < -FAR || behind < -FAR)
        return refuse(z, NULL, "kernel, stride and dilate are from 1 to %d, and a pad above -%d", FAR, FAR);
    int64_t reach = (kernel - 1) * dilate + 1;
    if (most >= 0 && (before > most || behind > most))
        return refuse(z, strf("pad: %lld", (Num)most), "pads %lld and %lld are more than half of a window of %lld pixels",
                      (Num)before, (Num)behind, (Num)kernel);
    int64_t room = size + before + behind - reach;
    if (room < 0)
        return refuse(z, "a smaller kernel, or pads", "a kernel that reaches over %lld pixels does not fit in %lld with pads "
                      "%lld and %lld", (Num)reach, (Num)size, (Num)before, (Num)behind);
    *n = room / stride + 1;
    if (before >= reach || (*n - 1) * stride - before >= size)
        return refuse(z, strf("pads below %lld", (Num)reach), "pads %lld and %lld put a kernel that reaches over %lld pixels "
                      "outside all %lld", (Num)before, (Num)behind, (Num)reach, (Num)size);
    if (attr_int(z->o, "ceil") && room % stride && *n * stride < size + before)     /* the last one begins inside */
        ++*n;
    return true;
}

/* Windows over images, or over positions, which are images of width 1: attributes, and the shape of y but for its channels. */
static bool image_windows(Sizer *z, bool pool, Shape *y)
{
    const Shape *x = in_shape(z, 0);
    int n = x->n - 2;
    int64_t kernel[2] = {1, 1}, before[2] = {0, 0}, behind[2], count[2] = {1, 1};
    if (n < 1 || n > 2)
        return refuse(z, NULL, "takes images [B, height, width, channels] or [B, positions, channels], not %s", shape_text(x));
    if (!each_axis(z, "kernel", n, kernel) || !each_side(z, n, before, behind))
        return false;
    if (!attr_int(z->o, "stride") && n == 2 && kernel[0] != kernel[1])
        return refuse(z, "stride: 1", "a kernel of %lld by %lld needs a stride", (Num)kernel[0], (Num)kernel[1]);
    if (!attr_int(z->o, "stride"))
        attr_set(z->o, "stride", kernel[0]);
    *y = *x;
    for (int i = 0; i < n; i++) {
        if (pool && (before[i] < 0 || behind[i] < 0))
            return refuse(z, "pad: 0", "a pad must not be negative here");
        if (!windows(z, x->d[1 + i], kernel[i], before[i], behind[i], pool ? kernel[i] / 2 : -1, &count[i]))
            return false;
        y->d[1 + i] = count[i];
    }
    ATTRS(z->o, {"batch", x->d[0]}, {"height", x->d[1]}, {"width", n == 2 ? x->d[2] : 1}, {"yheight", count[0]},
          {"ywidth", count[1]}, {"kheight", kernel[0]}, {"kwidth", kernel[1]}, {"top", before[0]}, {"left", before[1]});
    return true;
}

/* Axes between samples and channels: two, or one; 0 after a complaint. */
static int image_axes(Sizer *z, const Shape *x)
{
    for (int i = 1; i < x->n - 1; i++)
        if (x->d[i] > MAX_BYTES / FAR)
            return refuse(z, NULL, "%lld pixels along an axis are too many", (Num)x->d[i]);
    if (x->n == 3 || x->n == 4)
        return x->n - 2;
    refuse(z, NULL, "takes images [B, height, width, channels] or [B, positions, channels], not %s", shape_text(x));
    return 0;
}

static void set_image(Sizer *z, const Shape *x, int n)
{
    ATTRS(z->o, {"batch", x->d[0]}, {"height", x->d[1]}, {"width", n == 2 ? x->d[2] : 1}, {"channels", shape_last(x)});
}

/* A negative pad takes pixels away. */
bool size_pad(Sizer *z)
{
    Shape x = *in_shape(z, 0), y = x;
    int64_t before[2] = {0, 0}, behind[2] = {0, 0};
    int n = image_axes(z, &x);
    if (!n || !each_side(z, n, before, behind))
        return false;
    for (int i = 0; i < n; i++) {
        int64_t size = x.d[1 + i];
        if (before[i] > FAR || behind[i] > FAR)
            return refuse(z, NULL, "a pad is at most %d", FAR);
        if (before[i] <= -size || behind[i] <= -size || before[i] + behind[i] <= -size)
            return refuse(z, strf("pads above -%lld", (Num)size), "pads %lld and %lld leave nothing of %lld pixels",
                          (Num)before[i], (Num)behind[i], (Num)size);
        y.d[1 + i] += before[i] + behind[i];
    }
    set_image(z, &x, n);
    ATTRS(z->o, {"yheight", y.d[1]}, {"ywidth", n == 2 ? y.d[2] : 1}, {"top", before[0]}, {"left", before[1]},
          {"gtop", -before[0]}, {"gleft", -before[1]});
    attr_set_float(z->o, "zero", 0);
    return out_shape(z, 0, y);
}

bool size_upsample(Sizer *z)
{
    Shape x = *in_shape(z, 0), y = x;
    int64_t by[2] = {1, 1};
    int n = image_axes(z, &x);
    if (!n || !each_axis(z, "factor", n, by))
        return false;
    for (int i = 0; i < n; i++) {
        if (by[i] < 1 || by[i] > FAR)
            return refuse(z, "factor: 2", "a factor is from 1 to %d, not %lld", FAR, (Num)by[i]);
        y.d[1 + i] *= by[i];
    }
    if (attr_int(z->o, "align") && !attr_int(z->o, "bilinear"))
        return refuse(z, "mode: bilinear", "'align' says where pixels lie between others: with mode nearest none do");
    set_image(z, &x, n);
    ATTRS(z->o, {"fheight", by[0]}, {"fwidth", by[1]});
    if (attr_int(z->o, "bilinear"))
        z->o->row = row_find("UpsampleBilinear");
    return out_shape(z, 0, y);
}

bool size_conv(Sizer *z)
{
    Shape y;
    if (!image_windows(z, false, &y))
        return false;
    int64_t in = shape_last(&y), out = attr_int(z->o, "out"), groups = attr_int(z->o, "groups");
    if (in % groups || out % groups)
        return refuse(z, "groups: 1", "%lld groups: %lld channels read and %lld written are not multiples of that", (Num)groups,
                      (Num)in, (Num)out);
    Shape weight = {y.n, {out, in / groups, attr_int(z->o, "kheight"), attr_int(z->o, "kwidth")}};
    attr_set(z->o, "in", in);
    if (groups > 1)
        z->o->row = row_find("ConvGroups");
    y.d[y.n - 1] = out;
    return par_shape(z, 0, weight) && par_shape(z, 1, (Shape){1, {out}}) && out_shape(z, 0, y);
}

/* One axis of ConvTranspose: the windows of y are the pixels of x, and `extra` pixels at its end may be in none. */
static bool spread(Sizer *z, int64_t size, int64_t kernel, int64_t before, int64_t behind, int64_t *n)
{
    int64_t stride = attr_int(z->o, "stride"), dilate = attr_int(z->o, "dilate"), extra = attr_int(z->o, "extra");
    if (kernel < 1 || kernel > FAR || stride > FAR || dilate > FAR || before < 0 || behind < 0)
        return refuse(z, NULL, "kernel, stride and dilate are from 1 to %d, and a pad is not negative", FAR);
    if (extra < 0 || extra >= stride)
        return refuse(z, "extra: 0", "extra pixels are fewer than a stride of %lld, not %lld", (Num)stride, (Num)extra);
    int64_t reach = (kernel - 1) * dilate + 1;
    *n = (size - 1) * stride + reach - before - behind + extra;
    if (before >= reach || behind >= reach || *n < 1)
        return refuse(z, strf("pads below %lld", (Num)reach), "pads %lld and %lld cut off what %lld pixels with a kernel that "
                      "reaches over %lld become", (Num)before, (Num)behind, (Num)size, (Num)reach);
    return true;
}

bool size_conv_transpose(Sizer *z)
{
    Shape x = *in_shape(z, 0), y = x;
    int64_t kernel[2] = {1, 1}, before[2] = {0, 0}, behind[2] = {0, 0}, in = shape_last(&x);
    int64_t out = attr_int(z->o, "out"), groups = attr_int(z->o, "groups");
    int n = image_axes(z, &x);
    if (!n || !each_axis(z, "kernel", n, kernel) || !each_side(z, n, before, behind))
        return false;
    for (int i = 0; i < n; i++)
        if (!spread(z, x.d[1 + i], kernel[i], before[i], behind[i], &y.d[1 + i]))
            return false;
    if (in % groups || out % groups)
        return refuse(z, "groups: 1", "%lld groups: %lld channels read and %lld written are not multiples of that", (Num)groups,
                      (Num)in, (Num)out);
    set_image(z, &x, n);
    ATTRS(z->o, {"in", in}, {"yheight", y.d[1]}, {"ywidth", n == 2 ? y.d[2] : 1}, {"kheight", kernel[0]},
          {"kwidth", kernel[1]}, {"top", before[0]}, {"left", before[1]});
    y.d[y.n - 1] = out;
    return par_shape(z, 0, (Shape){y.n, {in, out / groups, kernel[0], kernel[1]}}) && par_shape(z, 1, (Shape){1, {out}}) &&
           out_shape(z, 0, y);
}

bool size_pool(Sizer *z)
{
    Shape y;
    if (!image_windows(z, true, &y))
        return false;
    attr_set(z->o, "channels", shape_last(&y));
    return out_shape(z, 0, y);
}

/* GlobalAvgPool: the mean over all axes between samples and channels */
bool size_image_mean(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    if (x->n < 3)
        return refuse(z, NULL, "takes images [B, height, width, channels], not %s", shape_text(x));
    Shape y = {2, {x->d[0], shape_last(x)}};
    int64_t mid = shape_size(x, 1, x->n - 1);
    ATTRS(z->o, {"outer", x->d[0]}, {"mid", mid}, {"inner", shape_last(x)});
    attr_set_float(z->o, "factor", 1 / (double)mid);
    for (int i = 1; i < x->n && attr_int(z->o, "keep"); i++, y.n = x->n)
        y.d[i] = i < x->n - 1 ? 1 : shape_last(x);
    return out_shape(z, 0, y);
}

static bool set_pixels(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    ATTRS(z->o, {"rows", shape_size(x, 0, x->n - 1)}, {"width", shape_last(x)});
    return true;
}

bool size_batch_stat(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    Shape one = {1, {shape_last(x)}};
    double momentum = attr_find(z->o, "momentum")->f;
    if (shape_size(x, 0, x->n - 1) < 2)
        return refuse(z, "more samples in a micro-batch, or a larger image", "%s has one value a channel: its variance is 0",
                      shape_text(x));
    if (!(momentum > 0 && momentum <= 1))
        return refuse(z, "momentum: 0.1", "a momentum of running statistics is above 0 and at most 1, not %g", momentum);
    return set_pixels(z) && par_shape(z, 0, one) && par_shape(z, 1, one) && par_shape(z, 2, (Shape){1, {1}}) &&
           out_shape(z, 0, one) && out_shape(z, 1, one);
}

bool size_batch_norm(Sizer *z)
{
    Shape one = {1, {shape_last(in_shape(z, 0))}};
    if (attr_find(z->o, "eps")->f < 0)
        return refuse(z, NULL, "eps must not be negative");
    return set_pixels(z) && par_shape(z, 0, one) && par_shape(z, 1, one) && out_shape(z, 0, *in_shape(z, 0));
}

/* InstanceNorm has no groups: each channel is one. */
bool size_group_norm(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    int64_t groups = attr_find(z->o, "groups") ? attr_int(z->o, "groups") : shape_last(x);
    Shape one = {1, {shape_last(x)}}, each = {2, {x->d[0], groups}};
    if (x->n < 2)
        return refuse(z, NULL, "takes [B, ..., channels], not %s", shape_text(x));
    if (shape_last(x) % groups)
        return refuse(z, "groups: 1", "%lld channels cannot be divided into %lld groups", (Num)shape_last(x),
                      (Num)groups);
    if (attr_find(z->o, "eps")->f < 0)
        return refuse(z, NULL, "eps must not be negative");
    ATTRS(z->o, {"batch", x->d[0]}, {"pixels", shape_size(x, 1, x->n - 1)}, {"groups", groups},
          {"width", shape_last(x) / groups});
    if (attr_int(z->o, "pixels") * attr_int(z->o, "width") == 1)
        return refuse(z, "fewer groups, or a larger image", "%s has one value in each of %lld groups: its variance is 0",
                      shape_text(x), (Num)groups);
    return par_shape(z, 0, one) && par_shape(z, 1, one) && out_shape(z, 0, *x) && out_shape(z, 1, each) &&
           out_shape(z, 2, each);
}
