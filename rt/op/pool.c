/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AvgPool over images [batch height width channels].
 *
 * A window is passed row by row, column by column; pixels outside do not take part.  The largest value is the first of equal
 * ones, or a NaN.  Backward keeps no index: it finds the first largest of a window again.  Each pixel of dx adds what its
 * windows give, ascending by row and column of y, and is rounded once.  The average divides a finished sum by the size of the
 * window, or with count_pad 0 by the pixels inside.
 *
 * Cost: MaxPool backward looks at each window once and adds into dx, where that rounds no sum twice: f32, or windows that do
 * not overlap.  Else it looks at a window once for each of its pixels.
 */
#include "kernel.h"

typedef struct { long height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left; } Pool;
typedef struct { long from, to; } Span;         /* from .. to-1 */
enum { SOME = 64, FEW = 32 };                   /* channels at a time */

/* The pixels of window p along one axis; the windows over pixel p. */
static inline Span pixels_of(long p, long stride, long pad, long kernel, long n)
{
    long from = p * stride - pad;
    return (Span){from > 0 ? from : 0, least(from + kernel, n)};
}

static inline Span windows_of(long p, long stride, long pad, long kernel, long n)
{
    long from = p + pad - kernel + 1;
    return (Span){from > 0 ? ceil_div(from, stride) : 0, least((p + pad) / stride + 1, n)};
}

static inline Span rows_of(const Pool *v, long row) { return pixels_of(row, v->stride, v->top, v->kheight, v->height); }
static inline Span columns_of(const Pool *v, long column)
{
    return pixels_of(column, v->stride, v->left, v->kwidth, v->width);
}

/* most[j], at[j]: the largest of a window and its pixel; x begins at the sample's channel. */
static void largest(float *most, long *at, const Pool *v, const real *x, Span rows, Span columns, long n)
{
    for (long j = 0; j < n; j++)
        most[j] = -F_INFINITY, at[j] = -1;
    for (long r = rows.from; r < rows.to; r++)
        for (long c = columns.from; c < columns.to; c++)
            for (long j = 0; j < n; j++) {
                float a = get(x, (r * v->width + c) * v->channels + j);
                if (a > most[j] || at[j] < 0 || a != a)
                    most[j] = a, at[j] = r * v->width + c;
            }
}

void pool_max_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = {height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    EACH(batch * yheight * ywidth * channels >= 1 << 13)
    for (long p = 0; p < batch * yheight * ywidth; p++)
        for (long from = 0; from < channels; from += SOME) {
            float most[SOME];
            long at[SOME], n = least(SOME, channels - from);
            const real *sample = x + p / (yheight * ywidth) * height * width * channels + from;
            largest(most, at, &v, sample, rows_of(&v, p / ywidth % yheight), columns_of(&v, p % ywidth), n);
            for (long j = 0; j < n; j++)
                put(y, p * channels + from + j, most[j]);
        }
}

/* sum[j] of one pixel of a sample: dy of the windows whose first largest it is. */
static void max_gradient(float *sum, const Pool *v, const real *dy, const real *x, long pixel, long n)
{
    Span rows = windows_of(pixel / v->width, v->stride, v->top, v->kheight, v->yheight);
    Span columns = windows_of(pixel % v->width, v->stride, v->left, v->kwidth, v->ywidth);
    float most[SOME];
    long at[SOME];
    for (long r = rows.from; r < rows.to; r++)
        for (long c = columns.from; c < columns.to; c++) {
            largest(most, at, v, x, rows_of(v, r), columns_of(v, c), n);
            for (long j = 0; j < n; j++)
                if (at[j] == pixel)
                    sum[j] += get(dy, (r * v->ywidth + c) * v->channels + j);
        }
}

/* n channels of a sample: its windows, ascending, each give dy to their first largest. */
static void max_spread(real *dx, const Pool *v, const real *dy, const real *x, long n)
{
    float most[SOME];
    long at[SOME];
    for (long p = 0; p < v->height * v->width; p++)
        for (long j = 0; j < n; j++)
            put(dx, p * v->channels + j, 0);
    for (long p = 0; p < v->yheight * v->ywidth; p++) {
        largest(most, at, v, x, rows_of(v, p / v->ywidth), columns_of(v, p % v->ywidth), n);
        for (long j = 0; j < n; j++)
            if (at[j] >= 0)
                put(dx, at[j] * v->channels + j, get(dx, at[j] * v->channels + j) + get(dy, p * v->channels + j));
    }
}

void pool_max_backward(Stage *st, real *dx, const real *dy, const real *x, long batch, long height, long width, long channels,
                       long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = {height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    long parts = ceil_div(channels, FEW);
    if (sizeof(real) == sizeof(float) || (kheight <= stride && kwidth <= stride)) {
        EACH(batch * height * width * channels >= 1 << 13)
        for (long p = 0; p < batch * parts; p++) {
            long from = p % parts * FEW, first = p / parts * channels;
            max_spread(dx + first * height * width + from, &v, dy + first * yheight * ywidth + from,
                       x + first * height * width + from, least(FEW, channels - from));
        }
        return;
    }
    EACH(batch * height * width * channels >= 1 << 13)
    for (long p = 0; p < batch * height * width; p++)
        for (long from = 0; from < channels; from += SOME) {
            float sum[SOME] = {0};
            long sample = p / (height * width), n = least(SOME, channels - from);
            const real *y0 = dy + sample * yheight * ywidth * channels, *x0 = x + sample * height * width * channels;
            max_gradient(sum, &v, y0 + from, x0 + from, p % (height * width), n);
            for (long j = 0; j < n; j++)
                put(dx, p * channels + from + j, sum[j]);
        }
}

static inline float divisor(const Pool *v, Span rows, Span columns, long count_pad)
{
    return (float)(count_pad ? v->kheight * v->kwidth : (rows.to - rows.from) * (columns.to - columns.from));
}

void pool_avg_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = {height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    EACH(batch * yheight * ywidth * channels >= 1 << 13)
    for (long p = 0; p < batch * yheight * ywidth; p++)
        for (long from = 0; from < channels; from += SOME) {
            float sum[SOME] = {0};
            Span rows = rows_of(&v, p / ywidth % yheight), columns = columns_of(&v, p % ywidth);
            long first = p / (yheight * ywidth) * height * width, n = least(SOME, channels - from);
            for (long r = rows.from; r < rows.to; r++)
                for (long c = columns.from; c < columns.to; c++)
                    for (long j = 0; j < n; j++)
                        sum[j] += get(x, (first + r * width + c) * channels + from + j);
            for (long j = 0; j < n; j++)
                put(y, p * channels + from + j, sum[j] / divisor(&v, rows, columns, count_pad));
        }
}

void pool_avg_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long yheight,
                       long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = {height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    EACH(batch * height * width * channels >= 1 << 13)
    for (long p = 0; p < batch * height * width; p++)
        for (long from = 0; from < channels; from += SOME) {
            float sum[SOME] = {0};
            Span rows = windows_of(p / width % height, stride, top, kheight, yheight);
            Span columns = windows_of(p % width, stride, left, kwidth, ywidth);
            long first = p / (height * width) * yheight * ywidth, n = least(SOME, channels - from);
            for (long r = rows.from; r < rows.to; r++)
                for (long c = columns.from; c < columns.to; c++) {
                    float by = divisor(&v, rows_of(&v, r), columns_of(&v, c), count_pad);
                    for (long j = 0; j < n; j++)
                        sum[j] += get(dy, (first + r * ywidth + c) * channels + from + j) / by;
                }
            for (long j = 0; j < n; j++)
                put(dx, p * channels + from + j, sum[j]);
        }
}
