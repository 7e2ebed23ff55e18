/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h: the implicit product of Conv, ConvTranspose and their gradients.  Images are x[batch height width in] and y[batch
 * yheight ywidth out], weight is [out in/groups kheight kwidth]; ConvTranspose makes x of y.
 *
 * Problem.  A convolution is a product whose left operand would be kheight*kwidth times as large as the image.
 *
 * Method.  The product is implicit: each tap of the kernel is a product of pixels and that tap's weights, and the chains of
 * gemm.h rest in memory from tap to tap.  For a tap the pixels of one row of y lie at one distance from each other in x, so
 * that a tile reads them in place.  Taps outside the image are left out.  Those of a row of the kernel lie behind each other in
 * x: inside the image they are one longer chain, and in a gradient of weights adjacent columns.
 *
 * Order.  An element of y is one chain from zero: kernel rows, kernel columns, channels of the group, all ascending.  The bias
 * is added to the finished chain.  dx is the same with output channels.  With train.blocks, and a single group, channels have
 * blocks: each is such a chain, and the tree of kernel.h adds them.  An element of dweight is one chain over samples, rows
 * and columns of y, where a tap outside adds a product with zero; it is then given to the accumulator.
 *
 * A gradient of weights gathers the pixels of x that some columns read into panels, and packs dy once for all of them.
 *
 * Kernels of one pixel at stride 1 are products of all pixels, of matrices that lie there; those of single channels are in
 * depthwise.h.
 *
 * Cost: that of the product; weights are packed once for BLOCK pixels.  Not handled: few channels in a group, more than one,
 * which fill a part of a tile only.
 */
#ifndef CONV_H
#define CONV_H
#include "depthwise.h"

/* n pixels of a block, first, first + step, ...: what they read lies at `at`, `line` apart. */
typedef struct { const real *at; long line, first, step, n; } Run;
typedef Run (*Reader)(const Conv *c, const real *from, long line, long column, long n, long i, long j);

/* What pixels column .. column+n-1 of line `line` of y read of x under tap (i, j).  A line is a row of one sample. */
static inline Run read_forward(const Conv *c, const real *x, long line, long column, long n, long i, long j)
{
    long sample = line / c->yheight, row = line % c->yheight * c->stride - c->top + i * c->dilate;
    long shift = j * c->dilate - c->left;               /* column p of y reads p*stride + shift */
    long lo = -floor_div(shift, c->stride), hi = floor_div(c->width - 1 - shift, c->stride) + 1;
    lo = lo > column ? lo : column;
    hi = least(hi, column + n);
    if (row < 0 || row >= c->height || lo >= hi)
        return (Run){0};
    long at = (sample * c->height + row) * c->width + lo * c->stride + shift;
    return (Run){x + at * c->in, c->stride * c->in, lo - column, 1, hi - lo};
}

/* What pixels of x read of dy: those that the tap has taken to a whole row and column of y. */
static inline Run read_backward(const Conv *c, const real *dy, long line, long column, long n, long i, long j)
{
    long sample = line / c->height, down = line % c->height + c->top - i * c->dilate, shift = c->left - j * c->dilate;
    long from = -floor_div(-(column + shift), c->stride);       /* the first column of y at or behind this one */
    from = from > 0 ? from : 0;
    long first = from * c->stride - shift - column, last = least(c->ywidth - 1, floor_div(column + n - 1 + shift, c->stride));
    if (down < 0 || down % c->stride || down / c->stride >= c->yheight || from > last)
        return (Run){0};
    long at = (sample * c->yheight + down / c->stride) * c->ywidth + from;
    return (Run){dy + at * c->out, c->out, first, c->stride, last - from + 1};
}

/* The chains of pixels from .. to-1 of a run go on with `depth` channels. */
static inline void tiles(float *c, const Run *r, long from, long to, const float *panel, long p, long depth)
{
    float wide[TILE_ROWS * DEPTH];
    for (long k = from; k < to; k += TILE_ROWS) {
        float *at = c + (r->first + k * r->step) * COLS;
        long rows = least(TILE_ROWS, to - k);
        Terms terms = {depth, depth, 1};
        Left left = left_of(wide, view(r->at + k * r->line + p, r->line, 1), rows, &terms, 0);
        Floats chains = {at, r->step * COLS};
        tile_fit(&(Rest){.from = chains, .to = chains}, 0, 0, &left, panel, rows, &terms);
    }
}

/* Some pixels of a line, and `joined` taps of a row of the kernel, from (i, j) on: what they read lies behind each other.
 * Chains take it at once where all are inside. */
static inline void tap_row(float *c, const Conv *v, Reader read, const real *from, long line, long column, long some, long i,
                           long j, long joined, const float *panel, long p, long depth)
{
    Run first = read(v, from, line, column, some, i, j), last = read(v, from, line, column, some, i, j + joined - 1);
    long lo = first.first, hi = last.first + last.n, all = joined * depth;
    if (!first.n || !last.n || hi < lo)
        lo = hi = some;
    for (long t = 0; t < joined && joined > 1 && lo > 0; t++) {
        Run r = read(v, from, line, column, some, i, j + t);
        tiles(c, &r, 0, least(r.n, lo - r.first), panel + t * depth * TILE_COLS, p, depth);
    }
    tiles(c, &first, 0, joined > 1 ? hi - lo : first.n, panel, p, all);
    for (long t = 0; t < joined && joined > 1 && hi < some; t++) {
        Run r = read(v, from, line, column, some, i, j + t);
        tiles(c, &r, hi > r.first ? hi - r.first : 0, r.n, panel + t * depth * TILE_COLS, p, depth);
    }
}

/* c[m][COLS] += the taps of m pixels from `pixel` on, in lines of `width`: k channels of each by `weight`, k rows of n columns,
 * whose taps are adjacent. */
static inline void taps(float *c, const Conv *v, Reader read, const real *from, View weight, long pixel, long width,
                        long m, long n, long k)
{
    _Alignas(64) float panel[DEPTH * TILE_COLS];
    int behind = read == read_forward && k == v->in && v->dilate == 1 && k * v->kwidth <= DEPTH;     /* no block of channels */
    long joined = behind ? v->kwidth : 1;
    for (long tap = 0; tap < v->kheight * v->kwidth; tap += joined)
        for (long j = 0; j < n; j += TILE_COLS)
            for (long p = 0; p < k; p += DEPTH) {
                long depth = least(DEPTH, k - p);
                for (long t = 0; t < joined; t++) {
                    View w = view_from(weight, p, j);
                    w.at = (const real *)w.at + tap + t;
                    pack(panel + t * depth * TILE_COLS, TILE_COLS, TILE_COLS * depth, w, depth, least(TILE_COLS, n - j));
                }
                for (long i = 0, some; i < m; i += some) {
                    long column = (pixel + i) % width;
                    some = least(width - column, m - i);
                    tap_row(c + i * COLS + j, v, read, from, (pixel + i) / width, column, some, tap / v->kwidth,
                            tap % v->kwidth, joined, panel, p, depth);
                }
            }
}

/* What becomes of the channels that each result is a sum of: blocks of so many, and the bias goes onto the tree.  sum: floats
 * in place of results, of which other devices have more. */
typedef struct { float *sum; const real *bias; long block; } Made;

/* The same of a block of channels at a time.  Subtrees wait on the stack. */
static __attribute__((noinline, unused)) void block_taps(float *c, const Conv *v, Reader read, const real *from, View weight,
                                                         const Task *t, long width, long k, long block)
{
    _Alignas(64) float rest[LEVELS * BLOCK * COLS];
    for (long at = 0, number = 0; at < k; at += block, number++) {
        memset(c, 0, (size_t)(t->m * COLS) * sizeof *c);
        taps(c, v, read, from + at, view_from(weight, at, 0), t->i, width, t->m, t->n, least(block, k - at));
        block_ends(c, rest, BLOCK * COLS, t->m * COLS, number, at + block >= k);
    }
}

/* to[pixels][groups n]: from's taps by the weights of each group, element (k, n) of a tap at k*row + n*col. */
static inline void convolve(Stage *st, real *to, const Conv *v, Reader read, const real *from, const real *weight, long row,
                            long col, const Made *made, long pixels, long width, long n, long k)
{
    Grid g = grid_of(pixels, n, BLOCK, COLS, 1);
    long each = task_count(&g), wide = v->groups * n, size = v->kheight * v->kwidth;
    EACH(pixels * wide * k * size >= 1 << 16)
    for (long number = 0; number < each * v->groups; number++) {
        long group = number / each;
        Task t = task_of(&g, number % each);
        _Alignas(64) float c[BLOCK * COLS], add[COLS] = {0};
        View w = view(weight + group * n * k * size + t.j * col, row, col);
        if (made->block < k) {
            block_taps(c, v, read, from, w, &t, width, k, made->block);
        } else {
            memset(c, 0, (size_t)(t.m * COLS) * sizeof *c);
            taps(c, v, read, from + group * k, w, t.i, width, t.m, t.n, k);
        }
        for (long j = 0; made->bias && j < t.n; j++)
            add[j] = get(made->bias, group * n + t.j + j);
        for (long i = 0; i < t.m; i++) {
            long at = (t.i + i) * wide + group * n + t.j;
            if (made->sum)
                memcpy(made->sum + at, c + i * COLS, (size_t)t.n * sizeof *c);
            for (long j = 0; !made->sum && j < t.n; j++)
                put(to, at + j, c[i * COLS + j] + add[j]);
        }
    }
}

/* to[n] = from[n], of a row of a panel: vectors may overlap. */
static inline void widen_row(float *to, const real *from, long n)
{
    enum { LEAST = sizeof(real) == sizeof(float) ? 4 : TILE_COLS + 1 };
    if (n >= VECTOR) {
        *(Vector *)to = some(from, VECTOR);
        *(Vector *)(to + n - VECTOR) = some(from + n - VECTOR, VECTOR);
    } else if (n >= LEAST) {
        for (long j = 0; j + 4 <= n; j += 4)
            memcpy(to + j, from + j, 4 * sizeof *to);
        memcpy(to + n - 4, from + n - 4, 4 * sizeof *to);
    } else
        for (long j = 0; j < n; j++)
            to[j] = get(from, j);
}

/* Columns of panel[depth]: `n` numbers of x that pixels of y read under row i of the kernel, at `offset` from what column 0
 * has.  Nothing is written where they are outside. */
static inline void gather_row(float *panel, const Conv *v, const real *x, long pixel, long depth, long i, long offset, long n)
{
    long step = v->stride * v->in, end = v->width * v->in - n;
    for (long p = 0, some; p < depth; p += some) {
        long line = (pixel + p) / v->ywidth, column = (pixel + p) % v->ywidth;
        long row = line % v->yheight * v->stride - v->top + i * v->dilate, at = column * step + offset;
        const real *from = x + (line / v->yheight * v->height + row) * v->width * v->in;
        float *to = panel + p * TILE_COLS;
        some = least(v->ywidth - column, depth - p);
        if (row < 0 || row >= v->height)
            continue;
        for (long k = 0; k < some; k++, at += step, to += TILE_COLS) {
            long lost = at < 0 ? -at : 0, kept = least(n, n + end - at);
            if (lost < kept)
                widen_row(to + lost, from + at + lost, kept - lost);
        }
    }
}

/* panel[depth][n]: what pixels of y read for columns of dweight, from `column` on: taps and, for each, channels of a group of
 * x.  Zero outside.  Taps of a row of the kernel that lie behind each other are taken as one. */
static inline void gather(float *panel, const Conv *v, const real *x, long group, long pixel, long depth, long column, long n)
{
    long in = v->in / v->groups, each = v->groups == 1 && v->dilate == 1 ? v->kwidth * in : in;
    memset(panel, 0, (size_t)(depth * TILE_COLS) * sizeof *panel);
    for (long j = 0, some; j < n; j += some) {
        long tap = (column + j) / in, behind = (column + j) % each;
        long offset = (tap % v->kwidth * v->dilate - v->left) * v->in + group * in + (column + j) % in;
        some = least(n - j, each - behind);
        gather_row(panel + j, v, x, pixel, depth, tap / v->kwidth, offset, some);
    }
}

/* c[m][ld] = dy^T x for m output channels and n columns from `column` on. */
static inline void weight_product(float *c, long ld, const Conv *v, const real *dy, const real *x, long group, long m,
                                  long column, long n)
{
    _Alignas(64) float room[(ROWS + TILE_ROWS) * (DEPTH + VECTOR)], panels[PANELS];
    long pixels = v->batch * v->yheight * v->ywidth;
    for (long p = 0; p < pixels; p += DEPTH) {
        long depth = least(DEPTH, pixels - p);
        for (long j = 0; j < n; j += TILE_COLS)
            gather(panels + j * depth, v, x, group, p, depth, column + j, least(TILE_COLS, n - j));
        Rest rest = {.from = {p ? c : NULL, ld}, .to = {c, ld}};
        product_packed(&rest, view(dy + p * v->out, 1, v->out), m, n, &(Terms){depth, depth, 1}, 0, room, panels);
    }
}

/* dweight of images x and y under v: columns are taps, and input channels of each. */
static inline void weight_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long m = v->out / v->groups, n = v->in / v->groups, size = v->kheight * v->kwidth;
    long spread = least(PANELS / DEPTH, BLOCK * SPREAD / least(m, BLOCK)) / COLS * COLS;
    Grid g = grid_of(m, n * size, BLOCK, spread, v->groups > 1 || st->threads < 1 ? 1 : st->threads);
    long each = task_count(&g);
    EACH(v->batch * v->yheight * v->ywidth * m * v->in * size >= 1 << 16)
    for (long number = 0; number < v->groups * each; number++) {
        long group = number / each;
        Task t = task_of(&g, number % each);
        long ld = ceil_div(t.n, COLS) * COLS;
        _Alignas(64) float c[BLOCK * SPREAD];
        weight_product(c, ld, v, dy + group * m + t.i, x, group, t.m, t.j, t.n);
        for (long i = 0; i < t.m; i++)
            for (long j = 0; j < t.n; j++) {
                long tap = (t.j + j) / n, channel = (t.j + j) % n;
                give(dweight + ((group * m + t.i + i) * n + channel) * size + tap, c + i * ld + j, 1, acc);
            }
    }
}

/* Is it a product of pixels by channels?  A chain may end at -0, to which convolve() adds 0 where no bias is: so does this. */
enum { WIDEST = TREES ? 4096 : 64 };
static const real nothing[WIDEST];

static inline int is_pointwise(const Conv *v)
{
    return v->groups == 1 && v->in <= WIDEST && v->out <= WIDEST && v->kheight * v->kwidth == 1 && v->stride == 1 &&
           v->yheight == v->height && v->ywidth == v->width && v->top == 0 && v->left == 0;
}

/* A product of pixels by channels, in blocks of the k channels of a. */
static inline void pointwise(Stage *st, real *to, View a, View b, const Made *made, long pixels, long n, long k)
{
    if (made->sum)
        product_give(st, made->sum, a, b, 0, pixels, n, k, made->block);
    else
        product_to(st, to, a, b, made->bias ? made->bias : nothing, pixels, n, k, made->block);
}

/* y of x, and x of y; either may have a bias. */
static inline void convolve_on(Stage *st, real *y, const real *x, const real *weight, const Made *made, const Conv *v)
{
    long depth = v->in / v->groups, size = v->kheight * v->kwidth, pixels = v->batch * v->yheight * v->ywidth;
    if (is_pointwise(v))
        pointwise(st, y, view(x, v->in, 1), view(weight, 1, v->in), made, pixels, v->out, v->in);
    else if (is_depthwise(v) && !made->sum)
        depth_convolve(st, y, x, weight, made->bias, v, 0);
    else
        convolve(st, y, v, read_forward, x, weight, size, depth * size, made, pixels, v->ywidth, v->out / v->groups, depth);
}

static inline void convolve_back(Stage *st, real *x, const real *y, const real *weight, const Made *made, const Conv *v)
{
    long depth = v->in / v->groups, size = v->kheight * v->kwidth, pixels = v->batch * v->height * v->width;
    if (is_pointwise(v))
        pointwise(st, x, view(y, v->out, 1), view(weight, v->in, 1), made, pixels, v->in, v->out);
    else if (is_depthwise(v) && !made->sum)
        depth_convolve(st, x, y, weight, made->bias, v, 1);
    else
        convolve(st, x, v, read_backward, y, weight, depth * size, size, made, pixels, v->width, depth, v->out / v->groups);
}

static inline void convolve_weight(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long pixels = v->batch * v->yheight * v->ywidth;
    if (is_pointwise(v))
        product_give(st, dweight, view(dy, 1, v->out), view(x, v->in, 1), acc, v->out, v->in, pixels, pixels);
    else if (is_depthwise(v))
        depth_gradient(st, dweight, dy, x, acc, v);
    else
        weight_gradient(st, dweight, dy, x, acc, v);
}
#endif
