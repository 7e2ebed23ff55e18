/* SPDX-License-Identifier: Apache-2.0
 *
 * tile.h: products of small tiles in f32, which fit the first cache: what attention consists of.
 *
 * A tile has 64 columns or fewer, in rows of a multiple of 16 floats, padded with zeros; so there are no remainders.
 * Sixteen accumulators, 4 rows of 4 registers, cover the latency of the multiply-add twice, and need 8 loads for 16 of
 * them.  Each element is one ascending chain of fused multiply-adds: its bits depend neither on the width of the
 * registers nor on the compiler's freedom to contract.  A CPU without such an instruction gets them from libm.
 */
#ifndef TILE_H
#define TILE_H
#include "../kernel.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

/* c += a b.  By address: a CPU without such registers has no agreed way to pass them. */
static inline void fused(Sixteen *c, float a, const Sixteen *b)
{
#ifdef __AVX512F__
    *c = (Sixteen)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)*b, (__m512)*c);
#else
    for (int i = 0; i < LANES; i++)
        (*c)[i] = __builtin_fmaf(a, (*b)[i], (*c)[i]);
#endif
}

/* A left operand: element (i, l) stands at at[i * row + l * col], so a transposed one is the same tile with its strides
 * exchanged. */
typedef struct { const float *at; long row_step, col; } Left;

enum { ROWS = 4, REGISTERS = 4, TILE = 64 };

static inline __attribute__((always_inline))
void block(float *c, long ldc, Left a, const float *b, long ldb, long k, int registers, int add)
{
    Sixteen t[ROWS][REGISTERS] = { 0 };
    for (int i = 0; add && i < ROWS; i++)
        for (int j = 0; j < registers; j++)
            t[i][j] = *(const Sixteen *)(c + i * ldc + j * LANES);
    for (long l = 0; l < k; l++, b += ldb, a.at += a.col)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < registers; j++)
                fused(&t[i][j], a.at[i * a.row_step], (const Sixteen *)(b + j * LANES));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < registers; j++)
            *(Sixteen *)(c + i * ldc + j * LANES) = t[i][j];
}

/* c[m n] = a[m k] b[k n], or += with add.  m is a multiple of 4, n of 16. */
static inline void tile_product(float *c, long ldc, Left a, const float *b, long ldb, long m, long n, long k, int add)
{
    for (long j = 0; j < n; j += TILE)
        for (long i = 0; i < m; i += ROWS) {
            float *to = c + i * ldc + j;
            Left from = { a.at + i * a.row_step, a.row_step, a.col };
            long registers = (n - j) / LANES;
            if (registers >= 4)
                block(to, ldc, from, b + j, ldb, k, 4, add);
            else if (registers == 3)
                block(to, ldc, from, b + j, ldb, k, 3, add);
            else if (registers == 2)
                block(to, ldc, from, b + j, ldb, k, 2, add);
            else
                block(to, ldc, from, b + j, ldb, k, 1, add);
        }
}
#endif
