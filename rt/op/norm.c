/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c: LayerNorm (J. Ba, J. Kiros, G. Hinton, 2016) over rows of `width`, in float whatever the compute type.  With
 * u = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - u mean(g u)), dweight = sum of dy u over rows, dbias = sum of
 * dy over rows.
 *
 * RMSNorm (B. Zhang, R. Sennrich, 2019) has no mean and no bias: u = x rstd, dx = rstd (g - u mean(g u)).  Its weight may be
 * offset + weight[i]: files of some models hold what is added to 1.
 *
 * Variance is the mean of squared differences, in a second pass: the difference of two large sums would cancel.
 * Sums along a row go by lanes, sums over rows ascend, in blocks (kernel.h); threads split rows, or columns for dweight and
 * dbias.
 */
#include "kernel.h"
#include "../team.h"

void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        float sum, squares;
        SUM_OF(sum, width, i, get(row, i));
        float m = sum / (float)width;
        SUM_OF(squares, width, i, (get(row, i) - m) * (get(row, i) - m));
        float s = frsqrt(squares / (float)width + eps);
        if (bias)
            for (long i = 0; i < width; i++)
                put(y, r * width + i, (get(row, i) - m) * s * weight[i] + bias[i]);
        else
            for (long i = 0; i < width; i++)
                put(y, r * width + i, (get(row, i) - m) * s * weight[i]);
        mean[r] = m;
        rstd[r] = s;
    }
}

static void layernorm_dx(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                         const float *rstd, const real *onto, long rows, long width)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width, *d = dy + r * width;
        float m = mean[r], s = rstd[r], plain[CHUNK], by[CHUNK];
        Sum sums[2] = {{{0}}};
        for (long from = 0; from < width; from += CHUNK) {
            long n = least(CHUNK, width - from);
            for (long i = 0; i < n; i++) {
                plain[i] = get(d, from + i) * weight[from + i];
                by[i] = plain[i] * ((get(row, from + i) - m) * s);
            }
            sum_add(&sums[0], plain, n);
            sum_add(&sums[1], by, n);
        }
        float sum = sum_end(&sums[0]) / (float)width, product = sum_end(&sums[1]) / (float)width;
        for (long i = 0; i < width; i++)
            put(dx, r * width + i,
                added(onto, r * width + i, s * (get(d, i) * weight[i] - sum - (get(row, i) - m) * s * product)));
    }
}

/* Rows of a block: terms of dweight, and of dbias, in n columns.  `down` rows are taken while both sums are in registers.
 * mean: NULL if it is 0. */
static inline long norm_terms(float sum[2][CHUNK], const real *dy, const real *x, const float *mean, const float *rstd,
                              const long down, long first, long end, long width, long from, long n)
{
    for (; first + down <= end; first += down) {
        const real *d = dy + first * width + from, *v = x + first * width + from;
        for (long j = 0; j < n; j++) {
            float weight = sum[0][j], bias = sum[1][j];
            for (long k = 0; k < down; k++) {
                float t = get(d, k * width + j);
                weight += t * ((get(v, k * width + j) - (mean ? mean[first + k] : 0.0f)) * rstd[first + k]);
                bias += t;
            }
            sum[0][j] = weight;
            sum[1][j] = bias;
        }
    }
    return first;
}

static inline void norm_block(float sum[2][CHUNK], const real *dy, const real *x, const float *mean, const float *rstd,
                              long first, long end, long width, long from, long n)
{
    long whole = norm_terms(sum, dy, x, mean, rstd, 8, first, end, width, from, n);
    norm_terms(sum, dy, x, mean, rstd, 1, whole, end, width, from, n);
}

static void norm_dw(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                    const float *rstd, int acc, long rows, long width, long block)
{
    long each = columns_each(st, width);
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += each) {
        long n = least(each, width - from);
        float sum[2][CHUNK] = {0}, rest[2][LEVELS * CHUNK];
        for (long first = 0, number = 0; first < rows; first += block, number++) {
            long end = least(first + block, rows);
            memset(sum, 0, sizeof sum);
            if (mean)
                norm_block(sum, dy, x, mean, rstd, first, end, width, from, n);
            else
                norm_block(sum, dy, x, NULL, rstd, first, end, width, from, n);
            for (int i = 0; i < 2; i++)
                block_ends(sum[i], rest[i], CHUNK, n, number, end == rows);
        }
        if (dweight)
            give(dweight + from, sum[0], n, acc);
        if (dbias)
            give(dbias + from, sum[1], n, acc);
    }
}

/* Of the rows of a device (docs/width.md), which has room for `rows` of `whole`.  sum: of its blocks, for dweight, and with a
 * mean for dbias. */
static void norm_rows_dw(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                         const float *rstd, float *sum, int acc, long rows, long width, long whole)
{
    const long here = part_here(st, rows, whole);
    float *bias = mean ? sum + width : NULL;
    if (here)
        norm_dw(st, sum, bias, dy, x, mean, rstd, 0, here, width, block_of_part(st, rows));
    else
        fill_nothing(sum, (mean ? 2 : 1) * width);
    if (st->team)               /* what is wanted */
        st->team->sum(st, dweight ? sum : bias, (dweight && dbias ? 2 : 1) * width);
    if (dweight)
        give(dweight, sum, width, acc);
    if (dbias)
        give(dbias, bias, width, acc);
}

void layernorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight,
                        const float *mean, const float *rstd, const real *onto, int acc, long rows, long width)
{
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (dweight || dbias)
        norm_dw(st, dweight, dbias, dy, x, mean, rstd, acc, rows, width, block_of(st, rows));
}

void layernorm_rows_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *weight, const float *mean, const float *rstd, const real *onto, void *tmp, int acc,
                             long rows, long width, long whole)
{
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (dweight || dbias)
        norm_rows_dw(st, dweight, dbias, dy, x, mean, rstd, tmp, acc, rows, width, whole);
}

/* ---- without a mean -------------------------------------------------------------------------------------------------- */

#define NO_OFFSET (-0.0f)               /* a weight of -0 stays */

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

static void rmsnorm_dx(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
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
        rmsnorm_dx(st, dx, dy, x, weight, rstd, onto, rows, width, offset);
    if (dweight)
        norm_dw(st, dweight, NULL, dy, x, NULL, rstd, acc, rows, width, block_of(st, rows));
}

void rmsnorm_offset_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                                  const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, float offset,
                                  long whole)
{
    if (dx)
        rmsnorm_dx(st, dx, dy, x, weight, rstd, onto, rows, width, offset);
    if (dweight)
        norm_rows_dw(st, dweight, NULL, dy, x, NULL, rstd, tmp, acc, rows, width, whole);
}

void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width, float eps)
{
    rmsnorm_offset_forward(st, y, rstd, x, weight, rows, width, eps, NO_OFFSET);
}

void rmsnorm_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                      const float *rstd, const real *onto, int acc, long rows, long width)
{
    rmsnorm_offset_backward(st, dx, dweight, dy, x, weight, rstd, onto, acc, rows, width, NO_OFFSET);
}

void rmsnorm_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                           const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, long whole)
{
    rmsnorm_offset_rows_backward(st, dx, dweight, dy, x, weight, rstd, onto, tmp, acc, rows, width, NO_OFFSET, whole);
}
