/* SPDX-License-Identifier: Apache-2.0
 *
 * rmsnorm.c: RMSNorm (B. Zhang, R. Sennrich, 2019), which has no mean and no bias: u = x rstd, dx = rstd (g - u mean(g u)),
 * with g = dy weight.  Its weight may be offset + weight[i]: files of some models hold what is added to 1.  Order: norm.c.
 */
#include "norm_rows.h"

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
