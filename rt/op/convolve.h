/* SPDX-License-Identifier: Apache-2.0
 *
 * convolve.h: convolutions and their gradients, of Conv and ConvTranspose: convolve.c.
 */
#ifndef CONVOLVE_H
#define CONVOLVE_H
#include "gemm.h"

/* Images x[batch height width in] and y[batch yheight ywidth out]. */
typedef struct {
    long batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups;
} Conv;

/* What becomes of the channels that each result is a sum of: blocks of so many, and the bias goes onto the tree.  sum: floats
 * in place of results, of which other devices have more. */
typedef struct { float *sum; const real *bias; long block; } Made;

/* y of x, and x of y; either may have a bias. */
void convolve_on(Stage *st, real *y, const real *x, const real *weight, const Made *made, const Conv *v);
void convolve_back(Stage *st, real *x, const real *y, const real *weight, const Made *made, const Conv *v);
void convolve_weight(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v);

/* ---- of convolve.c and depthwise.c ---------------------------------------------------------------------------------- */

static inline long floor_div(long a, long b) { return a / b - (a % b < 0); }

/* n numbers, VECTOR at most, and zeros. */
static inline __attribute__((always_inline)) Vector some(const real *x, long n)
{
#ifdef REAL_BF16
    typedef uint16_t Halves __attribute__((vector_size(2 * VECTOR), aligned(2), may_alias));
    typedef uint32_t Words __attribute__((vector_size(4 * VECTOR)));
    if (n == VECTOR)
        return (Vector)(__builtin_convertvector(*(const Halves *)x, Words) << 16);
#else
    if (n == VECTOR)
        return *(const Vector *)x;
#endif
    Vector v = {0};
    for (long i = 0; i < n; i++)
        v[i] = get(x, i);
    return v;
}

#endif
