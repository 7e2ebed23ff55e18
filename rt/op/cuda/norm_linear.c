/* SPDX-License-Identifier: Apache-2.0
 *
 * norm_linear.c: the gradient of a norm, and that of the weight and bias of a Linear with that norm behind its residual sum.
 * The kernel that makes dx adds up the gradient of the bias too, so that dx is not read again for it.
 */
#include "norm.h"

void layernorm_linear_backward(Stage *st, real *dx, float *dweight, float *dbias, float *dproduct, float *dsum, const real *dy,
                               const real *x, const real *factor, const float *weight, const float *mean, const float *rstd,
                               const real *onto, int h_w, int acc, long rows, long in, long out)
{
    int made = layernorm_sum_backward(st, dx, dweight, dbias, dsum, dy, x, weight, mean, rstd, onto, acc, rows, out);
    linear_backward_w(st, dproduct, made ? 0 : dsum, dx, factor, h_w, acc, rows, in, out);
}
