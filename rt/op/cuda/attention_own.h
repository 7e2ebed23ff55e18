/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_own.h: attention by our own kernels (attention_own.cu): every case that cuDNN's graphs in attention.c do not
 * take, which are f32, a bias, a mask, dropout, and heads of odd width.
 *
 * Query head i reads head i / (heads/kv_heads) of `kv_heads` heads of keys.  q is [batch query] rows of qs elements,
 * k and v [batch key] rows of ks; a head's columns are adjacent in them, and heads follow each other: packed operands
 * are the same with longer rows.  dq, dk, dv stand as q, k, v do.  y and dy are [batch query heads width] and lse, delta
 * [batch heads query], dense; bias, dbias [heads query key], mask [batch key].  A 0 address is an absent operand, or a
 * gradient that nobody wants.
 * Formulas and what each result may depend on: rt/op/attention.c.
 */
#ifndef ATTENTION_OWN_H
#define ATTENTION_OWN_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

void attention_own_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, long qs, long ks,
                           const real *bias, const int32_t *mask, const Values *vals, int mb, long batch, long heads,
                           long kv_heads, long query, long key, long width, long causal, float scale, float drop, int64_t site);
/* delta: scratch. */
void attention_own_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                            const real *q, const real *k, const real *v, long qs, long ks, const real *bias,
                            const int32_t *mask, const float *lse, float *delta, const Values *vals, int mb, long batch,
                            long heads, long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                            int64_t site);
/* Rows of dk and dv [n width]: the sums of those of `share` query heads each, k and v, ascending. */
void attention_own_group(Stage *st, real *dk, real *dv, const real *k, const real *v, long n, long share, long width);
#ifdef __cplusplus
}
#endif
#endif
