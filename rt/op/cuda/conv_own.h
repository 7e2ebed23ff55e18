/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_own.h: convolutions by our own kernels, and what those by cuDNN take from them.
 */
#ifndef CONV_OWN_H
#define CONV_OWN_H
#include "conv.h"
#ifdef __cplusplus
extern "C" {
#endif
void conv_own_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const Conv *v);
void conv_own_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const Conv *v);
/* Sums over the channels that a device has, in f32: of y, and of dx. */
void conv_own_rows(Stage *st, float *sum, const real *x, const real *weight, const Conv *v);
void conv_own_columns(Stage *st, float *sum, const real *dy, const real *weight, const Conv *v);
void conv_own_backward_w(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v);
void conv_own_backward_bias(Stage *st, float *dbias, const real *dy, int acc, const Conv *v);
/* y += bias, rounded again */
void conv_own_bias(Stage *st, real *y, const real *bias, const Conv *v);
/* dweight = part, or += it */
void conv_own_take(Stage *st, float *dweight, const real *part, int acc, const Conv *v);
#ifdef __cplusplus
}
#endif
#endif
