/* SPDX-License-Identifier: Apache-2.0
 *
 * attend.h: attention, for the calls of the files attention*.c.
 *
 * y = D(softmax(scale q k^T + bias)) v for each (sample, head), D dropout, without ever storing the query x key
 * matrix.
 *
 * Method.  Forward takes the keys in blocks.  For each query it keeps the largest score so far, the sum of exponentials
 * relative to it, and the weighted sum of values.  When a block brings a larger score, the sums are scaled down (M. Milakov,
 * N. Gimelshein, Online normalizer calculation for softmax, 2018; T. Dao et al., FlashAttention, 2022).  Only lse = log of
 * the sum of exponentials is saved.  Backward recomputes the probabilities, P = e^(s - lse), and with delta = sum of dy y
 * over a query's row:
 *
 *     dv = D(P)^T dy    dS = P (D(dy v^T) - delta)    dk = scale dS^T q    dq = scale dS k    dbias = sum of dS
 *
 * There is one pass by key blocks (dk, dv), one by query blocks (dq), one by tiles of the bias.  Each writes its own results,
 * so threads share nothing.  Scratch: delta.  In f32, and with as many heads of keys as threads, the first pass adds up dq as
 * well: key blocks ascend in both, so its chains rest where they belong.  Cost: backward computes the scores once then, 5
 * products; otherwise twice, 7.
 *
 * A head of keys and values may be shared by a group of neighbouring query heads (J. Ainslie et al., GQA, 2023): its dk and
 * dv add the heads of the group ascending, in f32.
 *
 * window: with `causal`, a query sees so many keys, its own the last (I. Beltagy et al., Longformer, 2020); without, those that
 * are less than so many positions away; 0: all.
 * sinks: each query of a head has one score more, whose weight goes to no value (OpenAI, gpt-oss, 2025).  Its gradient adds
 * -e^(sink - lse) delta (attention_general.c).
 *
 * Order.  Blocks have fixed sizes and ascend; a query's result depends on shapes and its own operands alone.  Key blocks that
 * `causal`, `window` or `documents` hides whole are left out.  causal: key <= query.  A query without any visible key gives
 * zeros, and lse -infinity.
 * Heads wider than WIDE are done WIDE columns of the result at a time.
 */
#ifndef ATTEND_H
#define ATTEND_H
#include "gemm.h"
#include "../philox.h"

/* MANY queries share the packed keys and values of a block.  The stack: 200 KiB at most, with gemm.c's. */
enum { QUERIES = 32, KEYS = 32, MANY = 4 * QUERIES, WIDE = 128 };

typedef struct Scoring Scoring;
typedef struct {
    const real *q, *k, *v, *bias;
    const int32_t *mask;
    const Values *vals;
    int mb;
    long batch, heads, group, query, key, width, ldq, ldk, ldv, ldy, causal;   /* group: query heads that share keys */
    float scale, drop;
    int64_t site;
    long first;                 /* the head that its first one is for random numbers */
    long window;
    const real *sinks;          /* [batch heads]; 0: none */
    const Scoring *more;        /* 0: nothing else changes scores */
} Attention;

/* A site below 0: the heads are those of one device of several, and ~site is that of all. */
static inline Attention placed(const Stage *st, const Attention *a)
{
    Attention here = *a;
    here.first = a->site < 0 ? st->shard * a->heads : 0;
    here.site = a->site < 0 ? ~a->site : a->site;
    return here;
}

/* What a tile of scores covers. */
typedef struct { long b, head, q, k, nq, nk; } AttendBlock;

/* What else may change scores (attention_general.c): n of a row, before bias and mask, with the slope by which a gradient of
 * them is multiplied on its way back, or NULL; those of a tile, behind all else; does no query of a tile see a key of it? */
struct Scoring {
    void (*bend)(float *row, float *slope, const Attention *a, long n);         /* 0: it does not */
    void (*place)(float *s, const Attention *a, const AttendBlock *p);
    bool (*apart)(const Attention *a, const AttendBlock *p);
};

static bool apart(const Attention *a, const AttendBlock *p) { return a->more && a->more->apart(a, p); }
static bool bends(const Attention *a) { return a->more && a->more->bend; }

static View of_queries(const Attention *a, const real *at, long ld, const AttendBlock *p)
{
    return view(at + (p->b * a->query + p->q) * ld + p->head * a->width, ld, 1);
}

static View of_keys(const Attention *a, const real *at, long ld, const AttendBlock *p)
{
    return view(at + (p->b * a->key + p->k) * ld + p->head / a->group * a->width, ld, 1);
}

static View turned(View v) { return (View){v.at, v.is_float, v.col, v.row_step, 0, 0}; }

/* The right factor b[k][n] of many products: packed at once, or WIDE terms at a time where it has more. */
typedef struct { View b; long k, n; float at[WIDE * KEYS]; } Right;

static void right_terms(Right *r, long from, long k)
{
    pack(r->at, TILE_COLS * k, view_from(r->b, from, 0), k, r->n);
}

static void right_of(Right *r, View b, long k, long n)
{
    r->b = b, r->k = k, r->n = n;
    if (k <= WIDE)
        right_terms(r, 0, k);
}

/* c[m][ldc] += a r, or begins with it. */
static void times(float *c, long ldc, int begin, View a, Right *r, long m)
{
    for (long from = 0; from < r->k; from += WIDE) {
        long k = least(WIDE, r->k - from);
        if (r->k > WIDE)
            right_terms(r, from, k);
        product_panels(c, ldc, begin && from == 0, view_from(a, 0, from), r->at, m, r->n, k);
    }
}

static long gap(long q, long k) { return q < k ? k - q : q - k; }

/* s[nq][KEYS] = scale q k^T + bias, -infinity where a key is hidden; slope as in Scoring; keys: k^T. */
static void scores(float *s, float *slope, const Attention *a, const AttendBlock *p, Right *keys)
{
    times(s, KEYS, 1, of_queries(a, a->q, a->ldq, p), keys, p->nq);
    long hides = a->causal && p->k + p->nk - 1 > p->q;
    for (long i = 0; i < p->nq; i++) {
        float *row = s + i * KEYS;
        for (long j = 0; j < p->nk; j++)
            row[j] *= a->scale;
        if (bends(a))
            a->more->bend(row, slope ? slope + i * KEYS : NULL, a, p->nk);
        for (long j = 0; a->bias && j < p->nk; j++)
            row[j] += get(a->bias, (p->head * a->query + p->q + i) * a->key + p->k + j);
        for (long j = 0; a->mask && j < p->nk; j++)
            row[j] = a->mask[p->b * a->key + p->k + j] ? row[j] : -F_INFINITY;
        for (long j = 0; hides && j < p->nk; j++)
            row[j] = p->k + j <= p->q + i ? row[j] : -F_INFINITY;
        for (long j = 0; a->window && j < p->nk; j++)
            row[j] = gap(p->q + i, p->k + j) < a->window ? row[j] : -F_INFINITY;
        for (long j = p->nk; j < KEYS; j++)
            row[j] = -F_INFINITY;
    }
    if (a->more)
        a->more->place(s, a, p);
}

/* Multiply s[nq][KEYS] by the dropout factors. */
static void dropped(float *s, const Attention *a, const AttendBlock *p)
{
    if (a->drop == 0 || a->vals->eval)
        return;
    Drop d = drop_of(a->vals, a->mb * a->batch + p->b, a->drop, a->site);
    for (long i = 0; i < p->nq; i++) {
        float factor[KEYS];
        drop_factors(factor, &d, (((a->first + p->head) * a->query) + p->q + i) * a->key + p->k, p->nk);
        for (long j = 0; j < p->nk; j++)
            s[i * KEYS + j] *= factor[j];
    }
}

/* The first block of keys that queries from q on see. */
static long keys_begin(const Attention *a, long q)
{
    return a->window && q >= a->window ? (q - a->window + 1) / KEYS * KEYS : 0;
}

/* End of the keys that queries before `q_end` see. */
static long keys_end(const Attention *a, long q_end)
{
    return a->causal ? least(a->key, q_end) : a->window ? least(a->key, q_end - 1 + a->window) : a->key;
}

/* One block of keys for one row: scores become exponentials; returns what the earlier sums are to be scaled by. */
static float absorb(float *row, float *most, float *sum)
{
    float lane[LANES], top = *most;
    memcpy(lane, row, sizeof lane);
    for (int j = LANES; j < KEYS; j += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] = row[j + i] > lane[i] ? row[j + i] : lane[i];
    for (int i = 0; i < LANES; i++)
        top = lane[i] > top ? lane[i] : top;
    float shift = top == -F_INFINITY ? 0 : top, shrink = fexp(*most - shift), part;
    for (int j = 0; j < KEYS; j++)
        row[j] = fexp(row[j] - shift);
    SUM_OF(part, KEYS, j, row[j]);
    *sum = *sum * shrink + part;
    *most = top;
    return shrink;
}

/* Does a query of the tile see a key of it? */
static bool sees(const Attention *a, const AttendBlock *p)
{
    return p->k >= keys_begin(a, p->q) && p->k < keys_end(a, p->q + p->nq) && !apart(a, p);
}

/* The tile's weighted values are added to o[nq][WIDE]; keys: k^T. */
static void forward_tile(float *o, float *most, float *sum, const Attention *a, const AttendBlock *p, Right *keys,
                         Right *values)
{
    float s[QUERIES * KEYS];
    scores(s, NULL, a, p, keys);
    for (long i = 0; i < p->nq; i++) {
        float shrink = absorb(s + i * KEYS, &most[i], &sum[i]);
        for (long j = 0; j < values->n; j++)
            o[i * WIDE + j] *= shrink;
    }
    dropped(s, a, p);
    times(o, WIDE, 0, view_float(s, KEYS, 1), values, p->nq);
}

/* Queries p.q .. of one head, MANY at most; columns from .. from+n-1 of the result. */
static void forward_block(real *y, float *lse, const Attention *a, AttendBlock p, long from, long n)
{
    float o[MANY * WIDE], most[MANY], sum[MANY];
    Right keys, values;
    long last = p.q + p.nq, end = keys_end(a, last);
    memset(o, 0, (size_t)(p.nq * WIDE) * sizeof *o);
    for (long i = 0; i < p.nq; i++) {
        most[i] = a->sinks ? get(a->sinks, p.b * a->heads + p.head) : -F_INFINITY;
        sum[i] = a->sinks != NULL;
    }
    for (p.k = keys_begin(a, p.q); p.k < end; p.k += KEYS) {
        p.nk = least(KEYS, a->key - p.k);
        bool packed = false;
        for (AttendBlock t = p; t.q < last; t.q += QUERIES) {
            long at = t.q - p.q;
            t.nq = least(QUERIES, last - t.q);
            if (!sees(a, &t))
                continue;
            if (!packed) {
                right_of(&keys, turned(of_keys(a, a->k, a->ldk, &p)), a->width, p.nk);
                right_of(&values, view_from(of_keys(a, a->v, a->ldv, &p), 0, from), p.nk, n);
            }
            packed = true;
            forward_tile(o + at * WIDE, most + at, sum + at, a, &t, &keys, &values);
        }
    }
    real *to = y + (p.b * a->query + p.q) * a->ldy + p.head * a->width + from;
    for (long i = 0; i < p.nq; i++) {
        float over = sum[i] > 0 ? 1.0f / sum[i] : 0.0f;
        over = sum[i] != sum[i] ? sum[i] : over;            /* let a NaN through */
        for (long j = 0; j < n; j++)
            put(to, i * a->ldy + j, o[i * WIDE + j] * over);
        lse[(p.b * a->heads + p.head) * a->query + p.q + i] = most[i] + flog(sum[i]);
    }
}

static void forward(Stage *st, real *y, float *lse, const Attention *of)
{
    const Attention here = placed(st, of), *a = &here;
    long blocks = ceil_div(a->query, MANY);
    EACH(a->batch * a->heads * a->query * a->key * a->width >= 1 << 15)
    for (long task = 0; task < a->batch * a->heads * blocks; task++) {
        long head = task / blocks, q = task % blocks * MANY;
        AttendBlock p = {head / a->heads, head % a->heads, q, 0, least(MANY, a->query - q), 0};
        for (long from = 0; from < a->width; from += WIDE)
            forward_block(y, lse, a, p, from, least(WIDE, a->width - from));
    }
}

/* What backward needs of the forward results, and where its own go. */
typedef struct {
    const real *dy, *y;
    const float *lse;
    float *delta;               /* [batch heads query] */
    real *dq, *dk, *dv, *dbias;
} Back;

static void deltas(Stage *st, const Attention *a, const Back *r)
{
    EACH(a->batch * a->heads * a->query * a->width >= 1 << 15)
    for (long row = 0; row < a->batch * a->heads * a->query; row++) {
        long q = row % a->query, head = row / a->query % a->heads, b = row / a->query / a->heads;
        long at = (b * a->query + q) * a->ldy + head * a->width;
        SUM_OF(r->delta[row], a->width, j, get(r->dy, at + j) * get(r->y, at + j));
    }
}

/* What tiles of the same keys share: k^T and v^T; and k, for dq. */
typedef struct { Right keys, values, back; } Shared;

static void share(Shared *h, const Attention *a, const AttendBlock *p, bool back, long from, long n)
{
    right_of(&h->keys, turned(of_keys(a, a->k, a->ldk, p)), a->width, p->nk);
    right_of(&h->values, turned(of_keys(a, a->v, a->ldv, p)), a->width, p->nk);
    if (back)
        right_of(&h->back, view_from(of_keys(a, a->k, a->ldk, p), 0, from), p->nk, n);
}

/* prob[nq][KEYS] = D(P), ds[nq][KEYS] = P (D(dy v^T) - delta); through: ds is that of the products q k^T, below the cap. */
static void slopes(float *prob, float *ds, const Attention *a, const Back *r, const AttendBlock *p, Shared *h, bool through)
{
    float slope[QUERIES * KEYS];
    scores(prob, through ? slope : NULL, a, p, &h->keys);
    times(ds, KEYS, 1, of_queries(a, r->dy, a->ldy, p), &h->values, p->nq);
    dropped(ds, a, p);
    for (long i = 0; i < p->nq; i++) {
        long row = (p->b * a->heads + p->head) * a->query + p->q + i;
        float delta = r->delta[row], lse = r->lse[row];
        for (long j = 0; j < KEYS; j++) {
            float s = prob[i * KEYS + j], e = s == -F_INFINITY ? 0.0f : fexp(s - lse);
            prob[i * KEYS + j] = e;
            ds[i * KEYS + j] = e * (ds[i * KEYS + j] - delta);
        }
    }
    for (long i = 0; bends(a) && through && i < p->nq; i++)
        for (long j = 0; j < p->nk; j++)
            ds[i * KEYS + j] *= slope[i * KEYS + j];
    dropped(prob, a, p);
}

static void store(real *to, long ld, const float *from, long rows, long n, float factor)
{
    for (long i = 0; to && i < rows; i++)
        for (long j = 0; j < n; j++)
            put(to, i * ld + j, from[i * WIDE + j] * factor);
}

/* The place of dq, as floats, for queries of a head. */
static float *dq_place(const Attention *a, const Back *r, const AttendBlock *p, long from)
{
    return (float *)(void *)r->dq + (p->b * a->query + p->q) * a->ldq + p->head * a->width + from;
}

/* What the queries of one head, ascending, add to dk and dv; and its keys to dq, where that is made `here`. */
static void add_head(float *dk, float *dv, const Attention *a, const Back *r, AttendBlock p, Shared *h, bool here, long from,
                     long n)
{
    float prob[QUERIES * KEYS], ds[QUERIES * KEYS];
    Right right;
    long end = a->window ? least(a->query, p.k + p.nk - 1 + a->window) : a->query;
    long begin = a->causal ? p.k : a->window && p.k >= a->window ? p.k - a->window + 1 : 0;
    for (p.q = begin / QUERIES * QUERIES; p.q < end; p.q += QUERIES) {
        p.nq = least(QUERIES, a->query - p.q);
        if (apart(a, &p))
            continue;
        slopes(prob, ds, a, r, &p, h, true);
        if (r->dv) {
            right_of(&right, view_from(of_queries(a, r->dy, a->ldy, &p), 0, from), p.nq, n);
            times(dv, WIDE, 0, view_float(prob, 1, KEYS), &right, p.nk);
        }
        if (r->dk) {
            right_of(&right, view_from(of_queries(a, a->q, a->ldq, &p), 0, from), p.nq, n);
            times(dk, WIDE, 0, view_float(ds, 1, KEYS), &right, p.nk);
        }
        if (here && sees(a, &p))
            times(dq_place(a, r, &p, from), a->ldq, 0, view_float(ds, KEYS, 1), &h->back, p.nq);
    }
}

/* dk and dv of up to KEYS keys: the query heads that share them ascend; p.head is the first. */
static void backward_keys(const Attention *a, const Back *r, AttendBlock p, bool here, long from, long n)
{
    float dk[KEYS * WIDE] = {0}, dv[KEYS * WIDE] = {0};
    Shared h;
    long row = p.b * a->key + p.k, column = p.head / a->group * a->width + from, end = p.head + a->group;
    share(&h, a, &p, here, from, n);
    for (; p.head < end; p.head++)
        add_head(dk, dv, a, r, p, &h, here, from, n);
    if (r->dv)
        store(r->dv + row * a->ldv + column, a->ldv, dv, p.nk, n, 1.0f);
    if (r->dk)
        store(r->dk + row * a->ldk + column, a->ldk, dk, p.nk, n, a->scale);
}

/* All of the heads that share keys, block by block of these: chains of dq rest in its place, as floats. */
static void backward_heads(const Attention *a, const Back *r, AttendBlock p, long from, long n)
{
    for (AttendBlock t = p; t.head < p.head + a->group; t.head++)
        for (t.q = 0; t.q < a->query; t.q++)
            memset(dq_place(a, r, &t, from), 0, (size_t)n * sizeof(float));
    for (p.k = 0; p.k < a->key; p.k += KEYS) {
        p.nk = least(KEYS, a->key - p.k);
        backward_keys(a, r, p, true, from, n);
    }
    for (AttendBlock t = p; t.head < p.head + a->group; t.head++)
        for (t.q = 0; t.q < a->query; t.q++)
            for (long j = 0; j < n; j++)
                dq_place(a, r, &t, from)[j] *= a->scale;
}

/* dq of up to QUERIES queries: the keys ascend. */
static void backward_queries(const Attention *a, const Back *r, AttendBlock p, long from, long n)
{
    float prob[QUERIES * KEYS], ds[QUERIES * KEYS], dq[QUERIES * WIDE] = {0};
    Shared h;
    long end = keys_end(a, p.q + p.nq);
    for (p.k = keys_begin(a, p.q); p.k < end; p.k += KEYS) {
        p.nk = least(KEYS, a->key - p.k);
        if (apart(a, &p))
            continue;
        share(&h, a, &p, true, from, n);
        slopes(prob, ds, a, r, &p, &h, true);
        times(dq, WIDE, 0, view_float(ds, KEYS, 1), &h.back, p.nq);
    }
    store(r->dq + (p.b * a->query + p.q) * a->ldq + p.head * a->width + from, a->ldq, dq, p.nq, n, a->scale);
}

/* dbias of one tile: the samples ascend. */
static void backward_bias(const Attention *a, const Back *r, AttendBlock p)
{
    float prob[QUERIES * KEYS], ds[QUERIES * KEYS], sum[QUERIES * KEYS] = {0};
    Shared h;
    for (p.b = 0; p.b < a->batch; p.b++) {
        share(&h, a, &p, false, 0, 0);
        slopes(prob, ds, a, r, &p, &h, false);
        for (long i = 0; i < QUERIES * KEYS; i++)
            sum[i] += ds[i];
    }
    for (long i = 0; i < p.nq; i++)
        for (long j = 0; j < p.nk; j++)
            put(r->dbias, (p.head * a->query + p.q + i) * a->key + p.k + j, sum[i * KEYS + j]);
}

static void backward(Stage *st, const Attention *of, const Back *r)
{
    const Attention here = placed(st, of), *a = &here;
    long down = ceil_div(a->query, QUERIES), across = ceil_div(a->key, KEYS), pairs = a->batch * a->heads;
    bool whole = sizeof(real) == sizeof(float) && r->dq && a->width % TILE_COLS == 0 && a->ldq % TILE_COLS == 0 &&
                 pairs / a->group >= st->threads;
    long n_heads = whole ? pairs / a->group : 0, n_queries = r->dq && !whole ? pairs * down : 0;
    long n_keys = (r->dk || r->dv) && !whole ? pairs / a->group * across : 0;
    deltas(st, a, r);
    EACH(pairs * a->query * a->key * a->width >= 1 << 15)
    for (long task = 0; task < n_heads; task++) {
        AttendBlock p = {task * a->group / a->heads, task * a->group % a->heads, 0, 0, 0, 0};
        for (long from = 0; from < a->width; from += WIDE)
            backward_heads(a, r, p, from, least(WIDE, a->width - from));
    }
    EACH(pairs * a->query * a->key * a->width >= 1 << 15)
    for (long task = 0; task < n_keys; task++) {
        long head = task / across * a->group, k = task % across * KEYS;
        AttendBlock p = {head / a->heads, head % a->heads, 0, k, 0, least(KEYS, a->key - k)};
        for (long from = 0; from < a->width; from += WIDE)
            backward_keys(a, r, p, false, from, least(WIDE, a->width - from));
    }
    EACH(pairs * a->query * a->key * a->width >= 1 << 15)
    for (long task = 0; task < n_queries; task++) {
        long head = task / down, q = task % down * QUERIES;
        AttendBlock p = {head / a->heads, head % a->heads, q, 0, least(QUERIES, a->query - q), 0};
        for (long from = 0; from < a->width; from += WIDE)
            backward_queries(a, r, p, from, least(WIDE, a->width - from));
    }
    long n_bias = r->dbias ? a->heads * down * across : 0;
    EACH(pairs * a->query * a->key * a->width >= 1 << 15)
    for (long task = 0; task < n_bias; task++) {
        long q = task / across % down * QUERIES, k = task % across * KEYS;
        AttendBlock p = {0, task / across / down, q, k, least(QUERIES, a->query - q), least(KEYS, a->key - k)};
        backward_bias(a, r, p);
    }
}
#endif
