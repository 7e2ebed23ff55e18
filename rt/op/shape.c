/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that only move elements: Concat, Slice, Pad, Reshape, Transpose.  No arithmetic, so any bits go through.
 */
#include "kernel.h"
#include "../concat.h"

/* to[outer] rows of n elements, `to_step` apart, from rows `from_step` apart. */
static void move(Stage *st, real *to, long to_step, const real *from, long from_step, long outer, long n)
{
    EACH(outer * n >= 1 << 16)
    for (long r = 0; r < outer; r++)
        memcpy(to + r * to_step, from + r * from_step, (size_t)n * sizeof *to);
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
    EACH(outer * whole >= 1 << 16)
    for (long r = 0; r < outer; r++) {
        real *to = dx + r * whole;
        memset(to, 0, (size_t)from * sizeof *to);
        memcpy(to + from, dy + r * count, (size_t)count * sizeof *to);
        memset(to + from + count, 0, (size_t)(whole - from - count) * sizeof *to);
    }
}

void pad_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight,
                 long ywidth, long top, long left, float value)
{
    long from = left > 0 ? left : 0, to = least(left + width, ywidth);
    real rim;
    put(&rim, 0, value);
    EACH(batch * yheight * ywidth * channels >= 1 << 16)
    for (long line = 0; line < batch * yheight; line++) {
        long row = line % yheight - top;
        int inside = row >= 0 && row < height && from < to;
        real *line_of_y = y + line * ywidth * channels;
        for (long i = 0; i < (inside ? from : ywidth) * channels; i++)
            line_of_y[i] = rim;
        if (!inside)
            continue;
        memcpy(line_of_y + from * channels, x + ((line / yheight * height + row) * width + from - left) * channels,
               (size_t)((to - from) * channels) * sizeof *y);
        for (long i = to * channels; i < ywidth * channels; i++)
            line_of_y[i] = rim;
    }
}

void copy_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        y[i] = x[i];
}

void transpose_forward(Stage *st, real *y, const real *x, long d0, long d1, long d2, long d3, long p0, long p1,
                       long p2, long p3)
{
    long dim[4] = {d0, d1, d2, d3}, step[4] = {d1 * d2 * d3, d2 * d3, d3, 1}, axis[4] = {p0, p1, p2, p3};
    long n1 = dim[axis[1]], n2 = dim[axis[2]], n3 = dim[axis[3]], last = step[axis[3]];
    EACH(d0 * d1 * d2 * d3 >= 1 << 15)
    for (long row = 0; row < dim[axis[0]] * n1 * n2; row++) {
        long at = row / (n1 * n2) * step[axis[0]] + row / n2 % n1 * step[axis[1]] + row % n2 * step[axis[2]];
        for (long j = 0; j < n3; j++)
            y[row * n3 + j] = x[at + j * last];
    }
}
