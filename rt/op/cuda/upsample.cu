/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsample: rt/op/upsample.c, positions and order as there.  A gradient is gathered by pixel, so nothing is added at
 * random.  Coordinates in an image have 31 bits.
 */
#include "image.h"

struct Resize { int height, width, channels, align; Divisor fheight, fwidth; };
struct Between { int low, high; float share; };
struct Readers { int from, until; };

/* Where pixel r of n*by lies among n. */
FN Between between(long n, long by, long align, long r)
{
    long most = n * by - 1, shift = 2 * r + 1 - by;
    long den = !align ? 2 * by : most > 0 ? most : 1, num = align ? r * (n - 1) : shift > 0 ? shift : 0;
    long low = quotient(num, den);
    return Between{(int)low, (int)(low + 1 < n ? low + 1 : n - 1), (float)(num - low * den) / (float)den};
}

/* Pixels of n*by that may read pixel p of n. */
FN Readers readers_of(long n, long by, long align, long p)
{
    long all = n * by, gaps = n > 1 ? n - 1 : 1, per = n > 1 ? quotient(all + n - 2, gaps) : all;
    long from = p == 0 ? 0 : align ? quotient((p - 1) * (all - 1), gaps) : (p - 1) * by, until = from + 2 * per + by;
    return Readers{(int)from, (int)(until < all ? until : all)};
}

FN float share_of(Between at, int p)
{
    return (at.low == p ? 1.0f - at.share : 0.0f) + (at.high == p ? at.share : 0.0f);
}

/* The first channel of a pixel; of a pixel of the larger image. */
FN long small_pixel(const Resize &v, long sample, int line, int column)
{
    return ((sample * v.height + line) * v.width + column) * v.channels;
}

FN long large_pixel(const Resize &v, long sample, int line, int column)
{
    return ((sample * v.height * v.fheight.by + line) * v.width * v.fwidth.by + column) * v.channels;
}

template <int STEP> static __global__ void repeat_pixels(real *y, const real *x, Resize v, Items t)
{
    GRID(i, t.n) {
        Spot s = spot_of(i, t);
        float a[WIDE];
        take(a, x + small_pixel(v, s.sample, quotient(s.line, v.fheight), quotient(s.column, v.fwidth)), s.channel, v.channels,
             STEP);
        leave(y + large_pixel(v, s.sample, s.line, s.column), a, s.channel, v.channels, STEP);
    }
}

template <int STEP> static __global__ void add_pixels(real *dx, const real *dy, Resize v, Items t)
{
    int high = (int)v.fheight.by, wide = (int)v.fwidth.by;
    GRID(i, t.n) {
        Spot s = spot_of(i, t);
        float sum[WIDE], a[WIDE];
        for (int j = 0; j < WIDE; j++)
            sum[j] = 0;
        for (int r = 0; r < high; r++)
            for (int c = 0; c < wide; c++) {
                take(a, dy + large_pixel(v, s.sample, s.line * high + r, s.column * wide + c), s.channel, v.channels, STEP);
                for (int j = 0; j < WIDE; j++)
                    sum[j] += a[j];
            }
        leave(dx + small_pixel(v, s.sample, s.line, s.column), sum, s.channel, v.channels, STEP);
    }
}

template <int STEP> static __global__ void mix_pixels(real *y, const real *x, Resize v, Items t)
{
    GRID(i, t.n) {
        Spot s = spot_of(i, t);
        Between r = between(v.height, v.fheight.by, v.align, s.line), c = between(v.width, v.fwidth.by, v.align, s.column);
        float a[4][WIDE];
        UNROLL
        for (int k = 0; k < 4; k++)
            take(a[k], x + small_pixel(v, s.sample, k < 2 ? r.low : r.high, k % 2 ? c.high : c.low), s.channel, v.channels,
                 STEP);
        for (int j = 0; j < WIDE; j++) {
            float above = (1.0f - c.share) * a[0][j] + c.share * a[1][j];
            float below = (1.0f - c.share) * a[2][j] + c.share * a[3][j];
            a[0][j] = (1.0f - r.share) * above + r.share * below;
        }
        leave(y + large_pixel(v, s.sample, s.line, s.column), a[0], s.channel, v.channels, STEP);
    }
}

template <int STEP> static __global__ void share_pixels(real *dx, const real *dy, Resize v, Items t)
{
    GRID(i, t.n) {
        Spot s = spot_of(i, t);
        Readers rows = readers_of(v.height, v.fheight.by, v.align, s.line);
        Readers columns = readers_of(v.width, v.fwidth.by, v.align, s.column);
        float sum[WIDE], a[WIDE];
        for (int j = 0; j < WIDE; j++)
            sum[j] = 0;
        for (int r = rows.from; r < rows.until; r++) {
            float share = share_of(between(v.height, v.fheight.by, v.align, r), s.line);
            for (int c = columns.from; c < columns.until && share != 0; c++) {
                float both = share * share_of(between(v.width, v.fwidth.by, v.align, c), s.column);
                if (both == 0)
                    continue;
                take(a, dy + large_pixel(v, s.sample, r, c), s.channel, v.channels, STEP);
                for (int j = 0; j < WIDE; j++)
                    sum[j] += both * a[j];
            }
        }
        leave(dx + small_pixel(v, s.sample, s.line, s.column), sum, s.channel, v.channels, STEP);
    }
}

static Resize resize_of(long height, long width, long channels, long fheight, long fwidth, long align)
{
    return Resize{(int)height, (int)width, (int)channels, (int)align, divisor_of(fheight), divisor_of(fwidth)};
}

void upsample_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth)
{
    Resize v = resize_of(height, width, channels, fheight, fwidth, 0);
    Items t = items_of(batch, height * fheight, width * fwidth, channels);
    LAUNCH_IMAGE(repeat_pixels, channels, blocks_for(t.n), st, y, x, v, t);
}

void upsample_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth)
{
    Resize v = resize_of(height, width, channels, fheight, fwidth, 0);
    Items t = items_of(batch, height, width, channels);
    LAUNCH_IMAGE(add_pixels, channels, blocks_for(t.n), st, dx, dy, v, t);
}

void bilinear_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth, long align)
{
    Resize v = resize_of(height, width, channels, fheight, fwidth, align);
    Items t = items_of(batch, height * fheight, width * fwidth, channels);
    LAUNCH_IMAGE(mix_pixels, channels, blocks_for(t.n), st, y, x, v, t);
}

void bilinear_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth, long align)
{
    Resize v = resize_of(height, width, channels, fheight, fwidth, align);
    Items t = items_of(batch, height, width, channels);
    LAUNCH_IMAGE(share_pixels, channels, blocks_for(t.n), st, dx, dy, v, t);
}
