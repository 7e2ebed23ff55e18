/* SPDX-License-Identifier: Apache-2.0
 *
 * matmul.c: y[batch m n] = a[batch m k] b[batch k n] and its two gradients, by oneDNN's batched product.
 *
 * A and B are the operands as the product sees them; ta and tb say that one is stored transposed.  The gradients are
 * dA = dy B^T and dB = A^T dy.  Each must come out as its operand is stored, and the library writes row-major results only.  A
 * transposed operand therefore gets the transposed product:
 *
 *   da = dy B^T, or, stored transposed, da = B dy^T
 *   db = A^T dy, or, stored transposed, db = dy^T A
 */
#include "product.h"

typedef struct { Product *da, *db; } Gradients;

void open_matmul_forward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    Recipe r = { .batch = batch, .m = m, .n = n, .k = k, .ta = ta != 0, .tb = tb != 0 };
    st->handle[h] = product_open(st, r);
}

void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k,
                    long ta, long tb)
{
    (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
    product_run(st, st->handle[h], y, a, b, NULL);
}

void open_matmul_backward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    Gradients *g = st->handle[h] = handle_alloc(sizeof *g);
    g->da = product_open(st, ta ? (Recipe){ .batch = batch, .m = k, .n = m, .k = n, .ta = tb != 0, .tb = 1 }
                                : (Recipe){ .batch = batch, .m = m, .n = k, .k = n, .tb = !tb });
    g->db = product_open(st, tb ? (Recipe){ .batch = batch, .m = n, .n = k, .k = m, .ta = 1, .tb = ta != 0 }
                                : (Recipe){ .batch = batch, .m = k, .n = n, .k = m, .ta = !ta });
}

void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch,
                     long m, long n, long k, long ta, long tb)
{
    const Gradients *g = st->handle[h];
    (void)batch, (void)m, (void)n, (void)k;
    if (da) product_run(st, g->da, da, ta ? b : dy, ta ? dy : b, NULL);
    if (db) product_run(st, g->db, db, tb ? dy : a, tb ? a : dy, NULL);
}
