/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention with all that may change its scores: a window to both sides, ALiBi, sinks, documents; with less of that; and of q,
 * k and v side by side where several documents are packed into a sample: attend.h.
 */
#include "attend.h"

static Attention general(const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                         const real *sinks, const int32_t *documents, const Values *vals, int mb, long batch, long heads,
                         long kv_heads, long query, long key, long width, long causal, long window, float scale, float cap,
                         float alibi, long slopes, float drop, int64_t site)
{
    long all = heads * width, row = kv_heads * width;
    return (Attention){q, k, v, bias, mask, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                       all, row, row, all, causal, scale, drop, site, window, cap, 0, documents, sinks, alibi, slopes};
}

void attention_general_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                               const int32_t *mask, const real *sinks, const int32_t *documents, const Values *vals, int mb,
                               long batch, long heads, long kv_heads, long query, long key, long width, long causal,
                               long window, float scale, float cap, float alibi, long slopes, float drop, int64_t site)
{
    Attention a = general(q, k, v, bias, mask, sinks, documents, vals, mb, batch, heads, kv_heads, query, key, width, causal,
                          window, scale, cap, alibi, slopes, drop, site);
    forward(st, y, lse, &a);
}

void attention_general_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, real *dsinks, const real *dy,
                                const real *y, const real *q, const real *k, const real *v, const real *bias,
                                const int32_t *mask, const real *sinks, const int32_t *documents, const float *lse, void *tmp,
                                const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key,
                                long width, long causal, long window, float scale, float cap, float alibi, long slopes,
                                float drop, int64_t site)
{
    Attention a = general(q, k, v, bias, mask, sinks, documents, vals, mb, batch, heads, kv_heads, query, key, width, causal,
                          window, scale, cap, alibi, slopes, drop, site);
    Back r = {dy, y, lse, tmp, dq, dk, dv, dbias, dsinks};
    backward(st, &a, &r);
}

void attention_window_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, long window, float scale, float cap, float drop,
                              int64_t site)
{
    attention_general_forward(st, y, lse, q, k, v, bias, mask, 0, 0, vals, mb, batch, heads, kv_heads, query, key, width,
                              causal, window, scale, cap, 0, 0, drop, site);
}

void attention_window_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, long window, float scale,
                               float cap, float drop, int64_t site)
{
    attention_general_backward(st, dq, dk, dv, dbias, 0, dy, y, q, k, v, bias, mask, 0, 0, lse, tmp, vals, mb, batch, heads,
                               kv_heads, query, key, width, causal, window, scale, cap, 0, 0, drop, site);
}

void attention_shared_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    attention_window_forward(st, y, lse, q, k, v, bias, mask, vals, mb, batch, heads, kv_heads, query, key, width, causal, 0,
                             scale, 0, drop, site);
}

void attention_shared_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                               int64_t site)
{
    (void)h;
    attention_window_backward(st, dq, dk, dv, dbias, dy, y, q, k, v, bias, mask, lse, tmp, vals, mb, batch, heads, kv_heads,
                              query, key, width, causal, 0, scale, 0, drop, site);
}

static Attention packed(const real *qkv, const real *bias, const int32_t *mask, const int32_t *documents, const Values *vals,
                        int mb, long batch, long heads, long query, long width, long causal, float scale, float drop,
                        int64_t site)
{
    long all = heads * width, row = 3 * all;
    return (Attention){qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, batch, heads, 1, query, query, width,
                       row, row, row, all, causal, scale, drop, site, 0, 0, 0, documents, 0, 0, 0};
}

void attention_packed_documents_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                                        const int32_t *documents, const Values *vals, int mb, long batch, long heads,
                                        long query, long width, long causal, float scale, float drop, int64_t site)
{
    Attention a = packed(qkv, bias, mask, documents, vals, mb, batch, heads, query, width, causal, scale, drop, site);
    forward(st, y, lse, &a);
}

void attention_packed_documents_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                                         const real *bias, const int32_t *mask, const int32_t *documents, const float *lse,
                                         void *tmp, const Values *vals, int mb, long batch, long heads, long query, long width,
                                         long causal, float scale, float drop, int64_t site)
{
    Attention a = packed(qkv, bias, mask, documents, vals, mb, batch, heads, query, width, causal, scale, drop, site);
    long all = heads * width;
    Back r = {dy, y, lse, tmp, dqkv, dqkv ? dqkv + all : 0, dqkv ? dqkv + 2 * all : 0, dbias, 0};
    backward(st, &a, &r);
}
