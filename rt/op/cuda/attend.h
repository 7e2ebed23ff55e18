/* SPDX-License-Identifier: Apache-2.0
 *
 * attend.h: what own attention is told, and one score of it: shared by its two forms, attention_own.cu and attention_mma.cu.
 */
#ifndef ATTEND_H
#define ATTEND_H
#include "drop.h"
#include "kernel.h"

/* A matrix of `rows` rows, `step` elements apart; elements outside are 0. */
struct Matrix { const real *at; long rows, step; };

/* The same, for results. */
struct Out { real *at; long rows, step; };

struct Attend {
    const real *q, *k, *v, *dy, *bias;
    const int32_t *mask;
    const float *lse, *delta;
    const Values *vals;
    long mb, batch, heads, share, query, key, width, qs, ks, causal;    /* share: heads with the same keys and values */
    float scale, drop;
    int64_t site;
    long window;            /* keys on each side that a query sees, its own among them; 0: all */
    float cap;              /* scores become cap tanh(s/cap); 0: they stay */
    const int32_t *documents;   /* [batch key], with as many queries: a query sees those of its number; 0: all */
    const real *sinks;      /* [batch heads]: a score more of each query; 0: none */
    float alibi;            /* times the slope of a head: what a score loses a position of distance; 0: nothing */
    double ratio;           /* slopes: ratio^2, ratio^4, ... of the first `slopes` heads, ratio, ratio^3, ... of the others */
    long slopes;
    long first = 0;         /* the head that its first one is of all devices' */
};

/* A site below 0: the heads are those of one device of several, and ~site is that of all. */
static inline Attend placed(const Stage *st, Attend a)
{
    a.first = a.site < 0 ? st->shard * a.heads : 0;
    a.site = a.site < 0 ? ~a.site : a.site;
    return a;
}

/* The head that a block works on, which of its tiles of 64, and what its elements are dropped by; 0: they are not. */
struct HeadTile { long b, head, tile; const Drop *drop; float slope; };

FN float alibi_slope(const Attend &a, long head)
{
    double y = a.alibi, x = a.ratio;
    head += a.first;
    for (long n = head < a.slopes ? 2 * (head + 1) : 2 * (head - a.slopes) + 1; a.alibi > 0 && n; n /= 2, x *= x)
        y = n % 2 ? y * x : y;
    return (float)y;
}

/* `head` counts groups of `share` heads through all samples: the place is that of the first one.  The Drop lies in shared
 * memory: seven registers less. */
static FIELD HeadTile place_of(const Attend &a, long head, long tile, long share = 1)
{
    long heads = quotient(a.heads, share);
    SHARED(Drop, drop, 1);
    HeadTile p = {quotient(head, heads), head % heads * share, tile, 0, 0};
    p.slope = alibi_slope(a, p.head);
    if (a.drop == 0 || a.vals->eval)
        return p;
    if (threadIdx.x == 0)
        drop[0] = drop_of(a.vals, 0, a.drop, a.site);
    __syncthreads();
    p.drop = SHARED_AT(drop, 0);
    return p;
}

FN Matrix queries(const Attend &a, const real *at, long row, const HeadTile &p)
{
    Matrix m = {at + p.b * a.query * row + p.head * a.width, a.query, row};
    return m;
}

FN Matrix keys(const Attend &a, const real *at, const HeadTile &p)
{
    Matrix m = {at + p.b * a.key * a.ks + quotient(p.head, a.share) * a.width, a.key, a.ks};
    return m;
}

FN Out key_results(const Attend &a, real *at, const HeadTile &p)
{
    Out m = {at + p.b * a.key * a.ks + quotient(p.head, a.share) * a.width, a.key, a.ks};
    return m;
}

FN long gap(long q, long k) { return q < k ? k - q : q - k; }

/* Score (q, k) from its product: -infinity where the key is hidden, or there is none. */
FN float score(const Attend &a, const HeadTile &p, float s, long q, long k)
{
    if (k >= a.key || q >= a.query || (a.causal && k > q) || (a.mask && !a.mask[p.b * a.key + k]) ||
        (a.window && gap(q, k) >= a.window) ||
        (a.documents && a.documents[p.b * a.key + q] != a.documents[p.b * a.key + k]))
        return -F_INFINITY;
    s *= a.scale;
    if (a.cap > 0)
        s = a.cap * ftanh(s / a.cap);
    if (a.alibi > 0)
        s -= p.slope * (float)gap(q, k);
    return a.bias ? s + one(a.bias, (p.head * a.query + q) * a.key + k) : s;
}

/* The place of score (q, k) among those that are drawn. */
FN long place_drawn(const Attend &a, const HeadTile &p, long q, long k)
{
    return ((a.first + p.head) * a.query + q) * a.key + k;
}

/* What the elements of sample p.b are dropped by. */
FN Drop drop_here(const Attend &a, const HeadTile &p)
{
    Drop d = *p.drop;
    d.sample = (uint32_t)(a.mb * a.batch + p.b);
    return d;
}

/* What the gradient of a score is multiplied by on its way through the cap to its product s. */
FN float cap_slope(const Attend &a, float s)
{
    float t = a.cap > 0 ? ftanh(s * a.scale / a.cap) : 0.0f;
    return 1.0f - t * t;
}

/* The first tile of keys that queries from `first` on see, the first of queries that see keys from there on, and what is behind
 * the last query that sees keys before `end`. */
FN long keys_begin(const Attend &a, long first, long tile)
{
    return a.window && first >= a.window ? (first - a.window + 1) / tile * tile : 0;
}

FN long queries_begin(const Attend &a, long first, long tile)
{
    return a.causal ? first : a.window && first >= a.window ? (first - a.window + 1) / tile * tile : 0;
}

FN long queries_end(const Attend &a, long end)
{
    return a.window && end - 1 + a.window < a.query ? end - 1 + a.window : a.query;
}

/* End of the keys that queries before `end` see. */
FN long keys_end(const Attend &a, long end)
{
    long last = a.causal ? end : a.window ? end - 1 + a.window : a.key;
    return last < a.key ? last : a.key;
}
#endif
