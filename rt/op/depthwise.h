/* SPDX-License-Identifier: Apache-2.0
 *
 * depthwise.h: convolutions of single channels, and their gradients: those of conv.h with as many groups as channels.
 *
 * Problem.  A product of one channel by one fills a lane of a tile.  Channels are adjacent in memory, but belong to chains of
 * their own.
 *
 * Method.  Vectors go over channels.  Some pixels of a line that have the same taps inside the image are computed together, in
 * registers: a weight is loaded once for all, and a chain takes its taps without a rest in memory.  Weights are turned before,
 * so that those of a tap are adjacent.  A gradient of weights takes a line of y at a time, with a few columns of the kernel in
 * registers, so that what it reads stays in the nearest cache.
 *
 * Order.  That of conv.h: the same chains.
 *
 * Cost: a load and a fused step a tap.  Not handled: several results of a channel, and kernels above TAPS: conv.h does them.
 */
#ifndef DEPTHWISE_H
#define DEPTHWISE_H
#include "gemm.h"

typedef struct {
    long batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups;
} Conv;

/* LANE: channels of a task.  TOGETHER: pixels, columns of the kernel.  SIDE: of a kernel. */
enum { LANE = TREES ? 64 : 2 * VECTOR, TAPS = TREES ? 256 : 25, SIDE = 16, TOGETHER = 4 };

static inline int is_depthwise(const Conv *v)
{
    return v->groups == v->in && v->groups == v->out && v->kheight <= SIDE && v->kwidth <= SIDE &&
           v->kheight * v->kwidth <= TAPS;
}

/* The taps of an axis that are inside, ascending, and what they read. */
typedef struct { int n, tap[SIDE]; long at[SIDE]; } Reach;

/* Of place `at`.  back: of x, which reads the places of y that took it; both axes have `size` places of what is read. */
static inline void reach(Reach *r, long at, long taps, long stride, long pad, long dilate, long size, int back)
{
    r->n = 0;
    for (int t = 0; t < taps; t++) {
        long from = back ? at + pad - t * dilate : at * stride - pad + t * dilate;
        if (from < 0 || (back && from % stride) || from / (back ? stride : 1) >= size)
            continue;
        r->tap[r->n] = t;
        r->at[r->n++] = from / (back ? stride : 1);
    }
}

/* n numbers, VECTOR at most, and zeros. */
static inline __attribute__((always_inline)) Vector some(const real *x, long n)
{
#ifdef REAL_BF16
    typedef uint16_t Halves __attribute__((vector_size(2 * VECTOR), aligned(2), may_alias));
    typedef uint32_t Words __attribute__((vector_size(4 * VECTOR)));
    if (n == VECTOR)
        return (Vector)(__builtin_convertvector(*(const Halves *)x, Words) << 16);
#else
    if (n == VECTOR)
        return *(const Vector *)x;
#endif
    Vector v = {0};
    for (long i = 0; i < n; i++)
        v[i] = get(x, i);
    return v;
}

static inline __attribute__((always_inline)) void put_some(real *to, Vector v, long n)
{
    float t[VECTOR];
    memcpy(t, &v, sizeof t);
    for (long i = 0; i < n; i++)
        put(to, i, t[i]);
}

/* What the pixels of a line have in common: to and from are at the first channel of a task; line: floats between lines of what
 * is read, step and ahead: between pixels; panel[tap][LANE]. */
typedef struct { const real *from; const float *panel, *add; const Conv *v; Reach down; long line, step, ahead; } Line;

/* `pixels` results of `vectors` vectors, the last one of n numbers. */
static inline __attribute__((always_inline)) void depth_tile(const int pixels, const int vectors, real *to, const Line *l,
                                                             const Reach *across, long j, long n)
{
    Vector s[TOGETHER][2] = {{{0}}};
    for (int a = 0; a < l->down.n; a++)
        for (int b = 0; b < across->n; b++) {
            const real *x = l->from + l->down.at[a] * l->line + across->at[b] * l->v->groups + j;
            const float *w = l->panel + (l->down.tap[a] * l->v->kwidth + across->tap[b]) * LANE + j;
#pragma GCC unroll 4
            for (int p = 0; p < pixels; p++)
#pragma GCC unroll 2
                for (int k = 0; k < vectors; k++)
                    s[p][k] = fused(some(x + p * l->ahead + k * VECTOR, k + 1 < vectors ? VECTOR : n),
                                    *(const Vector *)(w + k * VECTOR), s[p][k]);
        }
    for (int p = 0; p < pixels; p++)
        for (int k = 0; k < vectors; k++)
            put_some(to + p * l->step + j + k * VECTOR, s[p][k] + *(const Vector *)(l->add + j + k * VECTOR),
                     k + 1 < vectors ? VECTOR : n);
}

/* n channels of some pixels */
static inline __attribute__((always_inline)) void depth_pixels(const int pixels, real *to, const Line *l, const Reach *across,
                                                               long n)
{
    long j = 0;
    for (; j + 2 * VECTOR <= n; j += 2 * VECTOR)
        depth_tile(pixels, 2, to, l, across, j, VECTOR);
    for (; j + VECTOR <= n; j += VECTOR)
        depth_tile(pixels, 1, to, l, across, j, VECTOR);
    if (j < n)
        depth_tile(pixels, 1, to, l, across, j, n - j);
}

/* A line of y, or, back, of x. */
static inline void depth_line(real *to, Line *l, int back, long line, long n)
{
    const Conv *v = l->v;
    long height = back ? v->height : v->yheight, width = back ? v->width : v->ywidth, sample = line / height;
    long deep = back ? v->yheight : v->height, wide = back ? v->ywidth : v->width, apart = back ? v->stride : 1;
    const real *first = l->from;
    l->from += sample * deep * wide * v->groups;
    reach(&l->down, line % height, v->kheight, v->stride, v->top, v->dilate, deep, back);
    for (long phase = 0; phase < apart; phase++)
        for (long column = phase, together; column < width; column += together * apart) {
            Reach across, last;
            long end = column + (TOGETHER - 1) * apart;
            reach(&across, column, v->kwidth, v->stride, v->left, v->dilate, wide, back);
            together = 1;
            if (end < width) {
                reach(&last, end, v->kwidth, v->stride, v->left, v->dilate, wide, back);
                together = last.n == across.n && across.n && last.tap[0] == across.tap[0] ? TOGETHER : 1;
            }
            if (together > 1)
                depth_pixels(TOGETHER, to + column * v->groups, l, &across, n);
            else
                depth_pixels(1, to + column * v->groups, l, &across, n);
        }
    l->from = first;
}

/* y of x, or, back, x of y */
static inline void depth_convolve(Stage *st, real *to, const real *from, const real *weight, const real *bias, const Conv *v,
                                  int back)
{
    long size = v->kheight * v->kwidth, lines = v->batch * (back ? v->height : v->yheight);
    long width = back ? v->width : v->ywidth, wide = back ? v->ywidth : v->width, strips = ceil_div(v->groups, LANE);
    long down = least(lines, ceil_div(4 * (st->threads > 0 ? st->threads : 1), strips)), each = ceil_div(lines, down);
    EACH(lines * width * v->groups * size >= 1 << 16)
    for (long task = 0; task < strips * down; task++) {
        _Alignas(64) float panel[TAPS * LANE], add[LANE] = {0};
        long j = task / down * LANE, n = least(LANE, v->groups - j), first = task % down * each;
        for (long c = 0; c < LANE; c++)
            for (long t = 0; t < size; t++)
                panel[t * LANE + c] = c < n ? get(weight, (j + c) * size + t) : 0;
        for (long c = 0; bias && c < n; c++)
            add[c] = get(bias, j + c);
        Line l = {from + j, panel, add, v, {0}, wide * v->groups, (back ? v->stride : 1) * v->groups,
                  (back ? 1 : v->stride) * v->groups};
        for (long line = first; line < least(first + each, lines); line++)
            depth_line(to + line * width * v->groups + j, &l, back, line, n);
    }
}

/* A line of y: the sums of `taps` columns of the kernel go on, in `vectors` vectors, the last one of n numbers.  x: the row
 * that its row of the kernel reads, NULL: outside; the first column reads place `shift`. */
static inline __attribute__((always_inline)) void depth_terms(const int taps, const int vectors, float *sum, const real *dy,
                                                              const real *x, const Conv *v, long shift, long n)
{
    Vector s[TOGETHER][2];
    long c = v->groups;
    for (int t = 0; t < taps; t++)
        for (int k = 0; k < vectors; k++)
            s[t][k] = *(const Vector *)(sum + t * LANE + k * VECTOR);
    for (long p = 0; p < v->ywidth; p++) {
        long at = p * v->stride + shift, last = at + (taps - 1) * v->dilate;
        int all = x && at >= 0 && last < v->width;
#pragma GCC unroll 2
        for (int k = 0; k < vectors; k++) {
            long here = k + 1 < vectors ? VECTOR : n;
            Vector d = some(dy + p * c + k * VECTOR, here);
#pragma GCC unroll 4
            for (int t = 0; t < taps; t++) {
                long place = at + t * v->dilate;
                int inside = all || (x && place >= 0 && place < v->width);
                s[t][k] = fused(d, inside ? some(x + place * c + k * VECTOR, here) : (Vector){0}, s[t][k]);
            }
        }
    }
    for (int t = 0; t < taps; t++)
        for (int k = 0; k < vectors; k++)
            *(Vector *)(sum + t * LANE + k * VECTOR) = s[t][k];
}

static inline void depth_columns(int taps, float *sum, const real *dy, const real *x, const Conv *v, long shift, long n)
{
    for (long j = 0; j < n; j += 2 * VECTOR) {
        long left = n - j;
        const real *d = dy + j, *from = x ? x + j : NULL;
        if (left >= 2 * VECTOR && taps == TOGETHER)
            depth_terms(TOGETHER, 2, sum + j, d, from, v, shift, VECTOR);
        else if (left >= 2 * VECTOR && taps == TOGETHER - 1)
            depth_terms(TOGETHER - 1, 2, sum + j, d, from, v, shift, VECTOR);
        else
            for (int t = 0; t < taps; t++)
                for (long k = 0; k < least(left, 2 * VECTOR); k += VECTOR)
                    depth_terms(1, 1, sum + t * LANE + j + k, d + k, from ? from + k : NULL, v, shift + t * v->dilate,
                                least(VECTOR, left - k));
    }
}

/* dweight of images x and y: a task has some channels and a row of the kernel. */
static inline void depth_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    long strips = ceil_div(v->groups, LANE), lines = v->batch * v->yheight, c = v->groups;
    EACH(lines * v->ywidth * c * v->kheight * v->kwidth >= 1 << 16)
    for (long task = 0; task < strips * v->kheight; task++) {
        long j = task / v->kheight * LANE, n = least(LANE, c - j), i = task % v->kheight;
        _Alignas(64) float sum[SIDE * LANE] = {0};
        for (long line = 0; line < lines; line++) {
            long row = line % v->yheight * v->stride - v->top + i * v->dilate, sample = line / v->yheight;
            const real *from = row < 0 || row >= v->height ? NULL : x + ((sample * v->height + row) * v->width) * c + j;
            for (long t = 0; t < v->kwidth; t += TOGETHER)
                depth_columns((int)least(TOGETHER, v->kwidth - t), sum + t * LANE, dy + line * v->ywidth * c + j, from, v,
                              t * v->dilate - v->left, n);
        }
        for (long k = 0; k < n; k++)
            for (long t = 0; t < v->kwidth; t++)
                give(dweight + ((j + k) * v->kheight + i) * v->kwidth + t, sum + t * LANE + k, 1, acc);
    }
}
#endif
