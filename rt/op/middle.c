/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands that are repeated over axes in the middle: a[outer mid inner] with b[outer inner], and a parameter that is the
 * same for every sample.  The gradient of b is a sum over mid, ascending, rounded once; with inner = 1 it is a sum by lanes
 * (kernel.h).  That of an addition is reduce_forward.  The gradient of the parameter adds samples ascending.
 */
#include "kernel.h"

void add_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    EACH(outer * mid * inner >= 1 << 15)
    for (long row = 0; row < outer * mid; row++)
        for (long j = 0; j < inner; j++)
            put(y, row * inner + j, get(a, row * inner + j) + get(b, row / mid * inner + j));
}

void mul_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    EACH(outer * mid * inner >= 1 << 15)
    for (long row = 0; row < outer * mid; row++)
        for (long j = 0; j < inner; j++)
            put(y, row * inner + j, get(a, row * inner + j) * get(b, row / mid * inner + j));
}

/* sum[j] of n columns: over the rows of dy and a */
static void product_sums(float *sum, const real *dy, const real *a, long mid, long inner, long n)
{
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (long m = 0; m < mid; m++)
        for (long j = 0; j < n; j++)
            sum[j] += get(dy, m * inner + j) * get(a, m * inner + j);
}

void mul_middle_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long outer, long mid,
                         long inner)
{
    long blocks = ceil_div(inner, CHUNK);
    if (da)
        mul_middle_forward(st, da, dy, b, outer, mid, inner);
    if (!db)
        return;
    EACH(outer * mid * inner >= 1 << 15)
    for (long task = 0; task < outer * blocks; task++) {
        long from = task % blocks * CHUNK, n = least(CHUNK, inner - from), at = task / blocks * mid * inner + from;
        float sum[CHUNK];
        const real *d = dy + at, *v = a + at;
        if (inner == 1)
            SUM_OF(sum[0], mid, i, get(d, i) * get(v, i));
        else
            product_sums(sum, d, v, mid, inner, n);
        for (long j = 0; j < n; j++)
            put(db, task / blocks * inner + from + j, sum[j]);
    }
}

void parameter_forward(Stage *st, real *y, const real *weight, long batch, long n)
{
    EACH(batch * n >= 1 << 16)
    for (long s = 0; s < batch; s++)
        memcpy(y + s * n, weight, (size_t)n * sizeof *y);
}

void parameter_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long n)
{
    EACH(batch * n >= 1 << 15)
    for (long from = 0; from < n; from += CHUNK) {
        float sum[CHUNK];
        long m = least(CHUNK, n - from);
        column_sums(sum, dy, batch, n, from, m);
        give(dweight + from, sum, m, acc);
    }
}
