/* SPDX-License-Identifier: Apache-2.0
 *
 * norm_rows.c: LayerNorm of the rows of a device: norm.c, and norm_rows.h.
 */
#include "norm_rows.h"

void layernorm_rows_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *weight, const float *mean, const float *rstd, const real *onto, void *tmp, int acc,
                             long rows, long width, long whole)
{
    if (dx)
        layernorm_dx(st, dx, dy, x, weight, mean, rstd, onto, rows, width);
    if (dweight || dbias)
        norm_rows_dw(st, dweight, dbias, dy, x, mean, rstd, tmp, acc, rows, width, whole);
}
