/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.h: gradients of norms: of the operand of LayerNorm, and of a weight and bias: sums over rows, in blocks (kernel.h).
 */
#ifndef NORM_H
#define NORM_H
#include "kernel.h"

static inline void layernorm_dx(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
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

static inline void norm_dw(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
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
#endif
