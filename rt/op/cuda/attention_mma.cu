/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on tensor cores, for bf16 with a bias, a mask or dropout: the cases that cuDNN's graphs do not cover.
 *
 * Method.  As attention_own.cu, with the tiles of T. Dao, FlashAttention-2, 2023, section 3.3.  A block of four warps owns 64
 * rows, queries or keys, 16 a warp, with their operands in registers.  Tiles of the other side go through shared memory, 64
 * rows forward, 32 backward.  Scores never leave registers: two neighbouring results are an operand of the next product
 * (mma.h), rounded to bf16.  Sums of exponentials, scores and results are f32.
 *
 * Order: tiles ascend; a row's sum goes by the columns of a thread, ascending, then a butterfly of the 4 threads of a row.
 *
 * Cost: 2 products forward; backward 3 for dq, 4 for dk and dv, 2 for dbias.  dk and dv take 5 if heads are wider than 64,
 * because the accumulators do not fit in registers together.
 *
 * Dropout: four neighbours along the keys share a block of Philox.  Where rows of scores are a multiple of 4 long, the lanes
 * that have the four make one block each and exchange words; else each element's block is made where it stands.
 */
#include "attention_mma.h"
#ifdef REAL_BF16
#include "mma.h"

enum { THREADS = 128, ROWS = 64 };

/* The lane's place: rows 16 warp + g and 8 further on; columns 2 t and 2 t + 1 of every 8. */
FN int my_row(void) { return (int)(threadIdx.x / WARP) * 16 + (int)(threadIdx.x % WARP / 4); }
FN int my_column(void) { return (int)(threadIdx.x % 4) * 2; }

/* N rows of m, from `first` on, W columns; zeros where there are none. */
template <int N, int W> FN void load_tile(uint32_t *to, Matrix m, long first, long width)
{
    for (int i = threadIdx.x * 8; i < N * W; i += THREADS * 8) {
        int r = i / W, j = i % W;
        const real *at = m.at + (first + r) * m.step + j;
        long left = first + r < m.rows ? width - j : 0;
        Words<4> w = {{0, 0, 0, 0}};
        if (left >= 8 && (uintptr_t)at % 16 == 0)
            w = *(const Words<4> *)at;
        else
            for (int c = 0; c < 8; c++)
                w.at[c / 2] |= c < left ? (uint32_t)at[c] << c % 2 * 16 : 0;
        *(Words<4> *)(to + r * PITCH_OF(W) + j / 2) = w;
    }
}

/* The warp's 16 rows of 64, as left operands; the tile is free again afterwards. */
template <int W> FN void take_rows(uint32_t (&a)[W / 16][4], uint32_t *room, Matrix m, long first, long width)
{
    __syncthreads();
    load_tile<ROWS, W>(room, m, first, width);
    __syncthreads();
    UNROLL
    for (int k = 0; k < W / 16; k++)
        take_a<W>(a[k], room, (int)(threadIdx.x / WARP) * 16, k * 16);
    __syncthreads();
}

template <int N> FN void clear(float (&c)[N][4])
{
    UNROLL
    for (int n = 0; n < N; n++)
        c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}

/* s = a tile^T, 8 N rows of the tile. */
template <int N, int W> FN void products(float (&s)[N][4], const uint32_t (&a)[W / 16][4], const uint32_t *tile)
{
    clear(s);
    UNROLL
    for (int k = 0; k < W / 16; k++) {
        UNROLL
        for (int n = 0; n < N; n += 2) {
            uint32_t b[2][2];
            take_b<W>(b, tile, n * 8, k * 16);
            mma(s[n], a[k], b[0]);
            mma(s[n + 1], a[k], b[1]);
        }
    }
}

/* o += s tile, s rounded to bf16, 8 N rows of the tile. */
template <int N, int W> FN void add_products(float (&o)[W / 8][4], const float (&s)[N][4], const uint32_t *tile)
{
    UNROLL
    for (int k = 0; k < N / 2; k++) {
        uint32_t a[4], b[2][2];
        for (int i = 0; i < 4; i++)
            a[i] = two_bf16(s[2 * k + i / 2][i % 2 * 2], s[2 * k + i / 2][i % 2 * 2 + 1]);
        UNROLL
        for (int n = 0; n < W / 8; n += 2) {
            take_b_turned<W>(b, tile, k * 16, n * 8);
            mma(o[n], a, b[0]);
            mma(o[n + 1], a, b[1]);
        }
    }
}

/* The lane's results, times a factor for each of its two rows. */
template <int W> FN void put_results(Out m, const float (&o)[W / 8][4], float upper, float lower, long first, long width)
{
    UNROLL
    for (int n = 0; n < W / 8; n++) {
        UNROLL
        for (int half = 0; half < 2; half++) {
            long row = first + my_row() + half * 8, j = n * 8 + my_column();
            float factor = half ? lower : upper, v[2] = {o[n][half * 2] * factor, o[n][half * 2 + 1] * factor};
            real *to = m.at + row * m.step + j;
            if (row < m.rows && j < width)
                leave(to, v, 0, width - j, width - j >= 2 && (uintptr_t)to % 4 == 0 ? 0 : 1);
        }
    }
}

/* Over the 4 threads of a row. */
FN float quad_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    return v + __shfl_xor_sync(0xffffffffu, v, 1);
}

FN float quad_max(float v)
{
    for (int way = 2; way; way /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, way);
        v = other > v ? other : v;
    }
    return v;
}

/* ---- what is hidden, and dropped --------------------------------------------------------------------------------- */

/* A bit for each of N keys from `k` on: it is there, and not hidden by the mask. */
template <int N> FN void load_seen(uint32_t *seen, const Attend &a, const HeadTile &p, long k)
{
    if (threadIdx.x < N) {
        long at = k + threadIdx.x;
        unsigned set = __ballot_sync(0xffffffffu, at < a.key && (!a.mask || a.mask[p.b * a.key + at]));
        if (threadIdx.x % WARP == 0)
            seen[threadIdx.x / WARP] = set;
    }
}

/* Whether rows of scores begin with a block of Philox. */
FN bool whole_blocks(const Attend &a) { return a.key % 4 == 0; }

/* Factors of the lane's columns of one row: 2 adjacent ones of every 8, from element e on. */
template <int N> FN void factors_along(float (&f)[N][2], const Attend &a, const HeadTile &p, long e)
{
    Drop d = drop_here(a, p);
    bool odd = threadIdx.x & 1;
    if (!whole_blocks(a)) {
        UNROLL
        for (int n = 0; n < N; n++)
            drop_two(f[n], &d, e + n * 8);
        return;
    }
    UNROLL
    for (int n = 0; n < N; n += 2) {
        Philox r = drop_block(&d, e / 4 + 2 * (n + odd));       /* four columns of the pair: n for the even lane, n + 1 */
        uint32_t first = __shfl_xor_sync(0xffffffffu, odd ? r.v[0] : r.v[2], 1);
        uint32_t second = __shfl_xor_sync(0xffffffffu, odd ? r.v[1] : r.v[3], 1);
        f[n][0] = drop_factor(&d, odd ? first : r.v[0]), f[n][1] = drop_factor(&d, odd ? second : r.v[1]);
        f[n + 1][0] = drop_factor(&d, odd ? r.v[2] : first), f[n + 1][1] = drop_factor(&d, odd ? r.v[3] : second);
    }
}

/* Factors of keys g and g + 8, queries 2 t and 2 t + 1: f[2 * key + query], where e is the element of the first.  Lanes with
 * the keys of a block make one each, `block`; its words then go to their lanes in two exchanges. */
FN void factors_across(float (&f)[4], const Attend &a, const Drop *d, long e, uint32_t block)
{
    if (!whole_blocks(a)) {
        UNROLL
        for (int c = 0; c < 4; c++)
            f[c] = drop_one(d, e + c % 2 * a.key + c / 2 * 8);
        return;
    }
    bool low = threadIdx.x & 4, high = threadIdx.x & 8;
    Philox r = drop_block(d, block);
    uint32_t x = __shfl_xor_sync(0xffffffffu, low ? r.v[0] : r.v[1], 4);
    uint32_t y = __shfl_xor_sync(0xffffffffu, low ? r.v[2] : r.v[3], 4);
    uint32_t x0 = low ? x : r.v[0], x1 = low ? r.v[1] : x, y0 = low ? y : r.v[2], y1 = low ? r.v[3] : y;
    uint32_t s = __shfl_xor_sync(0xffffffffu, high ? x0 : y0, 8), t = __shfl_xor_sync(0xffffffffu, high ? x1 : y1, 8);
    f[0] = drop_factor(d, high ? s : x0), f[1] = drop_factor(d, high ? t : x1);
    f[2] = drop_factor(d, high ? y0 : s), f[3] = drop_factor(d, high ? y1 : t);
}

/* The block that this lane makes. */
FN uint32_t block_across(const Attend &a, long e)
{
    return (uint32_t)((uint64_t)(e + (threadIdx.x & 4 ? a.key : 0) + (threadIdx.x & 8)) / 4);
}

#define LOG2_E 0x1.715476p+0f

/* e^(x - shift), of which the exponent's rounding is an error of |x - shift| 2^-24: it is rounded to bf16 next. */
FN float exp_less(float x, float shift_log2) { return EXP2_FLUSHED(__builtin_fmaf(x, LOG2_E, -shift_log2)); }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Bits 0 .. last. */
FN uint32_t bits_to(long last) { return last >= 31 ? 0xffffffffu : last < 0 ? 0u : (2u << last) - 1; }

/* Element i of the lane's columns in a row, 2 of every 8. */
template <int WORDS> FN bool has_key(const uint32_t (&seen)[WORDS], int i)
{
    return seen[i / 8] >> (i / 2 % 4 * 8 + i % 2) & 1;
}

/* Scores of the lane's columns in one row, -infinity where a key is hidden: s[n][c] is that of key k + 8 n + c.  A query behind
 * the last one has the last one's bias: nobody reads its row. */
template <int N>
FN void mask_scores(float (&s)[N][2], const Attend &a, const HeadTile &p, long q, long k, const uint32_t (&keys)[N / 4])
{
    uint32_t seen[N / 4];
    UNROLL
    for (int w = 0; w < N / 4; w++)
        seen[w] = (a.causal ? keys[w] & bits_to(q - k - w * 32) : keys[w]) &
            (a.window ? ~bits_to(q - a.window - k - w * 32) : 0xffffffffu);
    const real *bias = a.bias + (p.head * a.query + (q < a.query ? q : a.query - 1)) * a.key + k;
    if (a.bias) {
        UNROLL
        for (int i = 0; i < 2 * N; i++)
            s[i / 2][i % 2] = s[i / 2][i % 2] * a.scale + (has_key(seen, i) ? one(bias, i / 2 * 8 + i % 2) : 0.0f);
    } else {
        UNROLL
        for (int i = 0; i < 2 * N; i++)
            s[i / 2][i % 2] *= a.scale;
    }
    UNROLL
    for (int i = 0; i < 2 * N; i++)
        s[i / 2][i % 2] = has_key(seen, i) ? s[i / 2][i % 2] : -F_INFINITY;
}

/* Of row `half` (0, 1) of the lane: scores become exponentials, times dropout; returns what earlier sums are scaled by. */
FN float absorb_scores(float (&s)[8][4], int half, const Attend &a, const HeadTile &p, long q, long k,
                       const uint32_t (&seen)[2], float *most, float *sum)
{
    float top = -F_INFINITY, part = 0, x[8][2];
    UNROLL
    for (int i = 0; i < 16; i++)
        x[i / 2][i % 2] = s[i / 2][half * 2 + i % 2];
    mask_scores<8>(x, a, p, q, k, seen);
    UNROLL
    for (int i = 0; i < 16; i++)
        top = x[i / 2][i % 2] > top ? x[i / 2][i % 2] : top;
    top = quad_max(top);
    top = top > *most ? top : *most;
    float shift = top == -F_INFINITY ? 0.0f : top, shrink = fexp(*most - shift);
    UNROLL
    for (int i = 0; i < 16; i++) {
        x[i / 2][i % 2] = exp_less(x[i / 2][i % 2], shift * LOG2_E);
        part += x[i / 2][i % 2];
    }
    *sum = *sum * shrink + quad_sum(part);
    *most = top;
    if (p.drop) {
        float f[8][2];
        factors_along<8>(f, a, p, place_drawn(a, p, q, k));
        UNROLL
        for (int i = 0; i < 16; i++)
            x[i / 2][i % 2] *= f[i / 2][i % 2];
    }
    UNROLL
    for (int i = 0; i < 16; i++)
        s[i / 2][half * 2 + i % 2] = x[i / 2][i % 2];
    return shrink;
}

template <int W> static __global__ void __launch_bounds__(THREADS) mma_attend(real *y, float *lse, Attend a)
{
    SHARED(uint32_t, room, 2 * ROWS * PITCH_OF(W));
    SHARED(uint32_t, bits, 2);
    long tiles = (a.query + ROWS - 1) / ROWS;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles);
    long first = p.tile * ROWS, end = keys_end(a, first + ROWS);
    uint32_t q[W / 16][4], *of_k = SHARED_AT(room, 0), *of_v = SHARED_AT(room, ROWS * PITCH_OF(W));
    float o[W / 8][4], s[8][4], most[2] = {-F_INFINITY, -F_INFINITY}, sum[2] = {0, 0}, over[2];
    clear(o);
    take_rows<W>(q, of_k, queries(a, a.q, a.qs, p), first, a.width);
    for (long k = keys_begin(a, first, ROWS); k < end; k += ROWS) {
        load_tile<ROWS, W>(of_k, keys(a, a.k, p), k, a.width);
        load_tile<ROWS, W>(of_v, keys(a, a.v, p), k, a.width);
        load_seen<ROWS>(SHARED_AT(bits, 0), a, p, k);
        __syncthreads();
        uint32_t seen[2] = {bits[0] >> my_column(), bits[1] >> my_column()};
        products<8, W>(s, q, of_k);
        UNROLL
        for (int half = 0; half < 2; half++) {
            float shrink = absorb_scores(s, half, a, p, first + my_row() + half * 8, k + my_column(), seen, &most[half],
                                         &sum[half]);
            UNROLL
            for (int n = 0; n < W / 8; n++)
                o[n][half * 2] *= shrink, o[n][half * 2 + 1] *= shrink;
        }
        add_products<8, W>(o, s, of_v);
        __syncthreads();
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        long row = first + my_row() + half * 8;
        over[half] = sum[half] > 0 ? 1.0f / sum[half] : 0.0f;
        over[half] = sum[half] != sum[half] ? sum[half] : over[half];       /* let a NaN through */
        if (row < a.query && my_column() == 0)
            lse[(p.b * a.heads + p.head) * a.query + row] = most[half] + flog(sum[half]);
    }
    long row = a.heads * a.width;
    Out to = {y + p.b * a.query * row + p.head * a.width, a.query, row};
    put_results<W>(to, o, over[0], over[1], first, a.width);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

enum { STEP = 32 };

/* A score t and the product dp = dy v become D(P) and dS = P (D(dp) - delta). */
FN void slope(float *s, float *dp, float t, float lse_log2, float delta, float factor)
{
    float e = t == -F_INFINITY ? 0.0f : exp_less(t, lse_log2);
    *dp = e == 0.0f ? 0.0f : e * (*dp * factor - delta);
    *s = e * factor;
}

/* The lane's elements of a tile: rows are queries. */
FN void slopes_of_queries(float (&s)[4][4], float (&dp)[4][4], const Attend &a, const HeadTile &p, long q, long k,
                          uint32_t bits)
{
    uint32_t seen[1] = {bits >> my_column()};
    UNROLL
    for (int half = 0; half < 2; half++) {
        long row = q + half * 8, at = (p.b * a.heads + p.head) * a.query + (row < a.query ? row : a.query - 1);
        float x[4][2], f[4][2], lse = a.lse[at] * LOG2_E, delta = a.delta[at];
        UNROLL
        for (int i = 0; i < 8; i++)
            x[i / 2][i % 2] = s[i / 2][half * 2 + i % 2], f[i / 2][i % 2] = 1.0f;
        mask_scores<4>(x, a, p, row, k, seen);
        if (p.drop)
            factors_along<4>(f, a, p, place_drawn(a, p, row, k));
        UNROLL
        for (int i = 0; i < 8; i++)
            slope(&s[i / 2][half * 2 + i % 2], &dp[i / 2][half * 2 + i % 2], x[i / 2][i % 2], lse, delta, f[i / 2][i % 2]);
    }
}

/* Of queries q .. q + STEP - 1: lse times log2 e, and delta, beside each other. */
FN void load_sums(float *sums, const Attend &a, const HeadTile &p, long q)
{
    if (threadIdx.x < STEP) {
        long row = q + threadIdx.x, at = (p.b * a.heads + p.head) * a.query + (row < a.query ? row : a.query - 1);
        sums[2 * threadIdx.x] = a.lse[at] * LOG2_E, sums[2 * threadIdx.x + 1] = a.delta[at];
    }
}

/* A bit for each of STEP queries from q on: it is there and sees the key. */
FN uint32_t queries_of(const Attend &a, long q, long key)
{
    uint32_t there = bits_to(a.query - 1 - q);
    if (a.causal)
        there &= ~bits_to(key - 1 - q);
    return a.window ? there & bits_to(key + a.window - 1 - q) : there;
}

/* The same where rows are keys, k and k + 8, and seen: whether the mask shows them. */
FN void slopes_of_keys(float (&s)[4][4], float (&dp)[4][4], const Attend &a, const HeadTile &p, long q, long k,
                       const bool (&seen)[2], const float *sums)
{
    uint32_t there[2] = {seen[0] ? queries_of(a, q, k) : 0, seen[1] ? queries_of(a, q, k + 8) : 0};
    long first = place_drawn(a, p, q + my_column(), k);
    uint32_t block = block_across(a, first);
    Drop d = {};
    if (p.drop)
        d = drop_here(a, p);
    UNROLL
    for (int n = 0; n < 4; n++) {
        float f[4] = {1.0f, 1.0f, 1.0f, 1.0f}, of[4];
        load(of, sums + 2 * (n * 8 + my_column()));
        long e = first + n * 8 * a.key;
        if (p.drop)
            factors_across(f, a, &d, e, block + (uint32_t)n * 2 * (uint32_t)a.key);
        UNROLL
        for (int c = 0; c < 4; c++) {
            float t = s[n][c] * a.scale;
            bool hidden = !(there[c / 2] >> my_column() >> (n * 8 + c % 2) & 1);
            t = hidden ? -F_INFINITY : a.bias ? t + one(a.bias, e + c % 2 * a.key + c / 2 * 8) : t;
            slope(&s[n][c], &dp[n][c], t, of[c % 2 * 2], of[c % 2 * 2 + 1], f[c]);
        }
    }
}

template <int W> static __global__ void __launch_bounds__(THREADS) mma_back_queries(real *dq, Attend a)
{
    SHARED(uint32_t, room, ROWS * PITCH_OF(W));
    SHARED(uint32_t, seen, 1);
    long tiles = (a.query + ROWS - 1) / ROWS;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles);
    long first = p.tile * ROWS, end = keys_end(a, first + ROWS);
    uint32_t q[W / 16][4], dy[W / 16][4], *of_k = SHARED_AT(room, 0), *of_v = SHARED_AT(room, STEP * PITCH_OF(W));
    float o[W / 8][4], s[4][4], ds[4][4];
    clear(o);
    take_rows<W>(q, of_k, queries(a, a.q, a.qs, p), first, a.width);
    take_rows<W>(dy, of_k, queries(a, a.dy, a.heads * a.width, p), first, a.width);
    for (long k = keys_begin(a, first, STEP); k < end; k += STEP) {
        load_tile<STEP, W>(of_k, keys(a, a.k, p), k, a.width);
        load_tile<STEP, W>(of_v, keys(a, a.v, p), k, a.width);
        load_seen<STEP>(SHARED_AT(seen, 0), a, p, k);
        __syncthreads();
        products<4, W>(s, q, of_k);
        products<4, W>(ds, dy, of_v);
        slopes_of_queries(s, ds, a, p, first + my_row(), k + my_column(), seen[0]);
        add_products<4, W>(o, ds, of_k);
        __syncthreads();
    }
    Out to = {dq + p.b * a.query * a.qs + p.head * a.width, a.query, a.qs};
    put_results<W>(to, o, a.scale, a.scale, first, a.width);
}

/* dk, dv, or both; what is not wanted is 0. */
template <int W, bool K, bool V> static __global__ void __launch_bounds__(THREADS) mma_back_keys(real *dk, real *dv, Attend a)
{
    SHARED(uint32_t, room, ROWS * PITCH_OF(W));
    SHARED(float, sums, 2 * STEP);
    long tiles = (a.key + ROWS - 1) / ROWS;
    HeadTile p = place_of(a, blockIdx.x / tiles, blockIdx.x % tiles, a.share);
    long first = p.tile * ROWS, end = queries_end(a, first + ROWS);
    uint32_t k[W / 16][4], v[K ? W / 16 : 1][4], *of_q = SHARED_AT(room, 0), *of_dy = SHARED_AT(room, STEP * PITCH_OF(W));
    float to_k[K ? W / 8 : 1][4], to_v[V ? W / 8 : 1][4], s[4][4], ds[4][4];
    bool seen[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        long row = first + my_row() + half * 8;
        seen[half] = row < a.key && (!a.mask || a.mask[p.b * a.key + row]);
    }
    clear(to_k), clear(to_v), clear(ds);
    take_rows<W>(k, of_q, keys(a, a.k, p), first, a.width);
    if constexpr (K)
        take_rows<W>(v, of_q, keys(a, a.v, p), first, a.width);
    for (int left = (int)a.share; left > 0; left--, p.head++)
        for (long q = a.causal ? first : 0; q < end; q += STEP) {
            load_tile<STEP, W>(of_q, queries(a, a.q, a.qs, p), q, a.width);
            load_tile<STEP, W>(of_dy, queries(a, a.dy, a.heads * a.width, p), q, a.width);
            load_sums(SHARED_AT(sums, 0), a, p, q);
            __syncthreads();
            products<4, W>(s, k, of_q);
            if constexpr (K)
                products<4, W>(ds, v, of_dy);
            slopes_of_keys(s, ds, a, p, q, first + my_row(), seen, SHARED_AT(sums, 0));
            if constexpr (V)
                add_products<4, W>(to_v, s, of_dy);
            if constexpr (K)
                add_products<4, W>(to_k, ds, of_q);
            __syncthreads();
        }
    p.head--;
    if constexpr (K)
        put_results<W>(key_results(a, dk, p), to_k, a.scale, a.scale, first, a.width);
    if constexpr (V)
        put_results<W>(key_results(a, dv, p), to_v, 1.0f, 1.0f, first, a.width);
}

/* 64 queries and 32 keys of the bias: the samples ascend. */
template <int W> static __global__ void __launch_bounds__(THREADS) mma_back_bias(real *dbias, Attend a)
{
    SHARED(uint32_t, room, ROWS * PITCH_OF(W));
    SHARED(uint32_t, seen, 1);
    long tiles = (a.key + STEP - 1) / STEP;
    long first = blockIdx.x / tiles * ROWS, k = blockIdx.x % tiles * STEP;
    HeadTile p = place_of(a, blockIdx.y, 0);
    uint32_t q[W / 16][4], dy[W / 16][4], *of_k = SHARED_AT(room, 0), *of_v = SHARED_AT(room, STEP * PITCH_OF(W));
    float s[4][4], ds[4][4], sum[4][4];
    clear(sum);
    for (p.b = 0; p.b < a.batch; p.b++) {
        take_rows<W>(q, of_k, queries(a, a.q, a.qs, p), first, a.width);
        take_rows<W>(dy, of_k, queries(a, a.dy, a.heads * a.width, p), first, a.width);
        load_tile<STEP, W>(of_k, keys(a, a.k, p), k, a.width);
        load_tile<STEP, W>(of_v, keys(a, a.v, p), k, a.width);
        load_seen<STEP>(SHARED_AT(seen, 0), a, p, k);
        __syncthreads();
        products<4, W>(s, q, of_k);
        products<4, W>(ds, dy, of_v);
        slopes_of_queries(s, ds, a, p, first + my_row(), k + my_column(), seen[0]);
        UNROLL
        for (int i = 0; i < 16; i++)
            sum[i / 4][i % 4] += ds[i / 4][i % 4];
    }
    UNROLL
    for (int i = 0; i < 16; i++) {
        long row = first + my_row() + i % 4 / 2 * 8, column = k + i / 4 * 8 + my_column() + i % 2;
        if (row < a.query && column < a.key)
            set(dbias, (p.head * a.query + row) * a.key + column, sum[i / 4][i % 4]);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static unsigned mma_blocks(const Attend &a, long rows, long share = 1)
{
    return (unsigned)(a.batch * (a.heads / share) * ceil_div(rows, ROWS));
}

template <int W> static void mma_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const Attend &a)
{
    real *none = 0;
    if (W <= 64 && dk && dv) {
        LAUNCH((mma_back_keys<64, true, true>), mma_blocks(a, a.key, a.share), (unsigned)THREADS, st, dk, dv, a);
    } else {
        if (dk)
            LAUNCH((mma_back_keys<W, true, false>), mma_blocks(a, a.key, a.share), (unsigned)THREADS, st, dk, none, a);
        if (dv)
            LAUNCH((mma_back_keys<W, false, true>), mma_blocks(a, a.key, a.share), (unsigned)THREADS, st, none, dv, a);
    }
    if (dq)
        LAUNCH((mma_back_queries<W>), mma_blocks(a, a.query), (unsigned)THREADS, st, dq, a);
    if (dbias)
        LAUNCH((mma_back_bias<W>), dim3((unsigned)(ceil_div(a.query, ROWS) * ceil_div(a.key, STEP)), (unsigned)a.heads),
               (unsigned)THREADS, st, dbias, a);
}

bool attention_mma_forward(Stage *st, real *y, float *lse, const Attend &a)
{
    if (a.width > 128 || a.cap > 0 || a.documents)
        return false;
    if (a.width <= 64)
        LAUNCH((mma_attend<64>), mma_blocks(a, a.query), (unsigned)THREADS, st, y, lse, a);
    else
        LAUNCH((mma_attend<128>), mma_blocks(a, a.query), (unsigned)THREADS, st, y, lse, a);
    return true;
}

bool attention_mma_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const Attend &a)
{
    if (a.width > 128 || a.cap > 0 || a.documents)
        return false;
    if (a.width <= 64)
        mma_backward<64>(st, dq, dk, dv, dbias, a);
    else
        mma_backward<128>(st, dq, dk, dv, dbias, a);
    return true;
}
#else
bool attention_mma_forward(Stage *, real *, float *, const Attend &) { return false; }
bool attention_mma_backward(Stage *, real *, real *, real *, real *, const Attend &) { return false; }
#endif
