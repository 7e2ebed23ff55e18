/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention with all that may change its scores: a window to both sides, ALiBi, sinks, documents; with less of that; and of q,
 * k and v side by side where several documents are packed into a sample: attend.h.
 *
 * cap: before bias and mask a score s becomes cap tanh(s/cap) (Gemma 2, 2024), whose slope is 1 - tanh(s/cap)^2; 0: it stays.
 * alibi: -alibi m |query - key| is added to a score.  n is the greatest power of two up to `slopes`; m = 2^(-8 h/n) for head
 * h = 1 .. n, and 2^(-4 (2 h - 1)/n) for those behind (O. Press et al., Train Short, Test Long, 2022, and its code); 0: none.
 * documents: a query sees the keys with its own number (M. Krell et al., Efficient sequence packing, 2021, who store a mask of
 * query x key; here a tile compares the numbers).  Tiles whose numbers lie apart are left out, so that the work is that of the
 * documents one by one.
 */
#include "attend.h"
#include "../number.h"
#include "../curves.h"

/* The numbers of Scoring: a cap, ALiBi with the heads of all devices, and documents, [batch key] with as many queries. */
typedef struct { Scoring how; float cap, alibi; long slopes; const int32_t *documents; } General;

static const General *general_of(const Attention *a) { return (const General *)(const void *)a->more; }

static void capped(float *row, float *slope, const Attention *a, long n)
{
    float cap = general_of(a)->cap;
    for (long j = 0; j < n; j++) {
        float t = ftanh(row[j] / cap);
        row[j] = cap * t;
        if (slope)
            slope[j] = 1.0f - t * t;
    }
}

/* What ALiBi takes from a score of the head, a position of distance. */
static float alibi_slope(const Attention *a, long head)
{
    long n = 1, h = a->first + head;
    while (2 * n <= general_of(a)->slopes)
        n *= 2;
    double power = h < n ? -8.0 * (double)(h + 1) / (double)n : -4.0 * (double)(2 * (h - n) + 1) / (double)n;
    return general_of(a)->alibi * (float)number_exp(power * 0x1.62e42fefa39efp-1);       /* ln 2 */
}

static int32_t document(const Attention *a, long b, long at) { return general_of(a)->documents[b * a->key + at]; }

/* What is hidden stays so: less of -infinity is that. */
static void by_position(float *s, const Attention *a, const AttendBlock *p)
{
    const General *g = general_of(a);
    float step = g->alibi > 0 ? alibi_slope(a, p->head) : 0;
    for (long i = 0; i < p->nq; i++, s += KEYS) {
        for (long j = 0; g->alibi > 0 && j < p->nk; j++)
            s[j] -= step * (float)gap(p->q + i, p->k + j);
        for (long j = 0; g->documents && j < p->nk; j++)
            s[j] = document(a, p->b, p->q + i) == document(a, p->b, p->k + j) ? s[j] : -F_INFINITY;
    }
}

/* Do the numbers of the tile's queries and of its keys lie apart? */
static bool documents_apart(const Attention *a, const AttendBlock *p)
{
    if (!general_of(a)->documents)
        return false;
    int32_t first = document(a, p->b, p->q), last = first, low = document(a, p->b, p->k), high = low;
    for (long i = 1; i < p->nq; i++) {
        int32_t d = document(a, p->b, p->q + i);
        first = d < first ? d : first;
        last = d > last ? d : last;
    }
    for (long j = 1; j < p->nk; j++) {
        int32_t d = document(a, p->b, p->k + j);
        low = d < low ? d : low;
        high = d > high ? d : high;
    }
    return last < low || high < first;
}

static Scoring scoring(float cap) { return (Scoring){cap > 0 ? capped : NULL, by_position, documents_apart}; }

static Attention general(const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                         const real *sinks, const Values *vals, int mb, long batch, long heads, long kv_heads, long query,
                         long key, long width, long causal, long window, float scale, float drop, int64_t site,
                         const General *g)
{
    long all = heads * width, row = kv_heads * width;
    return (Attention){q, k, v, bias, mask, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                       all, row, row, all, causal, scale, drop, site, 0, window, sinks, &g->how};
}

static void sinks_backward(const Attention *a, const Back *r, real *dsinks)
{
    for (long i = 0; i < a->batch * a->heads; i++) {
        float sum, sink = get(a->sinks, i);
        SUM_OF(sum, a->query, j, fexp(sink - r->lse[i * a->query + j]) * r->delta[i * a->query + j]);
        put(dsinks, i, -sum);
    }
}

void attention_general_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                               const int32_t *mask, const real *sinks, const int32_t *documents, const Values *vals, int mb,
                               long batch, long heads, long kv_heads, long query, long key, long width, long causal,
                               long window, float scale, float cap, float alibi, long slopes, float drop, int64_t site)
{
    const General g = {scoring(cap), cap, alibi, slopes, documents};
    Attention a = general(q, k, v, bias, mask, sinks, vals, mb, batch, heads, kv_heads, query, key, width, causal, window,
                          scale, drop, site, &g);
    forward(st, y, lse, &a);
}

void attention_general_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, real *dsinks, const real *dy,
                                const real *y, const real *q, const real *k, const real *v, const real *bias,
                                const int32_t *mask, const real *sinks, const int32_t *documents, const float *lse, void *tmp,
                                const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key,
                                long width, long causal, long window, float scale, float cap, float alibi, long slopes,
                                float drop, int64_t site)
{
    const General g = {scoring(cap), cap, alibi, slopes, documents};
    Attention a = general(q, k, v, bias, mask, sinks, vals, mb, batch, heads, kv_heads, query, key, width, causal, window,
                          scale, drop, site, &g);
    Back r = {dy, y, lse, tmp, dq, dk, dv, dbias};
    backward(st, &a, &r);
    if (dsinks)
        sinks_backward(&a, &r, dsinks);
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

static Attention packed(const real *qkv, const real *bias, const int32_t *mask, const Values *vals, int mb, long batch,
                        long heads, long query, long width, long causal, float scale, float drop, int64_t site,
                        const General *g)
{
    long all = heads * width, row = 3 * all;
    return (Attention){qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, batch, heads, 1, query, query, width,
                       row, row, row, all, causal, scale, drop, site, 0, 0, 0, &g->how};
}

void attention_packed_documents_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                                        const int32_t *documents, const Values *vals, int mb, long batch, long heads,
                                        long query, long width, long causal, float scale, float drop, int64_t site)
{
    const General g = {scoring(0), 0, 0, 0, documents};
    Attention a = packed(qkv, bias, mask, vals, mb, batch, heads, query, width, causal, scale, drop, site, &g);
    forward(st, y, lse, &a);
}

void attention_packed_documents_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                                         const real *bias, const int32_t *mask, const int32_t *documents, const float *lse,
                                         void *tmp, const Values *vals, int mb, long batch, long heads, long query, long width,
                                         long causal, float scale, float drop, int64_t site)
{
    const General g = {scoring(0), 0, 0, 0, documents};
    Attention a = packed(qkv, bias, mask, vals, mb, batch, heads, query, width, causal, scale, drop, site, &g);
    long all = heads * width;
    Back r = {dy, y, lse, tmp, dqkv, dqkv ? dqkv + all : 0, dqkv ? dqkv + 2 * all : 0, dbias};
    backward(st, &a, &r);
}
