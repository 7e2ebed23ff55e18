/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention without stored scores, in f32: attention_own.h describes the operands, rt/op/attention.c has the formulas.  bf16
 * goes to attention_mma.cu, except for heads wider than 128, caps and documents.
 *
 * Method.  T. Dao, FlashAttention-2, 2023, section 3.1, with each result owned by one block.  Forward: a block has 64 queries
 * of one head and takes the keys in tiles of 64, ascending.  The 16 threads that share a row keep the query's largest score
 * and sum of exponentials.  Backward: the blocks of one kernel own 64 queries (dq), those of another 64 keys (dk, dv), those
 * of a third a tile of the bias (dbias).  Each recomputes the scores.  Tiles: attention_tile.h.
 *
 * Order: tiles have fixed sizes and ascend.  Row sums go by 4 adjacent columns a thread and a butterfly of 16 threads.  A
 * result depends on sizes and its own operands alone.  Tiles that `causal` or `window` hides whole are left out.
 *
 * Cost: no tensor cores: 2 products forward, 3 + 4 backward, 2 for dbias, at a part of the f32 rate.  Shared memory 35 KiB.
 * Heads wider than 128 are done 128 columns of the result at a time, with the scores recomputed for each.
 */
#include "attention_mma.h"
#include "attention_own.h"
#include "attention_tile.h"
extern "C" {
#include "../../number.h"
}

/* Factors of dropout of query q and keys k .. k+3. */
FN void factors(float (&to)[SIDE], const Attend &a, const HeadTile &p, long q, long k)
{
    UNROLL
    for (int j = 0; j < SIDE; j++)
        to[j] = 1.0f;
    if (p.drop) {
        Drop d = drop_here(a, p);
        drop_four(to, &d, place_drawn(a, p, q, k));
    }
}

/* Over the 16 threads of a row. */
FN float row_sum(float v)
{
    for (int way = 8; way; way /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, way);
    return v;
}

FN float row_max(float v)
{
    for (int way = 8; way; way /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, way);
        v = other > v ? other : v;
    }
    return v;
}

/* Scores of one tile become exponentials, times dropout; returns what earlier sums of the row are to be scaled by. */
FN float absorb_row(float (&s)[SIDE], const Attend &a, const HeadTile &p, long q, long k, float *most, float *sum)
{
    float top = -F_INFINITY, part = 0, f[SIDE];
    UNROLL
    for (int c = 0; c < SIDE; c++) {
        s[c] = score(a, p, s[c], q, k + c);
        top = s[c] > top ? s[c] : top;
    }
    top = row_max(top);
    top = top > *most ? top : *most;
    float shift = top == -F_INFINITY ? 0.0f : top, shrink = fexp(*most - shift);
    UNROLL
    for (int c = 0; c < SIDE; c++) {
        s[c] = fexp(s[c] - shift);
        part += s[c];
    }
    *sum = *sum * shrink + row_sum(part);
    *most = top;
    factors(f, a, p, q, k);
    UNROLL
    for (int c = 0; c < SIDE; c++)
        s[c] *= f[c];
    return shrink;
}

template <int WIDTH> static __global__ void __launch_bounds__(BLOCK, 2) attend(real *y, float *lse, Attend a)
{
    SHARED(float, room, 2 * DEPTH * PITCH);
    SHARED(float, tile, EDGE * PITCH);
    long tiles = (a.query + EDGE - 1) / EDGE;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles);
    long first = p.tile * EDGE, from = (long)blockIdx.y * WIDTH, end = keys_end(a, first + EDGE);
    float o[SIDE][WIDTH / 16], s[SIDE][SIDE], most[SIDE], sum[SIDE], over[SIDE];
    UNROLL
    for (int r = 0; r < SIDE; r++) {
        most[r] = a.sinks ? one(a.sinks, p.b * a.heads + p.head) : -F_INFINITY, sum[r] = a.sinks ? 1.0f : 0.0f;
        UNROLL
        for (int i = 0; i < WIDTH / 16; i++)
            o[r][i] = 0;
    }
    for (long k = keys_begin(a, first, EDGE); k < end; k += EDGE) {
        score_tile(s, SHARED_AT(room, 0), queries(a, a.q, a.qs, p), first, keys(a, a.k, p), k, a.width);
        UNROLL
        for (int r = 0; r < SIDE; r++) {
            float shrink = absorb_row(s[r], a, p, first + down() + r, k + across(), &most[r], &sum[r]);
            UNROLL
            for (int i = 0; i < WIDTH / 16; i++)
                o[r][i] *= shrink;
        }
        keep_tile(SHARED_AT(tile, 0), s);
        add_product<WIDTH>(o, SHARED_AT(tile, 0), SHARED_AT(room, 0), keys(a, a.v, p), k, from, a.width);
    }
    UNROLL
    for (int r = 0; r < SIDE; r++) {
        long q = first + down() + r;
        over[r] = sum[r] > 0 ? 1.0f / sum[r] : 0.0f;
        over[r] = sum[r] != sum[r] ? sum[r] : over[r];          /* let a NaN through */
        if (q < a.query && across() == 0)
            lse[(p.b * a.heads + p.head) * a.query + q] = most[r] + flog(sum[r]);
    }
    long row = a.heads * a.width;
    Out to = {y + p.b * a.query * row + p.head * a.width, a.query, row};
    put_rows<WIDTH>(to, o, over, first, from, a.width);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* delta of a query: the sum of dy y over its row; a warp each. */
static __global__ void attend_delta(float *delta, const real *dy, const real *y, Attend a)
{
    long r = ROW_OF(WARP);
    if (r >= a.batch * a.heads * a.query)
        return;
    long q = r % a.query, pair = r / a.query, at = ((pair / a.heads * a.query + q) * a.heads + pair % a.heads) * a.width;
    float sum = 0;
    for (long j = threadIdx.x % WARP; j < a.width; j += WARP)
        sum += one(dy, at + j) * one(y, at + j);
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        delta[r] = sum;
}

/* Scores s of one query and its keys k .. k+3 become D(P), and products dp = dy v become dS = P (D(dp) - delta); through: those
 * of the products below the cap. */
FN void slopes(float (&s)[SIDE], float (&dp)[SIDE], const Attend &a, const HeadTile &p, long q, long k, bool through)
{
    long row = (p.b * a.heads + p.head) * a.query + q;
    float lse = q < a.query ? a.lse[row] : 0.0f, delta = q < a.query ? a.delta[row] : 0.0f, f[SIDE];
    factors(f, a, p, q, k);
    UNROLL
    for (int c = 0; c < SIDE; c++) {
        float t = score(a, p, s[c], q, k + c), e = t == -F_INFINITY ? 0.0f : fexp(t - lse);
        dp[c] = e * (dp[c] * f[c] - delta);
        if (through && a.cap > 0)
            dp[c] *= cap_slope(a, s[c]);
        s[c] = e * f[c];
    }
}

/* A thread's own elements wait in shared memory while others take the registers: here, those of query i of its four.  Queries
 * are the columns of a tile where keys are its rows (KEYS). */
template <bool KEYS> FN float *elements_of(float *tile, int i)
{
    return KEYS ? tile + (across() + i) * PITCH + down() : tile + (down() + i) * PITCH + across();
}

template <bool KEYS> FN void park_tile(float *tile, const float (&s)[SIDE][SIDE])
{
    UNROLL
    for (int i = 0; i < SIDE; i++) {
        float of_query[SIDE];
        UNROLL
        for (int j = 0; j < SIDE; j++)
            of_query[j] = KEYS ? s[j][i] : s[i][j];
        store(elements_of<KEYS>(tile, i), of_query);
    }
}

template <bool KEYS> FN void fetch_tile(float (&s)[SIDE][SIDE], float *tile)
{
    UNROLL
    for (int i = 0; i < SIDE; i++) {
        float of_query[SIDE];
        load(of_query, elements_of<KEYS>(tile, i));
        UNROLL
        for (int j = 0; j < SIDE; j++)
            (KEYS ? s[j][i] : s[i][j]) = of_query[j];
    }
}

/* dS of the tile of queries q .. and keys k ..; with keys as rows D(P) too, in `tile` as keep_tile() lays it down. */
template <bool KEYS> FN void slope_tile(float (&ds)[SIDE][SIDE], float *tile, float *room, const Attend &a, const HeadTile &p,
                                        long q, long k, bool through = true)
{
    Matrix of_q = queries(a, a.q, a.qs, p), of_dy = queries(a, a.dy, a.heads * a.width, p);
    Matrix of_k = keys(a, a.k, p), of_v = keys(a, a.v, p);
    score_tile(ds, room, KEYS ? of_k : of_q, KEYS ? k : q, KEYS ? of_q : of_k, KEYS ? q : k, a.width);
    park_tile<KEYS>(tile, ds);
    score_tile(ds, room, KEYS ? of_v : of_dy, KEYS ? k : q, KEYS ? of_dy : of_v, KEYS ? q : k, a.width);
    __syncthreads();
    park_tile<KEYS>(room, ds);
    for (int i = 0; i < SIDE; i++) {
        float s[SIDE], slope[SIDE];
        load(s, elements_of<KEYS>(tile, i));
        load(slope, elements_of<KEYS>(room, i));
        slopes(s, slope, a, p, q + (KEYS ? across() : down()) + i, k + (KEYS ? down() : across()), through);
        if (KEYS)
            store(elements_of<KEYS>(tile, i), s);
        store(elements_of<KEYS>(room, i), slope);
    }
    fetch_tile<KEYS>(ds, room);
}

template <int WIDTH> static __global__ void __launch_bounds__(BLOCK, 2) attend_back_queries(real *dq, Attend a)
{
    SHARED(float, room, 2 * DEPTH * PITCH);
    SHARED(float, tile, EDGE * PITCH);
    long tiles = (a.query + EDGE - 1) / EDGE;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles);
    long first = p.tile * EDGE, from = (long)blockIdx.y * WIDTH, end = keys_end(a, first + EDGE);
    float o[SIDE][WIDTH / 16], ds[SIDE][SIDE], factor[SIDE];
    UNROLL
    for (int r = 0; r < SIDE; r++) {
        factor[r] = a.scale;
        UNROLL
        for (int i = 0; i < WIDTH / 16; i++)
            o[r][i] = 0;
    }
    for (long k = keys_begin(a, first, EDGE); k < end; k += EDGE) {
        slope_tile<false>(ds, SHARED_AT(tile, 0), SHARED_AT(room, 0), a, p, first, k);
        __syncthreads();
        keep_tile(SHARED_AT(tile, 0), ds);
        add_product<WIDTH>(o, SHARED_AT(tile, 0), SHARED_AT(room, 0), keys(a, a.k, p), k, from, a.width);
    }
    Out to = {dq + p.b * a.query * a.qs + p.head * a.width, a.query, a.qs};
    put_rows<WIDTH>(to, o, factor, first, from, a.width);
}

template <int WIDTH> static __global__ void __launch_bounds__(BLOCK, 2) attend_back_keys(real *dk, real *dv, Attend a)
{
    SHARED(float, room, 2 * DEPTH * PITCH);
    SHARED(float, tile, EDGE * PITCH);
    long tiles = (a.key + EDGE - 1) / EDGE;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles, a.share);
    long first = p.tile * EDGE, from = (long)blockIdx.y * WIDTH, end = queries_end(a, first + EDGE);
    float k[SIDE][WIDTH / 16], v[SIDE][WIDTH / 16], ds[SIDE][SIDE], scale[SIDE], unit[SIDE];
    UNROLL
    for (int r = 0; r < SIDE; r++) {
        scale[r] = a.scale, unit[r] = 1.0f;
        UNROLL
        for (int i = 0; i < WIDTH / 16; i++)
            k[r][i] = v[r][i] = 0;
    }
    for (int left = (int)a.share; left > 0; left--, p.slope = alibi_slope(a, ++p.head))
        for (long q = queries_begin(a, first, EDGE); q < end; q += EDGE) {
            slope_tile<true>(ds, SHARED_AT(tile, 0), SHARED_AT(room, 0), a, p, q, first);
            add_product<WIDTH>(v, SHARED_AT(tile, 0), SHARED_AT(room, 0), queries(a, a.dy, a.heads * a.width, p), q, from,
                               a.width);
            __syncthreads();
            keep_tile(SHARED_AT(tile, 0), ds);
            add_product<WIDTH>(k, SHARED_AT(tile, 0), SHARED_AT(room, 0), queries(a, a.q, a.qs, p), q, from, a.width);
        }
    p.head--;
    if (dk)
        put_rows<WIDTH>(key_results(a, dk, p), k, scale, first, from, a.width);
    if (dv)
        put_rows<WIDTH>(key_results(a, dv, p), v, unit, first, from, a.width);
}

/* A head of a sample a warp, whose threads meet in a butterfly. */
static __global__ void attend_back_sinks(real *dsinks, Attend a)
{
    long r = ROW_OF(WARP);
    if (r >= a.batch * a.heads)
        return;
    float sum = 0, sink = one(a.sinks, r);
    for (long i = r * a.query + threadIdx.x % WARP; i < (r + 1) * a.query; i += WARP)
        sum += fexp(sink - a.lse[i]) * a.delta[i];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        set(dsinks, r, -sum);
}

/* One tile of the bias: the samples ascend. */
static __global__ void __launch_bounds__(BLOCK, 2) attend_back_bias(real *dbias, Attend a)
{
    SHARED(float, room, 2 * DEPTH * PITCH);
    SHARED(float, tile, EDGE * PITCH);
    HeadTile p = place_of(a, blockIdx.y, 0);
    long wide = (a.key + EDGE - 1) / EDGE, q = blockIdx.x / wide * EDGE, k = blockIdx.x % wide * EDGE;
    float ds[SIDE][SIDE], sum[SIDE][SIDE];
    UNROLL
    for (int r = 0; r < SIDE; r++)
        UNROLL
        for (int c = 0; c < SIDE; c++)
            sum[r][c] = 0;
    for (p.b = 0; p.b < a.batch; p.b++) {
        slope_tile<false>(ds, SHARED_AT(tile, 0), SHARED_AT(room, 0), a, p, q, k, false);
        UNROLL
        for (int r = 0; r < SIDE; r++)
            UNROLL
            for (int c = 0; c < SIDE; c++)
                sum[r][c] += ds[r][c];
    }
    UNROLL
    for (int r = 0; r < SIDE; r++)
        UNROLL
        for (int c = 0; c < SIDE; c++)
            if (q + down() + r < a.query && k + across() + c < a.key)
                set(dbias, (p.head * a.query + q + down() + r) * a.key + k + across() + c, sum[r][c]);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* LAUNCH of a kernel template <int WIDTH>, a block for each 64 of `rows` rows of each `share` heads. */
#define LAUNCH_TILES(kernel, share, rows, a, st, ...) \
    do { \
        unsigned blocks_ = (unsigned)((a).batch * ((a).heads / (share)) * ceil_div(rows, EDGE)); \
        if ((a).width <= 64) \
            LAUNCH((kernel<64>), blocks_, (unsigned)BLOCK, st, __VA_ARGS__, a); \
        else \
            LAUNCH((kernel<128>), dim3(blocks_, (unsigned)ceil_div((a).width, 128)), (unsigned)BLOCK, st, __VA_ARGS__, a); \
    } while (0)

/* Scores that tensor cores do not have. */
static bool is_general(const Attend &a) { return a.sinks || a.alibi > 0 || (a.window && !a.causal); }

static void own_forward(Stage *st, real *y, float *lse, const Attend &whole)
{
    const Attend a = placed(st, whole);
    if (is_general(a) || !attention_mma_forward(st, y, lse, a))
        LAUNCH_TILES(attend, 1, a.query, a, st, y, lse);
}

static void own_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *y, float *delta,
                         const Attend &whole)
{
    const Attend a = placed(st, whole);
    LAUNCH(attend_delta, (unsigned)ceil_div(a.batch * a.heads * a.query, BLOCK / WARP), (unsigned)BLOCK, st, delta, a.dy, y, a);
    if (!is_general(a) && attention_mma_backward(st, dq, dk, dv, dbias, a))
        return;
    if (dk || dv)
        LAUNCH_TILES(attend_back_keys, a.share, a.key, a, st, dk, dv);
    if (dq)
        LAUNCH_TILES(attend_back_queries, 1, a.query, a, st, dq);
    if (dbias)
        LAUNCH(attend_back_bias, dim3((unsigned)(ceil_div(a.query, EDGE) * ceil_div(a.key, EDGE)), (unsigned)a.heads),
               (unsigned)BLOCK, st, dbias, a);
}

void attention_own_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, long qs, long ks,
                           const real *bias, const int32_t *mask, const Values *vals, int mb, long batch, long heads,
                           long kv_heads, long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    own_forward(st, y, lse, Attend{q, k, v, 0, bias, mask, 0, 0, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                                   qs, ks, causal, scale, drop, site, 0, 0, 0, 0, 0, 0, 0});
}

void attention_own_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                            const real *q, const real *k, const real *v, long qs, long ks, const real *bias,
                            const int32_t *mask, const float *lse, float *delta, const Values *vals, int mb, long batch,
                            long heads, long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                            int64_t site)
{
    own_backward(st, dq, dk, dv, dbias, y, delta, Attend{q, k, v, dy, bias, mask, lse, delta, vals, mb, batch, heads,
                                                         heads / kv_heads, query, key, width, qs, ks, causal, scale, drop, site,
                                                         0, 0, 0, 0, 0, 0, 0});
}

static __global__ void attend_group(real *dk, real *dv, const real *k, const real *v, long n, long share, long width)
{
    GRID(i, n * width) {
        long row = quotient(i, width), j = i - row * width;
        float a = 0, b = 0;
        for (long h = 0; h < share; h++) {
            a += one(k, (row * share + h) * width + j);
            b += one(v, (row * share + h) * width + j);
        }
        set(dk, i, a);
        set(dv, i, b);
    }
}

void attention_own_group(Stage *st, real *dk, real *dv, const real *k, const real *v, long n, long share, long width)
{
    LAUNCH(attend_group, blocks_for(n * width), (unsigned)BLOCK, st, dk, dv, k, v, n, share, width);
}

void attention_window_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, long window, float scale, float cap, float drop,
                              int64_t site)
{
    own_forward(st, y, lse, Attend{q, k, v, 0, bias, mask, 0, 0, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                                   heads * width, kv_heads * width, causal, scale, drop, site, window, cap, 0, 0, 0, 0, 0});
}

void attention_window_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, long window, float scale,
                               float cap, float drop, int64_t site)
{
    float *delta = (float *)tmp;
    own_backward(st, dq, dk, dv, dbias, y, delta, Attend{q, k, v, dy, bias, mask, lse, delta, vals, mb, batch, heads,
                                                         heads / kv_heads, query, key, width, heads * width, kv_heads * width,
                                                         causal, scale, drop, site, window, cap, 0, 0, 0, 0, 0});
}

/* The formula is that of rt/op/attend.h. */
static Attend with_slopes(Attend a, float alibi, long slopes)
{
    a.alibi = alibi;
    for (a.slopes = 1; 2 * a.slopes <= slopes;)
        a.slopes *= 2;
    a.ratio = number_exp(-4 * 0x1.62e42fefa39efp-1 / (double)a.slopes);      /* ln 2 */
    return a;
}

void attention_general_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                               const int32_t *mask, const real *sinks, const int32_t *documents, const Values *vals, int mb,
                               long batch, long heads, long kv_heads, long query, long key, long width, long causal,
                               long window, float scale, float cap, float alibi, long slopes, float drop, int64_t site)
{
    const Attend a = {q, k, v, 0, bias, mask, 0, 0, vals, mb, batch, heads, heads / kv_heads, query, key, width, heads * width,
                      kv_heads * width, causal, scale, drop, site, window, cap, documents, sinks, 0, 0, 0};
    own_forward(st, y, lse, with_slopes(a, alibi, slopes));
}

void attention_general_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, real *dsinks, const real *dy,
                                const real *y, const real *q, const real *k, const real *v, const real *bias,
                                const int32_t *mask, const real *sinks, const int32_t *documents, const float *lse, void *tmp,
                                const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key,
                                long width, long causal, long window, float scale, float cap, float alibi, long slopes,
                                float drop, int64_t site)
{
    float *delta = (float *)tmp;
    const Attend a = {q, k, v, dy, bias, mask, lse, delta, vals, mb, batch, heads, heads / kv_heads, query, key, width,
                      heads * width, kv_heads * width, causal, scale, drop, site, window, cap, documents, sinks, 0, 0, 0};
    own_backward(st, dq, dk, dv, dbias, y, delta, with_slopes(a, alibi, slopes));
    if (dsinks)
        LAUNCH(attend_back_sinks, (unsigned)ceil_div(batch * heads, BLOCK / WARP), (unsigned)BLOCK, st, dsinks, a);
}

void attention_packed_documents_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                                        const int32_t *documents, const Values *vals, int mb, long batch, long heads,
                                        long query, long width, long causal, float scale, float drop, int64_t site)
{
    long all = heads * width;
    own_forward(st, y, lse, Attend{qkv, qkv + all, qkv + 2 * all, 0, bias, mask, 0, 0, vals, mb, batch, heads, 1, query, query,
                                   width, 3 * all, 3 * all, causal, scale, drop, site, 0, 0, documents, 0, 0, 0, 0});
}

void attention_packed_documents_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                                         const real *bias, const int32_t *mask, const int32_t *documents, const float *lse,
                                         void *tmp, const Values *vals, int mb, long batch, long heads, long query, long width,
                                         long causal, float scale, float drop, int64_t site)
{
    long all = heads * width;
    float *delta = (float *)tmp;
    own_backward(st, dqkv, dqkv ? dqkv + all : 0, dqkv ? dqkv + 2 * all : 0, dbias, y, delta,
                 Attend{qkv, qkv + all, qkv + 2 * all, dy, bias, mask, lse, delta, vals, mb, batch, heads, 1, query, query,
                        width, 3 * all, 3 * all, causal, scale, drop, site, 0, 0, documents, 0, 0, 0, 0});
}
