/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu_erf.h: Gelu by the error function, of CHUNK numbers at most: gelu_erf.c, or without/gelu_erf.c in a job without one.
 */
#ifndef GELU_ERF_H
#define GELU_ERF_H
#include "kernel.h"
#include "../formula.h"

void erf_gelu(real *restrict y, const real *restrict x, long n);
void erf_gelu_back(real *dx, const real *dy, const real *x, long n);       /* dx may be dy */

/* Loops of a few steps each have so short chains that the processor works on several numbers at once. */

/* e^x[i], where x[i] is within the bounds of fexp() */
static inline void exp_steps(float *restrict e, const float *restrict x, long n)
{
    float magic[CHUNK];
    for (long i = 0; i < n; i++)
        e[i] = exp_rest(x[i], &magic[i]);
    for (long i = 0; i < n; i++)
        e[i] = exp_end(exp_series(e[i]), magic[i]);
}
#endif
