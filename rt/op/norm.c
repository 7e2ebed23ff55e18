/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c: LayerNorm (J. Ba, J. Kiros, G. Hinton, 2016) over rows of `width`, in float whatever the compute type.  With
 * u = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - u mean(g u)), dweight = sum of dy u over rows, dbias = sum of
 * dy over rows.
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

/* Rows of a block: terms of dweight, and of dbias, in n columns.  `down` rows are taken while both sums are in registers. */
static inline long layernorm_terms(float sum[2][CHUNK], const real *dy, const real *x, const float *mean, const float *rstd,
                                   const long down, long first, long end, long width, long from, long n)
{
    for (; first + down <= end; first += down) {
        const real *d = dy + first * width + from, *v = x + first * width + from;
        for (long j = 0; j < n; j++) {
            float weight = sum[0][j], bias = sum[1][j];
            for (long k = 0; k < down; k++) {
                float t = get(d, k * width + j);
                weight += t * ((get(v, k * width + j) - mean[first + k]) * rstd[first + k]);
                bias += t;
            }
            sum[0][j] = weight;
            sum[1][j] = bias;
        }
    }
    return first;
}

static void layernorm_dw(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                         const float *rstd, int acc, long rows, long width, long block)
{
    long each = columns_each(st, width);
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += each) {
        long n = least(each, width - from);
        float sum[2][CHUNK] = {0}, rest[2][LEVELS * CHUNK];
        for (long first = 0, number = 0; first < rows; first += block, number++) {
            memset(sum, 0, sizeof sum);
            long end = least(first + block, rows);
            long whole = layernorm_terms(sum, dy, x, mean, rstd, 8, first, end, width, from, n);
            layernorm_terms(sum, dy, x, mean, rstd, 1, whole, end, width, from, n);
            for (int i = 0; i < 2; i++)
                block_ends(sum[i], rest[i], CHUNK, n, number, first + block >= rows);
        }
        if (dweight)
            give(dweight + from, sum[0], n, acc);
        if (dbias)
            give(dbias + from, sum[1], n, acc);
    }
}

void layernorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight,
                        const float *mean, const float *rstd, const real *onto, int acc, long rows, long width)
{
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (dweight || dbias)
        layernorm_dw(st, dweight, dbias, dy, x, mean, rstd, acc, rows, width, block_of(st, rows));
}

/* Rows of a device (docs/width.md), which has room for `rows` of `whole`.  tmp: sums of its blocks, for dweight and dbias. */
void layernorm_rows_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *weight, const float *mean, const float *rstd, const real *onto, void *tmp, int acc,
                             long rows, long width, long whole)
{
    float *sum = tmp;
    const long here = part_here(st, rows, whole);
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (!dweight && !dbias)
        return;
    if (here)
        layernorm_dw(st, sum, sum + width, dy, x, mean, rstd, 0, here, width, block_of_part(st, rows));
    else
        fill_nothing(sum, 2 * width);
    if (st->team)               /* what is wanted */
        st->team->sum(st, dweight ? sum : sum + width, (dweight && dbias ? 2 : 1) * width);
    if (dweight)
        give(dweight, sum, width, acc);
    if (dbias)
        give(dbias, sum + width, width, acc);
}
