/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNorm and RMSNorm: formulas as in rt/op/norm.c.  A row of up to 1024 elements that begins at a multiple of 16 bytes is
 * read once, into registers of a warp: all its loads are under way before the first is used.  Other rows are read as often as
 * there are sums over them; but for the first time they come from the cache.  Both add in the same order.  Gradients of
 * weights: columns.h, both sums in one pass.
 */
#include "columns.h"

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
template <int TRIPS> struct Held {
    Words<4> at[TRIPS];
    FIELD static long first(int t) { return (t * WARP + threadIdx.x % WARP) * (long)WIDE; }
    FIELD void read(const real *row, long width)
    {
        UNROLL
        for (int t = 0; t < TRIPS; t++)
            if (first(t) < width)
                at[t] = *(const Words<4> *)(row + first(t));
    }
    FIELD void give(float (&v)[WIDE], int t) const { load(v, (const real *)&at[t]); }
};

/* A loop over the trips of a held row. */
#define HELD(t, TRIPS, width) \
    UNROLL \
    for (int t = 0; t < TRIPS; t++) \
        if (Held<TRIPS>::first(t) < (width))

template <int TRIPS>
static __global__ void norm_held(real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                                 long rows, long width, float eps, float offset)
{
    long r = ROW_OF(WARP);
    if (r >= rows)
        return;
    Held<TRIPS> row;
    float v[WIDE], w[WIDE], b[WIDE], m = 0, s = 0;
    row.read(x + r * width, width);
    HELD(t, TRIPS, width) {
        row.give(v, t);
        for (int j = 0; j < WIDE; j++)
            m += v[j];
    }
    m = mean ? warp_sum(m) / (float)width : 0.0f;
    HELD(t, TRIPS, width) {
        row.give(v, t);
        for (int j = 0; j < WIDE; j++)
            s += (v[j] - m) * (v[j] - m);
    }
    s = frsqrt(warp_sum(s) / (float)width + eps);
    HELD(t, TRIPS, width) {
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
    if (threadIdx.x % WARP == 0) {
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

template <int TRIPS>
static __global__ void norm_held_back(real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                                      const float *rstd, const real *onto, long rows, long width, float offset)
{
    long r = ROW_OF(WARP);
    if (r >= rows)
        return;
    Held<TRIPS> of_x, of_dy, of_onto;
    of_x.read(x + r * width, width);
    of_dy.read(dy + r * width, width);
    if (onto)
        of_onto.read(onto + r * width, width);
    float m = mean ? mean[r] : 0.0f, s = rstd[r], sum = 0, product = 0, u[WIDE], g[WIDE], w[WIDE];
    HELD(t, TRIPS, width) {
        of_x.give(u, t);
        of_dy.give(g, t);
        load(w, weight + of_x.first(t));
        for (int j = 0; j < WIDE; j++) {
            w[j] += offset;
            sum += g[j] * w[j];
            product += g[j] * w[j] * ((u[j] - m) * s);
        }
    }
    sum = mean ? warp_sum(sum) / (float)width : 0.0f;
    product = warp_sum(product) / (float)width;
    HELD(t, TRIPS, width) {
        of_x.give(u, t);
        of_dy.give(g, t);
        load(w, weight + of_x.first(t));
        for (int j = 0; j < WIDE; j++)
            u[j] = s * (g[j] * (offset + w[j]) - sum - (u[j] - m) * s * product);
        if (onto)
            add(u, (const real *)&of_onto.at[t], 0, WIDE, 0);
        store(dx + r * width + of_x.first(t), u);
    }
}

/* LAUNCH of `held`, with as many trips as a row has, or of `other`, for rows that it cannot hold. */
#define TRIPS_OF(width) ceil_div(width, WARP * 8)
#define LAUNCH_NORM(held, other, rows, width, st, ...) \
    do { \
        unsigned blocks_ = (unsigned)ceil_div(rows, BLOCK / WARP); \
        if ((width) % WIDE || (width) >= WIDE_ROW) \
            LAUNCH_ROWS(other, rows, width, st, __VA_ARGS__); \
        else if (TRIPS_OF(width) == 1) \
            LAUNCH((held<8 / WIDE>), blocks_, (unsigned)BLOCK, st, __VA_ARGS__); \
        else if (TRIPS_OF(width) == 2) \
            LAUNCH((held<16 / WIDE>), blocks_, (unsigned)BLOCK, st, __VA_ARGS__); \
        else if (TRIPS_OF(width) == 3) \
            LAUNCH((held<24 / WIDE>), blocks_, (unsigned)BLOCK, st, __VA_ARGS__); \
        else \
            LAUNCH((held<32 / WIDE>), blocks_, (unsigned)BLOCK, st, __VA_ARGS__); \
    } while (0)

struct NormTerm {
    enum { SUMS = 2 };
    const real *dy, *x;
    const float *mean, *rstd;
    FIELD void at(float (&v)[2][WIDE], long row, long i, long width, int step) const
    {
        float m = mean ? mean[row] : 0.0f, s = rstd[row], u[WIDE];
        take(u, x + row * width, i, width, step);
        take(v[1], dy + row * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[0][j] = v[1][j] * ((u[j] - m) * s);
    }
};

void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    LAUNCH_NORM(norm_held, norm_rows, rows, width, st, y, mean, rstd, x, weight, bias, rows, width, eps, 0.0f);
}

void layernorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                          const float *rstd, const real *onto, long rows, long width)
{
    LAUNCH_NORM(norm_held_back, norm_rows_back, rows, width, st, dx, dy, x, weight, mean, rstd, onto, rows, width, 0.0f);
}

void layernorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                          const float *rstd, int acc, long rows, long width)
{
    column_sums(st, NormTerm{dy, x, mean, rstd}, Gradient{{dweight, dbias}, acc}, rows, width);
}

static void rms_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width, float eps,
                        float offset)
{
    float *no_mean = 0;
    const float *no_bias = 0;
    LAUNCH_NORM(norm_held, norm_rows, rows, width, st, y, no_mean, rstd, x, weight, no_bias, rows, width, eps, offset);
}

static void rms_backward(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                         const real *onto, long rows, long width, float offset)
{
    const float *no_mean = 0;
    LAUNCH_NORM(norm_held_back, norm_rows_back, rows, width, st, dx, dy, x, weight, no_mean, rstd, onto, rows, width, offset);
}

void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                     float eps)
{
    rms_forward(st, y, rstd, x, weight, rows, width, eps, 0.0f);
}

void rmsnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                        const real *onto, long rows, long width)
{
    rms_backward(st, dx, dy, x, weight, rstd, onto, rows, width, 0.0f);
}

void rmsnorm_offset_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                            float eps, float offset)
{
    rms_forward(st, y, rstd, x, weight, rows, width, eps, offset);
}

void rmsnorm_offset_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                               const real *onto, long rows, long width, float offset)
{
    rms_backward(st, dx, dy, x, weight, rstd, onto, rows, width, offset);
}

void rmsnorm_backward_w(Stage *st, float *dweight, const real *dy, const real *x, const float *rstd, int acc,
                        long rows, long width)
{
    column_sums(st, NormTerm{dy, x, 0, rstd}, Gradient{{dweight, 0}, acc}, rows, width);
}
