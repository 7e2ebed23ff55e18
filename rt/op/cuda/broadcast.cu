/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose second operand is repeated over the rows of the first: AddBroadcast, Mul, PositionEmbedding.  Forward:
 * repeat.h.  Backward: columns.h.
 */
#include "columns.h"
#include "repeat.h"

void add_broadcast_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    repeat<pair_sum>(st, y, a, b, 1, n / nb, nb);
}

void add_broadcast_backward(Stage *st, real *db, const real *dy, long n, long nb)
{
    column_sums(st, Plain{dy}, Narrow{db, 1.0f}, n / nb, nb);
}

void mul_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    repeat<pair_product>(st, y, a, b, 1, n / nb, nb);
}

void mul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long nb)
{
    if (da)
        repeat<pair_product>(st, da, dy, b, 1, n / nb, nb);
    if (db)
        column_sums(st, Product{dy, a}, Narrow{db, 1.0f}, n / nb, nb);
}

void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width)
{
    repeat<pair_sum>(st, y, x, weight, 1, batch, seq * width);
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
