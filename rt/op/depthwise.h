/* SPDX-License-Identifier: Apache-2.0
 *
 * depthwise.h: convolutions of single channels: depthwise.c, or without/depthwise.c in a job that has none.
 */
#ifndef DEPTHWISE_H
#define DEPTHWISE_H
#include "convolve.h"

/* TAPS, SIDE: of a kernel.  PHASES: the largest stride. */
enum { TAPS = TREES ? 256 : 25, SIDE = 16, PHASES = 4 };

/* Is it one that depthwise.c has kernels for? */
bool is_depthwise(const Conv *v);
/* y of x, or, back, x of y */
void depth_convolve(Stage *st, real *y, const real *x, const real *weight, const real *bias, const Conv *v, int back);
void depth_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v);
#endif
