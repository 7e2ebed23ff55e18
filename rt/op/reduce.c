/* SPDX-License-Identifier: Apache-2.0
 *
 * Sum and Mean: y[outer inner] = factor * the sum of x[outer mid inner] over mid.  With inner = 1 a row is summed
 * by lanes (kernel.h); otherwise mid ascends for many columns at once.  Backward repeats factor * dy.
 */
#include "kernel.h"

void reduce_forward(Stage *st, real *y, const real *x, long outer, long mid, long inner, float factor)
{
    long blocks = ceil_div(inner, CHUNK);
    EACH(outer * mid * inner >= 1 << 15)
    for (long task = 0; task < outer * blocks; task++) {
        long o = task / blocks, from = task % blocks * CHUNK, n = least(CHUNK, inner - from);
        const real *part = x + o * mid * inner;
        float sum[CHUNK];
        if (inner == 1)
            SUM_OF(sum[0], mid, i, get(part, i));
        else
            column_sums(sum, part, mid, inner, from, n);
        for (long j = 0; j < n; j++)
            put(y, o * inner + from + j, sum[j] * factor);
    }
}

void reduce_backward(Stage *st, real *dx, const real *dy, const real *onto, long outer, long mid, long inner, float factor)
{
    EACH(outer * mid * inner >= 1 << 15)
    for (long row = 0; row < outer * mid; row++)
        for (long j = 0; j < inner; j++)
            put(dx, row * inner + j, added(onto, row * inner + j, get(dy, row / mid * inner + j) * factor));
}
