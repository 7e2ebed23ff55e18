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
 * are read in place where p is adjacent: a tile reads as many lines at once as it has rows.  Rows whole pages apart are copied
 * first.  Where p is not adjacent they are packed as well, once for all panels of a task.  Chains of floats rest in the result
 * itself, and a bias or an earlier gradient is added while they are in registers.
 *
 * A sum in blocks (kernel.h) is one such chain a block, from 0.  A tile takes as many blocks at once as are packed: a subtree,
 * so a power of two.  Its parts wait on the stack, in the nearest cache.  Larger subtrees wait in the result, or in memory
 * beside it.  They are added to the chains of the block behind them while those are still in registers.  Published kernels with
 * such an order (tree-based invariant kernels, arXiv 2511.17826) serve the forward pass alone.
 *
 * Cost: 2 MiB of stack, 2.8 MiB where results are held or subtrees wait there.  Packing b is about 1/rows of the work, or of
 * BLOCK there; packing a 1/columns.  Not handled: panels that tasks share.
 */
#ifndef GEMM_H
#define GEMM_H
#include <stdbool.h>
#include "tile.h"

enum { COLS = 32 };
/* Sizes that follow the machine; bits do not depend on them.  DEPTH: terms that are taken at once.  ROWS: of a, that are packed
 * at once.  PANELS: floats of b that are.  BLOCK, SPREAD: rows and columns of results that are held.  WAITS: floats that wait.
 * AHEAD: so many rows ahead a line is fetched. */
#if defined __STDC_HOSTED__ && __STDC_HOSTED__ == 0     /* a board: 16 KiB of stack in all */
enum { DEPTH = 8, ROWS = TILE_ROWS, BLOCK = TILE_ROWS, SPREAD = 128, PANELS = SPREAD * DEPTH };
enum { WAITS = (LEVELS + 1) * BLOCK * COLS, AHEAD = 8 };
#else
enum { DEPTH = 768, ROWS = 132, BLOCK = 528, SPREAD = 128, PANELS = 384 << 10, WAITS = 2 * BLOCK * SPREAD, AHEAD = 8 };
#endif
#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int FourInts __attribute__((vector_size(16)));
#define MIX(a, b, ...) __builtin_shuffle(a, b, (FourInts){__VA_ARGS__})
#endif

/* A matrix in memory: element (i, j) stands at i*row + j*col.  Its type is real, or float; or, as factor b alone, it has few
 * bits (linear_quantized.c): element (i, j) is number first + i*row + j*col of `few`, which packs it, and row or col is 1. */
typedef struct Few Few;
typedef struct { const void *at; int is_float; long row_step, col; const Few *few; long first; } View;
struct Few {
    void (*pack)(float *to, long width, long size, View v, long m, long n);
    const unsigned char *at;
    int bits;
    long width;
};

static inline View view(const real *at, long row, long col) { return (View){at, sizeof(real) == 4, row, col, 0, 0}; }
static inline View view_float(const float *at, long row, long col) { return (View){at, 1, row, col, 0, 0}; }

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

/* The same where p is the adjacent index.  A line of each j is read whole, and those two lines ahead are fetched. */
static inline void widen_turned(float *to, long ld, View v, long m, long n)
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

/* Panels of `width` adjacent columns, `size` floats from one to the next: to[n / width][m][width] = v, zero past its n columns.
 * Rows are read whole, so that the machine sees what comes next. */
static inline __attribute__((always_inline)) void pack(float *to, const long width, long size, View v, long m, long n)
{
    if (v.few) {
        v.few->pack(to, width, size, v, m, n);
        return;
    }
    long whole = n / width * width, straight = v.is_float && v.col == 1 ? whole : 0;
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
        for (; p + AHEAD < m && j < n; j += 64 / (long)sizeof(real))
            __builtin_prefetch((const char *)view_from(row, AHEAD, j).at);
        j = 0;
        for (; j < straight; j += width, at += size)
            memcpy(at, (const float *)row.at + j, (size_t)width * sizeof *at);      /* of a size that the compiler knows */
        for (; j < n; j += width, at += size)
            widen(at, width, view_from(row, 0, j), 1, least(width, n - j));
    }
}

/* A packed strip of a.  The next one does not begin on the same set of the nearest cache. */
static inline long strip_size(long depth) { return depth * TILE_ROWS + VECTOR; }

/* The terms of a chain that are taken at once: DEPTH at most, and about as many each time. */
static inline long depth_of(long k) { return k ? ceil_div(k, ceil_div(k, DEPTH)) : 1; }

/* Rows so far apart fall onto one set of the nearest cache; a tile's are more than the eight lines that it has. */
enum { APART = 4096 / sizeof(float), CROWDED = TILE_ROWS > 8 };

/* m rows of a, in place or in `room`; pieces of a are `apart`. */
static inline Left left_of(float *room, View a, long m, const Terms *k, long apart)
{
    long depth = k->terms * k->pieces, ld = depth + VECTOR;
    if (a.is_float && a.col == 1 && !(CROWDED && a.row_step % APART == 0))
        return (Left){a.at, a.row_step, 1, TILE_ROWS * a.row_step, apart};
    for (long q = 0; q < k->pieces; q++) {
        View piece = view_from(a, 0, q * apart);
        if (a.col == 1)
            widen(room + q * k->terms, ld, piece, m, k->terms);
        else
            pack(room + q * k->terms * TILE_ROWS, TILE_ROWS, strip_size(depth),
                 (View){piece.at, a.is_float, a.col, a.row_step, 0, 0}, k->terms, m);
    }
    return a.col == 1 ? (Left){room, ld, 1, TILE_ROWS * ld, k->terms}
                      : (Left){room, 1, TILE_ROWS, strip_size(depth), k->terms};
}

/* How the k terms of a product are taken: `pieces` of them, one behind the other, in blocks of `block` terms each.  A group
 * of blocks is taken at once: a subtree, so their number is a power of two.  Groups are the leaves of `levels` of the tree; or
 * the terms of one block are too many to be taken at once. */
typedef struct { long k, block, pieces, group; int levels, long_chains; } Chains;

static inline Chains chains_of(long k, long block, long pieces)
{
    if (block >= k / pieces)
        block = k ? k : 1, pieces = 1;
    Chains c = {k, block, pieces, block, 0, block * pieces > DEPTH || (!TREES && pieces > 1)};
    while (TREES && c.group < k / pieces && 2 * c.group * pieces <= DEPTH)
        c.group *= 2;
    while (c.group << c.levels < k / pieces)
        c.levels++;
    return c;
}

/* The places where subtrees wait, but for the last one, which waits in the result; there the last chain has its place if
 * it is long. */
static inline int chains_wait(const Chains *c) { return c->levels ? c->levels - !c->long_chains : 0; }

/* Terms that are taken at once, and the columns that are then packed at once. */
static inline long chains_depth(const Chains *c) { return c->long_chains ? depth_of(c->block) : c->group * c->pieces; }

static inline long chains_spread(const Chains *c)
{
    long depth = chains_depth(c);
    return PANELS / (depth ? depth : 1) / COLS * COLS;
}

/* m x n sums take some terms: a(0, p) is their first, b's are packed.  Room: as of left_of for ROWS rows. */
static inline void product_packed(const Rest *t, View a, long m, long n, const Terms *k, long apart, float *room,
                                  const float *panels)
{
    long depth = k->terms * k->pieces;
    for (long i = 0; i < m; i += ROWS) {
        long rows = least(ROWS, m - i);
        Left left = left_of(room, view_from(a, i, 0), rows, k, apart);
        const float *first = left.at;
        for (long j = 0; j < n; j += TILE_COLS, left.at = first)      /* these rows stay in the second cache */
            for (long r = 0; r < rows; r += TILE_ROWS, left.at += left.strip)
                tile_fit(t, i + r, j, &left, panels + j * depth, least(TILE_ROWS, rows - r), k);
    }
}

/* The same with b, of which b(p, 0) is the first; panels: a float a term for n columns, rounded up. */
static inline void product_terms(const Rest *t, View a, View b, long m, long n, const Terms *k, long apart, float *room,
                                 float *panels)
{
    long depth = k->terms * k->pieces;
    for (long q = 0; q < k->pieces; q++)
        pack(panels + q * k->terms * TILE_COLS, TILE_COLS, TILE_COLS * depth, view_from(b, q * apart, 0), k->terms, n);
    product_packed(t, a, m, n, k, apart, room, panels);
}

/* m x n results.  Subtrees wait in rest[0] and so on; behind those that chains_wait() counts is the place of the last. */
static ONE_BODY void product_part(const Rest *t, const Floats *rest, View a, View b, long m, long n, const Chains *c,
                                  float *room, float *panels)
{
    long piece = c->k / c->pieces;
    for (long from = 0, number = 0; from == 0 || from < piece; from += c->group, number++) {
        int level = 0, last = from + c->group >= piece, adds = 0;
        Rest now = {.from = t->from, .wide = t->wide};
        for (; block_takes(number, level, last); level++)
            if (number >> level & 1)
                now.add[adds++] = rest[level];
        Floats place = rest[last ? chains_wait(c) : level];
        for (int i = 0; last && i < t->adds; i++)
            now.add[adds++] = t->add[i];
        long terms = least(c->group, piece - from), some = c->long_chains ? depth_of(terms) : c->group;
        long pieces = c->long_chains ? 1 : c->pieces;
        for (long q = 0; q < c->pieces; q += pieces)
            for (long p = 0; p == 0 || p < terms; p += some, now.from = place) {
                int ends = q + pieces == c->pieces && p + some >= terms;
                Terms k = {least(some, terms - p), c->long_chains ? some : c->block, pieces};
                now.adds = ends ? adds : 0;
                now.to = ends && last ? t->to : place;
                now.bias = ends && last ? t->bias : NULL;
                long at = q * piece + from + p;
                product_terms(&now, view_from(a, 0, at), view_from(b, at, 0), m, n, &k, piece, room, panels);
            }
    }
}

/* The same of at most BLOCK rows: `waits` of the places are on the stack, and the next is `home`. */
static ONE_BODY void product_waits(const Rest *t, Floats home, int waits, View a, View b, long m, long n, const Chains *c,
                                   float *room, float *panels)
{
    _Alignas(64) float stack[WAITS];
    Floats rest[LEVELS + 2] = {{0}};
    long ld = ceil_div(n, TILE_COLS) * TILE_COLS;
    for (int i = 0; i < waits; i++)
        rest[i] = (Floats){stack + i * m * ld, ld};
    rest[waits] = home;
    product_part(t, rest, a, b, m, n, c, room, panels);
}

/* c[m][ldc] += a[m][k] b[k][n], of few rows, or begins with it; b is packed in panels of k rows (pack).  ldc is a multiple of
 * TILE_COLS; columns up to the next multiple of that are written. */
static ONE_BODY void product_panels(float *c, long ldc, int begin, View a, const float *panels, long m, long n, long k)
{
    enum { FEW = 3 * TILE_ROWS };
    _Alignas(64) float room[FEW * (DEPTH + VECTOR)];
    int there = a.is_float && (a.row_step == 1 || a.col == 1);
    for (long p = 0; p < k; p += DEPTH)
        for (long i = 0; i < m; i += FEW) {
            Rest rest = {.from = {begin && p == 0 ? NULL : c, ldc}, .to = {c, ldc}};
            Terms terms = {least(DEPTH, k - p), DEPTH, 1};
            View part = view_from(a, i, p);
            Left left = there ? (Left){part.at, a.row_step, a.col, TILE_ROWS * a.row_step, 0}
                              : left_of(room, part, least(FEW, m - i), &terms, 0);
            for (long r = i; r < least(i + FEW, m); r += TILE_ROWS, left.at += left.strip)
                for (long j = 0; j < n; j += TILE_COLS)
                    tile_fit(&rest, r, j, &left, panels + j * k + p * TILE_COLS, least(TILE_ROWS, m - r), &terms);
        }
}

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

/* The results of a product that is no float are held on the stack. */
static ONE_BODY void task_held(const Result *to, const Task *t, View a, View b, const Chains *k, float *room, float *panels)
{
    _Alignas(64) float c[BLOCK * SPREAD], add[SPREAD];
    Floats at = {c, SPREAD};
    Rest rest = {.to = at};
    if (chains_wait(k))
        product_waits(&rest, at, chains_wait(k), a, b, t->m, t->n, k, room, panels);
    else
        product_part(&rest, &at, a, b, t->m, t->n, k, room, panels);
    for (long j = 0; to->bias && j < t->n; j++)
        add[j] = get(to->bias, t->j + j);
    for (long i = 0; i < t->m; i++) {
        long first = (t->i + i) * to->ld + t->j;
        for (long j = 0; to->bias && j < t->n; j++)
            c[i * SPREAD + j] += add[j];
        for (long j = 0; j < t->n; j++)
            put(to->at, first + j, c[i * SPREAD + j]);
    }
}

/* What waits on the stack beside results that rest where they belong.  An earlier gradient is in the place of a chain there. */
static inline int result_waits(const Result *to, const Chains *k)
{
    return chains_wait(k) + (to->is_float && to->becomes == ADD && (k->levels || k->long_chains));
}

static inline Grid result_grid(const Result *to, const Chains *k, const View *a, long m, long n, long threads)
{
    int waits = result_waits(to, k);
    long spread = to->is_float ? chains_spread(k) : SPREAD;
    if (waits)
        spread = least(spread, WAITS / BLOCK / waits / COLS * COLS);
    return grid_of(m, n, waits || !to->is_float ? BLOCK : m + 1, spread, a->col != 1, threads);
}

static inline void task_product(const Result *to, Task t, View a, View b, const Chains *k)
{
    _Alignas(64) float room[(ROWS + TILE_ROWS) * (DEPTH + VECTOR)], panels[PANELS];
    int waits = result_waits(to, k);
    Floats at = {(float *)to->at + t.i * to->ld + t.j, to->ld};
    Rest rest = {.from = {to->becomes == GO_ON ? at.at : NULL, at.ld}, .to = at,
                 .bias = to->bias ? (const float *)(const void *)to->bias + t.j : NULL, .wide = t.n};
    if (to->becomes == ADD)
        rest.add[rest.adds++] = at;
    View a1 = view_from(a, t.i, 0), b1 = view_from(b, 0, t.j);
    if (!to->is_float)
        task_held(to, &t, a1, b1, k, room, panels);
    else if (waits)
        product_waits(&rest, at, waits, a1, b1, t.m, t.n, k, room, panels);
    else
        product_part(&rest, &at, a1, b1, t.m, t.n, k, room, panels);
}

static inline void product_way(Stage *st, Result to, View a, View b, long m, long n, long k, long block, long pieces)
{
    Chains chains = chains_of(k, block, pieces);
    Grid g = result_grid(&to, &chains, &a, m, n, st->threads);
    EACH(m * n * k >= 1 << 16)
    for (long number = 0; number < task_count(&g); number++)
        task_product(&to, task_of(&g, number), a, b, &chains);
}

/* y[m n] = a[m k] b[k n] + bias[n], NULL: none; in blocks of each of so many pieces of k (kernel.h). */
static inline void product_in(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block,
                              long pieces)
{
    product_way(st, (Result){y, n, sizeof(real) == sizeof(float), STORE, bias}, a, b, m, n, k, block, pieces);
}

static inline void product_to(Stage *st, real *y, View a, View b, const real *bias, long m, long n, long k, long block)
{
    product_in(st, y, a, b, bias, m, n, k, block, 1);
}

/* A weight gradient [m n]: a[m k] b[k n] is summed from zero, in blocks, then given. */
static inline void product_give_in(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block,
                                   long pieces)
{
    product_way(st, (Result){to, n, 1, acc ? ADD : STORE, NULL}, a, b, m, n, k, block, pieces);
}

static inline void product_give(Stage *st, float *to, View a, View b, int acc, long m, long n, long k, long block)
{
    product_give_in(st, to, a, b, acc, m, n, k, block, 1);
}

/* The chains of `to` [m n] go on where they rest, or begin, with a[m k] b[k n]. */
static inline void product_on(Stage *st, float *to, View a, View b, int begin, long m, long n, long k)
{
    product_way(st, (Result){to, n, 1, begin ? STORE : GO_ON, NULL}, a, b, m, n, k, k, 1);
}
#endif
