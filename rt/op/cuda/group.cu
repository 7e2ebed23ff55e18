/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNorm: the formulas of rt/op/group.c.  A block adds up a sample's group, pixel by pixel, adjacent threads the adjacent
 * channels of it; the variance takes a second pass.  Backward's two averages of each group wait in the workspace.  Gradients
 * of weight and bias: columns.h.
 *
 * Not handled: narrow groups are read in short pieces.
 */
#include "columns.h"

struct Groups { long pixels, groups, width; };

/* Where element e of group `group` of all samples stands; its channel. */
FN long place_of(const Groups &v, long group, long e, long *channel)
{
    long pixel = quotient(e, v.width), sample = quotient(group, v.groups);
    *channel = (group - sample * v.groups) * v.width + e - pixel * v.width;
    return (sample * v.pixels + pixel) * v.groups * v.width + *channel;
}

/* The same the other way round: the group of element i of all samples. */
FN long group_of(const Groups &v, long i, long *channel)
{
    long row = quotient(i, v.groups * v.width);
    *channel = i - row * v.groups * v.width;
    return quotient(row, v.pixels) * v.groups + quotient(*channel, v.width);
}

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

static __global__ void group_normalize(real *y, const real *x, const float *weight, const float *bias, const float *mean,
                                       const float *rstd, Groups v, long n)
{
    GRID(i, n) {
        long channel, group = group_of(v, i, &channel);
        float u = (one(x, i) - mean[group]) * rstd[group];
        u = weight ? u * weight[channel] : u;
        set(y, i, bias ? u + bias[channel] : u);
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

static __global__ void group_back(real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                                  const float *rstd, const float *average, Groups v, long n)
{
    GRID(i, n) {
        long channel, group = group_of(v, i, &channel);
        float g = weight ? one(dy, i) * weight[channel] : one(dy, i), s = rstd[group];
        set(dx, i, s * (g - average[2 * group] - (one(x, i) - mean[group]) * s * average[2 * group + 1]));
    }
}

/* dy u and dy of a row of channels. */
struct GroupTerm {
    enum { SUMS = 2, READS = 2, FIXED = 0 };
    const real *dy, *x;
    const float *mean, *rstd;
    Groups v;
    FIELD void read(float (&r)[2][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
        take(r[1], dy + row * width, i, width, step);
    }
    FIELD void at(float (&t)[2][WIDE], const float (&r)[2][WIDE], const float (&)[1][WIDE], long row, long i, long width,
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
    long n = batch * pixels * groups * width;
    LAUNCH(group_statistics, (unsigned)(batch * groups), (unsigned)BLOCK, st, mean, rstd, x, v, eps);
    LAUNCH(group_normalize, blocks_for(n), (unsigned)BLOCK, st, y, x, weight, bias, (const float *)mean, (const float *)rstd,
           v, n);
}

void groupnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                          const float *rstd, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    long n = batch * pixels * groups * width;
    float *average = (float *)workspace_of(st, (size_t)(2 * batch * groups) * sizeof *average);
    LAUNCH(group_slopes, (unsigned)(batch * groups), (unsigned)BLOCK, st, average, dy, x, weight, mean, rstd, v);
    LAUNCH(group_back, blocks_for(n), (unsigned)BLOCK, st, dx, dy, x, weight, mean, rstd, (const float *)average, v, n);
}

void groupnorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                          const float *rstd, int acc, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    column_sums(st, GroupTerm{dy, x, mean, rstd, v}, Gradient{{dweight, dbias}, acc}, batch * pixels, groups * width);
}
