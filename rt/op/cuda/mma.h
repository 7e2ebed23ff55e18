/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.h: products of bf16 on tensor cores, one warp's at a time: 16 x 16 by 16 x 8, summed in f32.
 *
 * Lane 4 g + t of the warp has, of a 16 x 8 result c: rows g (c[0], c[1]) and g + 8 (c[2], c[3]), columns 2 t and 2 t + 1.
 * Of a, with 16 columns: the same places in a[0] and a[1], and 8 columns further on in a[2] and a[3], two elements a word.
 * Of b, with 16 rows: rows 2 t and 2 t + 1 of column g in b[0], 8 rows further on in b[1].  (PTX ISA, 9.7.14, Matrix
 * Fragments for mma.m16n8k16.)  So two neighbouring results c are an a for the next product.
 *
 * Tiles in shared memory are rows of W bf16 and 8 more, which keep lanes on different banks: PITCH_OF(W) words.
 */
#ifndef MMA_H
#define MMA_H
#include "kernel.h"

#define PITCH_OF(w) (((w) + 8) / 2)

/* c += a b */
FN void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
#ifdef __CUDACC__
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    simt_mma(__LINE__, c, a, b);
#endif
}

/* a: rows r .. r+15 and columns k .. k+15 of a tile. */
template <int W> FN void take_a(uint32_t (&a)[4], const uint32_t *tile, int r, int k)
{
    const uint32_t *at = tile + (r + (int)(threadIdx.x % WARP / 4)) * PITCH_OF(W) + k / 2 + (int)(threadIdx.x % 4);
    a[0] = at[0], a[1] = at[8 * PITCH_OF(W)], a[2] = at[4], a[3] = at[8 * PITCH_OF(W) + 4];
}

/* b of a product with the transpose of a tile: its rows n .. n+7 are columns, k .. k+15 the inner index. */
template <int W> FN void take_b(uint32_t (&b)[2], const uint32_t *tile, int n, int k)
{
    const uint32_t *at = tile + (n + (int)(threadIdx.x % WARP / 4)) * PITCH_OF(W) + k / 2 + (int)(threadIdx.x % 4);
    b[0] = at[0], b[1] = at[4];
}

/* b of a product with a tile: rows k .. k+15, columns n .. n+7. */
template <int W> FN void take_b_turned(uint32_t (&b)[2], const uint32_t *tile, int k, int n)
{
#ifdef __CUDACC__
    unsigned at = (unsigned)__cvta_generic_to_shared(tile + (k + (int)(threadIdx.x % 16)) * PITCH_OF(W) + n / 2);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at)
                 : "memory");
#else
    int g = (int)(threadIdx.x % WARP / 4), t = (int)(threadIdx.x % 4);
    const uint16_t *at = (const uint16_t *)(tile + (k + 2 * t) * PITCH_OF(W)) + n + g;
    const int row = 2 * PITCH_OF(W);
    b[0] = at[0] | (uint32_t)at[row] << 16;
    b[1] = at[8 * row] | (uint32_t)at[9 * row] << 16;
#endif
}
#endif
