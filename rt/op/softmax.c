/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over rows: y = e^(x - max) / sum.  Backward: dx = y (dy - sum of dy y).  The exponentials are made twice
 * instead of stored, since y may be narrower than float.
 */
#include "kernel.h"

void softmax_forward(Stage *st, real *y, const real *x, long rows, long width)
{
    EACH(rows * width >= 1 << 13)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        float most = row_max(row, width), sum;
        SUM_OF(sum, width, i, fexp(get(row, i) - most));
        float over = 1.0f / sum;
        for (long i = 0; i < width; i++)
            put(y, r * width + i, fexp(get(row, i) - most) * over);
    }
}

void softmax_backward(Stage *st, real *dx, const real *dy, const real *y, long rows, long width)
{
    EACH(rows * width >= 1 << 13)
    for (long r = 0; r < rows; r++) {
        const real *row = y + r * width, *d = dy + r * width;
        float sum;
        SUM_OF(sum, width, i, get(d, i) * get(row, i));
        for (long i = 0; i < width; i++)
            put(dx, r * width + i, get(row, i) * (get(d, i) - sum));
    }
}
