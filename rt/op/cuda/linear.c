/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: y[rows out] = x[rows in] weight[out in]^T + bias, and its two gradients, by cublasLt.
 *
 * The bias is added by the product's epilogue, in f32 before the one rounding, and another term so too.  The gradient of
 * the weight is f32 and is accumulated by the product itself: the sum of this micro-batch first, then what was there.
 * The gradient of the bias is the column sum of dy, in a pass of our own (bias.cu).  The library's epilogue for it
 * (BGRADB) is such a pass too on sm_90, behind the product, and a slower one.
 */
#include "bias.h"
#include "linear_gelu.h"
#include "product.h"

enum { PLAIN, BIASED };         /* one handle serves layers with and without a bias */

void open_linear_forward(Stage *st, int h, long rows, long in, long out)
{
    Recipe r = { .call = "linear_forward", .batch = 1, .m = rows, .n = out, .k = in, .tb = 1 };
    product_open(st, h, PLAIN, r);
    r.epilogue = EPILOGUE_BIAS;
    product_open(st, h, BIASED, r);
}

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out)
{
    (void)rows, (void)in, (void)out;
    product_run(st, h, bias ? BIASED : PLAIN, y, x, weight, bias, 0);
}

void open_linear_add_forward(Stage *st, int h, long rows, long in, long out)
{
    Recipe r = { .call = "linear_add_forward", .batch = 1, .m = rows, .n = out, .k = in, .tb = 1, .adds = 1 };
    product_open(st, h, PLAIN, r);
    r.epilogue = EPILOGUE_BIAS;
    product_open(st, h, BIASED, r);
}

void linear_add_forward(Stage *st, real *y, const real *skip, const real *x, const real *weight, const real *bias, int h,
                        long rows, long in, long out)
{
    (void)rows, (void)in, (void)out;
    product_add(st, h, bias ? BIASED : PLAIN, y, x, weight, bias, skip);
}

void open_linear_backward_x(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, PLAIN, (Recipe){ .call = "linear_backward_x", .batch = 1, .m = rows, .n = in, .k = out });
}

void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    (void)rows, (void)in, (void)out;
    if (dx)
        product_run(st, h, PLAIN, dx, dy, weight, NULL, 0);
}

void open_linear_add_backward_x(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, PLAIN, (Recipe){ .call = "linear_add_backward_x", .batch = 1, .m = rows, .n = in, .k = out,
                                         .adds = 1 });
}

void linear_add_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const real *onto, int h, long rows, long in,
                           long out)
{
    (void)rows, (void)in, (void)out;
    if (dx)
        product_add(st, h, PLAIN, dx, dy, weight, NULL, onto);
}

void open_linear_backward_w(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, PLAIN, (Recipe){ .call = "linear_backward_w", .batch = 1, .m = out, .n = in, .k = rows, .ta = 1,
                                         .wide = 1 });
}

void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long rows,
                       long in, long out)
{
    (void)in;
    if (dweight)
        product_run(st, h, PLAIN, dweight, dy, x, NULL, acc);
    if (dbias)
        bias_gradient(st, dbias, dy, acc, rows, out);
}
