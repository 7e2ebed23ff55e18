/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.h: the products of recurrent layers, which have no handle: those of a step are small, and lie in longer rows.
 */
#ifndef STEPS_H
#define STEPS_H
#include "kernel.h"

/* to[m n] = a b.  Rows of a have `row` elements, of which k are taken; b is [k n], or [n k] where it is turned. */
void steps_product(Stage *st, float *to, const real *a, long row, const real *b, int turned, long m, long n, long k);
/* to[m n] is the sum over k rows of a[k m] times b[k n], or that is added to it. */
void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k);
#endif
