/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_fp8.c: Linear with factors of 8 bits, by cublasLt; rt/op/linear_fp8.c defines it, factor.cu makes the factors.
 *
 * Tensor cores of sm_89 and sm_90 read both factors along the sum: c[m n] = a[m k] b[n k]^T.  So backward turns what does
 * not lie that way: the weight for dx, dy and x for dweight.  Sums are f32, without the shorter ones that the library could
 * take; both scales and the bias are applied before the one rounding.  No such product makes the gradient of a bias: the pass
 * that turns dy does.  Where both gradients are made behind each other, dy is read once for both ways that it lies.
 */
#include "factor.h"
#include "product.h"

enum { PLAIN, BIASED };         /* one handle serves layers with and without a bias */

static Eight factor(void *to, const real *from, const float *amax, int which, long rows, long cols, int turned)
{
    return (Eight){ .to = to, .from = from, .bins = amax + which * FP8_BINS, .rows = rows, .cols = cols, .turned = turned,
                    .type = which == FP8_DY ? E5M2 : E4M3 };
}

static Units two(Stage *st, Eight a, Eight b, void *room)
{
    return factors_make(st, a, b, (Eight){ 0 }, room);
}

void open_linear_fp8_forward(Stage *st, int h, long rows, long in, long out)
{
    Recipe r = { .call = "linear_fp8_forward", .batch = 1, .m = rows, .n = out, .k = in, .tb = 1, .factors = FACTORS_E4M3 };
    product_open(st, h, PLAIN, r);
    r.epilogue = EPILOGUE_BIAS;
    product_open(st, h, BIASED, r);
}

void linear_fp8_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const float *amax, void *tmp,
                        int h, long rows, long in, long out)
{
    uint8_t *a = tmp, *b = a + rows * in;
    Units u = two(st, factor(a, x, amax, FP8_X, rows, in, 0), factor(b, weight, amax, FP8_WEIGHT, out, in, 0), b + in * out);
    product_scaled(st, h, bias ? BIASED : PLAIN, y, a, b, bias, 0, u.a, u.b);
}

void open_linear_fp8_backward_x(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, PLAIN, (Recipe){ .call = "linear_fp8_backward_x", .batch = 1, .m = rows, .n = in, .k = out, .tb = 1,
                                         .factors = FACTORS_E5M2 });
}

void linear_fp8_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const float *amax, void *tmp, int h,
                           long rows, long in, long out)
{
    uint8_t *a = tmp, *b = a + rows * out;
    if (!dx)
        return;
    Units u = two(st, factor(a, dy, amax, FP8_DY, rows, out, 0), factor(b, weight, amax, FP8_WEIGHT, out, in, 1), b + in * out);
    product_scaled(st, h, PLAIN, dx, a, b, NULL, 0, u.a, u.b);
}

void open_linear_fp8_backward_w(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, PLAIN, (Recipe){ .call = "linear_fp8_backward_w", .batch = 1, .m = out, .n = in, .k = rows, .tb = 1,
                                         .wide = 1, .factors = FACTORS_E5M2 });
}

void linear_fp8_backward_w(Stage *st, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                           const real *weight, const float *amax, void *tmp, int h, int acc, long rows, long in, long out)
{
    uint8_t *a = tmp, *b = a + rows * out;
    float *room = (float *)(void *)(b + rows * in);
    Eight of_dy = factor(a, dy, amax, FP8_DY, rows, out, 1), of_x = factor(b, x, amax, FP8_X, rows, in, 1);
    of_dy.dbias = dbias, of_dy.acc = acc;
    Units u = two(st, of_dy, of_x, room);
    factors_note(st, damax, of_dy, of_x, factor(NULL, weight, amax, FP8_WEIGHT, out, in, 0), room, acc);
    if (dweight)
        product_scaled(st, h, PLAIN, dweight, a, b, NULL, acc, u.a, u.b);
}

/* codes: of dy, both ways. */
static void both(Stage *st, real *dx, float *dweight, float *damax, Eight of_dy, uint8_t *codes, const real *x,
                 const real *weight, const float *amax, void *tmp, int h_x, int h_w, long in)
{
    long rows = of_dy.rows, out = of_dy.cols;
    uint8_t *b = tmp, *c = b + rows * in;
    float *room = (float *)(void *)(c + in * out);
    Eight of_x = factor(b, x, amax, FP8_X, rows, in, 1), of_weight = factor(c, weight, amax, FP8_WEIGHT, out, in, 1);
    of_dy.straight = codes, of_dy.to = codes + rows * out;
    Units u = factors_make(st, of_dy, of_x, of_weight, room);
    factors_note(st, damax, of_dy, of_x, of_weight, room, of_dy.acc);
    if (dx)
        product_scaled(st, h_x, PLAIN, dx, of_dy.straight, c, NULL, 0, u.a, u.c);
    if (dweight)
        product_scaled(st, h_w, PLAIN, dweight, of_dy.to, b, NULL, of_dy.acc, u.a, u.b);
}

void linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                         const real *weight, const float *amax, void *tmp, int h_x, int h_w, int acc, long rows, long in,
                         long out)
{
    Eight of_dy = factor(NULL, dy, amax, FP8_DY, rows, out, 1);
    of_dy.dbias = dbias, of_dy.acc = acc;
    both(st, dx, dweight, damax, of_dy, tmp, x, weight, amax, (uint8_t *)tmp + 2 * rows * out, h_x, h_w, in);
}

/* The codes take the place of what the Gelu's gradient would be. */
void gelu_linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, void *dpre, const real *dy,
                              const real *pre, const real *x, const real *weight, const float *amax, void *tmp, long tanh,
                              int h_x, int h_w, int acc, long rows, long in, long out)
{
    Eight of_dy = factor(NULL, dy, amax, FP8_DY, rows, out, 1);
    of_dy.dbias = dbias, of_dy.acc = acc, of_dy.pre = pre, of_dy.tanh = (int)tanh;
    both(st, dx, dweight, damax, of_dy, dpre, x, weight, amax, tmp, h_x, h_w, in);
}
