/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear: y[rows out] = x[rows in] weight^T + bias, weight stored [out in].  dx = dy weight, dweight = dy^T x,
 * dbias the column sums of dy.  Each result is one ascending chain (gemm.c), or with blocks a chain each and their tree, as
 * each of its three axes may be divided; the bias is added last.  A micro-batch's weight gradient is summed from zero, then
 * added to the accumulator.
 */
#include "pointwise.h"

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out)
{
    (void)h;
    point_product(st, y, x, view(weight, 1, in), bias, rows, out, in, block_of(st, in));
}

void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    (void)h;
    point_product(st, dx, dy, view(weight, in, 1), NULL, rows, in, out, block_of(st, out));
}

void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
                       long rows, long in, long out)
{
    (void)h;
    point_give(st, dweight, dbias, dy, x, acc, rows, out, in, block_of(st, rows));
}
