/* SPDX-License-Identifier: Apache-2.0
 *
 * tile.h: the tile of a product (gemm.c): chains that sit in registers while their terms run.
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
 * aarch64, in 34 of rows in place (tests/tile.sh reads listings).  Not handled: the vectors of RISC-V.
 */
#ifndef TILE_H
#define TILE_H
#include "gemm.h"

/* What a compiler knows of the rows of a tile.  SOME: a few may lack.  FULL: all are there.  LISTED: they are any of a and of
 * the chains, and nothing is added to these.  STREAM: all are there, and chains take all their terms at once. */
enum { SOME, FULL, LISTED, STREAM };
enum { SMALL = TILE_ROWS / 3, MIDDLE = 2 * SMALL };

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

#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int FourInts __attribute__((vector_size(16)));
#define MIX(a, b, ...) __builtin_shuffle(a, b, (FourInts){__VA_ARGS__})
#endif

static inline float view_get(const View *v, long i, long j)
{
    long at = i * v->row_step + j * v->col;
    return v->is_float ? ((const float *)v->at)[at] : get(v->at, at);
}

/* to[p*ld + j] = v(p, j): the loop over the adjacent index is innermost. */
static inline void widen(float *to, long ld, View v, long m, long n)
{
    for (long p = 0; p < m; p++) {
        long at = p * v.row_step;
        float *row = to + p * ld;
        if (v.col == 1 && v.is_float)
            memcpy(row, (const float *)v.at + at, (size_t)n * sizeof *row);
        else if (v.col == 1)
            for (long j = 0; j < n; j++)
                row[j] = get((const real *)v.at + at, j);
        else
            for (long j = 0; j < n; j++)
                row[j] = view_get(&v, p, j);
    }
}

static inline Four four(const View *v, long at)
{
    const real *x = (const real *)v->at + at;
    return v->is_float ? *(const Four *)((const float *)v->at + at) : (Four){get(x, 0), get(x, 1), get(x, 2), get(x, 3)};
}

/* to[p*ld + j] = v(p, j) for four p and four j, turned in registers. */
static inline void turn_four(float *to, long ld, const View *v, long at)
{
    Four a = four(v, at), b = four(v, at + v->col), c = four(v, at + 2 * v->col), d = four(v, at + 3 * v->col);
    Four ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
    Four ba = MIX(a, b, 2, 6, 3, 7), dc = MIX(c, d, 2, 6, 3, 7);
    *(Four *)to = MIX(ab, cd, 0, 1, 4, 5);
    *(Four *)(to + ld) = MIX(ab, cd, 2, 3, 6, 7);
    *(Four *)(to + 2 * ld) = MIX(ba, dc, 0, 1, 4, 5);
    *(Four *)(to + 3 * ld) = MIX(ba, dc, 2, 3, 6, 7);
}

/* Where p is the adjacent index.  A line of each j is read whole, and those two lines ahead are fetched. */
static inline __attribute__((always_inline)) void widen_turned(float *to, long ld, View v, long m, long n)
{
    enum { LINE = 64 / sizeof(real) };
    long turned_m = m / 4 * 4, turned_n = n / 4 * 4;
    for (long from = 0; from < turned_m; from += LINE)
        for (long j = 0; j < turned_n; j += 4) {
            for (long q = j; q < j + 4; q++)
                __builtin_prefetch((const char *)view_from(v, from + 2 * LINE, q).at);
            for (long p = from; p < least(from + LINE, turned_m); p += 4)
                turn_four(to + p * ld + j, ld, &v, j * v.col + p);
        }
    for (long j = 0; j < n; j++)
        for (long p = j < turned_n ? turned_m : 0; p < m; p++)
            to[p * ld + j] = view_get(&v, p, j);
}
#endif
