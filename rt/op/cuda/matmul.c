/* SPDX-License-Identifier: Apache-2.0
 *
 * matmul.c: y[batch m n] = a[batch m k] b[batch k n] and its two gradients, by cublasLt's strided batches.
 *
 * ta, tb say that an operand is stored transposed.  The gradients are da = dy b^T and db = a^T dy, each stored as its
 * operand is; as results are row-major, a transposed one is made by the transposed product:
 *
 *   da = dy b^T, or, stored transposed, da^T = b dy^T
 *   db = a^T dy, or, stored transposed, db^T = dy^T a
 */
#include "product.h"

enum { DA, DB };                /* the parts of a backward handle */

void open_matmul_forward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    product_open(st, h, 0, (Recipe){ .call = "matmul_forward", .batch = batch, .m = m, .n = n, .k = k, .ta = ta != 0,
                                     .tb = tb != 0 });
}

void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k,
                    long ta, long tb)
{
    (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
    product_run(st, h, 0, y, a, b, NULL, 0);
}

void open_matmul_backward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    static const char call[] = "matmul_backward";
    product_open(st, h, DA, ta ? (Recipe){ .call = call, .batch = batch, .m = k, .n = m, .k = n, .ta = tb != 0, .tb = 1 }
                               : (Recipe){ .call = call, .batch = batch, .m = m, .n = k, .k = n, .tb = !tb });
    product_open(st, h, DB, tb ? (Recipe){ .call = call, .batch = batch, .m = n, .n = k, .k = m, .ta = 1, .tb = ta != 0 }
                               : (Recipe){ .call = call, .batch = batch, .m = k, .n = n, .k = m, .ta = !ta });
}

void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch,
                     long m, long n, long k, long ta, long tb)
{
    (void)batch, (void)m, (void)n, (void)k;
    if (da)
        product_run(st, h, DA, da, ta ? b : dy, ta ? dy : b, NULL, 0);
    if (db)
        product_run(st, h, DB, db, tb ? dy : a, tb ? a : dy, NULL, 0);
}
