/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear whose weight does not learn, and is there in 8 or 4 bits a number (../quantize.h).  A product makes it wide, in the
 * compute type, while it packs it (gemm.c).  The bits are those of Linear with that wide weight, and it is never there whole.
 */
#include "gemm.h"
#include "../quantize.h"

/* Numbers of few bits, as they are in the compute type. */
static inline void widen_few(float *to, const Few *few, long first, long n)
{
    quantized_read(to, few->at, few->bits, few->width, first, n);
    for (long i = 0; i < n && sizeof(real) != sizeof(float); i++) {
        real x;
        put(&x, 0, to[i]);
        to[i] = get(&x, 0);
    }
}

/* Adjacent numbers are made wide together, and packed as floats: columns of m numbers, or a row of n. */
static void pack_few(float *to, long size, View v, long m, long n)
{
    float room[TILE_COLS * DEPTH];
    bool down = v.row_step == 1;
    long each = down ? TILE_COLS : TILE_COLS * DEPTH;
    for (long j = 0; j < n; j += each)
        for (long p = 0, k = least(each, n - j); p < m; p += down ? m : 1) {
            View wide = view_float(room, 1, down ? m : 1);
            for (long c = 0; c < (down ? k : 1); c++)
                widen_few(room + c * m, v.few, v.first + p * v.row_step + (j + c) * v.col, down ? m : k);
            pack(to + j / TILE_COLS * size + p * TILE_COLS, size, wide, down ? m : 1, k);
        }
}

static View view_few(const Few *few, long row, long col) { return (View){0, 1, row, col, few, 0}; }

void linear_quantized_forward(Stage *st, real *y, const real *x, const void *weight, const real *bias, long rows, long in,
                              long out, long bits)
{
    Few few = {pack_few, weight, (int)bits, in};
    product_to(st, y, view(x, in, 1), view_few(&few, 1, in), bias, rows, out, in, block_of(st, in));
}

void linear_quantized_backward_x(Stage *st, real *dx, const real *dy, const void *weight, long rows, long in, long out,
                                 long bits)
{
    Few few = {pack_few, weight, (int)bits, in};
    product_to(st, dx, view(dy, out, 1), view_few(&few, in, 1), NULL, rows, in, out, block_of(st, out));
}
