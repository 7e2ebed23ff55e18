/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.c: the products of recurrent layers.
 *
 *   forward    prepared, with the weight packed once for all steps: the BLAS entry packs it again in each, which takes it
 *              three times as long
 *   others     in f32 by the BLAS entry of oneDNN; in bf16, which that lacks, by gemm.c
 */
#include "../gemm.h"
#include "../steps.h"
#include "product.h"

static const int bf16 = sizeof(real) != sizeof(float);

void open_recur_forward(Stage *st, int h, long batch, long time, long hidden, long reverse)
{
    (void)time, (void)reverse;
    st->handle[h] = product_open(st, (Recipe){.batch = 1, .m = batch, .n = 4 * hidden, .k = hidden, .tb = 1, .wide = 1,
                                              .pack = 1});
}

void steps_forward(Stage *st, int h, int first, float *to, const real *a, const real *b, long m, long n, long k)
{
    (void)m, (void)n, (void)k;
    if (first)
        product_run(st, st->handle[h], to, a, b, NULL);
    else
        product_again(st, st->handle[h], to, a, b);
}

void steps_back(Stage *st, float *to, const real *a, long row, const real *b, long m, long n, long k)
{
    if (bf16)
        product_give(st, to, view(a, row, 1), view(b, n, 1), 0, m, n, k, k);
    else
        product_f32(st, (Recipe){.batch = 1, .m = m, .n = n, .k = k, .row_step = row}, to, (const void *)a, (const void *)b);
}

void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k)
{
    if (bf16)
        product_give(st, to, view(a, 1, m), view(b, n, 1), acc, m, n, k, k);
    else
        product_f32(st, (Recipe){.batch = 1, .m = m, .n = n, .k = k, .ta = 1, .acc = acc}, to, (const void *)a,
                    (const void *)b);
}
