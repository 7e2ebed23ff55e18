/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul: y[batch m n] = a[batch m k] b[batch k n]; with ta, a is stored [k m], with tb, b is stored [n k].
 * Backward: da = dy b^T and db = a^T dy, each stored as its operand is: a transposed result is the product of the
 * transposed factors in the other order.  Every result is one ascending chain (gemm.c).
 */
#include "gemm.h"

/* y[i] (m x n) = a[i] (m x k) b[i] (k x n) for all i; the steps are the elements of one matrix of each. */
static void all(Stage *st, real *y, View a, View b, long a_step, long b_step, long batch, long m, long n, long k)
{
    Result to = {y, n, sizeof(real) == sizeof(float), STORE, NULL};
    products(st, to, a, b, (Several){batch, a_step, b_step}, m, n, k, k, 1);
}

/* A stored matrix of `rows` x `cols`, or, turned, the transpose of one of `cols` x `rows`. */
static View stored(const real *at, long rows, long cols, long turned)
{
    return turned ? view(at, 1, rows) : view(at, cols, 1);
}

void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k,
                    long ta, long tb)
{
    (void)h;
    all(st, y, stored(a, m, k, ta), stored(b, k, n, tb), m * k, k * n, batch, m, n, k);
}

void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch,
                     long m, long n, long k, long ta, long tb)
{
    (void)h;
    View bt = stored(b, n, k, !tb), at = stored(a, k, m, !ta);
    if (da && !ta)                      /* da = dy b^T */
        all(st, da, view(dy, n, 1), bt, m * n, k * n, batch, m, k, n);
    else if (da)                        /* da^T = b dy^T */
        all(st, da, stored(b, k, n, tb), view(dy, 1, n), k * n, m * n, batch, k, m, n);
    if (db && !tb)                      /* db = a^T dy */
        all(st, db, at, view(dy, n, 1), m * k, m * n, batch, k, n, m);
    else if (db)                        /* db^T = dy^T a */
        all(st, db, view(dy, 1, n), stored(a, m, k, ta), m * n, m * k, batch, n, k, m);
}
