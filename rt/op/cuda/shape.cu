/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that only move elements: Concat, Slice, Pad, Reshape, Transpose, Embedding forward.  If all lengths and offsets are
 * whole multiples of 16 bytes, 16 bytes are moved at once.  A transposition that moves the last axis goes through tiles of 32
 * x 32 in shared memory, so that both sides are read and written along their last axis.
 */
#include "kernel.h"
#include "../../concat.h"

typedef Words<4> Quad;

/* to[rows] of n units each, `to_step` apart, from rows `from_step` apart, or from the rows that `ids` names. */
template <class U>
static __global__ void move_rows(U *to, long to_step, const U *from, long from_step, const int32_t *ids, long rows, long n)
{
    GRID(i, rows * n) {
        long r = quotient(i, n), j = i - r * n;
        to[r * to_step + j] = from[(ids ? ids[r] : r) * from_step + j];
    }
}

static void move_by(Stage *st, real *to, long to_step, const real *from, long from_step, const int32_t *ids, long rows,
                    long n)
{
    if ((to_step | from_step | n | (uintptr_t)to / sizeof *to | (uintptr_t)from / sizeof *from) % WIDE == 0)
        LAUNCH((move_rows<Quad>), blocks_for(rows * n / WIDE), (unsigned)BLOCK, st, (Quad *)to, to_step / WIDE,
               (const Quad *)from, from_step / WIDE, ids, rows, n / WIDE);
    else
        LAUNCH((move_rows<real>), blocks_for(rows * n), (unsigned)BLOCK, st, to, to_step, from, from_step, ids, rows, n);
}

static void move(Stage *st, real *to, long to_step, const real *from, long from_step, long outer, long n)
{
    move_by(st, to, to_step, from, from_step, 0, outer, n);
}

/* The columns that a slice was not taken from get zero. */
template <class U> static __global__ void spread_rows(U *to, const U *from, long rows, long whole, long at, long n, U zero)
{
    GRID(i, rows * whole) {
        long r = quotient(i, whole), j = i - r * whole - at;
        to[i] = j >= 0 && j < n ? from[r * n + j] : zero;
    }
}

void concat_forward(Stage *st, real *y, const real *a, const real *b, const real *c, const real *d, const real *e,
                    const real *f, const real *g, const real *i, long outer, long na, long nb, long nc, long nd, long ne,
                    long nf, long ng, long ni)
{
    const real *part[PARTS] = {a, b, c, d, e, f, g, i};
    long n[PARTS] = {na, nb, nc, nd, ne, nf, ng, ni}, whole = sum_of(n);
    for (long k = 0, at = 0; k < PARTS; at += n[k++])
        if (part[k] && n[k])
            move(st, y + at, whole, part[k], n[k], outer, n[k]);
}

void concat_backward(Stage *st, real *da, real *db, real *dc, real *dd, real *de, real *df, real *dg, real *di, const real *dy,
                     long outer, long na, long nb, long nc, long nd, long ne, long nf, long ng, long ni)
{
    real *part[PARTS] = {da, db, dc, dd, de, df, dg, di};
    long n[PARTS] = {na, nb, nc, nd, ne, nf, ng, ni}, whole = sum_of(n);
    for (long k = 0, at = 0; k < PARTS; at += n[k++])
        if (part[k] && n[k])
            move(st, part[k], n[k], dy + at, whole, outer, n[k]);
}
void slice_forward(Stage *st, real *y, const real *x, long outer, long whole, long from, long count)
{
    move(st, y, count, x + from, whole, outer, count);
}

void slice_backward(Stage *st, real *dx, const real *dy, long outer, long whole, long from, long count)
{
    const Quad zero = {{0, 0, 0, 0}};
    if ((whole | from | count) % WIDE == 0)
        LAUNCH((spread_rows<Quad>), blocks_for(outer * whole / WIDE), (unsigned)BLOCK, st, (Quad *)dx, (const Quad *)dy,
               outer, whole / WIDE, from / WIDE, count / WIDE, zero);
    else
        LAUNCH((spread_rows<real>), blocks_for(outer * whole), (unsigned)BLOCK, st, dx, dy, outer, whole, from, count,
               (real)0);
}

/* Units of a pixel in y: those of x, or outside of it the value. */
template <class U>
static __global__ void pad_pixels(U *y, const U *x, long height, long width, long units, long yheight, long ywidth, long top,
                                  long left, long n, float value)
{
    U rim;
    for (int j = 0; j < (int)(sizeof rim / sizeof(real)); j++)
        set((real *)&rim, j, value);
    GRID(i, n) {
        long pixel = quotient(i, units), line = quotient(pixel, ywidth), sample = quotient(line, yheight);
        long row = line - sample * yheight - top, column = pixel - line * ywidth - left;
        bool inside = row >= 0 && row < height && column >= 0 && column < width;
        y[i] = inside ? x[((sample * height + row) * width + column) * units + i - pixel * units] : rim;
    }
}

void pad_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                 long ywidth, long top, long left, float value)
{
    long n = batch * yheight * ywidth * channels;
    if (channels % WIDE == 0)
        LAUNCH((pad_pixels<Quad>), blocks_for(n / WIDE), (unsigned)BLOCK, st, (Quad *)y, (const Quad *)x, height, width,
               channels / WIDE, yheight, ywidth, top, left, n / WIDE, value);
    else
        LAUNCH((pad_pixels<real>), blocks_for(n), (unsigned)BLOCK, st, y, x, height, width, channels, yheight, ywidth, top,
               left, n, value);
}

void copy_forward(Stage *st, real *y, const real *x, long n)
{
    version_copy(st, y, x, n * (long)sizeof *y);
}

void embedding_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long)
{
    move_by(st, y, width, weight, width, ids, n, width);
}

/* ---- transpose --------------------------------------------------------------------------------------------------- */

/* Sizes of the result's axes, and the step in the operand along each. */
struct Axes { long n[4], step[4]; };

template <class U> static __global__ void permute_rows(U *y, const U *x, Axes a)
{
    GRID(i, a.n[0] * a.n[1] * a.n[2] * a.n[3]) {
        long at = 0, rest = i;
        for (int k = 3; k >= 0; k--) {
            long over = quotient(rest, a.n[k]);
            at += (rest - over * a.n[k]) * a.step[k];
            rest = over;
        }
        y[i] = x[at];
    }
}

/* n[0] and n[1]: the axes that are no tile's; n[2]: the result's last axis; n[3]: the operand's.  `to`: steps there. */
struct Tiles { long n[4], from[4], to[4]; };

static __global__ void permute_tiles(real *y, const real *x, Tiles t)
{
    SHARED(real, tile, WARP * (WARP + 1));
    long across = (t.n[3] + WARP - 1) / WARP, down = (t.n[2] + WARP - 1) / WARP, b = blockIdx.x;
    long i3 = b % across * WARP, i2 = b / across % down * WARP, rest = b / across / down;
    long i1 = rest % t.n[1], i0 = rest / t.n[1], lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    x += i0 * t.from[0] + i1 * t.from[1];
    y += i0 * t.to[0] + i1 * t.to[1];
    for (long r = warp; r < WARP; r += BLOCK / WARP)
        if (i2 + r < t.n[2] && i3 + lane < t.n[3])
            tile[r * (WARP + 1) + lane] = x[(i2 + r) * t.from[2] + i3 + lane];
    __syncthreads();
    for (long r = warp; r < WARP; r += BLOCK / WARP)
        if (i3 + r < t.n[3] && i2 + lane < t.n[2])
            y[(i3 + r) * t.to[3] + i2 + lane] = tile[lane * (WARP + 1) + r];
}

void transpose_forward(Stage *st, real *y, const real *x, long d0, long d1, long d2, long d3, long p0, long p1,
                       long p2, long p3)
{
    long dim[4] = {d0, d1, d2, d3}, step[4] = {d1 * d2 * d3, d2 * d3, d3, 1}, axis[4] = {p0, p1, p2, p3}, to[4];
    Axes a;
    for (long i = 3, n = 1; i >= 0; n *= dim[axis[i--]]) {
        a.n[i] = dim[axis[i]];
        a.step[i] = step[axis[i]];
        to[axis[i]] = n;
    }
    if (p3 == 3 && d3 % WIDE == 0) {
        for (int i = 0; i < 3; i++)
            a.step[i] /= WIDE;
        a.n[3] /= WIDE;
        LAUNCH((permute_rows<Quad>), blocks_for(d0 * d1 * d2 * a.n[3]), (unsigned)BLOCK, st, (Quad *)y, (const Quad *)x, a);
    } else if (p3 == 3) {
        LAUNCH((permute_rows<real>), blocks_for(d0 * d1 * d2 * d3), (unsigned)BLOCK, st, y, x, a);
    } else {
        Tiles t;
        for (int i = 0, k = 0; i < 4; i++) {
            int at = i == 3 ? 3 : i == p3 ? 2 : k++;
            t.n[at] = dim[i], t.from[at] = step[i], t.to[at] = to[i];
        }
        LAUNCH(permute_tiles, (unsigned)(ceil_div(t.n[3], WARP) * ceil_div(t.n[2], WARP) * t.n[0] * t.n[1]),
               (unsigned)BLOCK, st, y, x, t);
    }
}
