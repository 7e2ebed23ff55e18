/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AvgPool: rt/op/pool.c, in the same order.  A thread has an element of the result, and adjacent threads have
 * adjacent channels.  A gradient is gathered by pixel: its windows ascending, so nothing is added at random.
 */
#include "kernel.h"

struct Pool { long batch, height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left; };
struct Span { long from, until; };
struct Spot { long sample, line, column, channel; };

FN Spot spot_of(long i, long height, long width, long channels)
{
    long pixel = quotient(i, channels), line = quotient(pixel, width), sample = quotient(line, height);
    return Spot{sample, line - sample * height, pixel - line * width, i - pixel * channels};
}

/* The pixels of window p along one axis; the windows over pixel p. */
FN Span pixels_of(long p, long stride, long pad, long kernel, long n)
{
    long from = p * stride - pad, until = from + kernel;
    return Span{from > 0 ? from : 0, until < n ? until : n};
}

FN Span windows_of(long p, long stride, long pad, long kernel, long n)
{
    long from = p + pad - kernel + 1, until = quotient(p + pad, stride) + 1;
    return Span{from > 0 ? quotient(from + stride - 1, stride) : 0, until < n ? until : n};
}

FN Span window_rows(const Pool &v, long row) { return pixels_of(row, v.stride, v.top, v.kheight, v.height); }
FN Span window_columns(const Pool &v, long column) { return pixels_of(column, v.stride, v.left, v.kwidth, v.width); }

/* The first largest of a window, or its last NaN; x is the sample's channel. */
FN long largest(const Pool &v, const real *x, Span rows, Span columns, float *most)
{
    long at = -1;
    *most = -F_INFINITY;
    for (long r = rows.from; r < rows.until; r++)
        for (long c = columns.from; c < columns.until; c++) {
            float a = one(x, (r * v.width + c) * v.channels);
            if (a > *most || at < 0 || a != a)
                *most = a, at = r * v.width + c;
        }
    return at;
}

static __global__ void max_windows(real *y, const real *x, Pool v)
{
    GRID(i, v.batch * v.yheight * v.ywidth * v.channels) {
        Spot p = spot_of(i, v.yheight, v.ywidth, v.channels);
        float most;
        largest(v, x + p.sample * v.height * v.width * v.channels + p.channel, window_rows(v, p.line),
                window_columns(v, p.column), &most);
        set(y, i, most);
    }
}

static __global__ void max_pixels(real *dx, const real *dy, const real *x, Pool v)
{
    GRID(i, v.batch * v.height * v.width * v.channels) {
        Spot p = spot_of(i, v.height, v.width, v.channels);
        const real *image = x + p.sample * v.height * v.width * v.channels + p.channel;
        const real *slope = dy + p.sample * v.yheight * v.ywidth * v.channels + p.channel;
        Span rows = windows_of(p.line, v.stride, v.top, v.kheight, v.yheight);
        Span columns = windows_of(p.column, v.stride, v.left, v.kwidth, v.ywidth);
        float sum = 0, most;
        for (long r = rows.from; r < rows.until; r++)
            for (long c = columns.from; c < columns.until; c++)
                if (largest(v, image, window_rows(v, r), window_columns(v, c), &most) == p.line * v.width + p.column)
                    sum += one(slope, (r * v.ywidth + c) * v.channels);
        set(dx, i, sum);
    }
}

FN float divisor(const Pool &v, Span rows, Span columns, long count_pad)
{
    return (float)(count_pad ? v.kheight * v.kwidth : (rows.until - rows.from) * (columns.until - columns.from));
}

static __global__ void average_windows(real *y, const real *x, Pool v, long count_pad)
{
    GRID(i, v.batch * v.yheight * v.ywidth * v.channels) {
        Spot p = spot_of(i, v.yheight, v.ywidth, v.channels);
        const real *image = x + p.sample * v.height * v.width * v.channels + p.channel;
        Span rows = window_rows(v, p.line), columns = window_columns(v, p.column);
        float sum = 0;
        for (long r = rows.from; r < rows.until; r++)
            for (long c = columns.from; c < columns.until; c++)
                sum += one(image, (r * v.width + c) * v.channels);
        set(y, i, sum / divisor(v, rows, columns, count_pad));
    }
}

static __global__ void average_pixels(real *dx, const real *dy, Pool v, long count_pad)
{
    GRID(i, v.batch * v.height * v.width * v.channels) {
        Spot p = spot_of(i, v.height, v.width, v.channels);
        const real *slope = dy + p.sample * v.yheight * v.ywidth * v.channels + p.channel;
        Span rows = windows_of(p.line, v.stride, v.top, v.kheight, v.yheight);
        Span columns = windows_of(p.column, v.stride, v.left, v.kwidth, v.ywidth);
        float sum = 0;
        for (long r = rows.from; r < rows.until; r++)
            for (long c = columns.from; c < columns.until; c++)
                sum += one(slope, (r * v.ywidth + c) * v.channels) /
                       divisor(v, window_rows(v, r), window_columns(v, c), count_pad);
        set(dx, i, sum);
    }
}

void pool_max_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = {batch, height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    LAUNCH(max_windows, blocks_for(batch * yheight * ywidth * channels), (unsigned)BLOCK, st, y, x, v);
}

void pool_max_backward(Stage *st, real *dx, const real *dy, const real *x, long batch, long height, long width, long channels,
                       long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = {batch, height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    LAUNCH(max_pixels, blocks_for(batch * height * width * channels), (unsigned)BLOCK, st, dx, dy, x, v);
}

void pool_avg_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = {batch, height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    LAUNCH(average_windows, blocks_for(batch * yheight * ywidth * channels), (unsigned)BLOCK, st, y, x, v, count_pad);
}

void pool_avg_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long yheight,
                       long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = {batch, height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    LAUNCH(average_pixels, blocks_for(batch * height * width * channels), (unsigned)BLOCK, st, dx, dy, v, count_pad);
}
