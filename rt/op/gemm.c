/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c: the one matrix product of Linear, LinearCrossEntropy, MatMul, GroupedLinear, LSTM, Attention and Conv.
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
#include "tile.h"

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

ONE_BODY
void tile_fit(const Rest *t, long line, long j, const Left *a, const float *b, long rows, const Terms *k)
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

/* Panels of `width` columns, as pack() has them.  Rows are read whole, so that the machine sees what comes next. */
static inline __attribute__((always_inline)) void pack_any(float *to, const long width, long size, View v, long m, long n)
{
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

ONE_BODY
void pack(float *to, long size, View v, long m, long n)
{
    if (v.few)
        v.few->pack(to, size, v, m, n);
    else
        pack_any(to, TILE_COLS, size, v, m, n);
}

/* A packed strip of a.  The next one does not begin on the same set of the nearest cache. */
static inline long strip_size(long depth) { return depth * TILE_ROWS + VECTOR; }

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
            pack_any(room + q * k->terms * TILE_ROWS, TILE_ROWS, strip_size(depth),
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

void product_packed(const Rest *t, View a, long m, long n, const Terms *k, long apart, float *room, const float *panels)
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
        pack(panels + q * k->terms * TILE_COLS, TILE_COLS * depth, view_from(b, q * apart, 0), k->terms, n);
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

ONE_BODY
void product_panels(float *c, long ldc, int begin, View a, const float *panels, long m, long n, long k)
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

void products(Stage *st, Result to, View a, View b, Several s, long m, long n, long k, long block, long pieces)
{
    Chains chains = chains_of(k, block, pieces);
    Grid g = result_grid(&to, &chains, &a, m, n, s.count % st->threads ? st->threads : 1);
    long each = task_count(&g), size = to.is_float ? sizeof(float) : sizeof(real);
    EACH(s.count * m * n * k >= 1 << 16)
    for (long number = 0; number < s.count * each; number++) {
        long i = number / each;
        View a1 = a, b1 = b;
        Result part = to;
        if (i) {
            a1.at = (const real *)a.at + i * s.a;
            b1.at = (const real *)b.at + i * s.b;
            part.at = (char *)to.at + i * m * n * size;
        }
        task_product(&part, task_of(&g, number % each), a1, b1, &chains);
    }
}
