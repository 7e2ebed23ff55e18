/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.h: what norm.cu does for norm_linear.c.
 */
#ifndef NORM_H
#define NORM_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

/* layernorm_backward, and dsum = (acc: +=) the column sums of dx, in the order of bias_gradient().  Not 0: dsum is made; else
 * rows of this width are none that a warp holds. */
int layernorm_sum_backward(Stage *st, real *dx, float *dweight, float *dbias, float *dsum, const real *dy, const real *x,
                           const float *weight, const float *mean, const float *rstd, const real *onto, int acc, long rows,
                           long width);
#ifdef __cplusplus
}
#endif
#endif
