/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: the products of recurrent layers, by gemm.c: chains from 0, inner index ascending.
 */
#include "steps.h"
#include "gemm.h"

void steps_forward(Stage *st, int h, int first, float *to, const real *a, const real *b, long m, long n, long k)
{
    (void)h, (void)first;
    product_give(st, to, view(a, k, 1), view(b, 1, k), 0, m, n, k, k);
}

void steps_back(Stage *st, float *to, const real *a, long row, const real *b, long m, long n, long k)
{
    product_give(st, to, view(a, row, 1), view(b, n, 1), 0, m, n, k, k);
}

void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k)
{
    product_give(st, to, view(a, 1, m), view(b, n, 1), acc, m, n, k, k);
}
