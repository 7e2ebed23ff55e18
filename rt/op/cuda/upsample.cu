/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsample: rt/op/upsample.c, positions and order as there.  A thread has an element of the result, and adjacent threads have
 * adjacent channels.  A gradient is gathered by pixel, so nothing is added at random.
 */
#include "kernel.h"

struct Resize { long height, width, channels, fheight, fwidth, align; };
struct Between { long low, high; float share; };
struct Readers { long from, until; };
struct Dot { long sample, line, column, channel; };

FN Dot dot_of(long i, long height, long width, long channels)
{
    long pixel = quotient(i, channels), line = quotient(pixel, width), sample = quotient(line, height);
    return Dot{sample, line - sample * height, pixel - line * width, i - pixel * channels};
}

/* Where pixel r of n*by lies among n. */
FN Between between(long n, long by, long align, long r)
{
    long most = n * by - 1, shift = 2 * r + 1 - by;
    long den = !align ? 2 * by : most > 0 ? most : 1, num = align ? r * (n - 1) : shift > 0 ? shift : 0;
    long low = quotient(num, den);
    return Between{low, low + 1 < n ? low + 1 : n - 1, (float)(num - low * den) / (float)den};
}

/* Pixels of n*by that may read pixel p of n. */
FN Readers readers_of(long n, long by, long align, long p)
{
    long all = n * by, gaps = n > 1 ? n - 1 : 1, per = n > 1 ? quotient(all + n - 2, gaps) : all;
    long from = p == 0 ? 0 : align ? quotient((p - 1) * (all - 1), gaps) : (p - 1) * by, until = from + 2 * per + by;
    return Readers{from, until < all ? until : all};
}

FN float share_of(Between at, long p)
{
    return (at.low == p ? 1.0f - at.share : 0.0f) + (at.high == p ? at.share : 0.0f);
}

static __global__ void repeat_pixels(real *y, const real *x, Resize v, long n)
{
    GRID(i, n) {
        Dot s = dot_of(i, v.height * v.fheight, v.width * v.fwidth, v.channels);
        long row = quotient(s.line, v.fheight), column = quotient(s.column, v.fwidth);
        y[i] = x[((s.sample * v.height + row) * v.width + column) * v.channels + s.channel];
    }
}

static __global__ void add_pixels(real *dx, const real *dy, Resize v, long n)
{
    GRID(i, n) {
        Dot s = dot_of(i, v.height, v.width, v.channels);
        float sum = 0;
        for (long r = 0; r < v.fheight; r++)
            for (long c = 0; c < v.fwidth; c++) {
                long line = (s.sample * v.height + s.line) * v.fheight + r;
                sum += one(dy, ((line * v.width + s.column) * v.fwidth + c) * v.channels + s.channel);
            }
        set(dx, i, sum);
    }
}

static __global__ void mix_pixels(real *y, const real *x, Resize v, long n)
{
    GRID(i, n) {
        Dot s = dot_of(i, v.height * v.fheight, v.width * v.fwidth, v.channels);
        Between r = between(v.height, v.fheight, v.align, s.line), c = between(v.width, v.fwidth, v.align, s.column);
        const real *low = x + (s.sample * v.height + r.low) * v.width * v.channels + s.channel;
        const real *high = x + (s.sample * v.height + r.high) * v.width * v.channels + s.channel;
        float above = (1.0f - c.share) * one(low, c.low * v.channels) + c.share * one(low, c.high * v.channels);
        float below = (1.0f - c.share) * one(high, c.low * v.channels) + c.share * one(high, c.high * v.channels);
        set(y, i, (1.0f - r.share) * above + r.share * below);
    }
}

static __global__ void share_pixels(real *dx, const real *dy, Resize v, long n)
{
    GRID(i, n) {
        Dot s = dot_of(i, v.height, v.width, v.channels);
        Readers rows = readers_of(v.height, v.fheight, v.align, s.line);
        Readers columns = readers_of(v.width, v.fwidth, v.align, s.column);
        float sum = 0;
        for (long r = rows.from; r < rows.until; r++) {
            float share = share_of(between(v.height, v.fheight, v.align, r), s.line);
            long line = s.sample * v.height * v.fheight + r;
            for (long c = columns.from; c < columns.until && share != 0; c++) {
                float both = share * share_of(between(v.width, v.fwidth, v.align, c), s.column);
                if (both != 0)
                    sum += both * one(dy, (line * v.width * v.fwidth + c) * v.channels + s.channel);
            }
        }
        set(dx, i, sum);
    }
}

void upsample_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth)
{
    Resize v = {height, width, channels, fheight, fwidth, 0};
    long n = batch * height * width * channels * fheight * fwidth;
    LAUNCH(repeat_pixels, blocks_for(n), (unsigned)BLOCK, st, y, x, v, n);
}

void upsample_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth)
{
    Resize v = {height, width, channels, fheight, fwidth, 0};
    long n = batch * height * width * channels;
    LAUNCH(add_pixels, blocks_for(n), (unsigned)BLOCK, st, dx, dy, v, n);
}

void bilinear_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth, long align)
{
    Resize v = {height, width, channels, fheight, fwidth, align};
    long n = batch * height * width * channels * fheight * fwidth;
    LAUNCH(mix_pixels, blocks_for(n), (unsigned)BLOCK, st, y, x, v, n);
}

void bilinear_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth, long align)
{
    Resize v = {height, width, channels, fheight, fwidth, align};
    long n = batch * height * width * channels;
    LAUNCH(share_pixels, blocks_for(n), (unsigned)BLOCK, st, dx, dy, v, n);
}
