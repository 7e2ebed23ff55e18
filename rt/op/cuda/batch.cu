/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNorm and its running statistics: the formulas of rt/op/batch.c.  Sums over rows are those of columns.h, in float; the
 * variance takes a second pass.  Backward makes both sums in one pass over dy and x, and dx in another one.  The averages of
 * the micro-batch wait in the workspace, before the parts of the sums.
 */
#include "columns.h"

/* In an evaluation the running statistics instead, whatever was added up. */
struct Statistic {
    float *to;
    const float *running;
    const Values *vals;
    float rows;
    FIELD void put(int, long i, float v) const { to[i] = vals->eval ? running[i] : v / rows; }
};

struct Deviation {
    enum { SUMS = 1 };
    const real *x;
    const float *mean;
    FIELD void at(float (&v)[1][WIDE], long row, long i, long width, int step) const
    {
        float m[WIDE];
        take(v[0], x + row * width, i, width, step);
        take(m, mean, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[0][j] = (v[0][j] - m[j]) * (v[0][j] - m[j]);
    }
};

void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var,
                       const Values *vals, long rows, long width)
{
    column_sums(st, Plain{x}, Statistic{mean, running_mean, vals, (float)rows}, rows, width);
    column_sums(st, Deviation{x, mean}, Statistic{var, running_var, vals, (float)rows}, rows, width);
}

/* Elements i .. of a row of channels, for elements i .. of x. */
template <bool WHOLE> FN void channels(float (&v)[WIDE], const float *p, long i, long width)
{
    if (WHOLE)
        load(v, p + (i - quotient(i, width) * width));
    else
        for (int j = 0; j < WIDE; j++)
            v[j] = p[i + j - quotient(i + j, width) * width];
}

template <bool WHOLE>
static __global__ void normalize(real *y, const real *x, const float *mean, const float *var, const float *weight,
                                 const float *bias, long n, long width, float eps)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], m[WIDE], s[WIDE], w[WIDE], b[WIDE];
        take(v, x, i, n, step);
        channels<WHOLE>(m, mean, i, width);
        channels<WHOLE>(s, var, i, width);
        channels<WHOLE>(w, weight, i, width);
        channels<WHOLE>(b, bias, i, width);
        for (int j = 0; j < WIDE; j++)
            v[j] = (v[j] - m[j]) * frsqrt(s[j] + eps) * w[j] + b[j];
        leave(y, v, i, n, step);
    }
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    long n = rows * width;
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    if (width % WIDE == 0)
        LAUNCH((normalize<true>), blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, n, width, eps);
    else
        LAUNCH((normalize<false>), blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, n, width, eps);
}

/* dy, and dy u with u = (x - mean) / sqrt(var + eps). */
struct Slopes {
    enum { SUMS = 2 };
    const real *dy, *x;
    const float *mean, *var;
    float eps;
    FIELD void at(float (&v)[2][WIDE], long row, long i, long width, int step) const
    {
        float m[WIDE], s[WIDE];
        take(v[0], dy + row * width, i, width, step);
        take(v[1], x + row * width, i, width, step);
        take(m, mean, i, width, step);
        take(s, var, i, width, step, 1.0f);
        for (int j = 0; j < WIDE; j++)
            v[1][j] = v[0][j] * ((v[1][j] - m[j]) * frsqrt(s[j] + eps));
    }
};

struct Averages {
    Gradient to;
    float *average;             /* [2 width] */
    long width;
    float rows;
    FIELD void put(int k, long i, float v) const
    {
        to.put(k, i, v);
        average[k * width + i] = v / rows;
    }
};

template <bool WHOLE>
static __global__ void normalize_back(real *dx, const real *dy, const real *x, const float *mean, const float *var,
                                      const float *weight, const float *average, long n, long width, float eps)
{
    GROUPS(i, step, WIDE, n) {
        float d[WIDE], v[WIDE], m[WIDE], s[WIDE], w[WIDE];
        take(d, dy, i, n, step);
        take(v, x, i, n, step);
        channels<WHOLE>(m, mean, i, width);
        channels<WHOLE>(s, var, i, width);
        for (int j = 0; j < WIDE; j++) {
            s[j] = frsqrt(s[j] + eps);
            v[j] = (v[j] - m[j]) * s[j];
        }
        channels<WHOLE>(m, average, i, width);
        channels<WHOLE>(w, average + width, i, width);
        for (int j = 0; j < WIDE; j++)
            d[j] = d[j] - m[j] - v[j] * w[j];
        channels<WHOLE>(w, weight, i, width);
        for (int j = 0; j < WIDE; j++)
            d[j] = s[j] * w[j] * d[j];
        leave(dx, d, i, n, step);
    }
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, int acc, long rows, long width, float eps)
{
    Columns c = columns_of(rows, width, 0);
    long own = ceil_div(2 * width, 64) * 64, n = rows * width;
    float *average = (float *)workspace_of(st, (size_t)own * sizeof *average + columns_scratch(c, Slopes::SUMS));
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    column_sums_in(st, Slopes{dy, x, mean, var, eps}, Averages{{{dbias, dweight}, acc}, average, width, (float)rows}, c,
                   average + own, 0);
    if (dx && width % WIDE == 0)
        LAUNCH((normalize_back<true>), blocks, (unsigned)BLOCK, st, dx, dy, x, mean, var, weight, (const float *)average, n,
               width, eps);
    else if (dx)
        LAUNCH((normalize_back<false>), blocks, (unsigned)BLOCK, st, dx, dy, x, mean, var, weight, (const float *)average, n,
               width, eps);
}

/* ---- running statistics ------------------------------------------------------------------------------------------ */

/* Adds v to number i of an accumulator of n pairs: the upper one has 12 digits. */
FN void add_pair(float *to, long i, long n, int acc, double v)
{
    v += acc ? (double)to[i] + (double)to[n + i] : 0;
    float upper = bits_float(float_bits((float)v) & 0xfffff000u);
    to[i] = upper;
    to[n + i] = (float)(v - (double)upper);
}

FN double pair(const float *from, long i, long n) { return (double)from[i] + (double)from[n + i]; }

static __global__ void track(float *dmean, float *dvar, float *dcount, const float *mean, const float *var, const Values *vals,
                             int mb, int acc, long rows, long width, float momentum, long each)
{
    double weight = each ? (double)momentum : 1, unbiased = (double)rows / (double)(rows - 1);
    for (int later = mb + 1; each && later < vals->micro; later++)
        weight *= 1 - (double)momentum;
    GRID(i, width) {
        double m = (double)mean[i], v = (double)var[i];
        add_pair(dmean, i, width, acc, weight * m);
        add_pair(dvar, i, width, acc, weight * (each ? v * unbiased : v + m * m));
        if (i == 0)
            add_pair(dcount, 0, 1, acc, 1);
    }
}

void batchstat_track(Stage *st, float *dmean, float *dvar, float *dcount, const float *mean, const float *var,
                     const Values *vals, int mb, int acc, long rows, long width, float momentum, long each)
{
    LAUNCH(track, blocks_for(width), (unsigned)BLOCK, st, dmean, dvar, dcount, mean, var, vals, mb, acc, rows, width, momentum,
           each);
}

static __global__ void follow(float *mean, float *var, float *count, const float *sum_mean, const float *sum_var,
                              const float *sum_count, long rows, long n, float momentum, long each)
{
    double micro = pair(sum_count, 0, 1), all = (double)rows * micro, left = each ? 1 : 1 - (double)momentum;
    for (long k = 0; each && (double)k < micro; k++)
        left *= 1 - (double)momentum;
    GRID(i, n) {
        double m = pair(sum_mean, i, n), v = pair(sum_var, i, n);
        if (!each) {
            m /= micro;
            v = (v / micro - m * m) * (all / (all - 1)) * (double)momentum;
            m *= (double)momentum;
        }
        mean[i] = (float)(left * (double)mean[i] + m);
        var[i] = (float)(left * (double)var[i] + (v > 0 ? v : 0));
        if (i == 0)
            *count += each ? (float)micro : 1.0f;
    }
}

void batch_track(Stage *st, float *mean, float *var, float *count, const float *sum_mean, const float *sum_var,
                 const float *sum_count, long rows, long n, float momentum, long each)
{
    LAUNCH(follow, blocks_for(n), (unsigned)BLOCK, st, mean, var, count, sum_mean, sum_var, sum_count, rows, n, momentum, each);
}
