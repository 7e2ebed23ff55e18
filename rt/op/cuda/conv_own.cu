/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv and ConvTranspose: rt/op/conv.c, in f32 on the plain cores.  Images [batch height width in], weight [out in/groups
 * kheight kwidth].  conv.c says which convolutions are cuDNN's instead.
 *
 * Method.  The product is implicit: a block has 64 pixels and 64 channels of the result, and walks over the taps, 16 channels
 * of a tap at a time through shared memory.  A thread has 4 x 4 results.  The gradient of the weight has a block for 64 x 64
 * channels of one tap and a chunk of the pixels; chunks go to scratch and are added as columns.h says.
 *
 * Order.  An element of y or dx is one chain from zero: kernel rows, kernel columns, channels of the group, all ascending.
 * The bias is added to the finished chain.  An element of dweight is a chain over the pixels of a chunk.  A chunk's length
 * follows from the sizes.
 *
 * Not handled: tensor cores.  A group with few channels fills a part of a tile only.
 */
#include "bias.h"
#include "columns.h"
#include "conv_own.h"
#include "repeat.h"
#include "square.h"

enum { MOST_PARTS = 1 << 18 };

/* A pixel of the result, and with tap (i, j) the pixel that it reads, or -1. */
struct Pixel { long sample, line, column; };

FN Pixel pixel_of(long p, long height, long width)
{
    long line = quotient(p, width), sample = quotient(line, height);
    return Pixel{sample, line - sample * height, p - line * width};
}

FN long read_forward(const Conv &v, Pixel p, long i, long j)
{
    long r = p.line * v.stride - v.top + i * v.dilate, c = p.column * v.stride - v.left + j * v.dilate;
    return r >= 0 && r < v.height && c >= 0 && c < v.width ? (p.sample * v.height + r) * v.width + c : -1;
}

FN long read_backward(const Conv &v, Pixel p, long i, long j)
{
    long r = p.line + v.top - i * v.dilate, c = p.column + v.left - j * v.dilate;
    if (r < 0 || c < 0)
        return -1;
    long y = quotient(r, v.stride), x = quotient(c, v.stride);
    bool read = y * v.stride == r && x * v.stride == c && y < v.yheight && x < v.ywidth;
    return read ? (p.sample * v.yheight + y) * v.ywidth + x : -1;
}

/* to[pixels][groups n]: the taps of `from`, k channels of a group, by the weights: element (k, n) of a tap of a group stands at
 * group * n * k * taps + (k * row + n * col) * taps + tap. */
template <bool BACK, class To>
static __global__ void convolve(To *to, const real *from, const real *weight, const real *bias, Conv v, long pixels, long n,
                                long k, long row, long col)
{
    SHARED(float, a, DEEP * SQUARE_PITCH);
    SHARED(float, b, DEEP * SQUARE_PITCH);
    long wide = (n + SQUARE - 1) / SQUARE, at = blockIdx.x, tile = at % wide, group = at / wide % v.groups;
    long first = at / wide / v.groups * SQUARE, taps = v.kheight * v.kwidth;
    int mine = threadIdx.x / FOURS, part = threadIdx.x % FOURS * FOURS;
    long pixel = first + mine, column = tile * SQUARE + mine;
    Pixel p = BACK ? pixel_of(pixel, v.height, v.width) : pixel_of(pixel, v.yheight, v.ywidth);
    int step = k % FOURS ? 1 : 0;
    float s[FOURS][FOURS] = {};
    for (long tap = 0; tap < taps; tap++) {
        long i = quotient(tap, v.kwidth), j = tap - i * v.kwidth;
        long read = pixel < pixels ? BACK ? read_backward(v, p, i, j) : read_forward(v, p, i, j) : -1;
        const real *source = from + read * v.groups * k + group * k;
        const real *factor = weight + (group * n * k + column * col) * taps + tap;
        for (long deep = 0; deep < k; deep += DEEP) {
            float x[FOURS] = {}, w[FOURS] = {};
            if (read >= 0 && deep + part < k)
                take(x, source, deep + part, k, step);
            for (int q = 0; q < FOURS && column < n; q++)
                w[q] = deep + part + q < k ? one(factor, (deep + part + q) * row * taps) : 0.0f;
            __syncthreads();
            for (int q = 0; q < FOURS; q++) {
                a[(part + q) * SQUARE_PITCH + mine] = x[q];
                b[(part + q) * SQUARE_PITCH + mine] = w[q];
            }
            __syncthreads();
            multiply(s, SHARED_AT(a, 0), SHARED_AT(b, 0));
        }
    }
    long down = first + square_down(), across = tile * SQUARE + square_across();
    for (int i = 0; i < FOURS; i++)
        for (int j = 0; j < FOURS; j++)
            if (down + i < pixels && across + j < n)
                set(to, (down + i) * v.groups * n + group * n + across + j,
                    s[i][j] + (bias ? one(bias, group * n + across + j) : 0.0f));
}

template <bool BACK, class To>
static void convolution(Stage *st, To *to, const real *from, const real *weight, const real *bias, const Conv &v, long pixels,
                        long n, long k, long row, long col)
{
    long blocks = ceil_div(pixels, SQUARE) * v.groups * ceil_div(n, SQUARE);
    LAUNCH((convolve<BACK, To>), (unsigned)blocks, (unsigned)BLOCK, st, to, from, weight, bias, v, pixels, n, k, row, col);
}

void conv_own_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const Conv *v)
{
    convolution<false>(st, y, x, weight, bias, *v, v->batch * v->yheight * v->ywidth, v->out / v->groups, v->in / v->groups, 1,
                       v->in / v->groups);
}

void conv_own_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const Conv *v)
{
    convolution<true>(st, dx, dy, weight, 0, *v, v->batch * v->height * v->width, v->in / v->groups, v->out / v->groups,
                      v->in / v->groups, 1);
}

void conv_own_rows(Stage *st, float *sum, const real *x, const real *weight, const Conv *v)
{
    convolution<false>(st, sum, x, weight, 0, *v, v->batch * v->yheight * v->ywidth, v->out / v->groups, v->in / v->groups, 1,
                       v->in / v->groups);
}

void conv_own_columns(Stage *st, float *sum, const real *dy, const real *weight, const Conv *v)
{
    convolution<true>(st, sum, dy, weight, 0, *v, v->batch * v->height * v->width, v->in / v->groups, v->out / v->groups,
                      v->in / v->groups, 1);
}

/* Chunk `chunk` of `each` pixels: dweight's elements, where there is one chunk, else a part of them. */
static __global__ void weight_parts(Gradient to, float *parts, const real *dy, const real *x, Conv v, long chunks, long each)
{
    SHARED(float, a, DEEP * SQUARE_PITCH);
    SHARED(float, b, DEEP * SQUARE_PITCH);
    long m = v.out / v.groups, n = v.in / v.groups, taps = v.kheight * v.kwidth, pixels = v.batch * v.yheight * v.ywidth;
    long high = (m + SQUARE - 1) / SQUARE, wide = (n + SQUARE - 1) / SQUARE, at = blockIdx.x;
    long across = at % wide * SQUARE, down = at / wide % high * SQUARE;
    at /= wide * high;
    long tap = at % taps, group = at / taps % v.groups, chunk = at / taps / v.groups;
    long i = quotient(tap, v.kwidth), j = tap - i * v.kwidth, until = (chunk + 1) * each;
    int mine = threadIdx.x / (SQUARE / FOURS), part = threadIdx.x % (SQUARE / FOURS) * FOURS;
    int step_m = m % FOURS ? 1 : 0, step_n = n % FOURS ? 1 : 0;
    float s[FOURS][FOURS] = {};
    until = until < pixels ? until : pixels;
    for (long first = chunk * each; first < until; first += DEEP) {
        float d[FOURS] = {}, w[FOURS] = {};
        long pixel = first + mine, read = pixel < until ? read_forward(v, pixel_of(pixel, v.yheight, v.ywidth), i, j) : -1;
        if (read >= 0 && down + part < m)
            take(d, dy + pixel * v.out + group * m, down + part, m, step_m);
        if (read >= 0 && across + part < n)
            take(w, x + read * v.in + group * n, across + part, n, step_n);
        __syncthreads();
        for (int q = 0; q < FOURS; q++) {
            a[mine * SQUARE_PITCH + part + q] = d[q];
            b[mine * SQUARE_PITCH + part + q] = w[q];
        }
        __syncthreads();
        multiply(s, SHARED_AT(a, 0), SHARED_AT(b, 0));
    }
    down += square_down(), across += square_across();
    for (int q = 0; q < FOURS * FOURS; q++)
        if (down + q / FOURS < m && across + q % FOURS < n) {
            long e = ((group * m + down + q / FOURS) * n + across + q % FOURS) * taps + tap;
            if (chunks == 1)
                to.put(0, e, s[q / FOURS][q % FOURS]);
            else
                parts[chunk * v.out * n * taps + e] = s[q / FOURS][q % FOURS];
        }
}

/* The gradient of the weight alone. */
static void weight_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv &v)
{
    long m = v.out / v.groups, n = v.in / v.groups, taps = v.kheight * v.kwidth, size = v.out * n * taps;
    long pixels = v.batch * v.yheight * v.ywidth, tiles = v.groups * taps * ceil_div(m, SQUARE) * ceil_div(n, SQUARE);
    long room = MOST_PARTS / size, most = TILES / tiles, chunks = most < room ? most : room;
    long each = ceil_div(ceil_div(pixels, chunks > 1 ? chunks : 1), 8 * DEEP) * 8 * DEEP;
    Gradient to = {{dweight, 0}, acc};
    chunks = ceil_div(pixels, each);
    float *parts = chunks > 1 ? (float *)workspace_of(st, (size_t)(chunks * size) * sizeof *parts) : 0;
    LAUNCH(weight_parts, (unsigned)(chunks * tiles), (unsigned)BLOCK, st, to, parts, dy, x, v, chunks, each);
    if (parts)
        LAUNCH((column_totals<1, Gradient>), (unsigned)ceil_div(size, WARP), (unsigned)BLOCK, st, to, (const float *)parts,
               (Columns{chunks, size, 1, chunks, 1}));
}

void conv_own_backward_w(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    weight_gradient(st, dweight, dy, x, acc, *v);
}

void conv_own_backward_bias(Stage *st, float *dbias, const real *dy, int acc, const Conv *v)
{
    bias_gradient(st, dbias, dy, acc, v->batch * v->yheight * v->ywidth, v->out);
}

/* ---- behind cuDNN -------------------------------------------------------------------------------------------------- */
static __global__ void take_part(float *to, const real *from, int acc, long n)
{
    GRID(i, n)
        to[i] = acc ? to[i] + one(from, i) : one(from, i);
}

void conv_own_bias(Stage *st, real *y, const real *bias, const Conv *v)
{
    repeat<pair_sum>(st, y, y, bias, 1, v->batch * v->yheight * v->ywidth, v->out);
}

void conv_own_take(Stage *st, float *dweight, const real *part, int acc, const Conv *v)
{
    long n = v->out * (v->in / v->groups) * v->kheight * v->kwidth;
    LAUNCH(take_part, blocks_for(n), (unsigned)BLOCK, st, dweight, part, acc, n);
}

/* ---- ConvTranspose: rt/op/conv_transpose.c ------------------------------------------------------------------------- */

#define OTHER_WAY {batch, yheight, ywidth, out, height, width, in, kheight, kwidth, stride, top, left, dilate, groups}

void conv_transpose_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, long batch, long height,
                            long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride,
                            long top, long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    convolution<true>(st, y, x, weight, bias, v, batch * yheight * ywidth, out / groups, in / groups, out / groups, 1);
}

void conv_transpose_backward_x(Stage *st, real *dx, const real *dy, const real *weight, long batch, long height, long width,
                               long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top,
                               long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    convolution<false>(st, dx, dy, weight, 0, v, batch * height * width, in / groups, out / groups, 1, out / groups);
}

void conv_transpose_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int acc, long batch,
                               long height, long width, long in, long yheight, long ywidth, long out, long kheight,
                               long kwidth, long stride, long top, long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    if (dweight)
        weight_gradient(st, dweight, x, dy, acc, v);
    if (dbias)
        bias_gradient(st, dbias, dy, acc, batch * yheight * ywidth, out);
}
