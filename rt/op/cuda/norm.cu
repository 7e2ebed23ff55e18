/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNorm and RMSNorm: formulas as in rt/op/norm.c.  A row that begins at a multiple of 16 bytes is read once, into registers
 * of a warp, from 1025 to 8192 elements of a block: all its loads are under way before the first is used.  Other rows are read
 * as often as there are sums over them; but for the first time they come from the cache.  Both add in the same order.  A held
 * row gives the gradients of weight and bias in the pass that makes dx; for other rows there is a pass more, columns.h.
 *
 * With train.blocks these gradients are sums of so many blocks of rows, and their tree, whoever has the rows.
 */
#include "../../team.h"
#include "columns.h"
#include "norm.h"
#include "sums.h"

/* How a row is taken: as u = (x - mean) rstd; RMSNorm has mean 0. */
template <int TEAM> FN float row_mean(const real *x, long width, int step)
{
    float sum = 0;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x, i, width, step);
        for (int j = 0; j < WIDE; j++)
            sum += v[j];
    }
    return team_sum<TEAM>(sum) / (float)width;
}

template <int TEAM> FN float row_rstd(const real *x, float mean, long width, int step, float eps)
{
    float sum = 0;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x, i, width, step, mean);
        for (int j = 0; j < WIDE; j++)
            sum += (v[j] - mean) * (v[j] - mean);
    }
    return frsqrt(team_sum<TEAM>(sum) / (float)width + eps);
}

template <int TEAM>
static __global__ void norm_rows(real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                                 long rows, long width, float eps, float offset)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    float m = mean ? row_mean<TEAM>(x + r * width, width, step) : 0.0f;
    float s = row_rstd<TEAM>(x + r * width, m, width, step, eps);
    ROW(i, TEAM, step, width) {
        float v[WIDE], w[WIDE], b[WIDE];
        take(v, x + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++)
            b[j] = 0;
        if (bias)
            take(b, bias, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = (v[j] - m) * s * (offset + w[j]) + b[j];
        leave(y + r * width, v, i, width, step);
    }
    if (threadIdx.x % TEAM == 0) {
        rstd[r] = s;
        if (mean)
            mean[r] = m;
    }
}

/* 16 bytes a thread and trip, as they lie in memory; elements from `width` on are no one's. */
template <int TEAM, int TRIPS> struct Held {
    Words<4> at[TRIPS];
    FIELD static long first(int t) { return (t * TEAM + threadIdx.x % TEAM) * (long)WIDE; }
    FIELD void read(const real *row, long width)
    {
        UNROLL
        for (int t = 0; t < TRIPS; t++)
            if (first(t) < width)
                at[t] = *(const Words<4> *)(row + first(t));
    }
    FIELD void give(float (&v)[WIDE], int t) const { load(v, (const real *)&at[t]); }
    /* Becomes its sum with another row, as add_forward makes and stores it. */
    FIELD void add(real *to, const real *row, long width)
    {
        Held other;
        other.read(row, width);
        UNROLL
        for (int t = 0; t < TRIPS; t++)
            if (first(t) < width) {
                float v[WIDE], w[WIDE];
                give(v, t);
                other.give(w, t);
                for (int j = 0; j < WIDE; j++)
                    v[j] += w[j];
                store((real *)&at[t], v);
                *(Words<4> *)(to + first(t)) = at[t];
            }
    }
};

/* A loop over the trips of a held row. */
#define HELD(t, TEAM, TRIPS, width) \
    UNROLL \
    for (int t = 0; t < TRIPS; t++) \
        if (Held<TEAM, TRIPS>::first(t) < (width))

template <int TEAM, int TRIPS>
static __global__ void norm_held(real *y, float *mean, float *rstd, const real *x, const real *other, real *total,
                                 const float *weight, const float *bias, long rows, long width, float eps, float offset)
{
    long r = ROW_OF(TEAM);
    if (r >= rows)
        return;
    Held<TEAM, TRIPS> row;
    float v[WIDE], w[WIDE], b[WIDE], m = 0, s = 0;
    row.read(x + r * width, width);
    if (other)
        row.add(total + r * width, other + r * width, width);
    HELD(t, TEAM, TRIPS, width) {
        row.give(v, t);
        for (int j = 0; j < WIDE; j++)
            m += v[j];
    }
    m = mean ? team_sum<TEAM>(m) / (float)width : 0.0f;
    HELD(t, TEAM, TRIPS, width) {
        row.give(v, t);
        for (int j = 0; j < WIDE; j++)
            s += (v[j] - m) * (v[j] - m);
    }
    s = frsqrt(team_sum<TEAM>(s) / (float)width + eps);
    HELD(t, TEAM, TRIPS, width) {
        row.give(v, t);
        load(w, weight + row.first(t));
        for (int j = 0; j < WIDE; j++)
            b[j] = 0;
        if (bias)
            load(b, bias + row.first(t));
        for (int j = 0; j < WIDE; j++)
            v[j] = (v[j] - m) * s * (offset + w[j]) + b[j];
        store(y + r * width + row.first(t), v);
    }
    if (threadIdx.x % TEAM == 0) {
        rstd[r] = s;
        if (mean)
            mean[r] = m;
    }
}

/* dx = rstd (g - mean(g) - u mean(g u)), g = dy weight; without `mean` the second term is left out. */
template <int TEAM>
static __global__ void norm_rows_back(real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                                      const float *rstd, const real *onto, long rows, long width, float offset)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    float m = mean ? mean[r] : 0.0f, s = rstd[r], sum = 0, product = 0, u[WIDE], g[WIDE], w[WIDE];
    ROW(i, TEAM, step, width) {
        take(u, x + r * width, i, width, step);
        take(g, dy + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++) {
            w[j] += offset;
            sum += g[j] * w[j];
            product += g[j] * w[j] * ((u[j] - m) * s);
        }
    }
    sum = mean ? team_sum<TEAM>(sum) / (float)width : 0.0f;
    product = team_sum<TEAM>(product) / (float)width;
    ROW(i, TEAM, step, width) {
        take(u, x + r * width, i, width, step);
        take(g, dy + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++)
            u[j] = s * (g[j] * (offset + w[j]) - sum - (u[j] - m) * s * product);
        if (onto)
            add(u, onto + r * width, i, width, step);
        leave(dx + r * width, u, i, width, step);
    }
}

/* The sums of a block: warps ascending. */
template <class Sums> FN void held_part(Sums &sums, float *part, Gradient end, int k, int of, int columns, Columns c)
{
    __syncthreads();
    for (long i = threadIdx.x; i < c.width; i += BLOCK) {
        float all = sums[i];
        for (int w = 1; w < ROW_LANES; w++)
            all += sums[w * columns + i];
        if (c.chunks == 1)
            end.put(k, i, all);
        else
            part[(blockIdx.x * of + k) * c.width + i] = all;
    }
    __syncthreads();
}

/* dx as above, and the gradients of weight and bias from the same loads: 2 `sums`, without a bias 1.  The third is that of
 * dx, for the gradient of another bias.  A block has `each` rows, a warp every eighth of them, or all threads each.  A
 * column is added in a register, that of dx in shared memory, ascending, then as columns.h does it. */
template <int TEAM, int TRIPS>
static __global__ void norm_held_back(real *dx, float *part, Gradient end, int sums, const real *dy, const real *x,
                                      const float *weight, const float *mean, const float *rstd, const real *onto, Columns c,
                                      float offset)
{
    enum { COLUMNS = TRIPS * TEAM * WIDE, LANES = BLOCK / TEAM };
    SHARED(float, of_warps, LANES > 1 ? LANES * COLUMNS : 1);
    int lane = threadIdx.x / TEAM;
    long last = (blockIdx.x + 1) * c.each, until = last < c.rows ? last : c.rows, width = c.width;
    float to_w[TRIPS][WIDE], to_b[TRIPS][WIDE];
    UNROLL
    for (int t = 0; t < TRIPS; t++)
        for (int j = 0; j < WIDE; j++)
            to_w[t][j] = to_b[t][j] = 0;
    float *of_dx = LANES > 1 && sums == 3 ? &of_warps[lane * COLUMNS] : 0;
    HELD(t, TEAM, TRIPS, of_dx ? width : 0)
        for (int j = 0; j < WIDE; j++)
            of_dx[Held<TEAM, TRIPS>::first(t) + j] = 0;
    for (long r = blockIdx.x * c.each + lane; r < until; r += LANES) {
        Held<TEAM, TRIPS> of_x, of_dy, of_onto;
        of_x.read(x + r * width, width);
        of_dy.read(dy + r * width, width);
        if (onto)
            of_onto.read(onto + r * width, width);
        float m = mean ? mean[r] : 0.0f, s = rstd[r], sum = 0, product = 0, u[WIDE], g[WIDE], w[WIDE];
        HELD(t, TEAM, TRIPS, width) {
            of_x.give(u, t);
            of_dy.give(g, t);
            load(w, weight + of_x.first(t));
            for (int j = 0; j < WIDE; j++) {
                w[j] += offset;
                sum += g[j] * w[j];
                product += g[j] * w[j] * ((u[j] - m) * s);
                to_w[t][j] += g[j] * ((u[j] - m) * s);
                to_b[t][j] += g[j];
            }
        }
        if (!dx)
            continue;
        sum = mean ? team_sum<TEAM>(sum) / (float)width : 0.0f;
        product = team_sum<TEAM>(product) / (float)width;
        HELD(t, TEAM, TRIPS, width) {
            of_x.give(u, t);
            of_dy.give(g, t);
            load(w, weight + of_x.first(t));
            for (int j = 0; j < WIDE; j++)
                u[j] = s * (g[j] * (offset + w[j]) - sum - (u[j] - m) * s * product);
            if (onto)
                add(u, (const real *)&of_onto.at[t], 0, WIDE, 0);
            store((real *)&of_onto.at[t], u);
            *(Words<4> *)(dx + r * width + of_x.first(t)) = of_onto.at[t];
            if (of_dx) {
                of_onto.give(u, t);
                for (int j = 0; j < WIDE; j++)
                    of_dx[of_x.first(t) + j] += u[j];
            }
        }
    }
    if (of_dx)
        held_part(of_warps, part, end, 2, sums, (int)COLUMNS, c);
    for (int k = 0; k < sums && k < 2; k++) {
        HELD(t, TEAM, TRIPS, width)
            for (int j = 0; j < WIDE; j++) {
                long i = Held<TEAM, TRIPS>::first(t) + j;
                float v = k ? to_b[t][j] : to_w[t][j];
                if (LANES > 1)
                    of_warps[lane * COLUMNS + i] = v;
                else if (c.chunks == 1)
                    end.put(k, i, v);
                else
                    part[(blockIdx.x * sums + k) * width + i] = v;
            }
        if (LANES > 1)
            held_part(of_warps, part, end, k, sums, (int)COLUMNS, c);
    }
}

/* LAUNCH of a kernel of held rows, with as many trips as a row has. */
#define LAUNCH_TRIPS(held, TEAM, width, blocks, st, ...) \
    do { \
        long trips = ceil_div(width, TEAM * 8); \
        if (trips == 1) \
            LAUNCH((held<TEAM, 8 / WIDE>), (unsigned)(blocks), (unsigned)BLOCK, st, __VA_ARGS__); \
        else if (trips == 2) \
            LAUNCH((held<TEAM, 16 / WIDE>), (unsigned)(blocks), (unsigned)BLOCK, st, __VA_ARGS__); \
        else if (trips == 3) \
            LAUNCH((held<TEAM, 24 / WIDE>), (unsigned)(blocks), (unsigned)BLOCK, st, __VA_ARGS__); \
        else \
            LAUNCH((held<TEAM, 32 / WIDE>), (unsigned)(blocks), (unsigned)BLOCK, st, __VA_ARGS__); \
    } while (0)
#define LAUNCH_HELD(held, width, blocks, st, ...) \
    do { \
        if ((width) < WIDE_ROW) \
            LAUNCH_TRIPS(held, WARP, width, blocks, st, __VA_ARGS__); \
        else \
            LAUNCH_TRIPS(held, BLOCK, width, blocks, st, __VA_ARGS__); \
    } while (0)

struct NormTerm {
    enum { SUMS = 2, READS = 3, FIXED = 0 };
    const real *dy, *x;
    const float *mean, *rstd;
    FIELD void read(float (&r)[3][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
        take(r[1], dy + row * width, i, width, step);
        r[2][0] = mean ? mean[row] : 0.0f;
        r[2][1] = rstd[row];
    }
    FIELD void at(float (&v)[2][WIDE], const float (&r)[3][WIDE], const float (&)[1][WIDE], long, long, long, int) const
    {
        for (int j = 0; j < WIDE; j++) {
            v[1][j] = r[1][j];
            v[0][j] = v[1][j] * ((r[0][j] - r[2][0]) * r[2][1]);
        }
    }
};

/* Sums of W blocks of rows, for weight and bias, lie at the end of the workspace.  What is in front of them. */
static size_t blocks_bytes(const Stage *st, long width)
{
    return st->blocks > 1 ? 2 * (size_t)st->blocks * (size_t)width * sizeof(float) : 0;
}
static size_t front_room(const Stage *st, long width)
{
    const size_t bytes = blocks_bytes(st, width);
    return bytes ? workspace_room(st) / 256 * 256 - bytes : workspace_room(st);
}

template <int SUMS>
static void held_back(Stage *st, real *dx, Gradient end, const real *dy, const real *x, const float *weight, const float *mean,
                      const float *rstd, const real *onto, long rows, long width, float offset)
{
    Columns c = held_columns(front_room(st, width), rows, width);
    size_t scratch = columns_scratch(c, SUMS);
    float *part = scratch ? (float *)workspace_of(st, scratch) : 0;
    LAUNCH_HELD(norm_held_back, width, c.chunks, st, dx, part, end, SUMS, dy, x, weight, mean, rstd, onto, c, offset);
    if (c.chunks > 1)
        LAUNCH((column_totals<SUMS, Gradient>), (unsigned)ceil_div(width, WARP), (unsigned)BLOCK, st, end,
               (const float *)part, c);
}

static void norm_back(Stage *st, real *dx, Gradient end, const real *dy, const real *x, const float *weight, const float *mean,
                      const float *rstd, const real *onto, long rows, long width, float offset)
{
    if (HOLDS(width)) {
        if (end.to[2])
            held_back<3>(st, dx, end, dy, x, weight, mean, rstd, onto, rows, width, offset);
        else if (end.to[1])
            held_back<2>(st, dx, end, dy, x, weight, mean, rstd, onto, rows, width, offset);
        else
            held_back<1>(st, dx, end, dy, x, weight, mean, rstd, onto, rows, width, offset);
        return;
    }
    if (dx)
        LAUNCH_ROWS(norm_rows_back, rows, width, st, dx, dy, x, weight, mean, rstd, onto, rows, width, offset);
    if (end.to[0] || end.to[1])
        column_sums(st, NormTerm{dy, x, mean, rstd}, end, rows, width);
}

/* ---- rows that devices may share: gradients of weight and bias in blocks ------------------------------------------------ */

typedef struct {
    const real *dy, *x;
    const float *weight, *mean, *rstd;
    const real *onto;
    long width;
    float offset;
} NormBack;

/* What of both gradients is wanted, of sums that lie behind each other. */
static long wanted_from(const Gradient &end, long width) { return end.to[0] ? 0 : width; }
static long wanted_count(const Gradient &end, long width) { return (end.to[0] && end.to[1] ? 2 : 1) * width; }

/* dx of n rows, and what they add to weight and bias. */
static void block_back(Stage *st, real *dx, const Gradient &end, float *sum, const NormBack &k, long first, long n)
{
    const Gradient to = {{end.to[0] ? sum : 0, end.to[1] ? sum + k.width : 0}, 0};
    const long at = first * k.width;
    if (n)
        norm_back(st, dx ? dx + at : 0, to, k.dy + at, k.x + at, k.weight, k.mean ? k.mean + first : 0, k.rstd + first,
                  k.onto ? k.onto + at : 0, n, k.width, k.offset);
    else if (end.to[0] || end.to[1])
        sums_none(st, sum + wanted_from(end, k.width), wanted_count(end, k.width));
}

static void give_sums(Stage *st, const Gradient &end, const float *sum, long width)
{
    for (int k = 0; k < 2; k++)
        if (end.to[k] && end.acc)
            sums_add(st, end.to[k], sum + k * width, width);
        else if (end.to[k])
            version_copy(st, end.to[k], sum + k * width, width * (long)sizeof *sum);
}

/* All rows: as many blocks as the devices of a stage would have, and their tree. */
static void whole_back(Stage *st, real *dx, const Gradient &end, const NormBack &k, long rows)
{
    const float *all[TEAM_MOST];
    const long each = st->blocks > 1 ? ceil_div(rows, st->blocks) : rows, from = wanted_from(end, k.width);
    const size_t bytes = blocks_bytes(st, k.width), front = front_room(st, k.width);
    const size_t beside = HOLDS(k.width) ? 0 : columns_scratch(columns_of(each, k.width, 0), NormTerm::SUMS);
    if (!bytes || (!end.to[0] && !end.to[1])) {
        norm_back(st, dx, end, k.dy, k.x, k.weight, k.mean, k.rstd, k.onto, rows, k.width, k.offset);
        return;
    }
    const bool fits = bytes + beside <= workspace_room(st);
    float *sum = (float *)((char *)workspace_of(st, (fits ? front : beside) + bytes) + front);
    for (long b = 0; b < st->blocks; b++) {
        const long first = b * each < rows ? b * each : rows, n = rows - first < each ? rows - first : each;
        float *here = sum + 2 * b * k.width;
        all[b] = here + from;
        block_back(st, dx, end, here, k, first, n);
    }
    sums_tree(st, sum + from, all, st->blocks, wanted_count(end, k.width));
    give_sums(st, end, sum, k.width);
}

/* Rows of a device (docs/width.md), which has room for `rows` of `whole`.  sum: of its blocks, for weight and bias. */
static void rows_back(Stage *st, real *dx, const Gradient &end, const NormBack &k, float *sum, long rows, long whole)
{
    const long here = part_here(st, rows, whole);
    const bool wanted = end.to[0] || end.to[1];
    block_back(st, dx, end, sum, k, 0, here);
    if (st->team && wanted)
        st->team->sum(st, sum + wanted_from(end, k.width), wanted_count(end, k.width));
    if (wanted)
        give_sums(st, end, sum, k.width);
    if (dx && here < rows)
        fill_zero(st, dx + here * k.width, (rows - here) * k.width * (long)sizeof *dx);
}

static long blocks_of(long rows, long width) { return ceil_div(rows, BLOCK / TEAM_OF(width)); }

static void norm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                         long rows, long width, float eps, float offset)
{
    const real *other = 0;
    real *total = 0;
    if (HOLDS(width))
        LAUNCH_HELD(norm_held, width, blocks_of(rows, width), st, y, mean, rstd, x, other, total, weight, bias, rows, width,
                    eps, offset);
    else
        LAUNCH_ROWS(norm_rows, rows, width, st, y, mean, rstd, x, weight, bias, rows, width, eps, offset);
}

static void norm_of_sum(Stage *st, real *sum, real *y, float *mean, float *rstd, const real *a, const real *b,
                        const float *weight, const float *bias, long rows, long width, float eps)
{
    if (HOLDS(width)) {
        LAUNCH_HELD(norm_held, width, blocks_of(rows, width), st, y, mean, rstd, a, b, sum, weight, bias, rows, width, eps,
                    0.0f);
        return;
    }
    add_forward(st, sum, a, b, rows * width);
    norm_forward(st, y, mean, rstd, sum, weight, bias, rows, width, eps, 0.0f);
}

void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    norm_forward(st, y, mean, rstd, x, weight, bias, rows, width, eps, 0.0f);
}

void add_layernorm_forward(Stage *st, real *sum, real *y, float *mean, float *rstd, const real *a, const real *b,
                           const float *weight, const float *bias, long rows, long width, float eps)
{
    norm_of_sum(st, sum, y, mean, rstd, a, b, weight, bias, rows, width, eps);
}

void add_rmsnorm_forward(Stage *st, real *sum, real *y, float *rstd, const real *a, const real *b, const float *weight,
                         long rows, long width, float eps)
{
    norm_of_sum(st, sum, y, 0, rstd, a, b, weight, 0, rows, width, eps);
}

void layernorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight,
                        const float *mean, const float *rstd, const real *onto, int acc, long rows, long width)
{
    whole_back(st, dx, Gradient{{dweight, dbias}, acc}, NormBack{dy, x, weight, mean, rstd, onto, width, 0.0f}, rows);
}

int layernorm_sum_backward(Stage *st, real *dx, float *dweight, float *dbias, float *dsum, const real *dy, const real *x,
                           const float *weight, const float *mean, const float *rstd, const real *onto, int acc, long rows,
                           long width)
{
    bool sums = HOLDS(width) && TEAM_OF(width) == WARP && st->blocks <= 1;
    whole_back(st, dx, Gradient{{dweight, dbias, sums ? dsum : 0}, acc},
               NormBack{dy, x, weight, mean, rstd, onto, width, 0.0f}, rows);
    return sums;
}

void layernorm_rows_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *weight, const float *mean, const float *rstd, const real *onto, void *tmp, int acc,
                             long rows, long width, long whole)
{
    rows_back(st, dx, Gradient{{dweight, dbias}, acc}, NormBack{dy, x, weight, mean, rstd, onto, width, 0.0f}, (float *)tmp,
              rows, whole);
}

void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                     float eps)
{
    norm_forward(st, y, 0, rstd, x, weight, 0, rows, width, eps, 0.0f);
}

void rmsnorm_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                      const float *rstd, const real *onto, int acc, long rows, long width)
{
    whole_back(st, dx, Gradient{{dweight, 0}, acc}, NormBack{dy, x, weight, 0, rstd, onto, width, 0.0f}, rows);
}

void rmsnorm_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                           const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, long whole)
{
    rows_back(st, dx, Gradient{{dweight, 0}, acc}, NormBack{dy, x, weight, 0, rstd, onto, width, 0.0f}, (float *)tmp, rows,
              whole);
}

void rmsnorm_offset_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                            float eps, float offset)
{
    norm_forward(st, y, 0, rstd, x, weight, 0, rows, width, eps, offset);
}

void rmsnorm_offset_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                             const float *rstd, const real *onto, int acc, long rows, long width, float offset)
{
    whole_back(st, dx, Gradient{{dweight, 0}, acc}, NormBack{dy, x, weight, 0, rstd, onto, width, offset}, rows);
}

void rmsnorm_offset_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight,
                                  const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, float offset,
                                  long whole)
{
    rows_back(st, dx, Gradient{{dweight, 0}, acc}, NormBack{dy, x, weight, 0, rstd, onto, width, offset}, (float *)tmp, rows,
              whole);
}
