/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.h: the one matrix product of Linear, LinearCrossEntropy, MatMul, GroupedLinear, LSTM, Attention and Conv.
 *
 * Problem.  A product as fast as those of libraries, with bits that depend neither on vector width and block sizes nor on the
 * number of rows and threads.
 *
 * Method.  Every element of the result is one chain: it starts from the given value and takes fused steps (fused.h) with
 * a[i][p] and b[p][j] for p ascending.  Speed comes only from working on many independent chains at once: a tile of TILE_ROWS
 * x TILE_COLS of them sits in registers while p runs (K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix
 * Multiplication, ACM TOMS 34, 2008; F. Van Zee, R. van de Geijn, BLIS, ACM TOMS 41, 2015).  When p is cut into blocks the
 * chains rest in memory as floats, which changes nothing.  Tiles and blocks may therefore follow the machine, and the bits do
 * not.  Libraries choose other sums for other shapes and numbers of threads; here only tasks, of whole results, are cut
 * otherwise.
 *
 * b is packed, block by block, into panels of TILE_COLS adjacent columns; a transposed one is turned in registers.  Rows of a
 * are read in place where p is adjacent: a tile reads as many lines at once as it has rows.  Otherwise they are packed as
 * well, once for all panels of a task.  Chains of floats rest in the result itself, and a bias or an earlier gradient is added
 * while they are in registers.
 *
 * A sum in blocks (kernel.h) is one such chain a block, from 0.  Subtrees that are complete wait in memory, and are added to
 * the chains of the block behind them while those are still in registers.  So a block costs no more than a piece of p does.
 * Published kernels with such an order (tree-based invariant kernels, arXiv 2511.17826) serve the forward pass alone.
 *
 * Cost: 0.8 MiB of stack, 1.4 MiB where results are held there; packing b is about 1/rows of the work, or of BLOCK where they
 * are held.  Not handled: panels that tasks share.
 */
#ifndef GEMM_H
#define GEMM_H
#include <stdbool.h>
#include "../quantize.h"
#include "fused.h"
#include "kernel.h"

enum { TILE_COLS = 2 * VECTOR, COLS = 32 };
/* DEPTH: a block of p; BLOCK, SPREAD: rows and columns of what is packed at once, or held.  Bits do not depend on them. */
#if defined __STDC_HOSTED__ && __STDC_HOSTED__ == 0     /* a board: 14 KiB of stack in all */
enum { DEPTH = 8, BLOCK = TILE_ROWS, SPREAD = 128 };
#else
enum { DEPTH = 384, BLOCK = 264, SPREAD = 256 };
#endif
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int FourInts __attribute__((vector_size(16)));
#define MIX(a, b, ...) __builtin_shuffle(a, b, (FourInts){__VA_ARGS__})
#endif

/* A matrix in memory: element (i, j) stands at i*row + j*col.  Its type is real, or float; or, as factor b alone, it has few
 * bits (quantize.h): element (i, j) is number first + i*row + j*col of `few`, and row or col is 1. */
typedef struct { const unsigned char *at; int bits; long width; } Few;
typedef struct { const void *at; int is_float; long row_step, col; const Few *few; long first; } View;

static inline View view(const real *at, long row, long col) { return (View){at, sizeof(real) == 4, row, col, 0, 0}; }
static inline View view_float(const float *at, long row, long col) { return (View){at, 1, row, col, 0, 0}; }
static inline View view_few(const Few *few, long row, long col) { return (View){0, 1, row, col, few, 0}; }

static inline float view_get(const View *v, long i, long j)
{
    long at = i * v->row_step + j * v->col;
    return v->is_float ? ((const float *)v->at)[at] : get(v->at, at);
}

static inline View view_from(View v, long i, long j)
{
    size_t size = v.is_float ? sizeof(float) : sizeof(real);
    v.first += i * v.row_step + j * v.col;
    if (!v.few)
        v.at = (const char *)v.at + (size_t)(i * v.row_step + j * v.col) * size;
    return v;
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

/* The same where p is the adjacent index: squares of four by four are turned in registers. */
static inline void widen_turned(float *to, long ld, View v, long m, long n)
{
    long turned_m = m / 4 * 4, turned_n = n / 4 * 4;
    for (long j = 0; j < turned_n; j += 4)
        for (long p = 0; p < turned_m; p += 4) {
            long at = j * v.col + p;
            Four a = four(&v, at), b = four(&v, at + v.col), c = four(&v, at + 2 * v.col), d = four(&v, at + 3 * v.col);
            Four ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
            Four ba = MIX(a, b, 2, 6, 3, 7), dc = MIX(c, d, 2, 6, 3, 7);
            float *row = to + p * ld + j;
            *(Four *)row = MIX(ab, cd, 0, 1, 4, 5);
            *(Four *)(row + ld) = MIX(ab, cd, 2, 3, 6, 7);
            *(Four *)(row + 2 * ld) = MIX(ba, dc, 0, 1, 4, 5);
            *(Four *)(row + 3 * ld) = MIX(ba, dc, 2, 3, 6, 7);
        }
    for (long j = 0; j < n; j++)
        for (long p = j < turned_n ? turned_m : 0; p < m; p++)
            to[p * ld + j] = view_get(&v, p, j);
}

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

static void pack_few(float *to, long width, long size, View v, long m, long n);

/* Panels of `width` adjacent columns, `size` floats from one to the next: to[n / width][m][width] = v, zero past its n columns.
 * Rows are read whole, so that the machine sees what comes next; and written in whole vectors, of which the next row overwrites
 * what is too much. */
static inline __attribute__((always_inline)) void pack(float *to, const long width, long size, View v, long m, long n)
{
    if (v.few) {
        pack_few(to, width, size, v, m, n);
        return;
    }
    long whole = n / width * width, sure = v.is_float && v.col == 1 ? (n - (VECTOR - 1)) / width * width : 0;
    if (whole < n)
        memset(to + n / width * size, 0, (size_t)(m * width) * sizeof *to);
    if (v.row_step == 1 && v.col != 1) {
        for (long j = 0; j < n; j += width)
            widen_turned(to + j / width * size, width, view_from(v, 0, j), m, least(width, n - j));
        return;
    }
    for (long p = 0; p < m; p++) {
        View row = view_from(v, p, 0);
        float *at = to + p * width;
        long j = 0;
        for (; j < sure; j += width, at += size)
            for (long i = 0; i < width; i += VECTOR)
                *(Vector *)(at + i) = *(const Vector *)((const float *)row.at + j + i);
        for (; j < n; j += width, at += size)
            widen(at, width, view_from(row, 0, j), 1, least(width, n - j));
    }
}

/* Adjacent numbers are made wide together, and packed as floats: columns of m numbers, or a row of n. */
static __attribute__((noinline, unused)) void pack_few(float *to, long width, long size, View v, long m, long n)
{
    float room[TILE_COLS * DEPTH];
    bool down = v.row_step == 1;
    long each = down ? width : TILE_COLS * DEPTH / width * width;
    for (long j = 0; j < n; j += each)
        for (long p = 0, k = least(each, n - j); p < m; p += down ? m : 1) {
            View wide = view_float(room, 1, down ? m : 1);
            for (long c = 0; c < (down ? k : 1); c++)
                widen_few(room + c * m, v.few, v.first + p * v.row_step + (j + c) * v.col, down ? m : k);
            pack(to + j / width * size + p * width, width, size, wide, down ? m : 1, k);
        }
}

/* Where a tile's chains begin, NULL: at 0; what goes onto the finished ones: subtrees, and a bias; where they rest then. */
typedef struct { const float *from, *add[LEVELS], *bias; int adds; float *to; } Rest;

/* The rows of a block of a: a(i, p) of strip s, of TILE_ROWS rows, stands at at[s*strip + i*row_step + p*col]. */
typedef struct { const float *at; long row_step, col, strip; } Left;

/* A tile of `height` rows of chains, `line` behind the first, from column j on.  Rows past `rows` are computed from row 0, and
 * dropped. */
static inline __attribute__((always_inline)) void tile_of(const int height, const Rest *t, long line, long ldc, long j,
                                                          const float *a, long row, long col, const float *b, long rows,
                                                          long depth)
{
    Vector s[TILE_ROWS][2];
    const float *at[TILE_ROWS], *from = t->from ? t->from + line + j : NULL;
    float *to = t->to + line + j;
#pragma GCC unroll 16
    for (int i = 0; i < height; i++) {
        long r = i < rows ? i : 0;
        at[i] = a + r * row;
        s[i][0] = from ? *(const Vector *)(from + r * ldc) : (Vector){0};
        s[i][1] = from ? *(const Vector *)(from + r * ldc + VECTOR) : (Vector){0};
    }
    for (long p = 0; p < depth; p++, b += TILE_COLS) {
        Vector b0 = *(const Vector *)b, b1 = *(const Vector *)(b + VECTOR);
#pragma GCC unroll 16
        for (int i = 0; i < height; i++) {
            Vector all = at[i][p * col] - (Vector){0};          /* x - 0 is x, of a zero too */
            s[i][0] = fused(all, b0, s[i][0]);
            s[i][1] = fused(all, b1, s[i][1]);
        }
    }
    for (int k = 0; k < t->adds + (t->bias != NULL); k++) {
        const float *more = k < t->adds ? t->add[k] + line + j : t->bias + j;
#pragma GCC unroll 16
        for (int i = 0; i < height; i++) {
            long r = k < t->adds && i < rows ? i * ldc : 0;
            s[i][0] += *(const Vector *)(more + r);
            s[i][1] += *(const Vector *)(more + r + VECTOR);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < height; i++)
        if (i < rows) {
            *(Vector *)(to + i * ldc) = s[i][0];
            *(Vector *)(to + i * ldc + VECTOR) = s[i][1];
        }
}

/* The least tile that has the rows.  Either rows or terms of a are adjacent: row or col is 1. */
static __attribute__((noinline, unused)) void tile_fit(const Rest *t, long line, long ldc, long j, const float *a, long row,
                                                       long col, const float *b, long rows, long depth)
{
    enum { SMALL = TILE_ROWS / 3, MIDDLE = 2 * SMALL };
    if (rows > MIDDLE && col == 1)
        tile_of(TILE_ROWS, t, line, ldc, j, a, row, 1, b, rows, depth);
    else if (rows > MIDDLE)
        tile_of(TILE_ROWS, t, line, ldc, j, a, 1, col, b, rows, depth);
    else if (rows > SMALL)
        tile_of(MIDDLE, t, line, ldc, j, a, row, col, b, rows, depth);
    else
        tile_of(SMALL, t, line, ldc, j, a, row, col, b, rows, depth);
}

/* A packed strip of a, and the vector that its last row may spoil behind it. */
static inline long strip_size(long depth) { return depth * TILE_ROWS + VECTOR; }

/* The length of a block of p: DEPTH at most, and about the same for all. */
static inline long depth_of(long k) { return k ? ceil_div(k, ceil_div(k, DEPTH)) : 1; }

/* Columns that are packed at once. */
static inline long spread_of(long k) { return SPREAD * DEPTH / depth_of(k) / COLS * COLS; }

/* m rows of a, in place or in `room`, of STRIPS(m) strips. */
static inline Left left_of(float *room, View a, long m, long depth)
{
    if (a.is_float && a.col == 1)
        return (Left){a.at, a.row_step, 1, TILE_ROWS * a.row_step};
    if (a.col == 1) {
        widen(room, depth, a, m, depth);
        return (Left){room, depth, 1, TILE_ROWS * depth};
    }
    pack(room, TILE_ROWS, strip_size(depth), (View){a.at, a.is_float, a.col, a.row_step, 0, 0}, depth, m);
    return (Left){room, 1, TILE_ROWS, strip_size(depth)};
}

/* m x n chains take k terms, and what is added behind the last one.  Room: as of left_of for BLOCK rows, and depth * n floats,
 * n rounded up. */
static __attribute__((noinline, unused)) void product_part(Rest t, long ldc, View a, View b, long m, long n, long k,
                                                           float *room, float *panels)
{
    long each = depth_of(k), adds = t.adds;
    const float *bias = t.bias;
    for (long p = 0; p == 0 || p < k; p += each, t.from = t.to) {
        long depth = least(each, k - p);
        t.adds = p + depth == k ? (int)adds : 0;
        t.bias = p + depth == k ? bias : NULL;
        pack(panels, TILE_COLS, TILE_COLS * depth, view_from(b, p, 0), depth, n);
        for (long i = 0; i < m; i += BLOCK) {
            Left left = left_of(room, view_from(a, i, p), least(BLOCK, m - i), depth);
            for (long r = i; r < i + BLOCK && r < m; r += TILE_ROWS, left.at += left.strip)
                for (long j = 0; j < n; j += TILE_COLS)
                    tile_fit(&t, r * ldc, ldc, j, left.at, left.row_step, left.col, panels + j * depth,
                             least(TILE_ROWS, m - r), depth);
        }
    }
}

/* c[m][ldc] += a[m][k] b[k][n], of few rows.  ldc is a multiple of COLS; columns up to the next multiple of COLS are
 * written. */
static inline void product(float *c, long ldc, View a, View b, long m, long n, long k)
{
    enum { FEW = 3 * TILE_ROWS };
    _Alignas(64) float room[FEW * (DEPTH + VECTOR)], panels[TILE_COLS * DEPTH];
    for (long i = 0; i < m; i += FEW)
        for (long j = 0; j < n; j += TILE_COLS)
            product_part((Rest){.from = c + i * ldc + j, .to = c + i * ldc + j}, ldc, view_from(a, i, 0), view_from(b, 0, j),
                         least(FEW, m - i), least(TILE_COLS, n - j), k, room, panels);
}

/* What a thread takes of a large product: columns, so that a part of b is packed once; and rows, where threads would lack work
 * or results are held on the stack.  Tasks are about of one size, and as many for each thread. */
typedef struct { long m, n, down, across; } Grid;
typedef struct { long i, j, m, n; } Task;

static inline Grid grid_of(long m, long n, long rows, long cols, long threads)
{
    long down = ceil_div(m, rows), across = ceil_div(n, cols);
    while (down * across % threads && across * COLS < n)
        across++;
    while (down * across % threads && down * TILE_ROWS < m)
        down++;
    return (Grid){m, n, down, across};
}

static inline long task_count(const Grid *g) { return g->down * g->across; }

static inline Task task_of(const Grid *g, long number)
{
    long strips = ceil_div(g->m, TILE_ROWS), panels = ceil_div(g->n, COLS), y = number % g->down, x = number / g->down;
    long i = strips * y / g->down * TILE_ROWS, j = panels * x / g->across * COLS;
    return (Task){i, j, least(g->m, strips * (y + 1) / g->down * TILE_ROWS) - i,
                  least(g->n, panels * (x + 1) / g->across * COLS) - j};
}

/* The results of a task, from zero, in blocks of k: of each of so many pieces of k, one behind the other, a block has as much.
 * What waits in the tree is as much stack as the results. */
static __attribute__((noinline, unused)) void task_blocks(float *c, const Task *t, View a, View b, long k, long block,
                                                          long pieces, float *room, float *panels)
{
    _Alignas(64) float rest[BLOCK * SPREAD];
    long each = k / pieces;
    for (long from = 0, number = 0; from < each; from += block, number++) {
        int last = from + block >= each, level = 0, adds = 0;
        Rest to = {.from = NULL};
        for (; block_takes(number, level, last); level++)
            if (number >> level & 1)
                to.add[adds++] = rest + level * (SPREAD / LEVELS);
        to.to = last ? c : rest + level * (SPREAD / LEVELS);
        for (long at = from; at < k; at += each, to.from = to.to) {
            to.adds = at + each >= k ? adds : 0;
            product_part(to, SPREAD, view_from(a, t->i, at), view_from(b, at, t->j), t->m, t->n, least(block, each - from),
                         room, panels);
        }
    }
}

/* What becomes of the chains of a product: they begin at 0, and are the result, with or without a bias; or are added to it; or
 * they begin there. */
enum { STORE, ADD, GO_ON };

/* A task whose results are held on the stack: in blocks, narrowed, or with columns that no tile has to itself. */
static __attribute__((noinline, unused)) void task_held(void *to, int is_float, const Task *t, View a, View b, const real *bias,
                                                        int way, long n, long k, long block, long pieces,
                                                        float *room, float *panels)
{
    _Alignas(64) float c[BLOCK * SPREAD], add[SPREAD];
    for (long i = 0; way == GO_ON && i < t->m; i++)
        memcpy(c + i * SPREAD, (float *)to + (t->i + i) * n + t->j, (size_t)t->n * sizeof *c);
    if (block < k / pieces)
        task_blocks(c, t, a, b, k, block, pieces, room, panels);
    else
        product_part((Rest){.from = way == GO_ON ? c : NULL, .to = c}, SPREAD, view_from(a, t->i, 0), view_from(b, 0, t->j),
                     t->m, t->n, k, room, panels);
    for (long j = 0; bias && j < t->n; j++)
        add[j] = get(bias, t->j + j);
    for (long i = 0; i < t->m; i++) {
        long at = (t->i + i) * n + t->j;
        for (long j = 0; bias && j < t->n; j++)
            c[i * SPREAD + j] += add[j];
        if (is_float)
            give((float *)to + at, c + i * SPREAD, t->n, way == ADD);
        else
            for (long j = 0; j < t->n; j++)
                put(to, at + j, c[i * SPREAD + j]);
    }
}

/* Results that are floats rest where they belong, but for those of the last columns. */
static inline void task_product(void *to, int held, int is_float, Task t, View a, View b, const real *bias, int way, long n,
                                long k, long block, long pieces)
{
    _Alignas(64) float room[(BLOCK + TILE_ROWS) * (DEPTH + VECTOR)], panels[SPREAD * DEPTH];
    long whole = held ? 0 : t.n / TILE_COLS * TILE_COLS;
    float *at = (float *)to + t.i * n + t.j;
    Rest rest = {.from = way == GO_ON ? at : NULL, .to = at, .bias = bias ? (const float *)(const void *)bias + t.j : NULL};
    if (way == ADD)
        rest.add[rest.adds++] = at;
    if (whole)
        product_part(rest, n, view_from(a, t.i, 0), view_from(b, 0, t.j), t.m, whole, k, room, panels);
    for (long end = t.i + t.m; whole < t.n && t.i < end; t.i += BLOCK) {
        Task part = {t.i, t.j + whole, least(BLOCK, end - t.i), t.n - whole};
        task_held(to, is_float, &part, a, b, bias, way, n, k, block, pieces, room, panels);
    }
}

static inline void product_way(Stage *st, void *to, int is_float, View a, View b, const real *bias, int way, long m, long n,
                               long k, long block, long pieces)
{
    int cut = block < k / pieces, held = !is_float || cut || (way == ADD && k > DEPTH);
    Grid g = grid_of(m, n, held ? BLOCK : m + 1, cut ? SPREAD / LEVELS : held ? SPREAD : spread_of(k), st->threads);
    EACH(m * n * k >= 1 << 16)
    for (long number = 0; number < task_count(&g); number++)
        task_product(to, held, is_float, task_of(&g, number), a, b, bias, way, n, k, block, pieces);
}

/* y[m n] = a[m k] b[k n] + bias[n], NULL: none; in blocks of each of so many pieces of k (kernel.h). */
static inline void product_in(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block,
                              long pieces)
{
    product_way(st, y, sizeof(real) == sizeof(float), a, b, bias, STORE, m, n, k, block, pieces);
}

static inline void product_to(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block)
{
    product_in(st, y, a, b, bias, m, n, k, block, 1);
}

/* A weight gradient [m n]: a[m k] b[k n] is summed from zero, in blocks, then given. */
static inline void product_give_in(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block,
                                   long pieces)
{
    product_way(st, to, 1, a, b, NULL, acc ? ADD : STORE, m, n, k, block, pieces);
}

static inline void product_give(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block)
{
    product_give_in(st, to, a, b, acc, m, n, k, block, 1);
}

/* The chains of `to` [m n] go on where they rest, or begin, with a[m k] b[k n]. */
static inline void product_on(Stage *st, float *to, View a, View b, int begin, long m, long n, long k)
{
    product_way(st, to, 1, a, b, NULL, begin ? STORE : GO_ON, m, n, k, k, 1);
}
#endif
