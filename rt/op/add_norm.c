/* SPDX-License-Identifier: Apache-2.0
 *
 * add_norm.c: a residual sum and the norm of it, one kernel on GPUs.  Jobs for processors call both; the tests compare.
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
