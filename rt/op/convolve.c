/* SPDX-License-Identifier: Apache-2.0
 *
 * convolve.c: the implicit product of Conv, ConvTranspose and their gradients.  Images are x[batch height width in] and y[batch
 * yheight ywidth out], weight is [out in/groups kheight kwidth]; ConvTranspose makes x of y.
 *
 * Problem.  A convolution is a product whose left operand would be kheight*kwidth times as large as the image.
 *
 * Method.  The product is implicit: each tap of the kernel is a product of pixels and that tap's weights, and the chains of
 * gemm.c rest in memory from tap to tap.  Taps outside the image are left out.  Those of a row of the kernel are evenly apart:
 * a tile takes them as pieces of one longer chain.  Its pixels are any that read the same taps, and it reads them in place.  So
 * tiles are full at the edges of small images too.  In a gradient of weights such taps are adjacent columns.
 *
 * Order.  An element of y is one chain from zero: kernel rows, kernel columns, channels of the group, all ascending.  The bias
 * is added to the finished chain.  dx is the same with output channels.  With train.blocks, and a single group, channels have
 * blocks: each is such a chain, and the tree of kernel.h adds them.  An element of dweight is one chain over samples, rows
 * and columns of y, where a tap outside adds a product with zero; it is then given to the accumulator.
 *
 * A gradient of weights gathers the pixels of x that some columns read into panels, and packs dy once for all of them.
 *
 * Kernels of one pixel at stride 1 are products of all pixels, of matrices that lie there: pointwise.c.  Kernels of single
 * channels are in depthwise.c.
 *
 * Cost: that of the product; weights are packed once for BLOCK pixels.  Not handled: few channels in a group, more than one,
 * which fill a part of a tile only.
 */
#include "depthwise.h"
#include "pointwise.h"
#include "tile.h"

/* Pixels of a task, sorted by the taps that they read among `some` of a row of the kernel: key a*some + n - 1 is n taps from
 * number a on, and has pixels first[key] to end[key] - 1.  What the first tap reads lies at `at`. */
enum { KEYS = TREES ? SIDE * SIDE : 1 };
typedef struct { long line[BLOCK], at[BLOCK], first[KEYS], end[KEYS]; } Listed;

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

/* What place of an axis reads under tap k, below 0: nothing inside of `size`.  back: of y, which took it. */
static inline long place_read(long place, long k, long stride, long pad, long dilate, long size, int back)
{
    long from = back ? place + pad - k * dilate : place * stride - pad + k * dilate;
    if (back && stride > 1) {
        if (from % stride)
            return -1;
        from /= stride;
    }
    return from < size ? from : -1;
}

/* m pixels from `pixel` on, and taps of row i of the kernel, from j on.  Nearly all pixels read all of them: columns lo to
 * hi - 1, which need no look. */
static inline void list_pixels(Listed *l, const Conv *v, int back, long pixel, long m, long i, long j, long some)
{
    long height = back ? v->height : v->yheight, width = back ? v->width : v->ywidth, c = back ? v->out : v->in;
    long deep = back ? v->yheight : v->height, wide = back ? v->ywidth : v->width, step = (back ? 1 : v->stride) * c;
    long shift = v->left - j * v->dilate, last = shift - (some - 1) * v->dilate, edges = 0, full = 0, before;
    long lo = back ? -last : -floor_div(-shift, v->stride);
    long hi = back ? wide - shift : floor_div(wide - 1 + last, v->stride) + 1;
    long line[BLOCK], place[BLOCK], key[BLOCK];
    if (back && v->stride > 1)
        hi = lo;
    memset(l->end, 0, (size_t)(some * some) * sizeof *l->end);
    for (long p = 0, end; p < m; p = end) {
        long at = (pixel + p) / width, column = (pixel + p) % width;
        long row = place_read(at % height, i, v->stride, v->top, v->dilate, deep, back);
        end = least(m, p + width - column);
        if (row < 0)
            continue;
        at = (at / height * deep + row) * wide * c;
        for (; p < end; p++, column++)
            if (column >= lo && column < hi) {
                long next = least(end, p + hi - column), from = at + (back ? column + shift : column * v->stride - shift) * c;
                for (long k = 0; k < next - p; k++)
                    l->line[full + k] = p + k, l->at[full + k] = from + k * step;
                full += next - p, column += next - p - 1, p = next - 1;
            } else {
                long first = -1, n = 0;
                for (long t = 0; t < some; t++) {
                    long read = place_read(column, j + t, v->stride, v->left, v->dilate, wide, back);
                    if (read >= 0 && n++ == 0)
                        first = t, place[edges] = at + read * c;
                }
                if (n) {
                    key[edges] = first * some + n - 1;
                    line[edges] = p;
                    l->end[key[edges++]]++;
                }
            }
    }
    before = full;
    for (long k = 0; k < some * some; k++) {
        long n = l->end[k];
        l->first[k] = l->end[k] = before;
        before += n;
    }
    for (long e = 0; e < edges; e++) {
        long to = l->end[key[e]]++;
        l->line[to] = line[e];
        l->at[to] = place[e];
    }
    if (full)
        l->first[some - 1] = 0, l->end[some - 1] = full;
}

/* The chains of listed pixels go on with n taps, `apart` from each other, of `depth` channels. */
static inline void tiles(float *c, const Listed *l, long first, long end, const real *from, long apart, const float *panel,
                         long n, long depth)
{
    Floats chains = {c, COLS};
#ifdef REAL_BF16
    Terms terms = {n * depth, n * depth, 1};
    float wide[TILE_ROWS * DEPTH];
    long places[TILE_ROWS];
    for (long k = first; k < end; k += TILE_ROWS) {
        long rows = least(TILE_ROWS, end - k);
        for (long i = 0; i < rows; i++) {
            places[i] = i * n * depth;
            widen(wide + places[i], depth, view(from + l->at[k + i], apart, 1), n, depth);
        }
        Rest rest = {.from = chains, .to = chains, .lines = l->line + k, .places = places};
        tile_listed(&rest, wide, 0, panel, rows, &terms);
    }
#else
    Terms terms = apart == depth ? (Terms){n * depth, n * depth, 1} : (Terms){depth, depth, n};     /* behind each other */
    for (long k = first; k < end; k += TILE_ROWS)
        tile_listed(&(Rest){.from = chains, .to = chains, .lines = l->line + k, .places = l->at + k}, from, apart, panel,
                    least(TILE_ROWS, end - k), &terms);
#endif
}

/* Panels of n columns for each of `size` taps, which are adjacent: to[n / TILE_COLS][size][k][TILE_COLS]. */
static inline void pack_taps(float *to, View w, long size, long k, long n)
{
    enum { NEXT = 16 };                         /* their lines stay in the nearest cache */
    for (long j = 0; j < n; j += TILE_COLS, to += size * k * TILE_COLS) {
        long some = least(TILE_COLS, n - j);
        View all = view_from(w, 0, j);
        if (size < 4) {
            for (long t = 0; t < size; t++, all.at = (const real *)all.at + 1)
                pack(to + t * k * TILE_COLS, TILE_COLS * k, all, k, some);
            continue;
        }
        if (some < TILE_COLS)
            memset(to, 0, (size_t)(size * k * TILE_COLS) * sizeof *to);
        for (long from = 0; from < k; from += NEXT)
            for (long c = 0; c < some; c += 4)
                for (long p = from; p < least(from + NEXT, k); p++) {
                    View these = view_from(all, p, c);
                    these.row_step = 1;
                    widen_turned(to + p * TILE_COLS + c, k * TILE_COLS, these, size, least(4, some - c));
                }
    }
}

/* c[m][COLS] += the taps of m pixels from `pixel` on: k channels of each by `weight`, k rows of n columns, whose taps are
 * adjacent.  Taps of a row of the kernel are taken together, where all that a pixel reads is evenly apart. */
static ONE_BODY void taps(float *c, const Conv *v, int back, const real *from, View weight, long pixel, long m, long n, long k)
{
    _Alignas(64) float panels[PANELS];
    Listed l;
    long apart = (back ? -v->out : v->in) * v->dilate, size = v->kheight * v->kwidth;
    long most = TREES && k <= DEPTH && (!back || v->stride == 1) ? least(least(v->kwidth, SIDE), DEPTH / k) : 1;
    int whole = size * k * COLS <= PANELS;
    if (whole)
        pack_taps(panels, weight, size, k, n);
    for (long tap = 0, some; tap < size; tap += some) {
        some = least(most, v->kwidth - tap % v->kwidth);
        list_pixels(&l, v, back, pixel, m, tap / v->kwidth, tap % v->kwidth, some);
        for (long j = 0; j < n; j += TILE_COLS)
            for (long p = 0; p < k; p += DEPTH) {
                long depth = least(DEPTH, k - p);
                const float *panel = whole ? panels + j * size * k + (tap * k + p) * TILE_COLS : panels;
                for (long t = 0; !whole && t < some; t++) {
                    View w = view_from(weight, p, j);
                    w.at = (const real *)w.at + tap + t;
                    pack(panels + t * depth * TILE_COLS, TILE_COLS * depth, w, depth, least(TILE_COLS, n - j));
                }
                for (long key = 0; key < some * some; key++)
                    tiles(c + j, &l, l.first[key], l.end[key], from + p, apart, panel + key / some * depth * TILE_COLS,
                          key % some + 1, depth);
            }
    }
}

/* The same of a block of channels at a time.  Subtrees wait on the stack. */
static ONE_BODY void block_taps(float *c, const Conv *v, int back, const real *from, View weight, const Task *t, long k,
                                long block)
{
    _Alignas(64) float rest[LEVELS * BLOCK * COLS];
    for (long at = 0, number = 0; at < k; at += block, number++) {
        memset(c, 0, (size_t)(t->m * COLS) * sizeof *c);
        taps(c, v, back, from + at, view_from(weight, at, 0), t->i, t->m, t->n, least(block, k - at));
        block_ends(c, rest, BLOCK * COLS, t->m * COLS, number, at + block >= k);
    }
}

/* to[pixels][groups n]: from's taps by the weights of each group, element (k, n) of a tap at k*row + n*col. */
static inline void convolve(Stage *st, real *to, const Conv *v, int back, const real *from, const real *weight, long row,
                            long col, const Made *made, long pixels, long n, long k)
{
    Grid g = grid_of(pixels, n, BLOCK, COLS, 0, 1);
    long each = task_count(&g), wide = v->groups * n, size = v->kheight * v->kwidth;
    EACH(pixels * wide * k * size >= 1 << 16)
    for (long number = 0; number < each * v->groups; number++) {
        long group = number / each, k_th = number % each;
        Task t = task_of(&g, k_th % g.across * g.down + k_th / g.across);       /* what pixels read stays in the second cache */
        _Alignas(64) float c[BLOCK * COLS], add[COLS] = {0};
        View w = view(weight + group * n * k * size + t.j * col, row, col);
        if (made->block < k) {
            block_taps(c, v, back, from, w, &t, k, made->block);
        } else {
            memset(c, 0, (size_t)(t.m * COLS) * sizeof *c);
            taps(c, v, back, from + group * k, w, t.i, t.m, t.n, k);
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

/* What a task has of dweight: output channels of a group from i on, input channels and taps.  Columns are its taps, and its
 * channels for each. */
typedef struct { long group, i, m, channel, channels, tap, taps; } Patch;
enum { COLUMNS = TREES ? 9 * COLS : SPREAD };

/* panel[depth][n]: what pixels of y read for columns of a part, from `column` on.  Zero outside.  Taps of a row of the kernel
 * that lie behind each other are taken as one. */
static inline void gather(float *panel, const Conv *v, const real *x, const Patch *t, long pixel, long depth, long column,
                          long n)
{
    long first = t->group * (v->in / v->groups) + t->channel;
    long each = t->channels == v->in && v->dilate == 1 && t->tap % v->kwidth == 0 ? v->kwidth * v->in : t->channels;
    memset(panel, 0, (size_t)(depth * TILE_COLS) * sizeof *panel);
    for (long j = 0, some; j < n; j += some) {
        long tap = t->tap + (column + j) / t->channels, behind = (column + j) % each;
        long offset = (tap % v->kwidth * v->dilate - v->left) * v->in + first + (column + j) % t->channels;
        some = least(n - j, each - behind);
        gather_row(panel + j, v, x, pixel, depth, tap / v->kwidth, offset, some);
    }
}

/* c[m][ld] = dy^T x of a part */
static inline void weight_product(float *c, long ld, const Conv *v, const real *dy, const real *x, const Patch *t)
{
    _Alignas(64) float room[(ROWS + TILE_ROWS) * (DEPTH + VECTOR)], panels[PANELS];
    long pixels = v->batch * v->yheight * v->ywidth, n = t->channels * t->taps, some = depth_of(pixels);
    const real *from = dy + t->group * (v->out / v->groups) + t->i;
    for (long p = 0; p < pixels; p += some) {
        long depth = least(some, pixels - p);
        for (long j = 0; j < n; j += TILE_COLS)
            gather(panels + j * depth, v, x, t, p, depth, j, least(TILE_COLS, n - j));
        Rest rest = {.from = {p ? c : NULL, ld}, .to = {c, ld}};
        product_packed(&rest, view(from + p * v->out, 1, v->out), t->m, n, &(Terms){depth, depth, 1}, 0, room, panels);
    }
}

/* A part of dweight is given.  Taps of a channel are adjacent there. */
static inline void weight_part(float *dweight, const Conv *v, const real *dy, const real *x, int acc, const Patch *t)
{
    _Alignas(64) float c[BLOCK * SPREAD];
    float turned[COLUMNS];
    long ld = ceil_div(t->channels * t->taps, COLS) * COLS, in = v->in / v->groups, size = v->kheight * v->kwidth;
    weight_product(c, ld, v, dy, x, t);
    for (long i = 0; i < t->m; i++) {
        float *to = dweight + ((t->group * (v->out / v->groups) + t->i + i) * in + t->channel) * size + t->tap;
        widen_turned(turned, t->taps, view_float(c + i * ld, 1, t->channels), t->channels, t->taps);
        for (long k = 0, all = t->channels * t->taps, some = t->taps == size ? all : t->taps; k < all; k += some)
            give(to + k / t->taps * size, turned + k, some, acc);
    }
}

/* dweight of images x and y under v: a task has all taps of some channels, or some taps of one. */
static inline void weight_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long m = v->out / v->groups, n = v->in / v->groups, size = v->kheight * v->kwidth, strips = ceil_div(m, TILE_ROWS);
    long taps = least(size, COLUMNS), most = COLUMNS / taps, each = least(n, most > COLS ? most / COLS * COLS : most);
    long rows = BLOCK * SPREAD / (ceil_div(each * taps, COLS) * COLS) / TILE_ROWS * TILE_ROWS;
    long down = ceil_div(m, rows), across = ceil_div(n, each), parts = across * ceil_div(size, taps);
    while (v->groups == 1 && st->threads > 1 && down * parts % st->threads && down < strips)
        down++;
    EACH(v->batch * v->yheight * v->ywidth * m * v->in * size >= 1 << 16)
    for (long number = 0; number < v->groups * down * parts; number++) {
        long k = number / parts % down, tap = number % parts / across * taps, i = strips * k / down * TILE_ROWS;
        long block = number % across, channel = n * block / across;
        weight_part(dweight, v, dy, x, acc,
                    &(Patch){number / parts / down, i, least(m, strips * (k + 1) / down * TILE_ROWS) - i, channel,
                            n * (block + 1) / across - channel, tap, least(taps, size - tap)});
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
static inline void pointwise(Stage *st, real *to, const real *a, View b, const Made *made, long pixels, long n, long k)
{
    const real *bias = made->bias ? made->bias : nothing;
    if (made->sum)
        product_give(st, made->sum, view(a, k, 1), b, 0, pixels, n, k, made->block);
    else
        point_product(st, to, a, b, bias, pixels, n, k, made->block);
}

void convolve_on(Stage *st, real *y, const real *x, const real *weight, const Made *made, const Conv *v)
{
    long depth = v->in / v->groups, size = v->kheight * v->kwidth, pixels = v->batch * v->yheight * v->ywidth;
    if (is_pointwise(v))
        pointwise(st, y, x, view(weight, 1, v->in), made, pixels, v->out, v->in);
    else if (is_depthwise(v) && !made->sum)
        depth_convolve(st, y, x, weight, made->bias, v, 0);
    else
        convolve(st, y, v, 0, x, weight, size, depth * size, made, pixels, v->out / v->groups, depth);
}

void convolve_back(Stage *st, real *x, const real *y, const real *weight, const Made *made, const Conv *v)
{
    long depth = v->in / v->groups, size = v->kheight * v->kwidth, pixels = v->batch * v->height * v->width;
    if (is_pointwise(v))
        pointwise(st, x, y, view(weight, v->in, 1), made, pixels, v->in, v->out);
    else if (is_depthwise(v) && !made->sum)
        depth_convolve(st, x, y, weight, made->bias, v, 1);
    else
        convolve(st, x, v, 1, y, weight, depth * size, size, made, pixels, depth, v->out / v->groups);
}

void convolve_weight(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long pixels = v->batch * v->yheight * v->ywidth;
    if (is_pointwise(v))
        point_give(st, dweight, NULL, dy, x, acc, pixels, v->out, v->in, pixels);
    else if (is_depthwise(v))
        depth_gradient(st, dweight, dy, x, acc, v);
    else
        weight_gradient(st, dweight, dy, x, acc, v);
}
