/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as in attention_shared.c, where a query sees the last `window` keys alone, and scores are capped: attend.h.
 */
#include "attend.h"

static Attention windowed(const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                          const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key, long width,
                          long causal, long window, float scale, float cap, float drop, int64_t site)
{
    long all = heads * width, row = kv_heads * width;
    return (Attention){q, k, v, bias, mask, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                       all, row, row, all, causal, scale, drop, site, window, cap, 0, 0, 0, 0, 0};
}

void attention_window_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, long window, float scale, float cap, float drop,
                              int64_t site)
{
    Attention a = windowed(q, k, v, bias, mask, vals, mb, batch, heads, kv_heads, query, key, width, causal, window, scale,
                           cap, drop, site);
    forward(st, y, lse, &a);
}

void attention_window_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, long window, float scale,
                               float cap, float drop, int64_t site)
{
    Attention a = windowed(q, k, v, bias, mask, vals, mb, batch, heads, kv_heads, query, key, width, causal, window, scale,
                           cap, drop, site);
    Back r = {dy, y, lse, tmp, dq, dk, dv, dbias, 0};
    backward(st, &a, &r);
}
