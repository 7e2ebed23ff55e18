/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: y = softmax(scale q k^T + bias, hidden where mask or causal says so, dropped) v, and its gradients.
 *
 * Method.  Tiles of 64 queries by 64 keys, never a query x key matrix in memory.  Forward keeps a running
 * maximum, sum and result for each query and rescales them at each tile (M. Milakov, N. Gimelshein, Online
 * normalizer calculation for softmax, 2018; tiled by T. Dao et al., FlashAttention, NeurIPS 2022, section 3.1).
 * It leaves lse, the logarithm of the sum of exponentials, from which backward makes any tile of the
 * probabilities again:
 *
 *   P = exp(S - lse)    dV = (P F)^T dy    dP = (dy V^T) F    dS = P (dP - delta)    dQ = dS K    dK = dS^T Q
 *
 * F is 0 or 1 / (1 - drop) for each element and delta = sum(dy y) a query.  Everything is f32 inside.
 *
 * Threads.  One (sample, head) is one piece of work, done in one order: the bits do not depend on the thread count, and
 * the threads are idle at the end if the pieces do not divide evenly.  oneDNN's product would start a team of its own
 * for each of these small ones.
 *
 * The gradient of the bias adds over the samples.  It is made in a pass of its own, over (head, tile of queries),
 * which computes the tiles of dS once more: 2 of 5 products on top, only for a model with a learned bias (T5).
 *
 * A query that sees no key at all gives 0, and gives no gradient.  Memory: a few tiles a thread, and one copy of a
 * head's keys, values and query gradients, made at open.  `tmp` is not used.
 */
#include "../../philox.h"
#include "product.h"
#include "tile.h"
#include <omp.h>

typedef struct {                /* one call */
    const real *q, *k, *v, *bias, *y, *dy;
    const int32_t *mask;
    const float *lse;
    long q_row, k_row;          /* elements from one token to the next, in q and dq; in k, v and their gradients */
    long batch, heads, query, key, width, causal;
    float scale, drop;
    const Values *vals;
    int mb;
    int64_t site;
} Call;

typedef struct { real *q, *k, *v, *bias; } Grads;

typedef struct {                /* scratch of a thread; all rows are `pad` floats unless said */
    long pad;                   /* width, up to a multiple of 16 */
    float *q, *dy, *o;          /* a tile of queries */
    float *k, *dk, *dv;         /* a tile of keys */
    float *kt, *vt;             /* [pad TILE]: transposed; forward keeps those of all keys, one behind the other */
    float *v;                   /* all values of the head */
    float *dq;                  /* all query gradients of the head */
    float *s, *dp, *factor;     /* [TILE TILE] */
    float *delta;               /* all queries */
} Work;

static long up(long n, long unit) { return ceil_div(n, unit) * unit; }

/* Lay the parts out behind `at`; the floats they take. */
static size_t work_layout(Work *w, float *at, long query, long key, long width)
{
    long pad = up(width, LANES), tile = TILE * pad, square = TILE * TILE;
    long queries = up(query, TILE), keys = up(key, TILE);
    struct { float **to; long n; } parts[] = {
        { &w->q, tile }, { &w->dy, tile }, { &w->o, tile }, { &w->k, tile }, { &w->dk, tile }, { &w->dv, tile },
        { &w->kt, keys * pad }, { &w->vt, tile }, { &w->v, keys * pad }, { &w->dq, queries * pad },
        { &w->s, square }, { &w->dp, square }, { &w->factor, square }, { &w->delta, queries } };
    size_t used = 0;
    w->pad = pad;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (at)
            *parts[i].to = at + used;
        used += (size_t)parts[i].n;
    }
    return used;
}

static Work work_of(const Stage *st, const Call *c)
{
    Work w;
    work_layout(&w, scratch_thread(st, omp_get_thread_num()), c->query, c->key, c->width);
    return w;
}

static void prepare(Stage *st, long query, long key, long width)
{
    Work w;
    scratch_open(st, work_layout(&w, NULL, query, key, width) * sizeof(float));
}

/* ---- tiles in and out ---------------------------------------------------------------------------------------- */
/* Up to 64 tokens from `first`, as f32, zeros around. */
static void read_tile(float *to, long pad, const real *x, long row, long first, long count, long width)
{
    long n = least(TILE, count - first);
    memset(to, 0, (size_t)(TILE * pad) * sizeof *to);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < width; j++)
            to[i * pad + j] = get(x, (first + i) * row + j);
}

static void write_tile(real *x, const float *from, long pad, long row, long first, long count, long width, float factor)
{
    long n = least(TILE, count - first);
    for (long i = 0; x && i < n; i++)
        for (long j = 0; j < width; j++)
            put(x, (first + i) * row + j, from[i * pad + j] * factor);
}

/* to[pad TILE] = from[TILE pad], transposed */
static void turn(float *to, const float *from, long pad)
{
    for (long i = 0; i < TILE; i++)
        for (long j = 0; j < pad; j++)
            to[j * TILE + i] = from[i * pad + j];
}

static const real *head_of(const real *x, const Call *c, long piece, long row, long count)
{
    return x + piece / c->heads * count * row + piece % c->heads * c->width;
}

static real *head_out(real *x, const Call *c, long piece, long row, long count)
{
    return x ? x + piece / c->heads * count * row + piece % c->heads * c->width : NULL;
}

/* ---- scores -------------------------------------------------------------------------------------------------- */
/* Scale a row of scores of query i and keys from j on; hidden ones become minus infinity. */
static void finish_scores(float *s, const Call *c, long piece, long i, long j)
{
    long head = piece % c->heads, n = least(TILE, c->key - j), seen = c->causal ? least(n, i + 1 - j) : n;
    for (long l = 0; l < TILE; l++)
        s[l] *= c->scale;
    for (long l = 0; c->bias && l < n; l++)
        s[l] += get(c->bias, (head * c->query + i) * c->key + j + l);
    for (long l = seen < 0 ? 0 : seen; l < TILE; l++)
        s[l] = -F_INFINITY;
    const int32_t *mask = c->mask ? c->mask + piece / c->heads * c->key + j : NULL;
    for (long l = 0; mask && l < n; l++)
        s[l] = mask[l] ? s[l] : -F_INFINITY;
}

static int dropping(const Call *c)
{
    return c->drop > 0 && !c->vals->eval;
}

/* What dropout multiplies the row by. */
static void factors(float *to, const Call *c, long piece, long i, long j)
{
    Drop d = drop_of(c->vals, c->mb * c->batch + piece / c->heads, c->drop, c->site);
    drop_factors(to, &d, (piece % c->heads * c->query + i) * c->key + j, least(TILE, c->key - j));
}

/* The first tile of keys that no query of the tile at i sees. */
static long key_end(const Call *c, long i)
{
    return c->causal ? least(c->key, i + TILE) : c->key;
}

static float tile_max(const float *x)
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++) {
        float a = x[l] > x[l + 16] ? x[l] : x[l + 16], b = x[l + 32] > x[l + 48] ? x[l + 32] : x[l + 48];
        lane[l] = a > b ? a : b;
    }
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
    return lane[0];
}

static float tile_sum(const float *x)
{
    Sum s = {{ 0 }};
    sum_add(&s, x, TILE);
    return sum_end(&s);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */
typedef struct { float most[TILE], sum[TILE]; } Running;

/* Turn one row of finished scores into weights, and bring what the row has so far to the new maximum. */
static void weigh_row(float *s, float *o, long pad, Running *run, long i)
{
    float most = tile_max(s);
    most = most > run->most[i] ? most : run->most[i];
    float base = most == -F_INFINITY ? 0 : most, shrink = fexp(run->most[i] - base);
    for (long l = 0; l < TILE; l++)
        s[l] = fexp(s[l] - base);
    run->most[i] = most;
    run->sum[i] = run->sum[i] * shrink + tile_sum(s);
    for (long l = 0; l < pad; l++)
        o[l] *= shrink;
}

static void forward_tile(Work *w, const Call *c, long piece, long i, long j, Running *run)
{
    long rows = least(TILE, c->query - i);
    tile_product(w->s, TILE, (Left){ w->q, w->pad, 1 }, w->kt + j * w->pad, TILE, TILE, TILE, w->pad, 0);
    for (long l = 0; l < rows; l++) {
        float *s = w->s + l * TILE;
        finish_scores(s, c, piece, i + l, j);
        weigh_row(s, w->o + l * w->pad, w->pad, run, l);
        if (!dropping(c))
            continue;
        factors(w->factor, c, piece, i + l, j);
        for (long n = 0; n < least(TILE, c->key - j); n++)
            s[n] *= w->factor[n];
    }
    tile_product(w->o, w->pad, (Left){ w->s, TILE, 1 }, w->v + j * w->pad, w->pad, TILE, w->pad, TILE, 1);
}

static void forward_piece(Work *w, const Call *c, long piece, real *y, float *lse)
{
    long y_row = c->heads * c->width;
    for (long j = 0; j < c->key; j += TILE) {
        read_tile(w->k, w->pad, head_of(c->k, c, piece, c->k_row, c->key), c->k_row, j, c->key, c->width);
        turn(w->kt + j * w->pad, w->k, w->pad);
        read_tile(w->v + j * w->pad, w->pad, head_of(c->v, c, piece, c->k_row, c->key), c->k_row, j, c->key, c->width);
    }
    for (long i = 0; i < c->query; i += TILE) {
        Running run;
        for (long l = 0; l < TILE; l++)
            run.most[l] = -F_INFINITY, run.sum[l] = 0;
        read_tile(w->q, w->pad, head_of(c->q, c, piece, c->q_row, c->query), c->q_row, i, c->query, c->width);
        memset(w->o, 0, (size_t)(TILE * w->pad) * sizeof(float));
        memset(w->s, 0, TILE * TILE * sizeof(float));
        for (long j = 0; j < key_end(c, i); j += TILE)
            forward_tile(w, c, piece, i, j, &run);
        for (long l = 0; l < least(TILE, c->query - i); l++) {
            float sum = run.sum[l], over = sum > 0 ? 1.0f / sum : 0;
            over = sum != sum ? sum : over;                 /* let a NaN through */
            lse[piece * c->query + i + l] = run.most[l] + flog(sum);
            for (long n = 0; n < w->pad; n++)
                w->o[l * w->pad + n] *= over;
        }
        write_tile(head_out(y, c, piece, y_row, c->query), w->o, w->pad, y_row, i, c->query, c->width, 1);
    }
}

static void forward(Stage *st, const Call *c, real *y, float *lse)
{
    EACH(1)
    for (long piece = 0; piece < c->batch * c->heads; piece++) {
        Work w = work_of(st, c);
        forward_piece(&w, c, piece, y, lse);
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------ */
/* The rows of queries at i of q and dy, and the keys at j of k, its transpose, and v's. */
static void read_queries(Work *w, const Call *c, long piece, long i)
{
    long y_row = c->heads * c->width;
    read_tile(w->q, w->pad, head_of(c->q, c, piece, c->q_row, c->query), c->q_row, i, c->query, c->width);
    read_tile(w->dy, w->pad, head_of(c->dy, c, piece, y_row, c->query), y_row, i, c->query, c->width);
}

static void read_keys(Work *w, const Call *c, long piece, long j)
{
    read_tile(w->dk, w->pad, head_of(c->v, c, piece, c->k_row, c->key), c->k_row, j, c->key, c->width);
    turn(w->vt, w->dk, w->pad);
    read_tile(w->k, w->pad, head_of(c->k, c, piece, c->k_row, c->key), c->k_row, j, c->key, c->width);
    turn(w->kt, w->k, w->pad);
}

/* delta of every query of the head: sum(dy y), which is the sum of P dP over all keys, dropout included. */
static void read_delta(Work *w, const Call *c, long piece)
{
    long y_row = c->heads * c->width;
    const real *y = head_of(c->y, c, piece, y_row, c->query), *dy = head_of(c->dy, c, piece, y_row, c->query);
    for (long i = 0; i < c->query; i++)
        SUM_OF(w->delta[i], c->width, n, get(y, i * y_row + n) * get(dy, i * y_row + n));
}

/* From the tiles read: s becomes P F, and dp becomes dS.  Rows behind the last query become 0. */
static void score_gradients(Work *w, const Call *c, long piece, long i, long j)
{
    tile_product(w->s, TILE, (Left){ w->q, w->pad, 1 }, w->kt, TILE, TILE, TILE, w->pad, 0);
    tile_product(w->dp, TILE, (Left){ w->dy, w->pad, 1 }, w->vt, TILE, TILE, TILE, w->pad, 0);
    long rows = least(TILE, c->query - i);
    for (long l = 0; l < rows; l++) {
        float *s = w->s + l * TILE, *dp = w->dp + l * TILE, f[TILE];
        float lse = c->lse[piece * c->query + i + l], delta = w->delta[i + l];
        finish_scores(s, c, piece, i + l, j);
        lse = lse == -F_INFINITY ? 0 : lse;
        for (long n = 0; n < TILE; n++)
            f[n] = 1;
        if (dropping(c))
            factors(f, c, piece, i + l, j);
        for (long n = 0; n < TILE; n++) {
            float p = fexp(s[n] - lse);
            s[n] = p * f[n];
            dp[n] = p * (dp[n] * f[n] - delta);
        }
    }
    memset(w->s + rows * TILE, 0, (size_t)((TILE - rows) * TILE) * sizeof(float));
    memset(w->dp + rows * TILE, 0, (size_t)((TILE - rows) * TILE) * sizeof(float));
}

static void backward_keys(Work *w, const Call *c, long piece, long j, const Grads *to)
{
    long pad = w->pad;
    read_keys(w, c, piece, j);
    memset(w->dk, 0, (size_t)(TILE * pad) * sizeof(float));
    memset(w->dv, 0, (size_t)(TILE * pad) * sizeof(float));
    for (long i = c->causal ? j : 0; i < c->query; i += TILE) {
        read_queries(w, c, piece, i);
        score_gradients(w, c, piece, i, j);
        tile_product(w->dv, pad, (Left){ w->s, 1, TILE }, w->dy, pad, TILE, pad, TILE, 1);
        tile_product(w->dk, pad, (Left){ w->dp, 1, TILE }, w->q, pad, TILE, pad, TILE, 1);
        tile_product(w->dq + i * pad, pad, (Left){ w->dp, TILE, 1 }, w->k, pad, TILE, pad, TILE, 1);
    }
    write_tile(head_out(to->k, c, piece, c->k_row, c->key), w->dk, pad, c->k_row, j, c->key, c->width, c->scale);
    write_tile(head_out(to->v, c, piece, c->k_row, c->key), w->dv, pad, c->k_row, j, c->key, c->width, 1);
}

static void backward_piece(Work *w, const Call *c, long piece, const Grads *to)
{
    read_delta(w, c, piece);
    memset(w->dq, 0, (size_t)(up(c->query, TILE) * w->pad) * sizeof(float));
    for (long j = 0; j < c->key; j += TILE)
        backward_keys(w, c, piece, j, to);
    for (long i = 0; i < c->query; i += TILE)
        write_tile(head_out(to->q, c, piece, c->q_row, c->query), w->dq + i * w->pad, w->pad, c->q_row, i, c->query,
                   c->width, c->scale);
}

/* dbias of one head and 64 queries: the sum of dS over the samples, ascending. */
static void bias_piece(Work *w, const Call *c, long head, long i, real *dbias)
{
    for (long j = 0; j < c->key; j += TILE) {
        memset(w->factor, 0, TILE * TILE * sizeof(float));
        for (long piece = head; piece < c->batch * c->heads; piece += c->heads) {
            read_delta(w, c, piece);
            read_keys(w, c, piece, j);
            read_queries(w, c, piece, i);
            score_gradients(w, c, piece, i, j);
            for (long n = 0; n < TILE * TILE; n++)
                w->factor[n] += w->dp[n];
        }
        write_tile(dbias + head * c->query * c->key + j, w->factor, TILE, c->key, i, c->query,
                   least(TILE, c->key - j), 1);
    }
}

static void backward(Stage *st, const Call *c, const Grads *to)
{
    EACH(1)
    for (long piece = 0; piece < c->batch * c->heads; piece++) {
        Work w = work_of(st, c);
        backward_piece(&w, c, piece, to);
    }
    if (!to->bias)
        return;
    long tiles = ceil_div(c->query, TILE);
    EACH(1)
    for (long piece = 0; piece < c->heads * tiles; piece++) {
        Work w = work_of(st, c);
        bias_piece(&w, c, piece / tiles, piece % tiles * TILE, to->bias);
    }
}

/* ---- the calls ----------------------------------------------------------------------------------------------- */
void open_attention_forward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal)
{
    (void)h, (void)batch, (void)heads, (void)causal;
    prepare(st, query, key, width);
}

void open_attention_backward(Stage *st, int h, long batch, long heads, long query, long key, long width,
                             long causal)
{
    (void)h, (void)batch, (void)heads, (void)causal;
    prepare(st, query, key, width);
}

void open_attention_packed_forward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    open_attention_forward(st, h, batch, heads, query, query, width, causal);
}

void open_attention_packed_backward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    open_attention_backward(st, h, batch, heads, query, query, width, causal);
}

void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v,
                       const real *bias, const int32_t *mask, const Values *vals, int mb, int h, long batch,
                       long heads, long query, long key, long width, long causal, float scale, float drop,
                       int64_t site)
{
    (void)h;
    Call c = { .q = q, .k = k, .v = v, .bias = bias, .mask = mask, .q_row = heads * width, .k_row = heads * width,
               .batch = batch, .heads = heads, .query = query, .key = key, .width = width, .causal = causal,
               .scale = scale, .drop = drop, .vals = vals, .mb = mb, .site = site };
    forward(st, &c, y, lse);
}

void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                        const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                        const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                        long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h, (void)tmp;
    Call c = { .q = q, .k = k, .v = v, .bias = bias, .mask = mask, .y = y, .dy = dy, .lse = lse, .q_row = heads * width,
               .k_row = heads * width, .batch = batch, .heads = heads, .query = query, .key = key, .width = width,
               .causal = causal, .scale = scale, .drop = drop, .vals = vals, .mb = mb, .site = site };
    backward(st, &c, &(Grads){ dq, dk, dv, dbias });
}

void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads,
                              long query, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width;
    Call c = { .q = qkv, .k = qkv + all, .v = qkv + 2 * all, .bias = bias, .mask = mask, .q_row = 3 * all,
               .k_row = 3 * all, .batch = batch, .heads = heads, .query = query, .key = query, .width = width,
               .causal = causal, .scale = scale, .drop = drop, .vals = vals, .mb = mb, .site = site };
    forward(st, &c, y, lse);
}

void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                               const real *bias, const int32_t *mask, const float *lse, void *tmp,
                               const Values *vals, int mb, int h, long batch, long heads, long query, long width,
                               long causal, float scale, float drop, int64_t site)
{
    (void)h, (void)tmp;
    long all = heads * width;
    Call c = { .q = qkv, .k = qkv + all, .v = qkv + 2 * all, .bias = bias, .mask = mask, .y = y, .dy = dy, .lse = lse,
               .q_row = 3 * all, .k_row = 3 * all, .batch = batch, .heads = heads, .query = query, .key = query,
               .width = width, .causal = causal, .scale = scale, .drop = drop, .vals = vals, .mb = mb, .site = site };
    backward(st, &c, &(Grads){ dqkv, dqkv + all, dqkv + 2 * all, dbias });
}
