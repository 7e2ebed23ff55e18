/* SPDX-License-Identifier: Apache-2.0
 *
 * rmsnorm.c: RMSNorm (B. Zhang, R. Sennrich, 2019) over rows of `width`, and the same with an offset of its weight, in float
 * whatever the compute type: u = x rstd, g = dy weight, dx = rstd (g - u mean(g u)), dweight = sum of dy u over rows.  Orders
 * of sums are those of norm.c.
 */
#include "kernel.h"
#include "../team.h"

void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                     float eps)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        float squares;
        SUM_OF(squares, width, i, get(row, i) * get(row, i));
        float s = frsqrt(squares / (float)width + eps);
        for (long i = 0; i < width; i++)
            put(y, r * width + i, get(row, i) * s * weight[i]);
        rstd[r] = s;
    }
}

static void rmsnorm_dx(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                       const real *onto, long rows, long width)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width, *d = dy + r * width;
        float s = rstd[r], product;
        SUM_OF(product, width, i, get(d, i) * weight[i] * (get(row, i) * s));
        product /= (float)width;
        for (long i = 0; i < width; i++)
            put(dx, r * width + i, added(onto, r * width + i, s * (get(d, i) * weight[i] - get(row, i) * s * product)));
    }
}

static void rmsnorm_dw(Stage *st, float *dweight, const real *dy, const real *x, const float *rstd, int acc, long rows,
                       long width, long block)
{
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += 64) {
        long n = least(64, width - from);
        float sum[64] = {0}, rest[LEVELS * 64];
        for (long first = 0, number = 0; first < rows; first += block, number++) {
            memset(sum, 0, sizeof sum);
            for (long r = first; r < least(first + block, rows); r++)
                for (long j = 0; j < n; j++)
                    sum[j] += get(dy, r * width + from + j) * (get(x, r * width + from + j) * rstd[r]);
            block_ends(sum, rest, 64, n, number, first + block >= rows);
        }
        give(dweight + from, sum, n, acc);
    }
}

/* Of the rows of a device, which has room for `rows` of `whole`; sum: of its blocks. */
static void rmsnorm_rows_dw(Stage *st, float *dweight, const real *dy, const real *x, const float *rstd, float *sum, int acc,
                            long rows, long width, long whole)
{
    const long here = part_here(st, rows, whole);
    if (here)
        rmsnorm_dw(st, sum, dy, x, rstd, 0, here, width, block_of_part(st, rows));
    else
        fill_nothing(sum, width);
    if (st->team)
        st->team->sum(st, sum, width);
    give(dweight, sum, width, acc);
}

void rmsnorm_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                      const float *rstd, const real *onto, int acc, long rows, long width)
{
    if (dx)
        rmsnorm_dx(st, dx, dy, x, weight, rstd, onto, rows, width);
    if (dweight)
        rmsnorm_dw(st, dweight, dy, x, rstd, acc, rows, width, block_of(st, rows));
}

void rmsnorm_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                           const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, long whole)
{
    if (dx)
        rmsnorm_dx(st, dx, dy, x, weight, rstd, onto, rows, width);
    if (dweight)
        rmsnorm_rows_dw(st, dweight, dy, x, rstd, tmp, acc, rows, width, whole);
}

/* The weight is offset + weight[i]: files of some models hold what is added to 1. */
void rmsnorm_offset_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                            float eps, float offset)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        float squares;
        SUM_OF(squares, width, i, get(row, i) * get(row, i));
        float s = frsqrt(squares / (float)width + eps);
        for (long i = 0; i < width; i++)
            put(y, r * width + i, get(row, i) * s * (offset + weight[i]));
        rstd[r] = s;
    }
}

static void rmsnorm_offset_dx(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                              const real *onto, long rows, long width, float offset)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width, *d = dy + r * width;
        float s = rstd[r], product;
        SUM_OF(product, width, i, get(d, i) * (offset + weight[i]) * (get(row, i) * s));
        product /= (float)width;
        for (long i = 0; i < width; i++)
            put(dx, r * width + i,
                added(onto, r * width + i, s * (get(d, i) * (offset + weight[i]) - get(row, i) * s * product)));
    }
}

void rmsnorm_offset_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                             const float *rstd, const real *onto, int acc, long rows, long width, float offset)
{
    if (dx)
        rmsnorm_offset_dx(st, dx, dy, x, weight, rstd, onto, rows, width, offset);
    if (dweight)
        rmsnorm_dw(st, dweight, dy, x, rstd, acc, rows, width, block_of(st, rows));
}

void rmsnorm_offset_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                                  const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, float offset,
                                  long whole)
{
    if (dx)
        rmsnorm_offset_dx(st, dx, dy, x, weight, rstd, onto, rows, width, offset);
    if (dweight)
        rmsnorm_rows_dw(st, dweight, dy, x, rstd, tmp, acc, rows, width, whole);
}
