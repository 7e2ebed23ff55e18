/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose second operand is repeated over the rows of the first: AddBroadcast, Mul, PositionEmbedding.  Forward: a
 * thread holds 16 bytes of b and walks down the rows.  Backward: columns.h.
 */
#include "columns.h"

typedef float (*Pair)(float a, float b);

FN float pair_sum(float a, float b) { return a + b; }
FN float pair_product(float a, float b) { return a * b; }

template <Pair F> static __global__ void map_rows(real *y, const real *a, const real *b, long rows, long width)
{
    int step = width % WIDE || (uintptr_t)b % 16 ? 1 : 0;
    for (long i = ((long)blockIdx.x * BLOCK + threadIdx.x) * WIDE; i < width; i += (long)gridDim.x * BLOCK * WIDE) {
        float v[WIDE], w[WIDE];
        take(w, b, i, width, step);
        for (long r = blockIdx.y; r < rows; r += gridDim.y) {
            take(v, a + r * width, i, width, step);
            for (int j = 0; j < WIDE; j++)
                v[j] = F(v[j], w[j]);
            leave(y + r * width, v, i, width, step);
        }
    }
}

template <Pair F> static void broadcast(Stage *st, real *y, const real *a, const real *b, long rows, long width)
{
    unsigned across = blocks_for(ceil_div(width, WIDE)), down = across < 4096 ? 4096 / across : 1;
    dim3 grid(across, (long)down < rows ? down : (unsigned)rows);
    LAUNCH((map_rows<F>), grid, (unsigned)BLOCK, st, y, a, b, rows, width);
}

void add_broadcast_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    broadcast<pair_sum>(st, y, a, b, n / nb, nb);
}

void add_broadcast_backward(Stage *st, real *db, const real *dy, long n, long nb)
{
    column_sums(st, Plain{dy}, Narrow{db, 1.0f}, n / nb, nb);
}

void mul_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    broadcast<pair_product>(st, y, a, b, n / nb, nb);
}

void mul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long nb)
{
    if (da)
        broadcast<pair_product>(st, da, dy, b, n / nb, nb);
    if (db)
        column_sums(st, Product{dy, a}, Narrow{db, 1.0f}, n / nb, nb);
}

void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width)
{
    broadcast<pair_sum>(st, y, x, weight, batch, seq * width);
}

void position_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows)
{
    column_sums(st, Plain{dy}, Gradient{{dweight, 0}, acc}, batch, seq * width);
    if (rows > seq && !acc)
        fill_zero(st, dweight + seq * width, (rows - seq) * width * (long)sizeof *dweight);
}

void position_offset_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width,
                             long offset)
{
    position_forward(st, y, x, weight + offset * width, batch, seq, width);
}

void position_offset_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows,
                              long offset)
{
    if (!acc)
        fill_zero(st, dweight, offset * width * (long)sizeof *dweight);
    position_backward(st, dweight + offset * width, dy, acc, batch, seq, width, rows - offset);
}
