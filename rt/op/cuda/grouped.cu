/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupedLinear: rt/op/grouped.c, in f32 on the plain cores.  How many rows an expert has is known in the step alone, so that
 * there are blocks enough for any: one for each 64 rows, and one more for each expert.  A block counts where its tile is.
 *
 * Order: an element is one chain, inner index ascending, with train.blocks one for each block; that of a weight's or bias's
 * gradient over the rows of its expert.
 */
#include "../../team.h"
#include "experts.h"
#include "square.h"
#include "sums.h"

enum { MOST_DEPTH = 4 };        /* of at most 16 blocks */

struct RowTile { long expert, first, end; };        /* end: of the expert's rows; expert -1: none */

/* Rows count from those of the first expert here. */
FN RowTile tile_of(const int32_t *offset, long experts, long tile)
{
    const long begin = offset[0];
    for (long e = 0; e < experts; e++) {
        long tiles = (offset[e + 1] - offset[e] + SQUARE - 1) / SQUARE;
        if (tile < tiles)
            return RowTile{e, offset[e] - begin + tile * SQUARE, offset[e + 1] - begin};
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

/* s of block `number` of a sum joins those in front of it: the tree of docs/bits.md. */
template <int DEPTH> FN void join_tree(float (&s)[FOURS][FOURS], float (&rest)[DEPTH + !DEPTH][FOURS][FOURS], long number,
                                       bool last)
{
    bool waits = false;
    UNROLL
    for (int level = 0; level < DEPTH; level++) {
        bool joins = number >> level & 1;
        for (int i = 0; i < FOURS; i++)
            for (int j = 0; j < FOURS; j++) {
                s[i][j] = joins && !waits ? rest[level][i][j] + s[i][j] : s[i][j];
                rest[level][i][j] = joins || waits || last ? rest[level][i][j] : s[i][j];
            }
        waits |= !joins && !last;
    }
}

/* y[rows n] = x[rows k] weight[e] + bias[e], 0: none.  Sums are in blocks of `block`, up to 2^DEPTH of them. */
template <class To, int DEPTH>
static __global__ void grouped_rows(To *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                                    long n, long k, long down, long across, long experts, long block)
{
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (n + SQUARE - 1) / SQUARE, column = blockIdx.x % wide * SQUARE;
    RowTile t = tile_of(offset, experts, blockIdx.x / wide);
    float s[FOURS][FOURS] = {}, rest[DEPTH + !DEPTH][FOURS][FOURS] = {};
    if (t.expert < 0)
        return;
    for (long from = 0, number = 0; from < k; from += block, number++) {
        for (int i = 0; i < FOURS * FOURS; i++)
            s[i / FOURS][i % FOURS] = 0;
        add_square(s, SHARED_AT(room, 0), Rows{x + from, t.end, k}, Factor{weight + t.expert * n * k + from * down, n, down,
                   across}, t.first, column, k - from < block ? k - from : block);
        join_tree<DEPTH>(s, rest, number, from + block >= k);
    }
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

/* In blocks where train.blocks says so, however many devices have a part of them. */
static void in_blocks(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows,
                      long n, long k, long down, long across, long experts)
{
    unsigned blocks = row_blocks(rows, experts, n);
    if (st->blocks > 1)
        LAUNCH((grouped_rows<real, MOST_DEPTH>), blocks, (unsigned)BLOCK, st, y, x, offset, weight, bias, n, k, down, across,
               experts, ceil_div(k, st->blocks));
    else
        LAUNCH((grouped_rows<real, 0>), blocks, (unsigned)BLOCK, st, y, x, offset, weight, bias, n, k, down, across, experts,
               k);
}

void grouped_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows,
                     long in, long out, long experts)
{
    in_blocks(st, y, x, offset, weight, bias, rows, out, in, 1, in, experts);
}

void grouped_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows, long in,
                        long out, long experts)
{
    in_blocks(st, dx, dy, offset, weight, 0, rows, in, out, in, 1, experts);
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
    long down = blockIdx.x % tiles / wide * SQUARE, across = blockIdx.x % wide * SQUARE, begin = offset[e] - offset[0];
    float s[FOURS][FOURS] = {};
    add_square(s, SHARED_AT(room, 0), Column{dy + begin * out, out, out}, Factor{x + begin * in, in, in, 1}, down, across,
               offset[e + 1] - offset[e]);
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
    for (long r = offset[e] - offset[0]; r < offset[e + 1] - offset[0]; r++)
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

/* ---- a stage of several devices: a part of every expert (rt/op/grouped_team.c) ----------------------------------------- */

static __global__ void expert_biases(real *y, const float *sum, const real *bias, const int32_t *offset, long rows, long out,
                                     long experts)
{
    GRID(e, rows * out) {
        long r = quotient(e, out), low = 0, high = experts;     /* the last expert that begins at r or in front of it */
        while (high - low > 1) {
            long middle = (low + high) / 2;
            low = offset[middle] <= r ? middle : low;
            high = offset[middle] <= r ? high : middle;
        }
        set(y, e, sum[e] + one(bias, low * out + e - r * out));
    }
}

void grouped_columns_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, void *tmp,
                                long rows, long in, long out, long experts)
{
    float *sum = tmp ? (float *)tmp : (float *)(void *)dx;
    LAUNCH((grouped_rows<float, 0>), row_blocks(rows, experts, in), (unsigned)BLOCK, st, sum, dy, offset, weight,
           (const real *)0, in, out, in, 1L, experts, out);
    if (st->team)
        st->team->sum(st, sum, rows * in);
    sums_put(st, dx, sum, 0, rows, in);
}

void grouped_rows_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                          void *tmp, long rows, long in, long out, long experts)
{
    float *sum = tmp ? (float *)tmp : (float *)(void *)y;
    LAUNCH((grouped_rows<float, 0>), row_blocks(rows, experts, out), (unsigned)BLOCK, st, sum, x, offset, weight,
           (const real *)0, out, in, 1L, in, experts, in);
    if (st->team)
        st->team->sum(st, sum, rows * out);
    if (bias)
        LAUNCH(expert_biases, blocks_for(rows * out), (unsigned)BLOCK, st, y, (const float *)sum, bias, offset, rows, out,
               experts);
    else
        sums_put(st, y, sum, 0, rows, out);
}

/* ---- whole experts on its devices --------------------------------------------------------------------------------------- */

void grouped_experts_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                             long rows, long, long in, long out, long experts)
{
    const Mine m = mine_of(st, offset, experts);
    grouped_forward(st, y, x, offset + m.from, weight, bias, rows, in, out, experts);
    fill_behind(st, y, m, rows, out);
}

void grouped_experts_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows,
                                long, long in, long out, long experts)
{
    const Mine m = mine_of(st, offset, experts);
    grouped_backward_x(st, dx, dy, offset + m.from, weight, rows, in, out, experts);
    fill_behind(st, dx, m, rows, in);
}

void grouped_experts_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset,
                                int acc, long rows, long, long in, long out, long experts)
{
    const Mine m = mine_of(st, offset, experts);
    grouped_backward_w(st, dweight, dbias, dy, x, offset + m.from, acc, rows, in, out, experts);
}
