/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNorm and its running statistics: the formulas of rt/op/batch.c.  Sums over rows are those of columns.h, in float.
 *
 * x is read once for both statistics.  Of what it is above its first row, the variance is the mean of the squares less the
 * square of the mean.  Source: Chan, Golub, LeVeque, Algorithms for Computing the Sample Variance, The American Statistician
 * 1983, shifted data.
 *
 * Backward makes both sums in one pass over dy and x, and dx in another one.  The averages of the micro-batch wait in the
 * workspace, before the parts of the sums.  With a Relu and an addition behind it, the pass that makes the sums keeps the
 * gradient of the addition, and the other one reads it.
 */
#include "columns.h"
#include "table.h"

/* Sums of what x is above its first row, and of the squares of that. */
struct Shifted {
    enum { SUMS = 2 };
    const real *x;
    FIELD void at(float (&v)[2][WIDE], long row, long i, long width, int step) const
    {
        float first[WIDE];
        take(v[0], x + row * width, i, width, step);
        take(first, x, i, width, step);
        for (int j = 0; j < WIDE; j++) {
            v[0][j] -= first[j];
            v[1][j] = v[0][j] * v[0][j];
        }
    }
};

/* In an evaluation the running statistics instead, whatever was added up.  Sum 0 comes first, to the same thread. */
struct Statistics {
    float *mean, *var;
    const real *x;
    const float *running_mean, *running_var;
    const Values *vals;
    float rows;
    FIELD void put(int k, long i, float v) const
    {
        float above = v / rows;
        if (k == 0) {
            mean[i] = above;
            return;
        }
        float shift = mean[i], spread = above - shift * shift;
        mean[i] = vals->eval ? running_mean[i] : one(x, i) + shift;
        var[i] = vals->eval ? running_var[i] : spread > 0 ? spread : 0.0f;
    }
};

void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var,
                       const Values *vals, long rows, long width)
{
    column_sums(st, Shifted{x}, Statistics{mean, var, x, running_mean, running_var, vals, (float)rows}, rows, width);
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

template <bool WHOLE, bool RELU>
static __global__ void normalize(real *y, const real *x, const float *mean, const float *var, const float *weight,
                                 const float *bias, const real *onto, long n, long width, float eps)
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
        if (onto)
            add(v, onto, i, n, step);
        if (RELU)
            narrow(v, x);
        for (int j = 0; RELU && j < WIDE; j++)
            v[j] = v[j] < 0 ? 0.0f : v[j];
        leave(y, v, i, n, step);
    }
}

template <bool RELU>
static void forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                    const float *bias, const real *onto, long rows, long width, float eps)
{
    long n = rows * width;
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    if (width % WIDE == 0)
        LAUNCH((normalize<true, RELU>), blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, onto, n, width, eps);
    else
        LAUNCH((normalize<false, RELU>), blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, onto, n, width, eps);
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, const real *onto, long rows, long width, float eps)
{
    forward<false>(st, y, x, mean, var, weight, bias, onto, rows, width, eps);
}

void batchnorm_relu_forward(Stage *st, real *y, const real *skip, const real *x, const float *mean, const float *var,
                            const float *weight, const float *bias, long rows, long width, float eps)
{
    forward<true>(st, y, x, mean, var, weight, bias, skip, rows, width, eps);
}

/* d counts where y is above 0. */
FN void let_through(float (&d)[WIDE], const real *y, long i, long n, int step)
{
    float v[WIDE];
    take(v, y, i, n, step);
    for (int j = 0; j < WIDE; j++)
        d[j] = v[j] > 0 ? d[j] : 0.0f;
}

/* dy, and dy u with u = (x - mean) / sqrt(var + eps); kept: the dy that the Relu with result y lets through. */
template <bool RELU>
struct Slopes {
    enum { SUMS = 2 };
    const real *dy, *y, *x;
    real *kept;
    const float *mean, *var;
    float eps;
    FIELD void at(float (&v)[2][WIDE], long row, long i, long width, int step) const
    {
        float m[WIDE], s[WIDE];
        take(v[0], dy + row * width, i, width, step);
        take(v[1], x + row * width, i, width, step);
        if (RELU)
            let_through(v[0], y + row * width, i, width, step);
        if (RELU && kept)
            leave(kept + row * width, v[0], i, width, step);
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

template <bool WHOLE, bool RELU>
static __global__ void normalize_back(real *dx, const real *dy, const real *y, const real *x, const float *mean,
                                      const float *var, const float *weight, const real *onto, const float *average, long n,
                                      long width, float eps)
{
    GROUPS(i, step, WIDE, n) {
        float d[WIDE], v[WIDE], m[WIDE], s[WIDE], w[WIDE];
        take(d, dy, i, n, step);
        take(v, x, i, n, step);
        if (RELU)
            let_through(d, y, i, n, step);
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
        if (onto)
            add(d, onto, i, n, step);
        leave(dx, d, i, n, step);
    }
}

template <bool RELU>
static void spread(Stage *st, real *dx, const real *dy, const real *y, const real *x, const float *mean, const float *var,
                   const float *weight, const real *onto, const float *average, long rows, long width, float eps)
{
    long n = rows * width;
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    if (width % WIDE == 0)
        LAUNCH((normalize_back<true, RELU>), blocks, (unsigned)BLOCK, st, dx, dy, y, x, mean, var, weight, onto, average, n,
               width, eps);
    else
        LAUNCH((normalize_back<false, RELU>), blocks, (unsigned)BLOCK, st, dx, dy, y, x, mean, var, weight, onto, average, n,
               width, eps);
}

template <bool RELU>
static void backward(Stage *st, real *dx, real *kept, Gradient to, const real *dy, const real *y, const real *x,
                     const float *mean, const float *var, const float *weight, const real *onto, long rows, long width,
                     float eps)
{
    Columns c = columns_of(rows, width, 0);
    long front = ceil_div(2 * width, 64) * 64;
    float *average = (float *)workspace_of(st, (size_t)front * sizeof *average + columns_scratch(c, Slopes<RELU>::SUMS));
    column_sums_in(st, Slopes<RELU>{dy, y, x, kept, mean, var, eps}, Averages{to, average, width, (float)rows}, c,
                   average + front, 0);
    if (dx && RELU && !kept)
        spread<RELU>(st, dx, dy, y, x, mean, var, weight, onto, average, rows, width, eps);
    else if (dx)
        spread<false>(st, dx, kept ? kept : dy, 0, x, mean, var, weight, onto, average, rows, width, eps);
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps)
{
    backward<false>(st, dx, 0, Gradient{{dbias, dweight}, acc}, dy, 0, x, mean, var, weight, onto, rows, width, eps);
}

void batchnorm_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *dy, const real *y,
                             const real *x, const float *mean, const float *var, const float *weight, const real *onto, int acc,
                             long rows, long width, float eps)
{
    backward<true>(st, dx, dskip, Gradient{{dbias, dweight}, acc}, dy, y, x, mean, var, weight, onto, rows, width, eps);
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

struct Follow {
    float *mean, *var, *count;
    const float *sum_mean, *sum_var, *sum_count;
    long rows, n;
    float momentum;
    int each;
    unsigned first, blocks;
};

static __global__ void follow_rows(Table<Follow> t)
{
    const Follow a = t.line[t.of_block()];
    double micro = pair(a.sum_count, 0, 1), all = (double)a.rows * micro, left = a.each ? 1 : 1 - (double)a.momentum;
    for (long k = 0; a.each && (double)k < micro; k++)
        left *= 1 - (double)a.momentum;
    for (long i = (long)(blockIdx.x - a.first) * BLOCK + threadIdx.x; i < a.n; i += (long)a.blocks * BLOCK) {
        double m = pair(a.sum_mean, i, a.n), v = pair(a.sum_var, i, a.n);
        if (!a.each) {
            m /= micro;
            v = (v / micro - m * m) * (all / (all - 1)) * (double)a.momentum;
            m *= (double)a.momentum;
        }
        a.mean[i] = (float)(left * (double)a.mean[i] + m);
        a.var[i] = (float)(left * (double)a.var[i] + (v > 0 ? v : 0));
        if (i == 0)
            *a.count += a.each ? (float)micro : 1.0f;
    }
}

static_assert(Table<Follow>::MOST == 49, "as gen/cost/pairs.c and bench/gpu/kernels.model say");
static void follow_together(Stage *st, const void *rows, int n)
{
    Table<Follow> t = table_of<Follow>(rows, n);
    LAUNCH(follow_rows, t.blocks, (unsigned)BLOCK, st, t);
}

void batch_track(Stage *st, float *mean, float *var, float *count, const float *sum_mean, const float *sum_var,
                 const float *sum_count, long rows, long n, float momentum, long each)
{
    Follow row = {mean, var, count, sum_mean, sum_var, sum_count, rows, n, momentum, each != 0, 0, blocks_for(n)};
    gather_row(st, follow_together, &row, sizeof row);
}
