/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsample: each pixel of x[batch height width channels] becomes fheight by fwidth pixels of y.
 *
 * nearest    repeats a pixel.
 * bilinear   mixes four.  Row r of y lies at num/den among the h rows of x, a ratio of whole numbers, so that the row before it
 *            and the share of the one behind are exact but for one division.  align 0: num = max(2 r + 1 - f, 0), den = 2 f;
 *            align 1: num = r (h - 1), den = f h - 1.  Columns the same.  Rows are mixed last, as PyTorch does.
 *
 * Order of gradients: the pixels of y that read the pixel, ascending by row and column; rounded once.  Cost of backward: of
 * each pixel of x up to 4 f^2 pixels of y.
 */
#include "kernel.h"

typedef struct { long from, to; } Span;         /* from .. to-1 */
typedef struct { long low, high; float share; } Between;    /* share: of high */
typedef struct { long n, by, align; } Axis;
enum { SOME = 64 };                             /* channels at a time */

static inline Between place_of(const Axis *a, long r)
{
    long most = a->n * a->by - 1, shift = 2 * r + 1 - a->by;
    long den = !a->align ? 2 * a->by : most > 0 ? most : 1, num = a->align ? r * (a->n - 1) : shift > 0 ? shift : 0;
    long low = num / den;
    return (Between){low, least(low + 1, a->n - 1), (float)(num % den) / (float)den};
}

/* Pixels of y that may read pixel p of x: those from pixel p-1 to p+1. */
static inline Span readers_of(const Axis *a, long p)
{
    long all = a->n * a->by, per = a->n > 1 ? ceil_div(all, a->n - 1) : all;
    long from = a->align ? (p - 1) * (all - 1) / (a->n > 1 ? a->n - 1 : 1) : (p - 1) * a->by;
    long to = from + 2 * per + a->by;
    return (Span){from > 0 ? from : 0, least(to, all)};
}

static inline float share_of(const Between *at, long p)
{
    return (at->low == p ? 1.0f - at->share : 0.0f) + (at->high == p ? at->share : 0.0f);
}

void upsample_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth)
{
    long line = width * fwidth * channels;
    EACH(batch * height * fheight * line >= 1 << 16)
    for (long row = 0; row < batch * height; row++) {
        real *to = y + row * fheight * line;
        for (long p = 0; p < width * fwidth; p++)
            memcpy(to + p * channels, x + (row * width + p / fwidth) * channels, (size_t)channels * sizeof *y);
        for (long i = 1; i < fheight; i++)
            memcpy(to + i * line, to, (size_t)line * sizeof *y);
    }
}

void upsample_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth)
{
    EACH(batch * height * width * channels * fheight * fwidth >= 1 << 14)
    for (long pixel = 0; pixel < batch * height * width; pixel++)
        for (long from = 0; from < channels; from += SOME) {
            long n = least(SOME, channels - from), row = pixel / width, column = pixel % width;
            float sum[SOME] = {0};
            for (long k = 0; k < fheight * fwidth; k++) {
                long at = ((row * fheight + k / fwidth) * width + column) * fwidth + k % fwidth;
                for (long j = 0; j < n; j++)
                    sum[j] += get(dy, at * channels + from + j);
            }
            for (long j = 0; j < n; j++)
                put(dx, pixel * channels + from + j, sum[j]);
        }
}

void bilinear_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight,
                      long fwidth, long align)
{
    Axis down = {height, fheight, align}, across = {width, fwidth, align};
    long lines = height * fheight, columns = width * fwidth;
    EACH(batch * lines * columns * channels >= 1 << 14)
    for (long line = 0; line < batch * lines; line++) {
        Between r = place_of(&down, line % lines);
        const real *sample = x + line / lines * height * width * channels;
        const real *low = sample + r.low * width * channels, *high = sample + r.high * width * channels;
        for (long column = 0; column < columns; column++) {
            Between c = place_of(&across, column);
            for (long j = 0; j < channels; j++) {
                long left = c.low * channels + j, right = c.high * channels + j;
                float above = (1.0f - c.share) * get(low, left) + c.share * get(low, right);
                float below = (1.0f - c.share) * get(high, left) + c.share * get(high, right);
                put(y, (line * columns + column) * channels + j, (1.0f - r.share) * above + r.share * below);
            }
        }
    }
}

/* sum[j] = the shares of pixel (row, column) in those of y, for n channels of a sample */
static void bilinear_gradient(float *sum, const real *dy, const Axis *down, const Axis *across, long row, long column,
                              long channels, long n)
{
    Span rows = readers_of(down, row), columns = readers_of(across, column);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (long r = rows.from; r < rows.to; r++) {
        Between at = place_of(down, r);
        float share = share_of(&at, row);
        for (long c = columns.from; c < columns.to && share != 0; c++) {
            Between to = place_of(across, c);
            float both = share * share_of(&to, column);
            for (long j = 0; j < n && both != 0; j++)
                sum[j] += both * get(dy, (r * across->n * across->by + c) * channels + j);
        }
    }
}

void bilinear_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight,
                       long fwidth, long align)
{
    Axis down = {height, fheight, align}, across = {width, fwidth, align};
    EACH(batch * height * width * channels * fheight * fwidth >= 1 << 14)
    for (long pixel = 0; pixel < batch * height * width; pixel++)
        for (long from = 0; from < channels; from += SOME) {
            long n = least(SOME, channels - from), sample = pixel / width / height;
            float sum[SOME];
            bilinear_gradient(sum, dy + sample * height * fheight * width * fwidth * channels + from, &down, &across,
                              pixel / width % height, pixel % width, channels, n);
            for (long j = 0; j < n; j++)
                put(dx, pixel * channels + from + j, sum[j]);
        }
}
