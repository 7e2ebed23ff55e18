/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: the products of recurrent layers, in f32 by the BLAS entry of oneDNN; in bf16, which that lacks, by gemm.h.
 */
#include "../gemm.h"
#include "../steps.h"
#include "product.h"

static const int bf16 = sizeof(real) != sizeof(float);

void steps_product(Stage *st, float *to, const real *a, long row, const real *b, int turned, long m, long n, long k)
{
    if (bf16)
        product_on(st, to, view(a, row, 1), view(b, turned ? 1 : n, turned ? k : 1), 1, m, n, k);
    else
        product_f32(st, (Recipe){.batch = 1, .m = m, .n = n, .k = k, .tb = turned, .row = row}, to, (const void *)a,
                    (const void *)b);
}

void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k)
{
    if (bf16)
        product_give(st, to, view(a, 1, m), view(b, n, 1), acc, m, n, k);
    else
        product_f32(st, (Recipe){.batch = 1, .m = m, .n = n, .k = k, .ta = 1, .acc = acc}, to, (const void *)a,
                    (const void *)b);
}
