/* SPDX-License-Identifier: Apache-2.0
 *
 * tile.h: the tile of a product (gemm.h): chains that sit in registers while their terms run.
 *
 * Problem.  TILE_ROWS x TILE_COLS chains take a fused step each, for every term, as fast as the processor can.
 *
 * Method.  A term brings two vectors of b, from a packed panel, and a number of each row of a.  On x86 the number is loaded to
 * all lanes.  aarch64 takes it from a lane of a vector: one load brings a term of four rows of a packed strip, or terms of one
 * row in place.  What rests in memory is fetched before it is stored or added.  Of a whole tile two addresses serve all rows.
 *
 * Order.  A chain takes its terms one by one, ascending; docs/bits.md.
 *
 * Cost: 24 fused steps a term with AVX-512, in 43 instructions, in 44 of rows in place; 12 in 25 with AVX2; 24 in 32 on
 * aarch64, in 34 of rows in place (tests/tile.sh reads listings).  Not handled: RISC-V's vectors, which compilers make of the
 * plain loop.
 */
#ifndef TILE_H
#define TILE_H
#include "fused.h"
#include "kernel.h"

enum { TILE_COLS = 2 * VECTOR };
#if defined __STDC_HOSTED__ && __STDC_HOSTED__ == 0             /* a board: 16 KiB of stack in all */
enum { TREES = 0 };
#else
enum { TREES = 1 };                                             /* a tile takes several blocks, or pieces */
#endif

/* Floats of a result, or of what waits for it: those of element (i, j) stand at at[i*ld + j]. */
typedef struct { float *at; long ld; } Floats;

/* Where a tile's chains begin, NULL: at 0; what goes onto the finished ones: subtrees, an earlier gradient, a bias; where they
 * rest then.  wide: columns of all of these, 0: as many as tiles have.  lines, places: of tile_listed(), where rows lie.  soon:
 * of a STREAM tile, soon[p*step] is fetched in step p, and the last vector of `to` has `last` columns. */
typedef struct {
    Floats from, add[LEVELS + 1], to;
    const float *bias;
    int adds;
    long wide;
    const long *lines, *places;
    const float *soon;
    long step, last;
} Rest;

/* What a compiler knows of the rows of a tile.  SOME: a few may lack.  FULL: all are there.  LISTED: they are any of a and of
 * the chains, and nothing is added to these.  STREAM: all are there, and chains take all their terms at once. */
enum { SOME, FULL, LISTED, STREAM };

/* Terms that tiles take at once: of whole blocks, each of `block` terms, the last one may be shorter; or some of one block.
 * With several pieces a block has as many terms of each. */
typedef struct { long terms, block, pieces; } Terms;

/* The rows of a block of a: a(i, p) of strip s, of TILE_ROWS rows, stands at at[s*strip + i*row_step + p*col]; the next piece
 * begins at p = apart. */
typedef struct { const float *at; long row_step, col, strip, apart; } Left;

static inline Floats floats_from(Floats p, long i, long j) { return (Floats){p.at ? p.at + i * p.ld + j : NULL, p.ld}; }

/* Stores wait for each other's lines.  A tile that writes more lines than can wait fetches them first. */
enum { WANTED = TILE_ROWS * TILE_COLS * sizeof(float) / 64 > 12 };

/* Terms from p on that one load brings for several rows, or for several terms of one: the first that is left.  Of rows in
 * place two terms are taken, so that b stays in registers, and no row is loaded before its turn, for registers are few. */
static inline __attribute__((always_inline)) long tile_lanes(const int height, Vector (*s)[2], const float **at, long row,
                                                             long col, long rows, const float **panel, long p, long stop)
{
    const float *b = *panel;
    for (; BY_LANE && row == 1 && col != 1 && rows >= height && p < stop; p++, b += TILE_COLS) {
        Vector b0 = *(const Vector *)b, b1 = *(const Vector *)(b + VECTOR);
        UNROLLED
        for (int i = 0; i < height; i++) {
            Vector some = *(const Vector *)(at[0] + p * col + i / VECTOR * VECTOR);
            s[i][0] = fused_lane(some, i % VECTOR, b0, s[i][0]);
            s[i][1] = fused_lane(some, i % VECTOR, b1, s[i][1]);
        }
    }
    for (; BY_LANE && col == 1 && row != 1 && p + VECTOR <= stop; p += 2, b += 2 * TILE_COLS) {
        Vector b0 = *(const Vector *)b, b1 = *(const Vector *)(b + VECTOR);
        Vector b2 = *(const Vector *)(b + TILE_COLS), b3 = *(const Vector *)(b + TILE_COLS + VECTOR);
        UNROLLED
        for (int i = 0; i < height; i++) {
            Vector some = *(const Vector *)(at[i] + p);
            s[i][0] = fused_lane(some, 0, b0, s[i][0]);
            s[i][1] = fused_lane(some, 0, b1, s[i][1]);
            s[i][0] = fused_lane(some, 1, b2, s[i][0]);
            s[i][1] = fused_lane(some, 1, b3, s[i][1]);
            __asm__ volatile("" ::: "memory");
        }
    }
    *panel = b;
    return p;
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

/* n numbers of a vector */
static inline void vector_some(float *to, Vector v, long n)
{
    float all[VECTOR];
    long j = 0;
    memcpy(all, &v, sizeof all);
    for (; j + 4 <= n; j += 4)
        *(Four *)(to + j) = *(const Four *)(all + j);
    for (; j < n; j++)
        to[j] = all[j];
}

/* Terms p to stop, one by one; `first` is that of row 0.  Where all rows are there, two addresses serve them.  With one for
 * each row some rest in registers of vectors, and a move from there takes the place of a fused step. */
static inline __attribute__((always_inline)) void tile_terms(const int height, const int vectors, const int way, Vector (*s)[2],
                                                             const float *const *at, const float *first, long row, long col,
                                                             const float *panel, long p, long stop, const Rest *t)
{
    enum { MANY = 8 };                                          /* addresses that have a register each, beside others */
    const int two = height > MANY && (way == FULL || way == STREAM), middle = height / 2;
    const float *upper = first, *lower = first + middle * row;
    if (p < stop) do {                                          /* the test is behind: a chain keeps its register */
        Vector b0 = *(const Vector *)panel, b1 = vectors > 1 ? *(const Vector *)(panel + VECTOR) : b0;
        if (way == STREAM && col == 1)
            __builtin_prefetch(t->soon + p * t->step);
        else if (way == STREAM)                                 /* behind many others */
            __builtin_prefetch(t->soon + p * t->step, 0, 2);
        UNROLLED
        for (int i = 0; i < height; i++) {
            float one = !two ? at[i][p * col] : i < middle ? upper[i * row] : lower[(i - middle) * row];
            Vector all = one - (Vector){0};                     /* x - 0 is x, of a zero too */
            s[i][0] = fused(all, b0, s[i][0]);
            if (vectors > 1)
                s[i][1] = fused(all, b1, s[i][1]);
        }
        STAYS(b0);
        STAYS(b1);
        upper += col, lower += col, panel += TILE_COLS;
    } while (++p < stop);
}

/* A tile of `height` rows of chains at (line, j), of `vectors` vectors each.  Rows past `rows` are computed from row 0, and
 * dropped.  Subtrees of these terms wait on the stack, which is in the nearest cache. */
static inline __attribute__((always_inline)) void tile_any(const int height, const int vectors, const int way, const Rest *t,
                                                           long line, long j, const float *a, long row, long col, long apart,
                                                           const float *b, long rows, const Terms *k)
{
    Vector s[TILE_ROWS][2], waits[LEVELS][TILE_ROWS][2];
    const float *at[TILE_ROWS];
    Floats from = floats_from(t->from, line, j), to = floats_from(t->to, line, j);
    const int all = way == FULL || way == STREAM;
    UNROLLED
    for (int i = 0; i < height; i++) {
        long r = all || i < rows ? i : 0, down = way == LISTED ? t->lines[r] : r;
        at[i] = a + (way == LISTED ? t->places[r] : r * row);
        for (int half = 0; half < vectors; half++)
            s[i][half] = from.at ? *(const Vector *)(from.at + down * from.ld + half * VECTOR) : (Vector){0};
    }
    for (int n = 0; way != LISTED && n < t->adds; n++)         /* wanted behind the chains, which take hundreds of steps */
        for (long i = 0; i < rows; i++)
            __builtin_prefetch(floats_from(t->add[n], line + i, j).at);
    for (long i = 0; WANTED && to.at != from.at && i < rows; i++)
        for (int half = 0; half < vectors; half++)
            __builtin_prefetch(to.at + (way == LISTED ? t->lines[i] : i) * to.ld + half * VECTOR, 1);
    for (long begin = 0, q = 0, number = 0;;) {
        long end = least(begin + k->block, k->terms), p = q * apart + begin, stop = q * apart + end;
        const float *panel = b + (q * k->terms + begin) * TILE_COLS;
        p = tile_lanes(height, s, at, row, col, rows, &panel, p, stop);
        tile_terms(height, vectors, way, s, at, a + p * col, row, col, panel, p, stop, t);
        if (!TREES || way == STREAM)
            break;
        if (++q < k->pieces)
            continue;
        int level = 0, last = end == k->terms;
        for (; block_takes(number, level, last); level++)
            if (number >> level & 1)
                UNROLLED
                for (int i = 0; i < height; i++) {
                    s[i][0] += waits[level][i][0];
                    s[i][1] += waits[level][i][1];
                }
        if (last)
            break;
        UNROLLED
        for (int i = 0; i < height; i++)
            for (int half = 0; half < 2; half++) {
                waits[level][i][half] = s[i][half];
                s[i][half] = (Vector){0};
            }
        begin = end, q = 0, number++;
    }
    for (int n = 0; way != LISTED && n < t->adds + (t->bias != NULL); n++) {
        const float *more = n < t->adds ? floats_from(t->add[n], line, j).at : t->bias + j;
        UNROLLED
        for (int i = 0; i < height; i++) {
            long r = n < t->adds && (all || i < rows) ? i * t->add[n].ld : 0;
            for (int half = 0; half < vectors; half++)
                s[i][half] += *(const Vector *)(more + r + half * VECTOR);
        }
    }
    UNROLLED
    for (int i = 0; i < height; i++)
        UNROLLED
        for (int half = 0; half < vectors; half++) {
            if (!all && i >= rows)
                continue;
            float *place = to.at + (way == LISTED ? t->lines[i] : i) * to.ld + half * VECTOR;
            if (way == STREAM && half == vectors - 1 && t->last < VECTOR)
                vector_some(place, s[i][half], t->last);
            else
                *(Vector *)place = s[i][half];
        }
}

enum { SMALL = TILE_ROWS / 3, MIDDLE = 2 * SMALL };

/* Rows t->lines of the chains go on with rows of a at t->places, whose terms are adjacent. */
static ONE_BODY void tile_listed(const Rest *t, const float *a, long apart, const float *b, long rows, const Terms *k)
{
    if (rows > MIDDLE)
        tile_any(TILE_ROWS, 2, LISTED, t, 0, 0, a, 0, 1, apart, b, rows, k);
    else if (rows > SMALL)
        tile_any(MIDDLE, 2, LISTED, t, 0, 0, a, 0, 1, apart, b, rows, k);
    else
        tile_any(SMALL, 2, LISTED, t, 0, 0, a, 0, 1, apart, b, rows, k);
}

static void tile_narrow(const Rest *t, long line, long j, const Left *a, const float *b, long rows, const Terms *k);

/* The least tile that has the rows.  Either rows or terms of a are adjacent: row or col is 1. */
static ONE_BODY void tile_fit(const Rest *t, long line, long j, const Left *a, const float *b, long rows, const Terms *k)
{
    if (t->wide && t->wide - j < TILE_COLS)
        tile_narrow(t, line, j, a, b, rows, k);
    else if (rows == TILE_ROWS && a->col == 1)
        tile_any(TILE_ROWS, 2, FULL, t, line, j, a->at, a->row_step, 1, a->apart, b, TILE_ROWS, k);
    else if (rows == TILE_ROWS)
        tile_any(TILE_ROWS, 2, FULL, t, line, j, a->at, 1, a->col, a->apart, b, TILE_ROWS, k);
    else if (rows > MIDDLE)
        tile_any(TILE_ROWS, 2, SOME, t, line, j, a->at, a->row_step, a->col, a->apart, b, rows, k);
    else if (rows > SMALL)
        tile_any(MIDDLE, 2, SOME, t, line, j, a->at, a->row_step, a->col, a->apart, b, rows, k);
    else
        tile_any(SMALL, 2, SOME, t, line, j, a->at, a->row_step, a->col, a->apart, b, rows, k);
}

static inline void copy_rows(Floats to, Floats from, long rows, long n)
{
    for (long i = 0; i < rows; i++)
        if (n == VECTOR)
            *(Vector *)(to.at + i * to.ld) = *(const Vector *)(from.at + i * from.ld);
        else
            memcpy(to.at + i * to.ld, from.at + i * from.ld, (size_t)n * sizeof *to.at);
}

/* The last columns, which no tile has to itself: beside it is what belongs to others, or to nobody. */
static ONE_BODY void tile_narrow(const Rest *t, long line, long j, const Left *a, const float *b, long rows, const Terms *k)
{
    float room[LEVELS + 2][TILE_ROWS * TILE_COLS], bias[TILE_COLS] = {0};
    long n = t->wide - j;
    Rest held = {.to = {room[0], TILE_COLS}, .adds = t->adds, .bias = t->bias ? bias : NULL};
    if (t->from.at) {
        held.from = held.to;
        copy_rows(held.from, floats_from(t->from, line, j), rows, n);
    }
    for (int i = 0; i < t->adds; i++) {
        held.add[i] = (Floats){room[1 + i], TILE_COLS};
        copy_rows(held.add[i], floats_from(t->add[i], line, j), rows, n);
    }
    if (t->bias)
        memcpy(bias, t->bias + j, (size_t)n * sizeof *bias);
    tile_fit(&held, 0, 0, a, b, rows, k);
    copy_rows(floats_from(t->to, line, j), held.to, rows, n);
}
#endif
