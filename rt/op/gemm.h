/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.h: the one matrix product of Linear, LinearCrossEntropy, MatMul and Attention.
 *
 * Problem.  A fast product with bits that do not depend on vector width, block sizes or the number of rows.
 *
 * Method.  Every element of the result is one chain: it starts from the given value and adds a[i][p] * b[p][j] for p
 * ascending, product and addition rounded separately.  Speed comes only from working on many independent chains at once: a
 * tile of TILE_ROWS x TILE_COLS of them sits in registers while p runs (K. Goto, R. van de Geijn, Anatomy of High-Performance
 * Matrix Multiplication, ACM TOMS 34, 2008).  When p is cut into blocks the chains rest in memory as floats, which changes
 * nothing.  The tile may therefore follow the instruction set, and the bits do not.
 *
 * A sum in blocks (kernel.h) is one such chain a block, from 0.  Subtrees that are complete wait in memory, and are added to
 * the chains of the block behind them while those are still in registers.  So a block costs no more than a piece of p does.
 * Published kernels with such an order (tree-based invariant kernels, arXiv 2511.17826) serve the forward pass alone.
 *
 * b is packed, block by block, into TILE_COLS adjacent columns on the stack.  a is read in place, or, for bf16, widened once
 * a block.  Cost: 20 KiB of stack here, 32 KiB more for a task, 128 KiB more in blocks; packing is about 1/rows of the work.
 * Not handled: fused multiply-add, which would be up to twice as fast and would not give the bits of machines without it.
 */
#ifndef GEMM_H
#define GEMM_H
#include "fused.h"
#include "kernel.h"

enum { TILE_COLS = 2 * VECTOR, DEPTH = 128, COLS = 32 };       /* DEPTH: length of a block of p */

/* A matrix in memory: element (i, j) stands at i*row + j*col.  Its type is real, or float. */
typedef struct { const void *at; int is_float; long row_step, col; } View;

static inline View view(const real *at, long row, long col) { return (View){at, sizeof(real) == 4, row, col}; }
static inline View view_float(const float *at, long row, long col) { return (View){at, 1, row, col}; }

static inline float view_get(const View *v, long i, long j)
{
    long at = i * v->row_step + j * v->col;
    return v->is_float ? ((const float *)v->at)[at] : get(v->at, at);
}

static inline View view_from(View v, long i, long j)
{
    size_t size = v.is_float ? sizeof(float) : sizeof(real);
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

/* The same when p is the adjacent index. */
static inline void widen_turned(float *to, long ld, View v, long m, long n)
{
    for (long j = 0; j < n; j++) {
        View column = view_from(v, 0, j);
        if (v.is_float)
            for (long p = 0; p < m; p++)
                to[p * ld + j] = ((const float *)column.at)[p];
        else
            for (long p = 0; p < m; p++)
                to[p * ld + j] = get(column.at, p);
    }
}

static inline void pack(float *to, View b, long m, long n)
{
    if (n < TILE_COLS)
        memset(to, 0, (size_t)(m * TILE_COLS) * sizeof *to);
    if (b.row_step == 1 && b.col != 1)
        widen_turned(to, TILE_COLS, b, m, n);
    else
        widen(to, TILE_COLS, b, m, n);
}

/* Where a tile's chains begin, NULL: at 0; the subtrees that go onto them, and where they rest then. */
typedef struct { const float *from, *add[LEVELS]; int adds; float *to; } Rest;

/* One tile of chains, at `at` of its rest.  a(i, p) stands at a[i*row + p*col]; rows past `rows` are computed from row 0 and
 * dropped. */
static inline void tile_of(const Rest *t, long off, long ldc, const float *a, long row, long col, const float *b, long rows,
                           long depth)
{
    Vector s[TILE_ROWS][2];
    const float *at[TILE_ROWS], *from = t->from ? t->from + off : NULL;
    for (int i = 0; i < TILE_ROWS; i++) {
        long line = (i < rows ? i : 0) * ldc;
        at[i] = a + (i < rows ? i : 0) * row;
        s[i][0] = from ? *(const Vector *)(from + line) : (Vector){0};
        s[i][1] = from ? *(const Vector *)(from + line + VECTOR) : (Vector){0};
    }
    for (long p = 0; p < depth; p++, b += TILE_COLS) {
        Vector b0 = *(const Vector *)b, b1 = *(const Vector *)(b + VECTOR);
        for (int i = 0; i < TILE_ROWS; i++) {
            Vector all = at[i][p * col] - (Vector){0};          /* x - 0 is x, of a zero too */
            s[i][0] = fused(all, b0, s[i][0]);
            s[i][1] = fused(all, b1, s[i][1]);
        }
    }
    for (int k = 0; k < t->adds; k++)
        for (int i = 0; i < TILE_ROWS; i++) {
            const float *more = t->add[k] + off + (i < rows ? i : 0) * ldc;
            s[i][0] += *(const Vector *)more;
            s[i][1] += *(const Vector *)(more + VECTOR);
        }
    for (int i = 0; i < TILE_ROWS; i++)
        if (i < rows) {
            *(Vector *)(t->to + off + i * ldc) = s[i][0];
            *(Vector *)(t->to + off + i * ldc + VECTOR) = s[i][1];
        }
}

static inline void tile(float *c, long ldc, const float *a, long row, long col, const float *b, long rows, long depth)
{
    tile_of(&(Rest){.from = c, .to = c}, 0, ldc, a, row, col, b, rows, depth);
}

/* TILE_COLS columns: the tiles of a go on with `depth` terms, from a packed panel of b. */
static inline void tiles_on(const Rest *t, long ldc, View a, const float *panel, long m, long depth)
{
    float wide[TILE_ROWS * DEPTH];
    for (long i = 0; i < m; i += TILE_ROWS) {
        long rows = least(TILE_ROWS, m - i);
        View from = view_from(a, i, 0);
        if (from.is_float && from.col == 1) {
            tile_of(t, i * ldc, ldc, from.at, from.row_step, 1, panel, rows, depth);
        } else if (from.is_float) {
            tile_of(t, i * ldc, ldc, from.at, from.row_step, from.col, panel, rows, depth);
        } else if (from.col == 1) {
            widen(wide, DEPTH, from, rows, depth);
            tile_of(t, i * ldc, ldc, wide, DEPTH, 1, panel, rows, depth);
        } else {
            widen(wide, TILE_ROWS, (View){from.at, 0, from.col, from.row_step}, depth, rows);
            tile_of(t, i * ldc, ldc, wide, 1, TILE_ROWS, panel, rows, depth);
        }
    }
}

/* A block of k terms of n <= TILE_COLS columns, and what is added behind its last term. */
static inline void product_block(Rest t, long ldc, View a, View b, long m, long n, long k)
{
    float panel[DEPTH * TILE_COLS];
    int adds = t.adds;
    for (long p = 0; p < k; p += DEPTH, t.from = t.to) {
        long depth = least(DEPTH, k - p);
        t.adds = p + depth == k ? adds : 0;
        pack(panel, view_from(b, p, 0), depth, n);
        tiles_on(&t, ldc, view_from(a, 0, p), panel, m, depth);
    }
}

/* c[m][ldc] += a[m][k] b[k][n].  ldc is a multiple of COLS; columns up to the next multiple of COLS are written. */
static inline void product(float *c, long ldc, View a, View b, long m, long n, long k)
{
    for (long j = 0; j < n; j += TILE_COLS)
        product_block((Rest){.from = c + j, .to = c + j}, ldc, a, view_from(b, 0, j), m, least(TILE_COLS, n - j), k);
}

/* What a thread takes of a large product: BLOCK x COLS results, held on its stack. */
enum { BLOCK = 256 };
typedef struct { long i, j, m, n; } Task;

static inline long task_count(long m, long n) { return ceil_div(m, BLOCK) * ceil_div(n, COLS); }

static inline Task task_of(long number, long m, long n)
{
    long down = ceil_div(m, BLOCK), i = number % down * BLOCK, j = number / down * COLS;
    return (Task){i, j, least(BLOCK, m - i), least(COLS, n - j)};
}

/* The results of a task, from zero, in blocks of k: of each of so many pieces of k, one behind the other, a block has as much.
 * What waits in the tree is another LEVELS tiles of stack. */
static __attribute__((noinline, unused)) void task_blocks(float *c, const Task *t, View a, View b, long k, long block,
                                                          long pieces)
{
    float rest[LEVELS * BLOCK * COLS];
    long each = k / pieces;
    for (long j = 0; j < t->n; j += TILE_COLS)
        for (long from = 0, number = 0; from < each; from += block, number++) {
            int last = from + block >= each, level = 0, adds = 0;
            Rest to = {.from = NULL};
            for (; block_takes(number, level, last); level++)
                if (number >> level & 1)
                    to.add[adds++] = rest + level * BLOCK * COLS + j;
            to.to = (last ? c : rest + level * BLOCK * COLS) + j;
            for (long at = from; at < k; at += each, to.from = to.to) {
                to.adds = at + each >= k ? adds : 0;
                product_block(to, COLS, view_from(a, t->i, at), view_from(b, at, t->j + j), t->m, least(TILE_COLS, t->n - j),
                              least(block, each - from));
            }
        }
}

static inline void task_product(float *c, const Task *t, View a, View b, long k, long block, long pieces)
{
    if (block < k / pieces) {
        task_blocks(c, t, a, b, k, block, pieces);
        return;
    }
    memset(c, 0, (size_t)(t->m * COLS) * sizeof *c);
    product(c, COLS, view_from(a, t->i, 0), view_from(b, 0, t->j), t->m, t->n, k);
}

/* y[m n] = a[m k] b[k n] + bias[n], NULL: none; in blocks of each of so many pieces of k (kernel.h). */
static inline void product_in(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block,
                              long pieces)
{
    EACH(m * n * k >= 1 << 16)
    for (long number = 0; number < task_count(m, n); number++) {
        Task t = task_of(number, m, n);
        float c[BLOCK * COLS], add[COLS] = {0};
        task_product(c, &t, a, b, k, block, pieces);
        for (long j = 0; bias && j < t.n; j++)
            add[j] = get(bias, t.j + j);
        for (long i = 0; i < t.m; i++)
            for (long j = 0; j < t.n; j++)
                put(y, (t.i + i) * n + t.j + j, c[i * COLS + j] + add[j]);
    }
}

static inline void product_to(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block)
{
    product_in(st, y, a, b, bias, m, n, k, block, 1);
}

/* A weight gradient [m n]: a[m k] b[k n] is summed from zero, in blocks, then given. */
static inline void product_give_in(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block,
                                   long pieces)
{
    EACH(m * n * k >= 1 << 16)
    for (long number = 0; number < task_count(m, n); number++) {
        Task t = task_of(number, m, n);
        float c[BLOCK * COLS];
        task_product(c, &t, a, b, k, block, pieces);
        for (long i = 0; i < t.m; i++)
            give(to + (t.i + i) * n + t.j, c + i * COLS, t.n, acc);
    }
}

static inline void product_give(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block)
{
    product_give_in(st, to, a, b, acc, m, n, k, block, 1);
}

/* The chains of `to` [m n] go on where they rest, or begin, with a[m k] b[k n]. */
static inline void product_on(Stage *st, float *to, View a, View b, int begin, long m, long n, long k)
{
    EACH(m * n * k >= 1 << 16)
    for (long number = 0; number < task_count(m, n); number++) {
        Task t = task_of(number, m, n);
        float c[BLOCK * COLS] = {0};
        for (long i = 0; !begin && i < t.m; i++)
            memcpy(c + i * COLS, to + (t.i + i) * n + t.j, (size_t)t.n * sizeof *c);
        product(c, COLS, view_from(a, t.i, 0), view_from(b, 0, t.j), t.m, t.n, k);
        for (long i = 0; i < t.m; i++)
            memcpy(to + (t.i + i) * n + t.j, c + i * COLS, (size_t)t.n * sizeof *c);
    }
}
#endif
