/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.h: matrices in memory, and products of them.  Order, method and cost: gemm.c, which is compiled once for all kernels.
 */
#ifndef GEMM_H
#define GEMM_H
#include <stdbool.h>
#include "fused.h"
#include "kernel.h"

/* Floats of a result, or of what waits for it: those of element (i, j) stand at at[i*ld + j]. */
typedef struct { float *at; long ld; } Floats;

/* Where a tile's chains begin, NULL: at 0; what goes onto the finished ones: subtrees, an earlier gradient, a bias; where they
 * rest then.  wide: columns of all of these, 0: as many as tiles have.  lines, places: of a LISTED tile, where rows lie.  soon:
 * of a STREAM tile, soon[p*step] is fetched in step p, and the last vector of `to` has `last` columns. */
typedef struct {
    Floats from, add[LEVELS + 1], to;
    const float *bias;
    int adds;
    const long *lines, *places;
    const float *soon;
    long wide, step, last;
} Rest;

/* Terms that tiles take at once: of whole blocks, each of `block` terms, the last one may be shorter; or some of one block.
 * With several pieces a block has as many terms of each. */
typedef struct { long terms, block, pieces; } Terms;

/* The rows of a block of a: a(i, p) of strip s, of TILE_ROWS rows, stands at at[s*strip + i*row_step + p*col]; the next piece
 * begins at p = apart. */
typedef struct { const float *at; long row_step, col, strip, apart; } Left;

enum { TILE_COLS = 2 * VECTOR, COLS = 32 };
/* Sizes that follow the machine; bits do not depend on them.  DEPTH: terms that are taken at once.  ROWS: of a, that are packed
 * at once.  PANELS: floats of b that are.  BLOCK, SPREAD: rows and columns of results that are held.  WAITS: floats that wait.
 * AHEAD: so many rows ahead a line is fetched.  TREES: a tile takes several blocks, or pieces. */
#if defined __STDC_HOSTED__ && __STDC_HOSTED__ == 0     /* a board: 16 KiB of stack in all */
enum { DEPTH = 8, ROWS = TILE_ROWS, BLOCK = TILE_ROWS, SPREAD = 128, PANELS = SPREAD * DEPTH };
enum { WAITS = (LEVELS + 1) * BLOCK * COLS, AHEAD = 8, TREES = 0 };
#else
enum { DEPTH = 768, ROWS = 132, BLOCK = 528, SPREAD = 128, PANELS = 384 << 10, WAITS = 2 * BLOCK * SPREAD };
enum { AHEAD = 8, TREES = 1 };
#endif

/* A matrix in memory: element (i, j) stands at i*row + j*col.  Its type is real, or float; or, as factor b alone, it has few
 * bits (linear_quantized.c): element (i, j) is number first + i*row + j*col of `few`, which packs it, and row or col is 1. */
typedef struct Few Few;
typedef struct { const void *at; int is_float; long row_step, col; const Few *few; long first; } View;
struct Few {
    void (*pack)(float *to, long size, View v, long m, long n);
    const unsigned char *at;
    int bits;
    long width;
};

static inline View view(const real *at, long row, long col) { return (View){at, sizeof(real) == 4, row, col, 0, 0}; }
static inline View view_float(const float *at, long row, long col) { return (View){at, 1, row, col, 0, 0}; }

static inline View view_from(View v, long i, long j)
{
    size_t size = v.is_float ? sizeof(float) : sizeof(real);
    v.first += i * v.row_step + j * v.col;
    if (!v.few)
        v.at = (const char *)v.at + (size_t)(i * v.row_step + j * v.col) * size;
    return v;
}

/* The terms of a chain that are taken at once: DEPTH at most, and about as many each time. */
static inline long depth_of(long k) { return k ? ceil_div(k, ceil_div(k, DEPTH)) : 1; }

/* What a thread takes of a large product: columns, so that a part of b is packed once; and rows, where threads would lack work
 * or something waits on the stack.  Tasks are about of one size, and as many for each thread. */
typedef struct { long m, n, down, across; int copies; } Grid;        /* copies: of a too */
typedef struct { long i, j, m, n; } Task;

/* What a thread has to do, in results.  The copy of a column of b, or of a row of a, counts as PACKS of them. */
static inline long grid_cost(const Grid *g, long threads)
{
    enum { PACKS = 32 };
    if (g->down * g->across == 0)               /* no results */
        return 0;
    long rows = ceil_div(ceil_div(g->m, TILE_ROWS), g->down) * TILE_ROWS;
    long columns = ceil_div(ceil_div(g->n, COLS), g->across) * COLS;
    return ceil_div(g->down * g->across, threads) * (rows + PACKS) * (columns + g->copies * PACKS);
}

static inline Grid grid_of(long m, long n, long rows, long cols, int copies, long threads)
{
    Grid g = {m, n, ceil_div(m, rows), ceil_div(n, cols), copies}, tall = g;
    while (g.down * g.across % threads && g.across * COLS < n)
        g.across++;
    while (g.down * g.across % threads && g.down * TILE_ROWS < m)
        g.down++;
    while (tall.down * tall.across % threads && tall.down * TILE_ROWS < m)
        tall.down++;
    return grid_cost(&tall, threads) < grid_cost(&g, threads) ? tall : g;
}

static inline long task_count(const Grid *g) { return g->down * g->across; }

static inline Task task_of(const Grid *g, long number)
{
    long strips = ceil_div(g->m, TILE_ROWS), panels = ceil_div(g->n, COLS), y = number % g->down, x = number / g->down;
    long i = strips * y / g->down * TILE_ROWS, j = panels * x / g->across * COLS;
    return (Task){i, j, least(g->m, strips * (y + 1) / g->down * TILE_ROWS) - i,
                  least(g->n, panels * (x + 1) / g->across * COLS) - j};
}

/* What becomes of the sums of a product: they are the result, with or without a bias; or are added to it; or chains begin
 * there. */
enum { STORE, ADD, GO_ON };
typedef struct { void *at; long ld; int is_float, becomes; const real *bias; } Result;

/* Products of one shape; elements from one factor to the next.  Results lie behind each other. */
typedef struct { long count, a, b; } Several;

/* Products of a[m k] and b[k n], in blocks of each of so many pieces of k (kernel.h). */
void products(Stage *st, Result to, View a, View b, Several s, long m, long n, long k, long block, long pieces);
/* c[m][ldc] += a[m][k] b[k][n], of few rows, or begins with it; b is packed in panels of k rows (pack).  ldc is a multiple of
 * TILE_COLS; columns up to the next multiple of that are written. */
void product_panels(float *c, long ldc, int begin, View a, const float *panels, long m, long n, long k);
/* m x n sums take some terms: a(0, p) is their first, b's are packed.  room: (ROWS + TILE_ROWS) * (DEPTH + VECTOR) floats. */
void product_packed(const Rest *t, View a, long m, long n, const Terms *k, long apart, float *room, const float *panels);
/* The least tile that has the rows.  Either rows or terms of a are adjacent: row or col is 1. */
void tile_fit(const Rest *t, long line, long j, const Left *a, const float *b, long rows, const Terms *k);
/* to[n / TILE_COLS][m][TILE_COLS] = v, `size` floats from a panel to the next, and zero past its n columns. */
void pack(float *to, long size, View v, long m, long n);

/* y[m n] = a[m k] b[k n] + bias[n], NULL: none; in blocks of k (kernel.h). */
static inline void product_to(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block)
{
    products(st, (Result){y, n, sizeof(real) == sizeof(float), STORE, bias}, a, b, (Several){1, 0, 0}, m, n, k, block, 1);
}

/* A weight gradient [m n]: a[m k] b[k n] is summed from zero, in blocks, then given. */
static inline void product_give(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block)
{
    products(st, (Result){to, n, 1, acc ? ADD : STORE, NULL}, a, b, (Several){1, 0, 0}, m, n, k, block, 1);
}
#endif
