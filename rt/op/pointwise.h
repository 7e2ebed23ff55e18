/* SPDX-License-Identifier: Apache-2.0
 *
 * pointwise.h: products of rows by channels and their gradients: pointwise.c, or without/pointwise.c in a job of few rows.
 */
#ifndef POINTWISE_H
#define POINTWISE_H
#include "gemm.h"

/* y[rows n] = a[rows k] b[k n] + bias[n], in blocks of k; NULL: none, and a chain that ends at -0 stays. */
void point_product(Stage *st, real *y, const real *a, View b, const real *bias, long rows, long n, long k, long block);
/* dw[m n] of dy[r m] and x[r n], and db[m], in blocks of rows; NULL: not wanted. */
void point_give(Stage *st, float *dw, float *db, const real *dy, const real *x, int acc, long r, long m, long n, long block);
#endif
