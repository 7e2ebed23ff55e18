/* SPDX-License-Identifier: Apache-2.0
 *
 * steps.h: the products of recurrent layers.  Those of a step are small, and there are many with one weight.
 */
#ifndef STEPS_H
#define STEPS_H
#include "kernel.h"

/* to[m n] = a b^T, a [m k] and b [n k], as open_recur_forward has prepared it.  `first`: b is new since the call before. */
void steps_forward(Stage *st, int h, int first, float *to, const real *a, const real *b, long m, long n, long k);
/* to[m n] = a b.  Rows of a have `row` elements, of which k are taken; b is [k n]. */
void steps_back(Stage *st, float *to, const real *a, long row, const real *b, long m, long n, long k);
/* to[m n] is the sum over k rows of a[k m] times b[k n], or that is added to it. */
void steps_gradient(Stage *st, float *to, const real *a, const real *b, int acc, long m, long n, long k);
#endif
