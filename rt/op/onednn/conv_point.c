/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_point.c: convolutions by kernels of one pixel, as Linear over pixels.
 *
 * Problem.  Half of the work of ResNet-50 is such kernels, and oneDNN 2.6 is not at its best with them: a weight is
 * packed in each call, which takes as long as a quarter of the product where pixels are few, and the gradient of a weight in
 * f32 takes up to twice as long as the product.
 *
 * Method.  With channels last an image is a matrix [pixels channels], and the call is one of linear.c.  With a stride, the
 * pixels that count are copied next to each other first; their gradient is copied back between zeros.  Which calls come here
 * was measured at the shapes of ResNet-50, DenseNet-121, Inception-v3, MobileNetV2 and EfficientNet-B0:
 *
 *              f32, AVX-512     f32, AVX2        bf16
 *   y          few pixels       few pixels       few pixels
 *   dx         all              all              few pixels
 *   dweight    all              many pixels, or  few pixels: with many, products along them are slow
 *                               any at a stride
 */
#include "../kernel.h"
#include "conv_point.h"
#include "product.h"

enum { FEW = 1024, MANY = 1 << 14 };
static const int f32 = sizeof(real) == sizeof(float);
#ifdef __AVX512F__
static const int wide = 1;
#else
static const int wide = 0;
#endif

static long pixels(const Conv *v) { return v->batch * v->yheight * v->ywidth; }
/* A pad below zero leaves out rows or columns at the start. */
static int sparse(const Conv *v)
{
    return v->stride > 1 || v->top < 0 || v->left < 0 || v->yheight < v->height || v->ywidth < v->width;
}

/* oneDNN 2.6 for AVX2 makes wrong gradients of weights at a stride where channels are no multiple of 8, and may not return. */
static int is_safe(const Conv *v, Direction to)
{
    return !f32 || wide || to != BACKWARD_W || v->stride == 1;
}

static int faster(Direction to, long n)
{
    if (!f32 || to == FORWARD)
        return n < FEW;
    return to == BACKWARD_X || wide || n >= MANY;
}

int point_takes(const Conv *v, Direction to)
{
    int one = v->kheight == 1 && v->kwidth == 1 && v->groups == 1 && v->top <= 0 && v->left <= 0;
    int inside = (v->yheight - 1) * v->stride - v->top < v->height && (v->ywidth - 1) * v->stride - v->left < v->width;
    return one && inside && (faster(to, pixels(v)) || !is_safe(v, to));
}

/* The block for pixels that are copied next to each other; products have another one. */
static void open_block(Stage *st, const Conv *v)
{
    if (sparse(v))
        scratch_open(st, (size_t)ceil_div(pixels(v) * v->in, st->threads) * sizeof(real));
}

void point_open_forward(Stage *st, int h, const Conv *v)
{
    open_block(st, v);
    open_linear_forward(st, h, pixels(v), v->in, v->out);
}

void point_open_backward_x(Stage *st, int h, const Conv *v)
{
    open_block(st, v);
    open_linear_backward_x(st, h, pixels(v), v->in, v->out);
}

void point_open_backward_w(Stage *st, int h, const Conv *v)
{
    open_block(st, v);
    open_linear_backward_w(st, h, pixels(v), v->in, v->out);
}

/* The pixel of x under pixel p of y. */
static long under(const Conv *v, long p)
{
    long row = p / v->ywidth % v->yheight * v->stride - v->top, column = p % v->ywidth * v->stride - v->left;
    return (p / v->ywidth / v->yheight * v->height + row) * v->width + column;
}

static const real *gather(Stage *st, const real *x, const Conv *v)
{
    if (!sparse(v))
        return x;
    real *to = scratch_thread(st, 0);
    EACH(pixels(v) * v->in >= 1 << 15)
    for (long p = 0; p < pixels(v); p++)
        memcpy(to + p * v->in, x + under(v, p) * v->in, (size_t)v->in * sizeof *to);
    return to;
}

static void scatter(Stage *st, real *dx, const real *from, const Conv *v)
{
    EACH(pixels(v) * v->in >= 1 << 15)
    for (long row = 0; row < v->batch * v->height; row++) {
        long in = row % v->height + v->top, line = in / v->stride;
        real *to = dx + row * v->width * v->in;
        memset(to, 0, (size_t)(v->width * v->in) * sizeof *to);
        if (in < 0 || in % v->stride || line >= v->yheight)
            continue;
        const real *of = from + (row / v->height * v->yheight + line) * v->ywidth * v->in;
        for (long p = 0; p < v->ywidth; p++)
            memcpy(to + (p * v->stride - v->left) * v->in, of + p * v->in, (size_t)v->in * sizeof *to);
    }
}

void point_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, const Conv *v)
{
    linear_forward(st, y, gather(st, x, v), weight, bias, h, pixels(v), v->in, v->out);
}

void point_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, const Conv *v)
{
    real *to = sparse(v) ? scratch_thread(st, 0) : dx;
    linear_backward_x(st, to, dy, weight, h, pixels(v), v->in, v->out);
    if (to != dx)
        scatter(st, dx, to, v);
}

void point_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
                      const Conv *v)
{
    linear_backward_w(st, dweight, dbias, dy, dweight ? gather(st, x, v) : x, h, acc, pixels(v), v->in, v->out);
}
