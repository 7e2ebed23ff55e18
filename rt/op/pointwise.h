/* SPDX-License-Identifier: Apache-2.0
 *
 * pointwise.h: products of rows by channels and their gradients, of Linear and of a Conv of one pixel: by thin.h where channels
 * are few and rows many, else by gemm.h.  The chains are the same.
 */
#ifndef POINTWISE_H
#define POINTWISE_H
#include "thin.h"

enum { MANY = 512 };            /* rows, beside which a copy of b for each thread is little */

/* y[rows n] = a[rows k] b[k n] + bias[n], in blocks of k; NULL: none, and a chain that ends at -0 stays. */
static inline void pointwise_product(Stage *st, real *y, const real *a, View b, const real *bias, long rows, long n, long k,
                                     long block)
{
    real none[WIDE];
    if (rows < MANY || block < k || !is_thin(n, k)) {
        product_to(st, y, view(a, k, 1), b, bias, rows, n, k, block);
        return;
    }
    for (long j = 0; !bias && j < n; j++)
        put(none, j, -0.0f);
    thin_product(st, y, a, b, bias ? bias : none, rows, n, k);
}

/* dweight[m n] of dy[rows m] and x[rows n], and dbias[m], in blocks of rows; NULL: not wanted. */
static inline void pointwise_gradient(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int acc,
                                      long rows, long m, long n, long block)
{
    int thin = dweight && rows >= MANY && block >= rows && is_slim(m, n);
    if (thin)
        thin_gradient(st, dweight, dbias, dy, x, acc, rows, m, n);
    else if (dweight)
        product_give(st, dweight, view(dy, 1, m), view(x, n, 1), acc, m, n, rows, block);
    if (dbias && !thin)
        bias_blocks(st, dbias, dy, acc, rows, m, block);
}
#endif
