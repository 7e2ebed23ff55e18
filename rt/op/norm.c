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
#include "norm.h"

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

void layernorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight,
                        const float *mean, const float *rstd, const real *onto, int acc, long rows, long width)
{
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (dweight || dbias)
        norm_dw(st, dweight, dbias, dy, x, mean, rstd, acc, rows, width, block_of(st, rows));
}
