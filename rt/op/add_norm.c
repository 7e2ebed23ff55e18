/* SPDX-License-Identifier: Apache-2.0
 *
 * add_norm.c: two calls that are one kernel on GPUs: a residual sum and its norm, a sum of gradients and the gradient of a
 * norm, that and the gradient of a bias; a loss and its gradient.  Jobs for processors call both; the tests compare.
 */
#include "kernel.h"

/* A residual sum and the norm of it. */
void add_layernorm_forward(Stage *st, real *sum, real *y, float *mean, float *rstd, const real *a, const real *b,
                           const float *weight, const float *bias, long rows, long width, float eps)
{
    add_forward(st, sum, a, b, rows * width);
    layernorm_forward(st, y, mean, rstd, sum, weight, bias, rows, width, eps);
}

void add_rmsnorm_forward(Stage *st, real *sum, real *y, float *rstd, const real *a, const real *b, const float *weight,
                         long rows, long width, float eps)
{
    add_forward(st, sum, a, b, rows * width);
    rmsnorm_forward(st, y, rstd, sum, weight, rows, width, eps);
}

void add_batchnorm_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *a, const real *b,
                                 const real *y, const real *x, const float *mean, const float *var, const float *weight,
                                 const real *onto, int acc, long rows, long width, float eps)
{
    grad_add(st, dx, a, b, rows * width);
    batchnorm_add_relu_backward(st, dx, dskip, dweight, dbias, dx, y, x, mean, var, weight, onto, acc, rows, width, eps);
}

void layernorm_linear_backward(Stage *st, real *dx, float *dweight, float *dbias, float *dproduct, float *dsum, const real *dy,
                               const real *x, const real *factor, const float *weight, const float *mean, const float *rstd,
                               const real *onto, int h_w, int acc, long rows, long in, long out)
{
    layernorm_backward(st, dx, dweight, dbias, dy, x, weight, mean, rstd, onto, acc, rows, out);
    linear_backward_w(st, dproduct, dsum, dx, factor, h_w, acc, rows, in, out);
}

void xent_both(Stage *st, float *loss, float *lse, real *dx, const float *dloss, const real *x, const int32_t *targets,
               const Values *vals, long rows, long width, long ignore, int count)
{
    xent_forward(st, loss, lse, x, targets, vals, rows, width, ignore, count);
    xent_backward(st, dx, dloss, x, lse, targets, vals, rows, width, ignore, count);
}
