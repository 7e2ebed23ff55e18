/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupedLinear: rt/op/grouped.c, in f32 on the plain cores.  How many rows an expert has is known in the step alone, so that
 * there are blocks enough for any: one for each 64 rows, and one more for each expert.  A block counts where its tile is.
 *
 * Order: an element is one chain, inner index ascending; that of a weight's or bias's gradient over the rows of its expert.
 */
#include "square.h"

struct RowTile { long expert, first, end; };        /* end: of the expert's rows; expert -1: none */

FN RowTile tile_of(const int32_t *offset, long experts, long tile)
{
    for (long e = 0; e < experts; e++) {
        long tiles = (offset[e + 1] - offset[e] + SQUARE - 1) / SQUARE;
        if (tile < tiles)
            return RowTile{e, offset[e] + tile * SQUARE, offset[e + 1]};
        tile -= tiles;
    }
    return RowTile{-1, 0, 0};
}

/* Element (i, k) of rows below `end`. */
struct Rows {
    const real *at;
    long end, width;
    FIELD float operator()(long i, long k) const { return i < end ? one(at, i * width + k) : 0.0f; }
};

/* Element (k, j) of a matrix with n columns, whose elements are `down` and `across` apart. */
struct Factor {
    const real *at;
    long n, down, across;
    FIELD float operator()(long k, long j) const { return j < n ? one(at, k * down + j * across) : 0.0f; }
};

/* y[rows n] = x[rows k] weight[e] + bias[e], 0: none */
static __global__ void grouped_rows(real *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                                    long n, long k, long down, long across, long experts)
{
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (n + SQUARE - 1) / SQUARE, column = blockIdx.x % wide * SQUARE;
    RowTile t = tile_of(offset, experts, blockIdx.x / wide);
    float s[FOURS][FOURS] = {};
    if (t.expert < 0)
        return;
    add_square(s, SHARED_AT(room, 0), Rows{x, t.end, k}, Factor{weight + t.expert * n * k, n, down, across}, t.first, column,
               k);
    for (int i = 0; i < FOURS; i++)
        for (int j = 0; j < FOURS; j++) {
            long r = t.first + square_down() + i, c = column + square_across() + j;
            if (r < t.end && c < n)
                set(y, r * n + c, bias ? s[i][j] + one(bias, t.expert * n + c) : s[i][j]);
        }
}

static unsigned row_blocks(long rows, long experts, long n)
{
    return (unsigned)((ceil_div(rows, SQUARE) + experts) * ceil_div(n, SQUARE));
}

void grouped_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows,
                     long in, long out, long experts)
{
    LAUNCH(grouped_rows, row_blocks(rows, experts, out), (unsigned)BLOCK, st, y, x, offset, weight, bias, out, in, 1L, in,
           experts);
}

void grouped_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows, long in,
                        long out, long experts)
{
    LAUNCH(grouped_rows, row_blocks(rows, experts, in), (unsigned)BLOCK, st, dx, dy, offset, weight, (const real *)0,
           in, out, in, 1L, experts);
}

/* Column i of an expert's rows. */
struct Column {
    const real *at;
    long n, width;
    FIELD float operator()(long i, long k) const { return i < n ? one(at, k * width + i) : 0.0f; }
};

static __global__ void grouped_weight(float *dweight, const real *dy, const real *x, const int32_t *offset, int acc, long in,
                                      long out)
{
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (in + SQUARE - 1) / SQUARE, tiles = (out + SQUARE - 1) / SQUARE * wide, e = blockIdx.x / tiles;
    long down = blockIdx.x % tiles / wide * SQUARE, across = blockIdx.x % wide * SQUARE, begin = offset[e];
    float s[FOURS][FOURS] = {};
    add_square(s, SHARED_AT(room, 0), Column{dy + begin * out, out, out}, Factor{x + begin * in, in, in, 1}, down, across,
               offset[e + 1] - begin);
    for (int i = 0; i < FOURS; i++)
        for (int j = 0; j < FOURS; j++) {
            long r = down + square_down() + i, c = across + square_across() + j, at = (e * out + r) * in + c;
            if (r < out && c < in)
                dweight[at] = acc ? dweight[at] + s[i][j] : s[i][j];
        }
}

/* A thread for each element of the bias. */
static __global__ void grouped_bias(float *dbias, const real *dy, const int32_t *offset, int acc, long out, long experts)
{
    long at = (long)blockIdx.x * BLOCK + threadIdx.x, e = at / out;
    float sum = 0;
    if (e >= experts)
        return;
    for (long r = offset[e]; r < offset[e + 1]; r++)
        sum += one(dy, r * out + at % out);
    dbias[at] = acc ? dbias[at] + sum : sum;
}

void grouped_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset, int acc,
                        long rows, long in, long out, long experts)
{
    (void)rows;
    if (dbias)
        LAUNCH(grouped_bias, (unsigned)ceil_div(experts * out, (long)BLOCK), (unsigned)BLOCK, st, dbias, dy, offset, acc, out,
               experts);
    if (dweight)
        LAUNCH(grouped_weight, (unsigned)(experts * ceil_div(out, SQUARE) * ceil_div(in, SQUARE)), (unsigned)BLOCK, st, dweight,
               dy, x, offset, acc, in, out);
}
