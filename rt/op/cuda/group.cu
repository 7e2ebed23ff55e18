/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNorm: the formulas of rt/op/group.c.  A block adds up a sample's group, pixel by pixel, adjacent threads the adjacent
 * channels of it; the variance takes a second pass.  Backward's two averages of each group wait in the workspace.  Gradients
 * of weight and bias: columns.h.
 *
 * Not handled: narrow groups are read in short pieces.
 */
#include "columns.h"
#include "walk.h"

struct Groups { long pixels, groups, width; };

/* Where element e of group `group` of all samples stands; its channel. */
FN long place_of(const Groups &v, long group, long e, long *channel)
{
    long pixel = quotient(e, v.width), sample = quotient(group, v.groups);
    *channel = (group - sample * v.groups) * v.width + e - pixel * v.width;
    return (sample * v.pixels + pixel) * v.groups * v.width + *channel;
}

/* The groups, among a sample's, of the channels that a thread has.  ONE: all are in the same. */
struct Members { int at[WIDE]; };

FN Members members_of(const Divisor &width, long column, long channels)
{
    Members m;
    for (int j = 0; j < WIDE; j++)
        m.at[j] = quotient((int)(column + j < channels ? column + j : channels - 1), width);
    return m;
}

template <bool ONE> FN void of_groups(float (&to)[WIDE], const float *p, const Members &m, int step = 1)
{
    for (int j = 0; j < WIDE; j++)
        to[j] = ONE && j ? to[0] : p[m.at[j] * step];
}

/* The rows of all samples, as threads walk over them. */
struct Samples { Walk walk; Divisor pixels, width; long groups, channels; };

static Samples samples_of(long batch, const Groups &v)
{
    long channels = v.groups * v.width;
    return Samples{walk_of(batch * v.pixels, channels), divisor_of(v.pixels), divisor_of(v.width), v.groups, channels};
}

#define LAUNCH_SAMPLES(kernel, t, st, ...) \
    do { \
        if ((t).channels % WIDE) \
            LAUNCH((kernel<1, false>), (t).walk.blocks, (unsigned)BLOCK, st, __VA_ARGS__, t); \
        else if ((t).width.by % WIDE) \
            LAUNCH((kernel<0, false>), (t).walk.blocks, (unsigned)BLOCK, st, __VA_ARGS__, t); \
        else \
            LAUNCH((kernel<0, true>), (t).walk.blocks, (unsigned)BLOCK, st, __VA_ARGS__, t); \
    } while (0)

static __global__ void group_statistics(float *mean, float *rstd, const real *x, Groups v, float eps)
{
    long group = blockIdx.x, n = v.pixels * v.width, channel;
    float sum = 0, squares = 0;
    for (long e = threadIdx.x; e < n; e += BLOCK)
        sum += one(x, place_of(v, group, e, &channel));
    float m = team_sum<BLOCK>(sum) / (float)n;
    for (long e = threadIdx.x; e < n; e += BLOCK) {
        float d = one(x, place_of(v, group, e, &channel)) - m;
        squares += d * d;
    }
    squares = team_sum<BLOCK>(squares);
    if (threadIdx.x == 0) {
        mean[group] = m;
        rstd[group] = frsqrt(squares / (float)n + eps);
    }
}

template <int STEP, bool ONE>
static __global__ void __launch_bounds__(BLOCK, 2)
group_normalize(real *y, const real *x, const float *weight, const float *bias, const float *mean, const float *rstd, Samples t)
{
    Walker p = walker_of(t.walk);
    Members of = members_of(t.width, p.column, t.channels);
    float w[WIDE], b[WIDE];
    if (weight)
        take(w, weight, p.column, t.channels, STEP);
    if (bias)
        take(b, bias, p.column, t.channels, STEP);
    for (long row = p.first; row < t.walk.rows; row += FEW * p.step) {
        float v[FEW][WIDE], m[WIDE], s[WIDE];
        UNROLL
        for (int k = 0; k < FEW; k++)
            take(v[k], x + row_within(t.walk, row + k * p.step, row) * t.channels, p.column, t.channels, STEP);
        loads_first();
        UNROLL
        for (int k = 0; k < FEW; k++) {
            long at = row + k * p.step, first = quotient(at, t.pixels) * t.groups;
            if (at >= t.walk.rows)
                break;
            of_groups<ONE>(m, mean + first, of);
            of_groups<ONE>(s, rstd + first, of);
            for (int j = 0; j < WIDE; j++) {
                float u = (v[k][j] - m[j]) * s[j];
                u = weight ? u * w[j] : u;
                v[k][j] = bias ? __fadd_rn(u, b[j]) : u;        /* never fused with the product */
            }
            leave(y + at * t.channels, v[k], p.column, t.channels, STEP);
        }
    }
}

/* average[2*group]: of g = dy weight, and of g u */
static __global__ void group_slopes(float *average, const real *dy, const real *x, const float *weight, const float *mean,
                                    const float *rstd, Groups v)
{
    long group = blockIdx.x, n = v.pixels * v.width, channel;
    float plain = 0, with = 0, m = mean[group], s = rstd[group];
    for (long e = threadIdx.x; e < n; e += BLOCK) {
        long i = place_of(v, group, e, &channel);
        float g = weight ? one(dy, i) * weight[channel] : one(dy, i);
        plain += g;
        with += g * ((one(x, i) - m) * s);
    }
    plain = team_sum<BLOCK>(plain);
    with = team_sum<BLOCK>(with);
    if (threadIdx.x == 0) {
        average[2 * group] = plain / (float)n;
        average[2 * group + 1] = with / (float)n;
    }
}

template <int STEP, bool ONE>
static __global__ void __launch_bounds__(BLOCK, STEP ? 1 : 2)
group_back(real *dx, const real *dy, const real *x, const float *weight, const float *mean, const float *rstd,
           const float *average, Samples t)
{
    Walker p = walker_of(t.walk);
    Members of = members_of(t.width, p.column, t.channels);
    float w[WIDE];
    for (int j = 0; j < WIDE; j++)
        w[j] = 1;
    if (weight)
        take(w, weight, p.column, t.channels, STEP);
    for (long row = p.first; row < t.walk.rows; row += FEW * p.step) {
        float d[FEW][WIDE], v[FEW][WIDE], m[WIDE], s[WIDE], plain[WIDE], with[WIDE];
        UNROLL
        for (int k = 0; k < FEW; k++) {
            long at = row_within(t.walk, row + k * p.step, row);
            take(d[k], dy + at * t.channels, p.column, t.channels, STEP);
            take(v[k], x + at * t.channels, p.column, t.channels, STEP);
        }
        loads_first();
        UNROLL
        for (int k = 0; k < FEW; k++) {
            long at = row + k * p.step, first = quotient(at, t.pixels) * t.groups;
            if (at >= t.walk.rows)
                break;
            of_groups<ONE>(m, mean + first, of);
            of_groups<ONE>(s, rstd + first, of);
            of_groups<ONE>(plain, average + 2 * first, of, 2);
            of_groups<ONE>(with, average + 2 * first + 1, of, 2);
            for (int j = 0; j < WIDE; j++)
                d[k][j] = s[j] * (d[k][j] * w[j] - plain[j] - (v[k][j] - m[j]) * s[j] * with[j]);
            leave(dx + at * t.channels, d[k], p.column, t.channels, STEP);
        }
    }
}

/* dy u and dy of a row of channels.  Of three lines that are read two are those of tensors: at() reads too. */
struct GroupTerm {
    enum { SUMS = 2, READS = 3, FIXED = 0 };
    const real *dy, *x;
    const float *mean, *rstd;
    Groups v;
    FIELD void read(float (&r)[3][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
        take(r[1], dy + row * width, i, width, step);
    }
    FIELD void at(float (&t)[2][WIDE], const float (&r)[3][WIDE], const float (&)[1][WIDE], long row, long i, long width,
                  int step) const
    {
        long first = quotient(row, v.pixels) * v.groups;
        for (int j = 0; j < WIDE; j++) {
            long channel = i + j * (step ? step : 1), group = first + (channel < width ? quotient(channel, v.width) : 0);
            t[1][j] = r[1][j];
            t[0][j] = t[1][j] * ((r[0][j] - mean[group]) * rstd[group]);
        }
    }
};

void groupnorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                       long batch, long pixels, long groups, long width, float eps)
{
    Groups v = {pixels, groups, width};
    Samples t = samples_of(batch, v);
    LAUNCH(group_statistics, (unsigned)(batch * groups), (unsigned)BLOCK, st, mean, rstd, x, v, eps);
    LAUNCH_SAMPLES(group_normalize, t, st, y, x, weight, bias, (const float *)mean, (const float *)rstd);
}

void groupnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                          const float *rstd, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    Samples t = samples_of(batch, v);
    float *average = (float *)workspace_of(st, (size_t)(2 * batch * groups) * sizeof *average);
    LAUNCH(group_slopes, (unsigned)(batch * groups), (unsigned)BLOCK, st, average, dy, x, weight, mean, rstd, v);
    LAUNCH_SAMPLES(group_back, t, st, dx, dy, x, weight, mean, rstd, (const float *)average);
}

void groupnorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                          const float *rstd, int acc, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    column_sums(st, GroupTerm{dy, x, mean, rstd, v}, Gradient{{dweight, dbias}, acc}, batch * pixels, groups * width);
}
