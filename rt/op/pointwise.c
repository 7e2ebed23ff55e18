/* SPDX-License-Identifier: Apache-2.0
 *
 * pointwise.c: products of rows by channels and their gradients, of Linear and of a Conv of one pixel.  Where channels are few
 * and rows many they are made here, else in gemm.c.  The chains are the same.
 *
 * Problem.  A convolution of one pixel with 16 or 24 channels on a side has so few steps a pixel that it waits for memory, and
 * that packing, half empty tiles and copies of their edges take as long as the steps.
 *
 * Method.  The chains of gemm.c, in tiles of one vector of columns or two, of which the last one may have any number.  The many
 * numbers are read in place, and each step of a tile fetches a line that a later tile reads: as many lines as steps are needed,
 * so memory and processor are busy together.  Of a gradient of weights the side of few channels is packed, and the other read
 * in place.  Threads split pixels, so that each is read once; in a gradient of weights they split the other side.
 *
 * Order.  That of gemm.c: the same chains.
 *
 * Cost: that of the steps, or of memory.  Not handled: bf16, sums in blocks, more channels, numbers by lane (fused.h): gemm.c.
 */
#include "pointwise.h"
#include "tile.h"

/* THIN, HELD: floats of a packed factor, of chains that wait.  WIDE, SLIM: columns of a result, of the side of few channels.
 * NEAR: bytes of pixels that are taken at once, so that the second cache has them. */
enum { THINS = TREES && !BY_LANE && sizeof(real) == sizeof(float) };
enum { THIN = TREES ? 64 << 10 : 1, WIDE = 512, SLIM = TREES ? 192 : 1, HELD = TREES ? 160 << 10 : 1 };
enum { NEAR = 256 << 10, LINE = 16 };

/* A tile of the columns from j on, of `wide`, of chains of k terms at t->to; the row or the terms of a are adjacent. */
static inline __attribute__((always_inline)) void thin_tile(Rest *t, long j, const float *a, long row, long col,
                                                            const float *panel, long wide, long k)
{
    const Terms terms = {k, k, 1};
    long left = wide - j;
    t->last = least(VECTOR, left > VECTOR ? left - VECTOR : left);
    if (left > VECTOR)
        tile_any(TILE_ROWS, 2, STREAM, t, 0, j, a, row, col, 0, panel, TILE_ROWS, &terms);
    else
        tile_any(TILE_ROWS, 1, STREAM, t, 0, j, a, row, col, 0, panel, TILE_ROWS, &terms);
}

/* to[m n] = a[m k] b[k n] + bias[n] */
static ONE_BODY void thin_pixels(float *to, const float *a, View b, const float *bias, long m, long n, long k)
{
    _Alignas(64) float panels[THIN], add[WIDE] = {0};
    long i = 0;
    memcpy(add, bias, (size_t)n * sizeof *add);
    pack(panels, TILE_COLS * k, b, k, n);
    for (; i + TILE_ROWS <= m; i += TILE_ROWS)
        for (long j = 0; j < n; j += TILE_COLS) {
            Rest rest = {.to = {to + i * n, n}, .bias = add, .soon = a + (i + TILE_ROWS) * k, .step = LINE};
            thin_tile(&rest, j, a + i * k, k, 1, panels + j * k, n, k);
        }
    Rest rest = {.to = {to, n}, .bias = add, .wide = n};
    Left left = {a + i * k, k, 1, 0, 0};
    for (long j = 0; i < m && j < n; j += TILE_COLS)
        tile_fit(&rest, i, j, &left, panels + j * k, m - i, &(Terms){k, k, 1});
}

/* Is there a way for [k n] weights?  Rows of panels are whole. */
static inline int is_thin(long n, long k)
{
    return THINS && n <= WIDE && k <= DEPTH && ceil_div(n, TILE_COLS) * TILE_COLS * k <= THIN;
}

static inline void thin_product(Stage *st, real *to, const real *a, View b, const real *bias, long m, long n, long k)
{
    long strips = ceil_div(m, TILE_ROWS), parts = least(strips, st->threads > 0 ? st->threads : 1);
    EACH(m * n * k >= 1 << 16)
    for (long part = 0; part < parts; part++) {
        long from = strips * part / parts * TILE_ROWS, end = least(m, strips * (part + 1) / parts * TILE_ROWS);
        thin_pixels((float *)(void *)to + from * n, (const float *)(const void *)a + from * k, b,
                    (const float *)(const void *)bias, end - from, n, k);
    }
}

/* The sum over pixels of products of a[pixels ld], m columns of it, and b[pixels n]: given to to[m n], or turned to[n ld].
 * bias, unless NULL: the sums of these columns of a are given too, or turned of b. */
typedef struct { float *to, *bias; const float *a, *b; long pixels, m, ld, n; int turned, acc; } Outer;

static ONE_BODY void thin_outer(const Outer *o)
{
    _Alignas(64) float panels[SLIM * DEPTH], c[HELD], sum[HELD / TILE_COLS + 1] = {0};
    long wide = ceil_div(o->n, TILE_COLS) * TILE_COLS, depth = least(DEPTH, NEAR / (long)sizeof(float) / o->m);
    for (long p = 0; p < o->pixels; p += depth) {
        long k = least(depth, o->pixels - p), i = 0;
        const float *at = o->a + p * o->ld;
        pack(panels, TILE_COLS * k, view_float(o->b + p * o->n, o->n, 1), k, o->n);
        if (o->bias)
            column_sums_on(sum, (const real *)(const void *)(o->turned ? o->b + p * o->n : at), k, o->turned ? o->n : o->ld,
                           o->turned ? o->n : o->m);
        for (; i + TILE_ROWS <= o->m; i += TILE_ROWS)
            for (long j = 0; j < o->n; j += TILE_COLS) {
                Floats here = {c + i * wide, wide};
                Rest rest = {.from = {p ? here.at : NULL, wide}, .to = here, .soon = at + depth * o->ld + i, .step = o->ld};
                thin_tile(&rest, j, at + i, 1, o->ld, panels + j * k, wide, k);
            }
        Rest rest = {.from = {p ? c : NULL, wide}, .to = {c, wide}};
        Left left = {at + i, 1, o->ld, 0, 0};
        for (long j = 0; i < o->m && j < o->n; j += TILE_COLS)
            tile_fit(&rest, i, j, &left, panels + j * k, o->m - i, &(Terms){k, k, 1});
    }
    if (o->bias)
        give(o->bias, sum, o->turned ? o->n : o->m, o->acc);
    for (long i = 0; i < o->m; i++)
        for (long j = 0; j < o->n; j++)
            give(o->to + (o->turned ? j * o->ld + i : i * o->n + j), c + i * wide + j, 1, o->acc);
}

/* Is there a way for the gradient of [m n] weights?  One side has few channels. */
static inline int is_slim(long m, long n)
{
    long few = least(m, n), many = m + n - few;
    return THINS && few <= SLIM && ceil_div(few, TILE_COLS) * TILE_COLS * many <= HELD;
}

/* dweight[m n] of dy[pixels m] and x[pixels n], and dbias[m]: threads split the side of many channels. */
static inline void thin_gradient(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int acc, long pixels,
                                 long m, long n)
{
    int turned = m < n;
    const float *many = (const float *)(const void *)(turned ? x : dy), *few = (const float *)(const void *)(turned ? dy : x);
    long w = turned ? n : m, s = turned ? m : n, strips = ceil_div(w, TILE_ROWS);
    long parts = least(strips, st->threads > 0 ? st->threads : 1);
    EACH(pixels * m * n >= 1 << 16)
    for (long part = 0; part < parts; part++) {
        long from = strips * part / parts * TILE_ROWS, end = least(w, strips * (part + 1) / parts * TILE_ROWS);
        float *bias = !dbias || (turned && part) ? NULL : turned ? dbias : dbias + from;
        thin_outer(&(Outer){dweight + (turned ? from : from * n), bias, many + from, few, pixels, end - from, w, s, turned,
                            acc});
    }
}
enum { MANY = 512 };            /* rows, beside which a copy of b for each thread is little */

void point_product(Stage *st, real *y, const real *a, View b, const real *bias, long rows, long n, long k, long block)
{
    real none[WIDE];
    if (rows < MANY || block < k || !is_thin(n, k)) {
        product_to(st, y, view(a, k, 1), b, bias, rows, n, k, block);
        return;
    }
    for (long j = 0; !bias && j < n; j++)
        put(none, j, -0.0f);
    thin_product(st, y, a, b, bias ? bias : none, rows, n, k);
}

void point_give(Stage *st, float *dw, float *db, const real *dy, const real *x, int acc, long r, long m, long n, long block)
{
    int thin = dw && r >= MANY && block >= r && is_slim(m, n);
    if (thin)
        thin_gradient(st, dw, db, dy, x, acc, r, m, n);
    else if (dw)
        product_give(st, dw, view(dy, 1, m), view(x, n, 1), acc, m, n, r, block);
    if (db && !thin)
        bias_blocks(st, db, dy, acc, r, m, block);
}
