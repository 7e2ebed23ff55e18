/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts: formulas, choice and layout as in rt/op/experts.c.  A warp has a row of logits.  Rows are laid out by a warp for
 * each expert, which counts the tokens before each of its own.
 *
 * Order: along experts or width as kernel.h says; over choices by rank.
 */
#include "../../team.h"
#include "experts.h"

enum { SCORES_SOFTMAX = 0 };

/* A row of logits: its largest and the sum of exponentials give each probability. */
struct Odds {
    const real *x;
    long experts, scores;
    float most, sum;
    FIELD float operator()(long e) const
    {
        return scores == SCORES_SOFTMAX ? fexp(one(x, e) - most) / sum : fsigmoid(one(x, e));
    }
};

FN Odds odds_of(const real *x, long experts, long scores)
{
    Odds o = {x, experts, scores, -F_INFINITY, 0};
    int lane = threadIdx.x % WARP;
    for (long e = lane; e < experts; e += WARP)
        o.most = one(x, e) > o.most ? one(x, e) : o.most;
    o.most = warp_max(o.most);
    for (long e = lane; e < experts; e += WARP)
        o.sum += fexp(one(x, e) - o.most);
    o.sum = warp_sum(o.sum);
    return o;
}

/* What a row is chosen by: a NaN, and the experts of a group that is not kept, come last. */
struct Ranks {
    const Odds &p;
    const float *correction;
    long size, best;                /* of a group */
    uint64_t kept;
    FIELD float operator()(long e) const
    {
        float v = correction ? p(e) + correction[e] : best > 1 ? p(e) : one(p.x, e);
        return v == v && kept >> e / size & 1 ? v : -F_INFINITY;
    }
};

/* Of experts from .. to-1 behind the one before: the largest, and its lowest number. */
FN long choose_next(const Ranks &o, long from, long to, float *last, long before)
{
    float most = -F_INFINITY;
    int best = -1;
    for (long e = from + threadIdx.x % WARP; e < to; e += WARP) {
        float v = o(e);
        if ((v < *last || (v == *last && e > before)) && (best < 0 || v > most))
            most = v, best = (int)e;
    }
    for (int way = WARP / 2; way; way /= 2) {
        float v = __shfl_xor_sync(0xffffffffu, most, way);
        int e = __shfl_xor_sync(0xffffffffu, best, way);
        if (e >= 0 && (best < 0 || v > most || (v == most && e < best)))
            most = v, best = e;
    }
    *last = most;
    return best;
}

/* The kept groups: those whose `best` largest add up to most, of equal ones the lower. */
FN uint64_t keep_groups(const Ranks &v, long groups, long kept)
{
    uint64_t keep = 0;
    for (long k = 0; k < kept; k++) {
        float most = 0;
        long which = -1;
        for (long g = 0; g < groups; g++) {
            float sum = 0, last = F_INFINITY;
            for (long j = 0, before = -1; j < v.best; j++) {
                before = choose_next(v, g * v.size, (g + 1) * v.size, &last, before);
                sum += last;
            }
            if (!(keep >> g & 1) && (which < 0 || sum > most))
                most = sum, which = g;
        }
        keep |= (uint64_t)1 << which;
    }
    return keep;
}

static __global__ void route_rows(real *share, int32_t *expert, const real *x, const float *correction, long rows, long experts,
                                  long top, long normalize, long scores, long groups, long kept, long best)
{
    long r = ROW_OF(WARP), before = -1;
    if (r >= rows)
        return;
    Odds p = odds_of(x + r * experts, experts, scores);
    Ranks v = {p, correction, experts / groups, best, ~(uint64_t)0};
    if (groups > 1)
        v.kept = keep_groups(v, groups, kept);
    float last = F_INFINITY, sum = 0;
    bool first = threadIdx.x % WARP == 0;
    for (long j = 0; j < top; j++) {
        before = choose_next(v, 0, experts, &last, before);
        sum += p(before);
        if (first)
            expert[r * top + j] = (int32_t)before;
    }
    for (long j = 0; j < top && first; j++)
        set(share, r * top + j, p(expert[r * top + j]) / (normalize ? sum : 1.0f));
}

/* How many rows chose each expert, behind the place where it begins. */
static __global__ void route_counts(int32_t *offset, const int32_t *expert, long n)
{
    int count = 0;
    for (long i = threadIdx.x; i - threadIdx.x < n; i += WARP)
        count += __popc(__ballot_sync(0xffffffffu, i < n && expert[i] == (int)blockIdx.x));
    if (threadIdx.x == 0)
        offset[blockIdx.x + 1] = count;
}

static __global__ void route_offsets(int32_t *offset, long experts)
{
    if (threadIdx.x)
        return;
    offset[0] = 0;
    for (long e = 0; e < experts; e++)
        offset[e + 1] += offset[e];
}

static __global__ void route_slots(int32_t *slot, const int32_t *offset, const int32_t *expert, long n)
{
    int at = offset[blockIdx.x];
    for (long i = threadIdx.x; i - threadIdx.x < n; i += WARP) {
        bool mine = i < n && expert[i] == (int)blockIdx.x;
        unsigned all = __ballot_sync(0xffffffffu, mine);
        if (mine)
            slot[i] = at + __popc(all & ((1u << threadIdx.x) - 1));
        at += __popc(all);
    }
}

void route_forward(Stage *st, real *share, int32_t *expert, int32_t *slot, int32_t *offset, const real *x,
                   const float *correction, long rows, long experts, long top, long normalize, long scores, long groups,
                   long kept, long best)
{
    LAUNCH(route_rows, (unsigned)ceil_div(rows, BLOCK / WARP), (unsigned)BLOCK, st, share, expert, x, correction, rows, experts,
           top, normalize, scores, groups, kept, best);
    LAUNCH(route_counts, (unsigned)experts, (unsigned)WARP, st, offset, (const int32_t *)expert, rows * top);
    LAUNCH(route_offsets, 1u, (unsigned)WARP, st, offset, experts);
    LAUNCH(route_slots, (unsigned)experts, (unsigned)WARP, st, slot, (const int32_t *)offset, (const int32_t *)expert,
           rows * top);
}

static __global__ void route_back(real *dx, const real *dshare, const real *x, const int32_t *expert, long rows, long experts,
                                  long top, long normalize, long scores)
{
    long r = ROW_OF(WARP);
    if (r >= rows)
        return;
    Odds p = odds_of(x + r * experts, experts, scores);
    const int32_t *mine = expert + r * top;
    float sum = 0, whole = 0, dot = 0;
    for (long j = 0; j < top; j++)
        sum += p(mine[j]);
    sum = normalize ? sum : 1.0f;
    for (long j = 0; normalize && j < top; j++)
        whole += one(dshare, r * top + j) * (p(mine[j]) / sum);
    for (long j = 0; j < top; j++)
        dot += (one(dshare, r * top + j) - whole) / sum * p(mine[j]);
    for (long e = threadIdx.x % WARP; e < experts; e += WARP) {
        float slope = 0, q = p(e);
        for (long j = 0; j < top; j++)
            slope = mine[j] == e ? (one(dshare, r * top + j) - whole) / sum : slope;
        set(dx, r * experts + e, scores == SCORES_SOFTMAX ? q * (slope - dot) : slope * (q * (1.0f - q)));
    }
}

void route_backward(Stage *st, real *dx, const real *dshare, const real *x, const int32_t *expert, long rows, long experts,
                    long top, long normalize, long scores)
{
    LAUNCH(route_back, (unsigned)ceil_div(rows, BLOCK / WARP), (unsigned)BLOCK, st, dx, dshare, x, expert, rows, experts, top,
           normalize, scores);
}

/* ---- rows there and back --------------------------------------------------------------------------------------------- */

/* U: what a thread moves at once. */
template <class U>
static __global__ void dispatch(U *y, const U *x, const int32_t *slot, Mine m, long rows, Divisor top, Divisor width)
{
    const long first = m.first();
    GRID(e, rows * top.by * width.by) {
        long i = quotient(e, width), k = e - i * width.by;
        if (m.has(slot[i]))
            y[(slot[i] - first) * width.by + k] = x[quotient(i, top) * width.by + k];
    }
}

static void dispatch_rows(Stage *st, real *y, const real *x, const int32_t *slot, Mine m, long rows, long top, long width)
{
    long n = rows * top * width;
    if (width % WIDE)
        LAUNCH((dispatch<real>), blocks_for(n), (unsigned)BLOCK, st, y, x, slot, m, rows, divisor_of(top), divisor_of(width));
    else
        LAUNCH((dispatch<Words<4>>), blocks_for(n / WIDE), (unsigned)BLOCK, st, (Words<4> *)y, (const Words<4> *)x, slot, m,
               rows, divisor_of(top), divisor_of(width / WIDE));
}

void dispatch_forward(Stage *st, real *y, const real *x, const int32_t *slot, long rows, long top, long width)
{
    dispatch_rows(st, y, x, slot, Mine{0, 0, 0}, rows, top, width);
}

/* y[r] = the sum over choices of their rows, each times its share; 0: times 1.  slot 0: they stand in the order of tokens. */
template <int STEP, bool SORTED>
static __global__ void collect(real *y, const real *x, const real *share, const int32_t *slot, long rows, long top, long width,
                               Divisor groups)
{
    GRID(e, rows * groups.by) {
        long r = quotient(e, groups), i = (e - r * groups.by) * WIDE;
        float sum[WIDE], v[WIDE];
        for (int k = 0; k < WIDE; k++)
            sum[k] = 0;
        for (long j = 0; j < top; j++) {
            float factor = share ? one(share, r * top + j) : 1.0f;
            take(v, x + (SORTED ? slot[r * top + j] : r * top + j) * width, i, width, STEP);
            for (int k = 0; k < WIDE; k++)
                sum[k] += factor * v[k];
        }
        leave(y + r * width, sum, i, width, STEP);
    }
}

static void collect_rows(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, long rows, long top,
                         long width)
{
    Divisor groups = divisor_of(ceil_div(width, WIDE));
    unsigned blocks = blocks_for(rows * groups.by);
    if (width % WIDE && slot)
        LAUNCH((collect<1, true>), blocks, (unsigned)BLOCK, st, y, x, share, slot, rows, top, width, groups);
    else if (width % WIDE)
        LAUNCH((collect<1, false>), blocks, (unsigned)BLOCK, st, y, x, share, slot, rows, top, width, groups);
    else if (slot)
        LAUNCH((collect<0, true>), blocks, (unsigned)BLOCK, st, y, x, share, slot, rows, top, width, groups);
    else
        LAUNCH((collect<0, false>), blocks, (unsigned)BLOCK, st, y, x, share, slot, rows, top, width, groups);
}

void dispatch_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, long rows, long top, long width)
{
    collect_rows(st, dx, dy, 0, slot, rows, top, width);
}

void combine_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, long rows, long top, long width)
{
    collect_rows(st, y, x, share, slot, rows, top, width);
}

/* The gradient of a share is made where its row is: it is 0 on other devices. */
static __global__ void combine_back(real *dx, real *dshare, const real *dy, const real *x, const real *share,
                                    const int32_t *slot, Mine m, long n, long top, long width)
{
    long i = ROW_OF(WARP);
    if (i >= n)
        return;
    bool here = m.has(slot[i]);
    long at = (slot[i] - m.first()) * width, from = quotient(i, top) * width;
    float sum = 0, part = one(share, i);
    for (long k = threadIdx.x % WARP; here && k < width; k += WARP) {
        float d = one(dy, from + k);
        sum += d * one(x, at + k);
        if (dx)
            set(dx, at + k, part * d);
    }
    sum = warp_sum(sum);
    if (dshare && threadIdx.x % WARP == 0)
        set(dshare, i, sum);
}

static void combine_rows_back(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share,
                              const int32_t *slot, Mine m, long n, long top, long width)
{
    LAUNCH(combine_back, (unsigned)ceil_div(n, BLOCK / WARP), (unsigned)BLOCK, st, dx, dshare, dy, x, share, slot, m, n, top,
           width);
}

void combine_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share, const int32_t *slot,
                      long rows, long top, long width)
{
    combine_rows_back(st, dx, dshare, dy, x, share, slot, Mine{0, 0, 0}, rows * top, top, width);
}

/* ---- whole experts on the devices of a stage (rt/op/experts_team.c) ---------------------------------------------------- */

/* Which rows a device has is known on the GPU alone.  So the rows of all choices lie in the order of tokens, those that are not
 * here as 0, and the devices take what is there. */
static __global__ void spread_rows(real *all, const real *x, const int32_t *slot, Mine m, long n, Divisor width)
{
    const long first = m.first();
    GRID(e, n * width.by) {
        long i = quotient(e, width), k = e - i * width.by;
        set(all, e, m.has(slot[i]) ? one(x, (slot[i] - first) * width.by + k) : 0.0f);
    }
}

static real *choices_of(Stage *st, void *tmp, const real *x, const int32_t *slot, Mine m, long n, long width)
{
    LAUNCH(spread_rows, blocks_for(n * width), (unsigned)BLOCK, st, (real *)tmp, x, slot, m, n, divisor_of(width));
    return (real *)tmp;
}

static const real *all_choices(Stage *st, void *tmp, const real *x, const int32_t *slot, Mine m, long n, long width)
{
    real *all = choices_of(st, tmp, x, slot, m, n, width);
    if (st->team)
        st->team->take(st, all, n * width * (long)sizeof *all);
    return all;
}

/* Those of the tokens of this device, in front of which stand `first` others. */
static void collect_mine(Stage *st, real *y, const real *x, const real *share, void *tmp, const int32_t *slot, Mine m,
                         long rows, long top, long width, long mine)
{
    const long here = part_here(st, mine, rows), first = st->shard * mine < rows ? st->shard * mine : rows;
    real *all = choices_of(st, tmp, x, slot, m, rows * top, width);
    if (st->team)
        st->team->take_part(st, all, mine * top * width * (long)sizeof *all, rows * top * width * (long)sizeof *all);
    if (here)
        collect_rows(st, y, all + first * top * width, share ? share + first * top : 0, 0, here, top, width);
    if (here < mine)
        fill_zero(st, y + here * width, (mine - here) * width * (long)sizeof *y);
}

static long room_for(long rows, long top, long experts) { return rows * (top < experts ? top : experts); }

void dispatch_experts_forward(Stage *st, real *y, const real *x, const int32_t *slot, const int32_t *offset, long rows,
                              long top, long width, long experts)
{
    const Mine m = mine_of(st, offset, experts);
    dispatch_rows(st, y, x, slot, m, rows, top, width);
    fill_behind(st, y, m, room_for(rows, top, experts), width);
}

void dispatch_experts_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset, void *tmp,
                               long rows, long top, long width, long experts)
{
    const real *all = all_choices(st, tmp, dy, slot, mine_of(st, offset, experts), rows * top, width);
    collect_rows(st, dx, all, 0, 0, rows, top, width);
}

void combine_experts_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, const int32_t *offset,
                             void *tmp, long rows, long top, long width, long experts)
{
    const real *all = all_choices(st, tmp, x, slot, mine_of(st, offset, experts), rows * top, width);
    collect_rows(st, y, all, share, 0, rows, top, width);
}

void combine_experts_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share,
                              const int32_t *slot, const int32_t *offset, long rows, long top, long width, long experts)
{
    const Mine m = mine_of(st, offset, experts);
    combine_rows_back(st, dx, dshare, dy, x, share, slot, m, rows * top, top, width);
    if (dx)
        fill_behind(st, dx, m, room_for(rows, top, experts), width);
    if (dshare && st->team)
        st->team->take(st, dshare, rows * top * (long)sizeof *dshare);
}

void dispatch_experts_scatter_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset,
                                       void *tmp, long rows, long top, long width, long experts, long mine)
{
    collect_mine(st, dx, dy, 0, tmp, slot, mine_of(st, offset, experts), rows, top, width, mine);
}

void combine_experts_scatter_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot,
                                     const int32_t *offset, void *tmp, long rows, long top, long width, long experts, long mine)
{
    collect_mine(st, y, x, share, tmp, slot, mine_of(st, offset, experts), rows, top, width, mine);
}

/* ---- the loss that spreads tokens ------------------------------------------------------------------------------------ */

static __global__ void route_parts(float *f, const int32_t *expert, long n, long rows)
{
    int count = 0;
    for (long i = threadIdx.x; i < n; i += BLOCK)
        count += expert[i] == (int)blockIdx.x;
    count = team_sum<BLOCK>(count);
    if (threadIdx.x == 0)
        f[blockIdx.x] = (float)count / (float)rows;
}

/* One block: its warps take rows in turn. */
static __global__ void route_loss_rows(float *loss, const real *x, const float *f, const Values *vals, long rows, long experts,
                                       float factor)
{
    SHARED(double, part, BLOCK / WARP);
    double sum = 0;
    for (long r = threadIdx.x / WARP; r < rows; r += BLOCK / WARP) {
        Odds p = odds_of(x + r * experts, experts, SCORES_SOFTMAX);
        for (long e = threadIdx.x % WARP; e < experts; e += WARP)
            sum += (double)f[e] * (double)p(e);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = sum;
    __syncthreads();
    for (int w = 1; w < BLOCK / WARP && threadIdx.x == 0; w++)
        sum += part[w];
    if (threadIdx.x == 0)
        *loss = (float)((double)factor * (double)experts * sum / ((double)rows * (double)vals->micro));
}

static __global__ void route_loss_back(real *dx, const float *dloss, const real *x, const float *f, const Values *vals,
                                       long rows, long experts, float factor)
{
    long r = ROW_OF(WARP);
    if (r >= rows)
        return;
    Odds p = odds_of(x + r * experts, experts, SCORES_SOFTMAX);
    float by = *dloss * factor * (float)experts / ((float)rows * (float)vals->micro), dot = 0;
    for (long e = threadIdx.x % WARP; e < experts; e += WARP)
        dot += p(e) * f[e];
    dot = warp_sum(dot);
    for (long e = threadIdx.x % WARP; e < experts; e += WARP)
        set(dx, r * experts + e, by * (p(e) * (f[e] - dot)));
}

static const float *parts_of(Stage *st, const int32_t *expert, long rows, long experts, long top)
{
    float *f = (float *)workspace_of(st, (size_t)experts * sizeof *f);
    LAUNCH(route_parts, (unsigned)experts, (unsigned)BLOCK, st, f, expert, rows * top, rows);
    return f;
}

void route_loss_forward(Stage *st, float *loss, const real *x, const int32_t *expert, const Values *vals, long rows,
                        long experts, long top, float factor)
{
    LAUNCH(route_loss_rows, 1u, (unsigned)BLOCK, st, loss, x, parts_of(st, expert, rows, experts, top), vals, rows, experts,
           factor);
}

void route_loss_backward(Stage *st, real *dx, const float *dloss, const real *x, const int32_t *expert, const Values *vals,
                         long rows, long experts, long top, float factor)
{
    LAUNCH(route_loss_back, (unsigned)ceil_div(rows, BLOCK / WARP), (unsigned)BLOCK, st, dx, dloss, x,
           parts_of(st, expert, rows, experts, top), vals, rows, experts, factor);
}
