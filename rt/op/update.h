/* SPDX-License-Identifier: Apache-2.0
 *
 * update.h: what the files of optimisers share.  Masters, gradients and moments are f32.  `clip` is the factor of gradient
 * clipping, multiplied into g as it is read; the gradient itself stays as it is.
 */
#ifndef UPDATE_H
#define UPDATE_H
#include "kernel.h"

static inline void narrow(Stage *st, real *c, const float *p, long n)
{
    MAP(n, i)
        put(c, i, p[i]);
}

/* The norm of a parameter: blocks, each by 16 lanes. */
enum { BLOCKS = 256 };
static inline long norm_each(long n) { return ceil_div(n, BLOCKS * LANES) * LANES; }

/* All calls but the last take a multiple of 16. */
static inline void squares_add(double *lane, const float *g, long n)
{
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += (double)g[i + j] * (double)g[i + j];
    for (long j = 0; i + j < n; j++)
        lane[j] += (double)g[i + j] * (double)g[i + j];
}

static inline double squares_end(double *lane)
{
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}
#endif
