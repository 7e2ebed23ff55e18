/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AvgPool over images [batch height width channels].
 *
 * A window is passed row by row, column by column; pixels outside do not take part.  The largest value is the first of equal
 * ones, or a NaN.  Backward keeps no index: it finds the first largest of a window again.  Each pixel of dx adds what its
 * windows give, ascending by row and column of y, and is rounded once.  The average divides a finished sum by the size of the
 * window, or with count_pad 0 by the pixels inside.
 *
 * Cost: MaxPool backward goes over dx by tiles, with their sums in float.  A window at the edge of tiles is looked at in each.
 */
#include "kernel.h"

typedef struct { long height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left; } Pool;
typedef struct { long from, to; } Span;         /* from .. to-1 */
enum { SOME = 64, TALL = 8, WIDE = 16 };        /* channels at a time; rows and columns of dx at a time */

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

/* most[j]: the largest of a window; at[j], unless NULL: which pixel of the window that is, counted by rows.  x begins at the
 * sample's channel. */
static inline __attribute__((always_inline)) void largest(float *most, int32_t *at, const Pool *v, const real *x, Span rows,
                                                          Span columns, long n)
{
    int32_t number = 0;
    for (long j = 0; j < n; j++)
        most[j] = -F_INFINITY;
    for (long j = 0; at && j < n; j++)
        at[j] = 0;
    for (long r = rows.from; r < rows.to; r++)
        for (long c = columns.from; c < columns.to; c++, number++)
            for (long j = 0; j < n; j++) {
                float a = get(x, (r * v->width + c) * v->channels + j);
                int larger = a > most[j] || a != a;
                most[j] = larger ? a : most[j];
                if (at)
                    at[j] = larger ? number : at[j];
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
            long n = least(SOME, channels - from);
            const real *sample = x + p / (yheight * ywidth) * height * width * channels + from;
            largest(most, NULL, &v, sample, rows_of(&v, p / ywidth % yheight), columns_of(&v, p % ywidth), n);
            for (long j = 0; j < n; j++)
                put(y, p * channels + from + j, most[j]);
        }
}

/* Rows and columns of a tile of dx, and its sums. */
typedef struct { Span down, across; float sum[TALL][WIDE][SOME]; } Tile;

static inline Span inside(Span a, Span b) { return (Span){a.from > b.from ? a.from : b.from, least(a.to, b.to)}; }

/* dy of one window goes to its first largest: at[j] counts the pixels of the window by rows. */
static inline void give_window(Tile *t, const real *restrict dy, const int32_t *restrict at, Span rows, Span columns, long n)
{
    Span down = inside(rows, t->down), across = inside(columns, t->across);
    for (long r = down.from; r < down.to; r++)
        for (long c = across.from; c < across.to; c++) {
            int32_t number = (int32_t)((r - rows.from) * (columns.to - columns.from) + c - columns.from);
            float *restrict sum = t->sum[r - t->down.from][c - t->across.from];
            for (long j = 0; j < n; j++)
                sum[j] += at[j] == number ? get(dy, j) : 0.0f;
        }
}

/* The sums of a tile over n channels; x and dy begin at the sample's channel. */
static void max_gradient(Tile *t, const Pool *v, const real *dy, const real *x, long n)
{
    Span down = {windows_of(t->down.from, v->stride, v->top, v->kheight, v->yheight).from,
                 windows_of(t->down.to - 1, v->stride, v->top, v->kheight, v->yheight).to};
    Span across = {windows_of(t->across.from, v->stride, v->left, v->kwidth, v->ywidth).from,
                   windows_of(t->across.to - 1, v->stride, v->left, v->kwidth, v->ywidth).to};
    memset(t->sum, 0, sizeof t->sum);
    for (long r = down.from; r < down.to; r++)
        for (long c = across.from; c < across.to; c++) {
            Span rows = rows_of(v, r), columns = columns_of(v, c);
            int32_t at[SOME];
            float most[SOME];
            largest(most, at, v, x, rows, columns, n);
            give_window(t, dy + (r * v->ywidth + c) * v->channels, at, rows, columns, n);
        }
}

void pool_max_backward(Stage *st, real *dx, const real *dy, const real *x, long batch, long height, long width, long channels,
                       long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = {height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left};
    long high = ceil_div(height, TALL), wide = ceil_div(width, WIDE);
    EACH(batch * height * width * channels >= 1 << 13)
    for (long task = 0; task < batch * high * wide; task++) {
        long sample = task / wide / high, row = task / wide % high * TALL, column = task % wide * WIDE;
        const real *x0 = x + sample * height * width * channels, *y0 = dy + sample * yheight * ywidth * channels;
        Tile t = {.down = {row, least(row + TALL, height)}, .across = {column, least(column + WIDE, width)}};
        for (long from = 0; from < channels; from += SOME) {
            long n = least(SOME, channels - from);
            max_gradient(&t, &v, y0 + from, x0 + from, n);
            for (long r = t.down.from; r < t.down.to; r++)
                for (long c = column; c < t.across.to; c++)
                    for (long j = 0; j < n; j++)
                        put(dx, ((sample * height + r) * width + c) * channels + from + j, t.sum[r - row][c - column][j]);
        }
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
