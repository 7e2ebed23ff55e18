/* SPDX-License-Identifier: Apache-2.0
 *
 * pointwise.c of a job whose products have few rows: gemm.c makes all of them.
 */
#include "pointwise.h"

void point_product(Stage *st, real *y, const real *a, View b, const real *bias, long rows, long n, long k, long block)
{
    product_to(st, y, view(a, k, 1), b, bias, rows, n, k, block);
}

void point_give(Stage *st, float *dw, float *db, const real *dy, const real *x, int acc, long r, long m, long n, long block)
{
    if (dw)
        product_give(st, dw, view(dy, 1, m), view(x, n, 1), acc, m, n, r, block);
    if (db)
        bias_blocks(st, db, dy, acc, r, m, block);
}
