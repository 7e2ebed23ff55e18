/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.h: y = F(a, b) for a[outer mid inner] and b[outer inner], which is repeated over mid; a may be absent.  Both are read
 * for several rows before the first is written (walk.h), and what is read of b again comes from the cache.  Where inner is no
 * multiple of 16 bytes, or b begins at none, a thread has 16 bytes of a in a row, and finds the place in b of each.
 */
#ifndef REPEAT_H
#define REPEAT_H
#include "walk.h"

typedef float (*Pair)(float a, float b, float factor);

FN float pair_sum(float a, float b, float) { return a + b; }
FN float pair_product(float a, float b, float) { return a * b; }
FN float scaled(float, float b, float factor) { return b * factor; }

template <Pair F>
static __global__ void repeat_rows(real *y, const real *a, const real *b, Walk t, Divisor mid, long inner, float factor)
{
    Walker p = walker_of(t);
    for (long row = p.first; row < t.rows; row += FEW * p.step) {
        float v[FEW][WIDE], w[FEW][WIDE];
        UNROLL
        for (int k = 0; k < FEW; k++) {
            long at = row_within(t, row + k * p.step, row);
            if (a)
                take(v[k], a + at * inner, p.column, inner, 0);
            take(w[k], b + quotient(at, mid) * inner, p.column, inner, 0);
        }
        loads_first();
        UNROLL
        for (int k = 0; k < FEW; k++) {
            if (row + k * p.step >= t.rows)
                break;
            for (int j = 0; j < WIDE; j++)
                v[k][j] = F(v[k][j], w[k][j], factor);
            leave(y + (row + k * p.step) * inner, v[k], p.column, inner, 0);
        }
    }
}

template <Pair F>
static __global__ void repeat_elements(real *y, const real *a, const real *b, long n, Divisor mid, Divisor inner, float factor)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        if (a)
            take(v, a, i, n, step);
        for (int j = 0; j < WIDE; j++) {
            long at = i + j < n ? i + j : i, row = quotient(at, inner);
            v[j] = F(v[j], one(b, (quotient(row, mid) - row) * inner.by + at), factor);
        }
        leave(y, v, i, n, step);
    }
}

template <Pair F>
static void repeat(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner, float factor = 1)
{
    long n = outer * mid * inner;
    Walk t = walk_of(outer * mid, inner);
    if (inner % WIDE || (uintptr_t)b % 16)
        LAUNCH((repeat_elements<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, a, b, n, divisor_of(mid),
               divisor_of(inner), factor);
    else
        LAUNCH((repeat_rows<F>), t.blocks, (unsigned)BLOCK, st, y, a, b, t, divisor_of(mid), inner, factor);
}
#endif
