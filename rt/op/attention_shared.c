/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention where query head i reads the keys and values of head i / (heads/kv_heads): attend.h.
 */
#include "attend.h"

static Attention shared(const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const Values *vals,
                        int mb, long batch, long heads, long kv_heads, long query, long key, long width, long causal,
                        float scale, float drop, int64_t site)
{
    long all = heads * width, row = kv_heads * width;
    return (Attention){q, k, v, bias, mask, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                       all, row, row, all, causal, scale, drop, site, 0, 0, 0, 0, 0, 0, 0};
}

void attention_shared_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    Attention a = shared(q, k, v, bias, mask, vals, mb, batch, heads, kv_heads, query, key, width, causal, scale, drop, site);
    forward(st, y, lse, &a);
}

void attention_shared_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                               int64_t site)
{
    (void)h;
    Attention a = shared(q, k, v, bias, mask, vals, mb, batch, heads, kv_heads, query, key, width, causal, scale, drop, site);
    Back r = {dy, y, lse, tmp, dq, dk, dv, dbias, 0};
    backward(st, &a, &r);
}
