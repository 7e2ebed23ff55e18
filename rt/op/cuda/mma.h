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

/* Four 8 x 8 parts of tiles: lane i has the address of row i % 8 of part i / 8.  Of part m lane 4 g + t gets columns 2 t and
 * 2 t + 1 of row g; TURNED: rows 2 t and 2 t + 1 of column g.  (PTX ISA, ldmatrix.) */
template <bool TURNED> FN void load_parts(uint32_t (&b)[2][2], const uint32_t *row)
{
#ifdef __CUDACC__
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[0][0]), "=r"(b[0][1]), "=r"(b[1][0]), "=r"(b[1][1]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[0][0]), "=r"(b[0][1]), "=r"(b[1][0]), "=r"(b[1][1]) : "r"(at) : "memory");
#else
    simt_load_parts(__LINE__, b, row, TURNED);
#endif
}

/* b of two products with the transpose of a tile: its rows n .. n+7 and n+8 .. n+15 are columns, k .. k+15 the inner index. */
template <int W> FN void take_b(uint32_t (&b)[2][2], const uint32_t *tile, int n, int k)
{
    int i = (int)(threadIdx.x % WARP);
    load_parts<false>(b, tile + (n + i / 16 * 8 + i % 8) * PITCH_OF(W) + k / 2 + i / 8 % 2 * 4);
}

/* b of two products with a tile: rows k .. k+15, columns n .. n+7 and n+8 .. n+15. */
template <int W> FN void take_b_turned(uint32_t (&b)[2][2], const uint32_t *tile, int k, int n)
{
    int i = (int)(threadIdx.x % WARP);
    load_parts<true>(b, tile + (k + i % 16) * PITCH_OF(W) + n / 2 + i / 16 * 4);
}
#endif
