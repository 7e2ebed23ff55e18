/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_attention.h: attention, for the files answers_attention*.c; statistics of forward that backward is given are taken as
 * they are.
 */
#ifndef ANSWERS_ATTENTION_H
#define ANSWERS_ATTENTION_H
#include "answers.h"
#include "philox.h"

typedef struct {
    const Call *c;
    const Operand *q, *k, *v, *dy;
    long heads, group, query, key, width, ld, k_ld, k_at, v_at;     /* group: heads of queries for one of keys */
    long b, head;               /* of the element that is asked for */
    double scale;
} Heads;

static inline Heads heads_of(const Call *c)
{
    const Operand *packed = part_of(c, "qkv");
    long heads = of(c, "heads"), width = of(c, "width"), all = heads * width, query = of(c, "query");
    long group = part_of(c, "kv_heads") ? heads / of(c, "kv_heads") : 1;
    return (Heads){c, packed ? packed : part_of(c, "q"), packed ? packed : part_of(c, "k"), packed ? packed : part_of(c, "v"),
                   part_of(c, "dy"), heads, group, query, packed ? query : of(c, "key"), width, packed ? 3 * all : all,
                   packed ? 3 * all : all / group, packed ? all : 0, packed ? 2 * all : 0, 0, 0, number_of(c, "scale")};
}

static inline long query_at(const Heads *h, long i) { return (h->b * h->query + i) * h->ld + h->head * h->width; }
static inline long key_at(const Heads *h, long j) { return (h->b * h->key + j) * h->k_ld + h->head / h->group * h->width; }
static inline long result_at(const Heads *h, long i) { return ((h->b * h->query + i) * h->heads + h->head) * h->width; }
static inline long row_of(const Heads *h, long i) { return (h->b * h->heads + h->head) * h->query + i; }

static inline double below_cap(const Heads *h, long i, long j)
{
    return h->scale * dot(h->q, query_at(h, i), 1, h->k, h->k_at + key_at(h, j), 1, h->width).value;
}

/* The head's number among those of all devices: below 0, the site says that these are a part of them. */
static inline long all_heads(const Heads *h)
{
    return h->head + (part_of(h->c, "site")->given.i < 0 ? h->c->shard * h->heads : 0);
}

static inline long gap(long i, long j) { return i < j ? j - i : i - j; }

/* What ALiBi takes a position of distance. */
static inline double alibi(const Heads *h)
{
    long n = 1, head = all_heads(h);
    while (2 * n <= of(h->c, "slopes"))
        n *= 2;
    return number_of(h->c, "alibi") * exp2(head < n ? -8.0 * (double)(head + 1) / (double)n
                                           : -4.0 * (double)(2 * (head - n) + 1) / (double)n);
}

static inline double score(const Heads *h, long i, long j)
{
    const Operand *mask = part_of(h->c, "mask"), *documents = part_of(h->c, "documents");
    long window = of(h->c, "window");
    if ((of(h->c, "causal") && j > i) || (mask && old_at(mask, h->b * h->key + j) == 0) || (window && gap(i, j) >= window) ||
        (documents && old_at(documents, h->b * h->key + i) != old_at(documents, h->b * h->key + j)))
        return -INFINITY;
    double cap = number_of(h->c, "cap"), s = below_cap(h, i, j);
    double far = number_of(h->c, "alibi") > 0 ? alibi(h) * (double)gap(i, j) : 0;
    return (cap > 0 ? cap * tanh(s / cap) : s) - far + old_of(h->c, "bias", (h->head * h->query + i) * h->key + j);
}

/* What of a score's gradient goes through the cap. */
static inline double cap_slope(const Heads *h, long i, long j)
{
    double cap = number_of(h->c, "cap"), t = cap > 0 ? tanh(below_cap(h, i, j) / cap) : 0;
    return 1 - t * t;
}

static inline double kept(const Heads *h, long i, long j)
{
    double drop = number_of(h->c, "drop");
    const Values *vals = h->c->vals;
    float factor = 1;
    if (drop == 0 || vals->eval)
        return 1;
    int64_t site = part_of(h->c, "site")->given.i;
    long head = all_heads(h);
    Drop d = drop_of(vals, of(h->c, "mb") * of(h->c, "batch") + h->b, (float)drop, site < 0 ? ~site : site);
    drop_factors(&factor, &d, (head * h->query + i) * h->key + j, 1);
    return factor;
}

/* Over the keys of a query: the largest score, the sum of exponentials, and that sum with element d of the values. */
static inline Answer attend(const Heads *h, long i, long d, double *lse)
{
    const Operand *sinks = part_of(h->c, "sinks");
    double most = sinks ? old_at(sinks, h->b * h->heads + h->head) : -INFINITY, sum = sinks ? 1 : 0;
    Answer a = {0, 0};
    for (long j = 0; j < h->key; j++) {
        double s = score(h, i, j), top = s > most ? s : most;
        if (s == -INFINITY)
            continue;
        double shrink = exp(most - top), e = exp(s - top);
        sum = sum * shrink + e;
        a = (Answer){a.value * shrink, a.terms * shrink};
        plus(&a, e * kept(h, i, j) * old_at(h->v, h->v_at + key_at(h, j) + d));
        most = top;
    }
    *lse = most + log(sum);
    return sum > 0 ? (Answer){a.value / sum, a.terms / sum} : (Answer){0, 0};
}

static inline Answer attention_y(const Call *c, long i)
{
    Heads h = heads_of(c);
    double lse;
    long row = i / (h.heads * h.width);
    h.b = row / h.query, h.head = i / h.width % h.heads;
    return attend(&h, row % h.query, i % h.width, &lse);
}

static inline Answer attention_lse(const Call *c, long i)
{
    Heads h = heads_of(c);
    double lse;
    h.b = i / (h.heads * h.query), h.head = i / h.query % h.heads;
    attend(&h, i % h.query, 0, &lse);
    return (Answer){lse, isfinite(lse) ? fabs(lse) + 1 : 0};
}

/* e^(s - lse), and what of the gradient reaches the score; both without dropout. */
static inline double weight_of(const Heads *h, long i, long j)
{
    double s = score(h, i, j);
    return s == -INFINITY ? 0 : exp(s - old_of(h->c, "lse", row_of(h, i)));
}

static inline Answer slope(const Heads *h, long i, long j)
{
    double p = weight_of(h, i, j), keep = kept(h, i, j);
    if (p == 0)
        return (Answer){0, 0};
    Answer s = dot(h->dy, result_at(h, i), 1, h->v, h->v_at + key_at(h, j), 1, h->width);
    Answer delta = dot(h->dy, result_at(h, i), 1, part_of(h->c, "y"), result_at(h, i), 1, h->width);
    return (Answer){p * (keep * s.value - delta.value), p * (keep * s.terms + delta.terms)};
}

static inline Answer dq(Heads *h, long i, long d)
{
    Answer a = {0, 0};
    for (long j = 0; j < h->key; j++)
        plus_slope(&a, slope(h, i, j), h->scale * cap_slope(h, i, j) * old_at(h->k, h->k_at + key_at(h, j) + d));
    return a;
}

/* From the first of the heads that share these keys on. */
static inline Answer dk(Heads *h, long j, long d)
{
    Answer a = {0, 0};
    for (long end = h->head + h->group; h->head < end; h->head++)
        for (long i = 0; i < h->query; i++)
            plus_slope(&a, slope(h, i, j), h->scale * cap_slope(h, i, j) * old_at(h->q, query_at(h, i) + d));
    return a;
}

static inline Answer dv(Heads *h, long j, long d)
{
    Answer a = {0, 0};
    for (long end = h->head + h->group; h->head < end; h->head++)
        for (long i = 0; i < h->query; i++)
            plus(&a, weight_of(h, i, j) * kept(h, i, j) * old_at(h->dy, result_at(h, i) + d));
    return a;
}

/* Element i of [batch rows heads width]. */
static inline Answer of_heads(const Call *c, long i, bool queries, Answer (*gradient)(Heads *, long, long))
{
    Heads h = heads_of(c);
    long heads = queries ? h.heads : h.heads / h.group, row = i / (heads * h.width), rows = queries ? h.query : h.key;
    h.b = row / rows, h.head = i / h.width % heads * (queries ? 1 : h.group);
    return gradient(&h, row % rows, i % h.width);
}

static inline Answer attention_dq(const Call *c, long i) { return of_heads(c, i, true, dq); }
static inline Answer attention_dk(const Call *c, long i) { return of_heads(c, i, false, dk); }
static inline Answer attention_dv(const Call *c, long i) { return of_heads(c, i, false, dv); }

static inline Answer attention_dqkv(const Call *c, long i)
{
    Answer (*const which[])(Heads *, long, long) = {dq, dk, dv};
    long all = of(c, "heads") * of(c, "width"), part = i / all % 3;
    return of_heads(c, i / (3 * all) * all + i % all, part == 0, which[part]);
}

static inline Answer attention_dbias(const Call *c, long i)
{
    Heads h = heads_of(c);
    Answer a = {0, 0};
    h.head = i / (h.query * h.key);
    for (h.b = 0; h.b < of(c, "batch"); h.b++)
        plus_slope(&a, slope(&h, i / h.key % h.query, i % h.key), 1);
    return a;
}

#define PACKED "y=batch*query*heads*width lse=batch*heads*query qkv=3*batch*query*heads*width " \
    "dy=batch*query*heads*width dqkv=3*batch*query*heads*width bias=heads*query*query dbias=heads*query*query " \
    "mask=batch*query documents=batch*query"
#endif
