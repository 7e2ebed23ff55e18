/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: the products of recurrent layers, by gemm.h: chains from 0, inner index ascending.
 */
#include "steps.h"
#include "gemm.h"

void steps_product(Stage *st, float *to, const real *a, long row, const real *b, int turned, long m, long n, long k)
{
    product_on(st, to, view(a, row, 1), view(b, turned ? 1 : n, turned ? k : 1), 1, m, n, k);
}

void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k)
{
    product_give(st, to, view(a, 1, m), view(b, n, 1), acc, m, n, k);
}
