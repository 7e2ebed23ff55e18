/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention where every query head has keys and values of its own: attend.h.
 */
#include "attend.h"

void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                       const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query,
                       long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width;
    Attention a = {q, k, v, bias, mask, vals, mb, batch, heads, 1, query, key, width,
                   all, all, all, all, causal, scale, drop, site, 0, 0, 0, 0};
    forward(st, y, lse, &a);
}

void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                        const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                        const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                        long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width;
    Attention a = {q, k, v, bias, mask, vals, mb, batch, heads, 1, query, key, width,
                   all, all, all, all, causal, scale, drop, site, 0, 0, 0, 0};
    Back r = {dy, y, lse, tmp, dq, dk, dv, dbias};
    backward(st, &a, &r);
}
