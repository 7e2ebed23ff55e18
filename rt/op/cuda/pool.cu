/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AvgPool: rt/op/pool.c, in the same order.  A gradient is gathered by pixel: its windows ascending, so nothing is
 * added at random.
 *
 * Backward of MaxPool goes over dx by tiles.  A block notes in shared memory where each window over its tile has its largest,
 * then each pixel compares.  A window at the edge of tiles is looked at in each, with 3x3 and stride 2 81 windows for 64.
 * Windows too many for the notes, from some 20 times the stride on, come in several turns.  Cost: the tensors' bytes once, if
 * the cache keeps the pixels that two tiles read.
 *
 * The pixels of an image have numbers of 31 bits.
 */
#include "image.h"

struct Pool { int height, width, channels, yheight, ywidth, kheight, kwidth, top, left; Divisor stride; };
struct Span { int from, until; };

/* The pixels of window p along one axis; the windows over pixels p .. last. */
FN Span pixels_of(int p, Divisor stride, int pad, int kernel, int n)
{
    int from = p * (int)stride.by - pad, until = from + kernel;
    return Span{from > 0 ? from : 0, until < n ? until : n};
}

FN Span windows_of(int p, int last, Divisor stride, int pad, int kernel, int n)
{
    int from = p + pad - kernel, until = quotient(last + pad, stride) + 1;
    return Span{from >= 0 ? quotient(from, stride) + 1 : 0, until < n ? until : n};
}

FN Span window_rows(const Pool &v, int row) { return pixels_of(row, v.stride, v.top, v.kheight, v.height); }
FN Span window_columns(const Pool &v, int column) { return pixels_of(column, v.stride, v.left, v.kwidth, v.width); }
FN Span rows_over(const Pool &v, int line, int last) { return windows_of(line, last, v.stride, v.top, v.kheight, v.yheight); }
FN Span columns_over(const Pool &v, int column, int last)
{
    return windows_of(column, last, v.stride, v.left, v.kwidth, v.ywidth);
}

FN const real *image_of(const Pool &v, const real *x, long sample) { return x + sample * v.height * v.width * v.channels; }
FN const real *slope_of(const Pool &v, const real *dy, long sample) { return dy + sample * v.yheight * v.ywidth * v.channels; }

/* f(a, r, c) for what pixel r, c of a window has in channels i ..: row by row, with three loads under way.  The last pixel of a
 * row may come again. */
enum { ABREAST = 3 };
template <int STEP, class F> FN void over_window(const Pool &v, const real *image, Span rows, Span columns, int i, const F &f)
{
    for (int r = rows.from; r < rows.until; r++) {
        for (int c = columns.from; c < columns.until; c += ABREAST) {
            float a[ABREAST][WIDE];
            int at[ABREAST];
            UNROLL
            for (int k = 0; k < ABREAST; k++) {
                at[k] = c + k < columns.until ? c + k : columns.until - 1;
                take(a[k], image + (long)(r * v.width + at[k]) * v.channels, i, v.channels, STEP);
            }
            UNROLL
            for (int k = 0; k < ABREAST; k++)
                f(a[k], r, at[k]);
        }
    }
}

template <int STEP> static __global__ void max_windows(real *y, const real *x, Pool v, Items t)
{
    GRID(i, t.n) {
        Spot p = spot_of(i, t);
        float most[WIDE];
        for (int j = 0; j < WIDE; j++)
            most[j] = -F_INFINITY;
        over_window<STEP>(v, image_of(v, x, p.sample), window_rows(v, p.line), window_columns(v, p.column), p.channel,
                          [&](const float (&a)[WIDE], int, int) {
                              for (int j = 0; j < WIDE; j++)
                                  most[j] = a[j] > most[j] || a[j] != a[j] ? a[j] : most[j];
                          });
        leave(y + quotient(i, t.groups) * v.channels, most, p.channel, v.channels, STEP);
    }
}

/* A tile is `high` x `wide` pixels, `slab` items of each.  Its windows lie in a raster `across` wide, and `turn` of them are
 * noted at a time, with `slab` notes each. */
enum { ALONG = 8, SLAB = 8, NOTES = 800 };
struct Note { int at[WIDE]; };
struct PoolTiles { Divisor rows, columns, slabs, slab, across, wide; int high, turn, lanes, groups; long n; };

static inline long least_of(long a, long b) { return a < b ? a : b; }

static PoolTiles tiles_of(long batch, const Pool &v)
{
    long stride = v.stride.by, side = ALONG * stride, groups = ceil_div(v.channels, WIDE), slab = least_of(groups, SLAB);
    long down = least_of((side + v.kheight - 2) / stride + 1, v.yheight);
    long across = least_of((side + v.kwidth - 2) / stride + 1, v.ywidth);
    while (slab > 1 && down * across * slab > NOTES)
        slab /= 2;
    long wide = least_of(least_of(side, BLOCK / slab), v.width), slabs = ceil_div(groups, slab);
    long rows = ceil_div(v.height, side), columns = ceil_div(v.width, wide);
    return PoolTiles{divisor_of(rows), divisor_of(columns), divisor_of(slabs), divisor_of(slab), divisor_of(across),
                     divisor_of(wide), (int)side, (int)(NOTES / slab), (int)(BLOCK / slab), (int)groups,
                     batch * rows * columns * slabs};
}

/* The tile's pixels, the windows over them, its items of channels. */
struct PoolTile { long sample; Span lines, pixels, rows, columns, groups; };

FN PoolTile tile_of(long i, const Pool &v, const PoolTiles &t)
{
    long column = quotient(i, t.slabs), row = quotient(column, t.columns), sample = quotient(row, t.rows);
    int slab = (int)(i - column * t.slabs.by);
    int wide = (int)t.wide.by, left = (int)(column - row * t.columns.by) * wide, top = (int)(row - sample * t.rows.by) * t.high;
    int first = slab * (int)t.slab.by;
    Span lines = {top, top + t.high < v.height ? top + t.high : v.height};
    Span pixels = {left, left + wide < v.width ? left + wide : v.width};
    Span groups = {first, first + (int)t.slab.by < t.groups ? first + (int)t.slab.by : t.groups};
    return PoolTile{sample, lines, pixels, rows_over(v, lines.from, lines.until - 1),
                    columns_over(v, pixels.from, pixels.until - 1), groups};
}

/* Where in its window the first largest is, or the last NaN, counted by rows of kwidth: the first pixel where none is above
 * -infinity. */
template <int STEP> FN void note(Note *to, const Pool &v, const real *image, int row, int column, int i)
{
    float most[WIDE];
    int at[WIDE], top = row * (int)v.stride.by - v.top, left = column * (int)v.stride.by - v.left;
    Span rows = window_rows(v, row), columns = window_columns(v, column);
    for (int j = 0; j < WIDE; j++)
        most[j] = -F_INFINITY, at[j] = (rows.from - top) * v.kwidth + columns.from - left;
    over_window<STEP>(v, image, rows, columns, i, [&](const float (&a)[WIDE], int r, int c) {
        int here = (r - top) * v.kwidth + c - left;
        for (int j = 0; j < WIDE; j++) {
            bool more = a[j] > most[j] || a[j] != a[j];
            most[j] = more ? a[j] : most[j];
            at[j] = more ? here : at[j];
        }
    });
    for (int j = 0; j < WIDE; j++)
        to->at[j] = at[j];
}

/* A thread of a block: the item of a pixel that it has, and its pixels or windows, every `lanes`th from `lane` on. */
struct Lane { int lane, item, channel; bool mine; };

FN Lane lane_of(const PoolTiles &t, const PoolTile &b)
{
    int lane = quotient((int)threadIdx.x, t.slab), item = (int)threadIdx.x - lane * (int)t.slab.by;
    return Lane{lane, item, (b.groups.from + item) * WIDE, lane < t.lanes && b.groups.from + item < b.groups.until};
}

template <int STEP>
FN void note_windows(Note *notes, const Pool &v, const PoolTiles &t, const PoolTile &b, const Lane &l, const real *image,
                     int from, int until)
{
    for (int k = l.lane; k < until - from && l.mine; k += t.lanes) {
        int row = quotient(from + k, t.across), column = b.columns.from + from + k - row * (int)t.across.by;
        if (column < b.columns.until)
            note<STEP>(&notes[k * (int)t.slab.by + l.item], v, image, b.rows.from + row, column, l.channel);
    }
}

/* Adds to the sums of a pixel, by rows and columns, what the noted windows from .. until-1 of the columns give it. */
template <int STEP>
FN void gather(float (&sum)[WIDE], const Note *notes, const Pool &v, const PoolTiles &t, const PoolTile &b, const Lane &l,
               const real *slope, int line, int pixel, Span columns, int from, int until)
{
    Span rows = rows_over(v, line, line);
    for (int r = rows.from; r < rows.until; r++)
        for (int c = columns.from; c < columns.until; c++) {
            int window = (r - b.rows.from) * (int)t.across.by + c - b.columns.from;
            if (window < from || window >= until)
                continue;
            int here = (line + v.top - r * (int)v.stride.by) * v.kwidth + pixel + v.left - c * (int)v.stride.by;
            const Note of = notes[(window - from) * (int)t.slab.by + l.item];
            float d[WIDE];
            take(d, slope + (long)(r * v.ywidth + c) * v.channels, l.channel, v.channels, STEP);
            for (int j = 0; j < WIDE; j++)
                if (of.at[j] == here)
                    sum[j] += d[j];
        }
}

/* A thread has one column of the tile's pixels, and every `step`th line. */
template <int STEP> static __global__ void __launch_bounds__(BLOCK, STEP ? 2 : 4)
max_pixels(real *dx, const real *dy, const real *x, Pool v, PoolTiles t)
{
    SHARED(Note, notes, NOTES);
    int step = quotient(t.lanes, t.wide);
    for (long i = blockIdx.x; i < t.n; i += gridDim.x) {
        PoolTile b = tile_of(i, v, t);
        Lane l = lane_of(t, b);
        int windows = (b.rows.until - b.rows.from) * (int)t.across.by, row = quotient(l.lane, t.wide);
        int pixel = b.pixels.from + l.lane - row * (int)t.wide.by;
        bool mine = l.mine && row < step && pixel < b.pixels.until;
        const real *image = image_of(v, x, b.sample), *slope = slope_of(v, dy, b.sample);
        real *to = dx + (image - x);
        Span columns = columns_over(v, pixel, pixel);
        for (int line = b.lines.from; line < b.lines.until; line += step) {
            bool some = mine && line + row < b.lines.until;
            float sum[WIDE];
            for (int j = 0; j < WIDE; j++)
                sum[j] = 0;
            for (int from = 0; from < windows; from += t.turn) {
                int until = from + t.turn < windows ? from + t.turn : windows;
                if (line == b.lines.from || windows > t.turn) {
                    __syncthreads();
                    note_windows<STEP>(SHARED_AT(notes, 0), v, t, b, l, image, from, until);
                    __syncthreads();
                }
                if (some)
                    gather<STEP>(sum, SHARED_AT(notes, 0), v, t, b, l, slope, line + row, pixel, columns, from, until);
            }
            if (some)
                leave(to + (long)((line + row) * v.width + pixel) * v.channels, sum, l.channel, v.channels, STEP);
        }
    }
}

FN float divisor(const Pool &v, Span rows, Span columns, long count_pad)
{
    return (float)(count_pad ? v.kheight * v.kwidth : (rows.until - rows.from) * (columns.until - columns.from));
}

template <int STEP> static __global__ void average_windows(real *y, const real *x, Pool v, Items t, long count_pad)
{
    GRID(i, t.n) {
        Spot p = spot_of(i, t);
        const real *image = image_of(v, x, p.sample);
        Span rows = window_rows(v, p.line), columns = window_columns(v, p.column);
        float sum[WIDE], a[WIDE];
        for (int j = 0; j < WIDE; j++)
            sum[j] = 0;
        for (int r = rows.from; r < rows.until; r++)
            UNROLL_4
            for (int c = columns.from; c < columns.until; c++) {
                take(a, image + (long)(r * v.width + c) * v.channels, p.channel, v.channels, STEP);
                for (int j = 0; j < WIDE; j++)
                    sum[j] += a[j];
            }
        for (int j = 0; j < WIDE; j++)
            sum[j] = sum[j] / divisor(v, rows, columns, count_pad);
        leave(y + quotient(i, t.groups) * v.channels, sum, p.channel, v.channels, STEP);
    }
}

template <int STEP> static __global__ void average_pixels(real *dx, const real *dy, Pool v, Items t, long count_pad)
{
    GRID(i, t.n) {
        Spot p = spot_of(i, t);
        const real *slope = slope_of(v, dy, p.sample);
        Span rows = rows_over(v, p.line, p.line), columns = columns_over(v, p.column, p.column);
        float sum[WIDE], d[WIDE];
        for (int j = 0; j < WIDE; j++)
            sum[j] = 0;
        for (int r = rows.from; r < rows.until; r++)
            for (int c = columns.from; c < columns.until; c++) {
                take(d, slope + (long)(r * v.ywidth + c) * v.channels, p.channel, v.channels, STEP);
                float by = divisor(v, window_rows(v, r), window_columns(v, c), count_pad);
                for (int j = 0; j < WIDE; j++)
                    sum[j] += d[j] / by;
            }
        leave(dx + quotient(i, t.groups) * v.channels, sum, p.channel, v.channels, STEP);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static Pool pool_of(long height, long width, long channels, long yheight, long ywidth, long kheight, long kwidth, long stride,
                    long top, long left)
{
    return Pool{(int)height, (int)width, (int)channels, (int)yheight, (int)ywidth, (int)kheight, (int)kwidth, (int)top,
                (int)left, divisor_of(stride)};
}

void pool_max_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = pool_of(height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left);
    Items t = items_of(batch, yheight, ywidth, channels);
    LAUNCH_IMAGE(max_windows, channels, blocks_for(t.n), st, y, x, v, t);
}

void pool_max_backward(Stage *st, real *dx, const real *dy, const real *x, long batch, long height, long width, long channels,
                       long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left)
{
    Pool v = pool_of(height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left);
    PoolTiles t = tiles_of(batch, v);
    LAUNCH_IMAGE(max_pixels, channels, blocks_for(t.n * BLOCK), st, dx, dy, x, v, t);
}

void pool_avg_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                      long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = pool_of(height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left);
    Items t = items_of(batch, yheight, ywidth, channels);
    LAUNCH_IMAGE(average_windows, channels, blocks_for(t.n), st, y, x, v, t, count_pad);
}

void pool_avg_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long yheight,
                       long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad)
{
    Pool v = pool_of(height, width, channels, yheight, ywidth, kheight, kwidth, stride, top, left);
    Items t = items_of(batch, height, width, channels);
    LAUNCH_IMAGE(average_pixels, channels, blocks_for(t.n), st, dx, dy, v, t, count_pad);
}
