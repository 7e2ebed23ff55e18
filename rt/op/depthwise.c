/* SPDX-License-Identifier: Apache-2.0
 *
 * depthwise.c: convolutions of single channels, and their gradients: those of convolve.c with as many groups as channels.
 *
 * Problem.  A product of one channel by one fills a lane of a tile.  Channels are adjacent in memory, but belong to chains of
 * their own.
 *
 * Method.  Vectors go over channels.  Some pixels of a line that have the same taps inside the image are computed together, in
 * registers, and a chain takes its taps without a rest in memory.  Where taps are next to each other, what several of these
 * pixels read is loaded once; and lines for the next line of pixels are fetched meanwhile.  Weights are turned before, so that
 * those of a tap are adjacent.  A gradient of weights takes a line of y at a time, with some rows of the kernel in registers,
 * so that images are read once.
 *
 * Order.  That of convolve.c: the same chains.
 *
 * Cost: a load and a fused step a tap.  Not handled: several results of a channel, kernels above TAPS, strides above
 * PHASES: convolve.c does them.
 */
#include "depthwise.h"

/* PANEL: weights at once, of whole channels.  TOGETHER: pixels.  ALONG: columns of a gradient. */
enum { PANEL = TAPS * (TREES ? 64 : 2 * VECTOR), TOGETHER = 4, ALONG = 16 };

bool is_depthwise(const Conv *v)
{
    return v->groups == v->in && v->groups == v->out && v->kheight <= SIDE && v->kwidth <= SIDE &&
           v->kheight * v->kwidth <= TAPS && v->stride <= PHASES;
}

/* Channels that are taken at once: as many as have room, and about as many each time. */
static inline long lane_of(const Conv *v, long channels)
{
    long most = PANEL / (v->kheight * v->kwidth) / VECTOR * VECTOR;
    return ceil_div(ceil_div(channels, ceil_div(channels, most)), VECTOR) * VECTOR;
}

/* n taps of an axis, ascending: number k is tap + k*apart, and reads place at + k*steps. */
typedef struct { long n, tap, apart, at, steps; } Taps;

/* Those of a place, outside too.  back: of x, which reads the places of y that took it. */
static inline Taps taps_of(long place, long kernel, long stride, long pad, long dilate, int back)
{
    Taps t = {0};
    for (long k = 0; k < kernel; k++) {
        long from = back ? place + pad - k * dilate : place * stride - pad + k * dilate;
        if (back && from % stride)
            continue;
        from /= back ? stride : 1;
        if (t.n == 0)
            t.tap = k, t.at = from;
        if (t.n == 1)
            t.apart = k - t.tap, t.steps = from - t.at;
        t.n++;
    }
    return t;
}

/* Those that read inside of `size` places, when all read `shift` further. */
static inline Taps taps_inside(Taps t, long shift, long size)
{
    for (; t.n && (t.at + shift < 0 || t.at + shift >= size); t.n--)
        t.at += t.steps, t.tap += t.apart;
    while (t.n && (t.at + (t.n - 1) * t.steps + shift < 0 || t.at + (t.n - 1) * t.steps + shift >= size))
        t.n--;
    return t;
}

static inline __attribute__((always_inline)) void put_some(real *to, Vector v, long n)
{
#ifndef REAL_BF16
    if (n == VECTOR) {
        *(Vector *)to = v;
        return;
    }
#endif
    float t[VECTOR];
    memcpy(t, &v, sizeof t);
    for (long i = 0; i < n; i++)
        put(to, i, t[i]);
}

/* What the pixels of a line have in common: to and from are at the first channel of a task; line: floats between lines of what
 * is read, step and ahead: between pixels, below: between lines of results; panel[tap][lane], add[lane]: the bias. */
typedef struct {
    const real *from;
    const float *panel, *add;
    const Conv *v;
    Taps down;
    long line, step, ahead, lane, below;
} Line;

/* `pixels` results of n channels, VECTOR at most.  Those of the next line are fetched, to be written. */
static inline __attribute__((always_inline)) void depth_tile(const int pixels, real *to, const Line *l, const Taps *across,
                                                             long j, long n)
{
    Vector s[TOGETHER] = {{0}};
    long steps = across->steps * l->v->groups, apart = across->apart * l->lane;
    for (int p = 0; pixels > 1 && p < pixels; p++)
        __builtin_prefetch(to + l->below + p * l->step + j, 1, 2);
    for (long a = 0; a < l->down.n; a++) {
        const real *x = l->from + (l->down.at + a * l->down.steps) * l->line + across->at * l->v->groups + j;
        const float *w = l->panel + ((l->down.tap + a * l->down.apart) * l->v->kwidth + across->tap) * l->lane + j;
        for (long b = 0; b < across->n; b++)
            UNROLLED
            for (int p = 0; p < pixels; p++)
                s[p] = fused(some(x + b * steps + p * l->ahead, n), *(const Vector *)(w + b * apart), s[p]);
    }
    UNROLLED
    for (int p = 0; p < pixels; p++)
        put_some(to + p * l->step + j, s[p] + *(const Vector *)(l->add + j), n);
}

/* n channels of some pixels */
static inline __attribute__((always_inline)) void depth_pixels(const int pixels, real *to, const Line *l, const Taps *across,
                                                               long n)
{
    long j = 0;
    for (; j + VECTOR <= n; j += VECTOR)
        depth_tile(pixels, to, l, across, j, VECTOR);
    if (j < n)
        depth_tile(pixels, to, l, across, j, n - j);
}

/* TOGETHER pixels of the last channels, which are no whole vector. */
static ONE_BODY void depth_rest(real *to, const Line *l, const Taps *across, long n)
{
    depth_tile(TOGETHER, to, l, across, 0, n);
}

/* TOGETHER pixels inside of a line, of a vector: what several of them read is loaded once.  Lines that the next line of pixels
 * reads and writes are fetched meanwhile. */
static inline __attribute__((always_inline)) void depth_inside(const int taps, const int stride, const int back, real *to,
                                                               const Line *l, const Taps *across)
{
    Vector s[TOGETHER] = {{0}};
    long c = l->v->groups, lowest = l->down.at + (back ? 0 : l->down.n - 1);
    const real *base = l->from + (across->at - (back ? taps - 1 : 0)) * c;
    for (int p = 0; p < TOGETHER * stride * stride; p++)
        __builtin_prefetch(base + (lowest + 1 + p / TOGETHER / stride) * l->line + p % (TOGETHER * stride) * c, 0, 2);
    for (int p = 0; p < TOGETHER; p++)
        __builtin_prefetch(to + l->below + p * l->step, 1, 2);
    for (long a = 0; a < l->down.n; a++) {
        const real *x = base + (l->down.at + a * l->down.steps) * l->line;
        const float *w = l->panel + ((l->down.tap + a) * l->v->kwidth + across->tap) * l->lane;
        Vector v[2 * (TOGETHER - 1) + 5];       /* 7 of stride 1 read no more */
        UNROLLED
        for (int i = 0; i < (TOGETHER - 1) * stride + taps; i++)
            v[i] = some(x + i * c, VECTOR);
        UNROLLED
        for (int b = 0; b < taps; b++)
            UNROLLED
            for (int p = 0; p < TOGETHER; p++)
                s[p] = fused(v[p * stride + (back ? taps - 1 - b : b)], *(const Vector *)(w + b * l->lane), s[p]);
    }
    UNROLLED
    for (int p = 0; p < TOGETHER; p++)
        put_some(to + p * l->step, s[p] + *(const Vector *)l->add, VECTOR);
}

/* The columns from `column` to `last`, which are at least TOGETHER, of n channels: to and from are those of column 0. */
static inline __attribute__((always_inline)) void depth_columns_inside(const int taps, const int stride, const int back,
                                                                       real *to, const Line *all, const real *first,
                                                                       const Taps *across, long column, long last, long n)
{
    long c = all->v->groups, behind = TOGETHER - 1;
    Line l = *all;
    for (long j = 0; j + VECTOR <= n; j += VECTOR, l.panel += VECTOR, l.add += VECTOR)
        for (long at = column; at <= last; at += TOGETHER) {
            at = least(at, last - behind);
            l.from = first + at * stride * c + j;
            depth_inside(taps, stride, back, to + at * c + j, &l, across);
        }
    long rest = n % VECTOR, j = n - rest;
    for (long at = column; rest && at <= last; at += TOGETHER) {
        at = least(at, last - behind);
        l.from = first + at * stride * c + j;
        depth_rest(to + at * c + j, &l, across, rest);
    }
}

/* Is there such a way?  Taps are next to each other. */
static inline int depth_columns_ways(real *to, const Line *l, const real *first, const Taps *across, long column, long last,
                                     long n, int back)
{
    switch (l->v->dilate > 1 ? 0 : 100 * back + 10 * l->v->stride + across->n) {
    case 13: depth_columns_inside(3, 1, 0, to, l, first, across, column, last, n); return 1;
    case 15: depth_columns_inside(5, 1, 0, to, l, first, across, column, last, n); return 1;
    case 17: depth_columns_inside(7, 1, 0, to, l, first, across, column, last, n); return 1;
    case 23: depth_columns_inside(3, 2, 0, to, l, first, across, column, last, n); return 1;
    case 25: depth_columns_inside(5, 2, 0, to, l, first, across, column, last, n); return 1;
    case 113: depth_columns_inside(3, 1, 1, to, l, first, across, column, last, n); return 1;
    case 115: depth_columns_inside(5, 1, 1, to, l, first, across, column, last, n); return 1;
    case 117: depth_columns_inside(7, 1, 1, to, l, first, across, column, last, n); return 1;
    default: return 0;
    }
}

/* Columns of a line, every stride-th from the phase on for x: they have the same taps but at the edges, where some are outside.
 * From `first` to `last` all are inside.  What a column reads is `steps` further than what the one before does. */
typedef struct { Taps all; long first, last, steps; } Phase;

static inline Phase phase_of(const Conv *v, long phase, int back)
{
    long wide = back ? v->ywidth : v->width, width = back ? v->width : v->ywidth, apart = back ? v->stride : 1;
    Phase f = {.all = taps_of(phase, v->kwidth, v->stride, v->left, v->dilate, back), .steps = back ? 1 : v->stride};
    long end = f.all.at + (f.all.n - 1) * f.all.steps, low = least(f.all.at, end), high = f.all.at + end - low;
    f.first = phase + (f.all.n && low < 0 ? ceil_div(-low, f.steps) * apart : 0);
    f.last = phase + (width - 1 - phase) / apart * apart;
    if (f.all.n)
        f.last = least(f.last, phase + floor_div(wide - 1 - high, f.steps) * apart);
    return f;
}

/* The columns of one phase; first: of the line.  The last ones inside may be made twice. */
static inline void depth_phase(real *to, Line *l, const real *first, const Phase *f, long phase, long apart, long width,
                               long wide, long n, int back)
{
    long c = l->v->groups, behind = (TOGETHER - 1) * apart, together;
    for (long column = phase; column < width; column += together * apart) {
        together = column >= f->first && column <= f->last && f->last - behind >= f->first ? TOGETHER : 1;
        if (together > 1 && depth_columns_ways(to, l, first, &f->all, column, f->last, n, back)) {
            column = f->last, together = 1;
            continue;
        }
        if (together > 1)
            column = least(column, f->last - behind);
        long shift = (column - phase) / apart * f->steps;
        l->from = first + shift * c;
        if (together == 1) {
            Taps across = taps_inside(f->all, shift, wide);
            depth_pixels(1, to + column * c, l, &across, n);
        } else
            depth_pixels(TOGETHER, to + column * c, l, &f->all, n);
    }
}

void depth_convolve(Stage *st, real *to, const real *from, const real *weight, const real *bias, const Conv *v, int back)
{
    long height = back ? v->height : v->yheight, width = back ? v->width : v->ywidth, apart = back ? v->stride : 1;
    long deep = back ? v->yheight : v->height, wide = back ? v->ywidth : v->width, size = v->kheight * v->kwidth;
    long lane = lane_of(v, v->groups), lines = v->batch * height, down = least(lines, st->threads > 0 ? st->threads : 1);
    EACH(lines * width * v->groups * size >= 1 << 16)
    for (long part = 0; part < down; part++)
        for (long j = 0; j < v->groups; j += lane) {
            _Alignas(64) float panel[PANEL], add[PANEL];
            Phase phases[PHASES];
            long n = least(lane, v->groups - j);
            for (long c = 0; c < lane; c++) {
                for (long t = 0; t < size; t++)
                    panel[t * lane + c] = c < n ? get(weight, (j + c) * size + t) : 0;
                add[c] = bias && c < n ? get(bias, j + c) : 0;
            }
            for (long phase = 0; phase < apart; phase++)
                phases[phase] = phase_of(v, phase, back);
            Line l = {0, panel, add, v, {0}, wide * v->groups, apart * v->groups, (back ? 1 : v->stride) * v->groups, lane,
                      width * v->groups};
            for (long line = lines * part / down; line < lines * (part + 1) / down; line++) {
                l.down = taps_inside(taps_of(line % height, v->kheight, v->stride, v->top, v->dilate, back), 0, deep);
                for (long phase = 0; phase < least(apart, width); phase++)
                    depth_phase(to + line * width * v->groups + j, &l, from + line / height * deep * wide * v->groups + j,
                                &phases[phase], phase, apart, width, wide, n, back);
            }
        }
}

/* Columns from .. to-1 of a line of y: sums of some whole rows of the kernel go on, of a vector of channels.  x: what the first
 * of these rows reads for place 0.  Taps of columns below `first`, and from `last` on, may be outside. */
typedef struct { long from, to, first, last; } Columns;

static inline __attribute__((always_inline)) void depth_terms(const int rows, const int taps, float *sum, long lane,
                                                              const real *dy, const real *x, const Conv *v, const Columns *o)
{
    Vector s[3][7];
    long c = v->groups, across = v->dilate * c, down = v->width * across;
    for (int i = 0; i < rows * taps; i++)
        s[i / taps][i % taps] = *(const Vector *)(sum + i * lane);
    for (long p = o->from, end; p < o->to; p = end) {
        int edge = p < o->first || p >= o->last;
        end = least(o->to, p < o->first ? o->first : p < o->last ? o->last : o->to);
        for (; edge && p < end; p++) {
            Vector d = some(dy + p * c, VECTOR);
            for (int t = 0; t < taps; t++) {
                long place = p * v->stride - v->left + t * v->dilate;
                int inside = place >= 0 && place < v->width;
                for (int r = 0; r < rows; r++)
                    s[r][t] = fused(d, inside ? some(x + place * c + r * down, VECTOR) : (Vector){0}, s[r][t]);
            }
        }
        for (; p < end; p++) {
            Vector d = some(dy + p * c, VECTOR);
            const real *at = x + (p * v->stride - v->left) * c;
            __builtin_prefetch(dy + (p + TOGETHER) * c);
            __builtin_prefetch(at + (rows - 1) * down + (taps - 1) * across + TOGETHER * v->stride * c);
            UNROLLED
            for (int t = 0; t < taps; t++)
                UNROLLED
                for (int r = 0; r < rows; r++)
                    s[r][t] = fused(d, some(at + r * down + t * across, VECTOR), s[r][t]);
        }
    }
    for (int i = 0; i < rows * taps; i++)
        *(Vector *)(sum + i * lane) = s[i / taps][i % taps];
}

static inline void depth_kernel(float *sum, long lane, const real *dy, const real *x, const Conv *v, long rows,
                                const Columns *o)
{
    switch (10 * rows + v->kwidth) {
    case 33: depth_terms(3, 3, sum, lane, dy, x, v, o); break;
    case 23: depth_terms(2, 3, sum, lane, dy, x, v, o); break;
    case 13: depth_terms(1, 3, sum, lane, dy, x, v, o); break;
    case 25: depth_terms(2, 5, sum, lane, dy, x, v, o); break;
    case 15: depth_terms(1, 5, sum, lane, dy, x, v, o); break;
    case 27: depth_terms(2, 7, sum, lane, dy, x, v, o); break;
    default: depth_terms(1, 7, sum, lane, dy, x, v, o);
    }
}

/* The same of n channels, for kernels of any width, a row of the kernel at a time. */
static inline void depth_columns(float *sum, long lane, const real *dy, const real *x, const Conv *v, long from, long to,
                                 long n)
{
    long c = v->groups;
    for (long p = from; p < to; p++)
        for (long t = 0; t < v->kwidth; t++) {
            long place = p * v->stride - v->left + t * v->dilate;
            for (long k = 0; k < n; k += VECTOR) {
                long here = least(VECTOR, n - k);
                Vector *s = (Vector *)(sum + t * lane + k), d = some(dy + p * c + k, here);
                *s = fused(d, place >= 0 && place < v->width ? some(x + place * c + k, here) : (Vector){0}, *s);
            }
        }
}

/* Columns of n channels, and rows of the kernel that read inside: as many at once as registers have sums for. */
static inline void depth_rows(long rows, float *sum, long lane, const real *dy, const real *x, const Conv *v, const Columns *o,
                              long n)
{
    int tiles = v->kwidth == 3 || v->kwidth == 5 || v->kwidth == 7;
    for (long i = 0, some_rows; i < rows; i += some_rows) {
        float *at = sum + i * v->kwidth * lane;
        const real *row = x + i * v->dilate * v->width * v->groups;
        long k = 0;
        some_rows = least(rows - i, v->kwidth == 3 ? 3 : tiles ? 2 : 1);
        for (; tiles && k + VECTOR <= n; k += VECTOR)
            depth_kernel(at + k, lane, dy + k, row + k, v, some_rows, o);
        for (long r = 0; r < some_rows && k < n; r++)
            depth_columns(at + r * v->kwidth * lane + k, lane, dy + k, row + r * v->dilate * v->width * v->groups + k, v,
                          o->from, o->to, n - k);
    }
}

/* Rows of the kernel outside: products with 0, the sum of which is a zero, and needs none of x.  -0 changes nothing. */
static inline void depth_zeros(float *sum, long taps, long lane, const real *dy, const Conv *v, long n)
{
    for (long k = 0; taps && k < n; k += VECTOR) {
        Vector zero = -(Vector){0};
        for (long p = 0; p < v->ywidth; p++)
            zero = fused(some(dy + p * v->groups + k, least(VECTOR, n - k)), (Vector){0}, zero);
        for (long t = 0; t < taps; t++)
            *(Vector *)(sum + t * lane + k) += zero;
    }
}

/* A line of y: the sums of n channels, [kheight kwidth lane], go on.  x: the line's sample. */
static inline void depth_line(float *sum, long lane, const real *dy, const real *x, const Conv *v, long row, long n)
{
    long inside = least(v->ywidth, floor_div(v->width - 1 - (v->kwidth - 1) * v->dilate + v->left, v->stride) + 1);
    long first = v->left > 0 ? least(ceil_div(v->left, v->stride), v->ywidth) : 0, last = inside > first ? inside : first;
    Taps down = taps_inside(taps_of(row, v->kheight, v->stride, v->top, v->dilate, 0), 0, v->height);
    if (!down.n)
        down.tap = 0;
    float *at = sum + down.tap * v->kwidth * lane;
    const real *from = x + down.at * v->width * v->groups;
    depth_zeros(sum, down.tap * v->kwidth, lane, dy, v, n);
    depth_zeros(at + down.n * v->kwidth * lane, (v->kheight - down.tap - down.n) * v->kwidth, lane, dy, v, n);
    for (long p = 0; p < v->ywidth; p += ALONG)
        depth_rows(down.n, at, lane, dy, from, v, &(Columns){p, least(p + ALONG, v->ywidth), first, last}, n);
}

/* dweight of images x and y: threads split channels. */
void depth_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long c = v->groups, size = v->kheight * v->kwidth, lines = v->batch * v->yheight;
    long lane = lane_of(v, ceil_div(c, st->threads > 0 ? st->threads : 1));
    EACH(lines * v->ywidth * c * size >= 1 << 16)
    for (long j = 0; j < c; j += lane) {
        _Alignas(64) float sum[PANEL] = {0};
        long n = least(lane, c - j);
        for (long line = 0; line < lines; line++)
            depth_line(sum, lane, dy + line * v->ywidth * c + j, x + line / v->yheight * v->height * v->width * c + j, v,
                       line % v->yheight, n);
        for (long i = 0; i < n * size; i++)
            give(dweight + j * size + i, sum + i % size * lane + i / size, 1, acc);
    }
}
