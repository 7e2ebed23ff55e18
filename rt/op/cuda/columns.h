/* SPDX-License-Identifier: Apache-2.0
 *
 * columns.h: sums over rows: gradients of weights, biases and repeated operands.
 *
 * Problem.  A matrix of many rows is to be added up into one row, in an order that depends on sizes alone.  Method.  A
 * block takes a tile of 32 x 16 bytes of columns and a chunk of rows; its 8 warps take rows in turn, each column is added
 * ascending in a register, and the warps are added ascending.  With several chunks the parts go to scratch, and a second
 * kernel adds them the same way: 8 lanes of chunks, ascending.  A chunk's length follows from rows and width.  Scratch:
 * at most TILES tiles of sums, whatever the shape; with one chunk none.
 *
 * Term::SUMS sums are made at once: term.at(v, row, i, width, step) gives what row `row` adds to the columns that take()
 * takes; end.put(sum, column, value) receives each result once.  With `segments` there are that many matrices below each
 * other, in one chunk each, and column counts through all of their results.
 */
#ifndef COLUMNS_H
#define COLUMNS_H
#include "kernel.h"

enum { ROW_LANES = BLOCK / WARP, TILE = WARP * WIDE, TILES = 528, LEAST_ROWS = 32 };

typedef struct { long rows, width, tiles, chunks, each; } Columns;

/* STEP: 0 where every row begins at a multiple of 16 bytes.  The compiler knows it, and how many rounds there are, so that
 * loads of the next rows are under way while a row is added. */
template <class Term, class End, int STEP>
static __global__ void column_parts(Term term, End end, float *part, Columns c)
{
    SHARED(float, sum, ROW_LANES * TILE);
    long tile = blockIdx.x % c.tiles, rest = blockIdx.x / c.tiles, chunk = rest % c.chunks, segment = rest / c.chunks;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    long i = tile * TILE + (STEP ? lane : lane * WIDE), until = (chunk + 1) * c.each;
    float s[Term::SUMS][WIDE];
    for (int k = 0; k < Term::SUMS; k++)
        for (int j = 0; j < WIDE; j++)
            s[k][j] = 0;
    until = until < c.rows ? until : c.rows;
    long first = chunk * c.each + warp;
    int rounds = first < until && i < c.width ? (int)((until - first + ROW_LANES - 1) / ROW_LANES) : 0;
    UNROLL_4
    for (int round = 0; round < rounds; round++) {
        float v[Term::SUMS][WIDE];
        term.at(v, segment * c.rows + first + round * ROW_LANES, i, c.width, STEP);
        for (int k = 0; k < Term::SUMS; k++)
            for (int j = 0; j < WIDE; j++)
                s[k][j] += v[k][j];
    }
    for (int k = 0; k < Term::SUMS; k++) {
        for (int j = 0; j < WIDE; j++)
            sum[warp * TILE + (STEP ? lane + j * WARP : lane * WIDE + j)] = s[k][j];
        __syncthreads();
        for (int at = threadIdx.x; at < TILE && tile * TILE + at < c.width; at += BLOCK) {
            float all = sum[at];
            for (int w = 1; w < ROW_LANES; w++)
                all += sum[w * TILE + at];
            if (c.chunks == 1)
                end.put(k, segment * c.width + tile * TILE + at, all);
            else
                part[(chunk * Term::SUMS + k) * c.width + tile * TILE + at] = all;
        }
        __syncthreads();
    }
}

template <int SUMS, class End> static __global__ void column_totals(End end, const float *part, Columns c)
{
    SHARED(float, sum, BLOCK);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    long i = (long)blockIdx.x * WARP + lane;
    UNROLL
    for (int k = 0; k < SUMS; k++) {
        float s = 0;
        for (long chunk = warp; chunk < c.chunks && i < c.width; chunk += ROW_LANES)
            s += part[(chunk * SUMS + k) * c.width + i];
        sum[threadIdx.x] = s;
        __syncthreads();
        if (warp == 0 && i < c.width) {
            for (int w = 1; w < ROW_LANES; w++)
                s += sum[w * WARP + lane];
            end.put(k, i, s);
        }
        __syncthreads();
    }
}

/* With `segments` one chunk each. */
static inline Columns columns_of(long rows, long width, long segments)
{
    Columns c = {rows, width, ceil_div(width, TILE), 1, rows};
    long most = ceil_div(rows, LEAST_ROWS), chunks = segments ? 1 : TILES / c.tiles;
    chunks = chunks < most ? chunks : most;
    if (chunks > 1) {
        c.each = ceil_div(ceil_div(rows, chunks), ROW_LANES) * ROW_LANES;
        c.chunks = ceil_div(rows, c.each);
    }
    return c;
}

/* Bytes of scratch that `sums` sums at once take. */
static inline size_t columns_scratch(const Columns &c, int sums)
{
    return c.chunks > 1 ? (size_t)(c.chunks * sums * c.width) * sizeof(float) : 0;
}

template <class Term, class End>
static void column_sums_in(Stage *st, Term term, End end, Columns c, float *part, long segments)
{
    unsigned blocks = (unsigned)((segments ? segments : c.chunks) * c.tiles);
    if (c.width % WIDE)
        LAUNCH((column_parts<Term, End, WARP>), blocks, (unsigned)BLOCK, st, term, end, part, c);
    else
        LAUNCH((column_parts<Term, End, 0>), blocks, (unsigned)BLOCK, st, term, end, part, c);
    if (c.chunks > 1)
        LAUNCH((column_totals<Term::SUMS, End>), (unsigned)ceil_div(c.width, WARP), (unsigned)BLOCK, st, end,
               (const float *)part, c);
}

template <class Term, class End>
static void column_sums(Stage *st, Term term, End end, long rows, long width, long segments = 0)
{
    Columns c = columns_of(rows, width, segments);
    size_t scratch = columns_scratch(c, Term::SUMS);
    column_sums_in(st, term, end, c, scratch ? (float *)workspace_of(st, scratch) : 0, segments);
}

/* The plain sum of x. */
struct Plain {
    enum { SUMS = 1 };
    const real *x;
    FIELD void at(float (&v)[1][WIDE], long row, long i, long width, int step) const
    {
        take(v[0], x + row * width, i, width, step);
    }
};

/* Into f32 gradients: written by the first micro-batch, added by the later ones; a 0 address is one that nobody wants. */
struct Gradient {
    float *to[2];
    int acc;
    FIELD void put(int k, long i, float v) const
    {
        if (to[k])
            to[k][i] = acc ? to[k][i] + v : v;
    }
};

struct Narrow {
    real *to;
    float factor;
    FIELD void put(int, long i, float v) const { set(to, i, v * factor); }
};
#endif
