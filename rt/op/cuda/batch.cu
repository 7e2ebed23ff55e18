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
 * gradient of the addition, and the other one reads it.  Where dy is a sum, that pass adds it, and keeps the result too.
 * Without an addition both passes make the sign of the Relu's operand again.
 */
#include "columns.h"
#include "table.h"
#include "walk.h"

/* Sums of what x is above its first row, and of the squares of that. */
struct Shifted {
    enum { SUMS = 2, READS = 1, FIXED = 1 };
    const real *x;
    FIELD void hold(float (&fixed)[1][WIDE], long i, long width, int step) const { take(fixed[0], x, i, width, step); }
    FIELD void read(float (&r)[1][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
    }
    FIELD void at(float (&v)[2][WIDE], const float (&r)[1][WIDE], const float (&fixed)[1][WIDE], long, long, long, int) const
    {
        for (int j = 0; j < WIDE; j++) {
            v[0][j] = r[0][j] - fixed[0][j];
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

/* One rounding in front of the store, so that backward finds the same sign. */
FN float normed(float x, float mean, float s, float weight, float bias) { return __builtin_fmaf((x - mean) * s, weight, bias); }

template <int STEP, bool RELU>
static __global__ void __launch_bounds__(BLOCK, 2)
normalize(real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias, const real *onto,
          Walk t, long width, float eps)
{
    enum { AHEAD = STEP ? 2 : 4 };
    Walker p = walker_of(t);
    float m[WIDE], s[WIDE], w[WIDE], b[WIDE];
    take(m, mean, p.column, width, STEP);
    take(s, var, p.column, width, STEP);
    take(w, weight, p.column, width, STEP);
    take(b, bias, p.column, width, STEP);
    for (int j = 0; j < WIDE; j++)
        s[j] = frsqrt(s[j] + eps);
    for (long row = p.first; row < t.rows; row += AHEAD * p.step) {
        float v[AHEAD][WIDE], o[AHEAD][WIDE];
        UNROLL
        for (int a = 0; a < AHEAD; a++) {
            long at = row_within(t, row + a * p.step, row);
            take(v[a], x + at * width, p.column, width, STEP);
            if (onto)
                take(o[a], onto + at * width, p.column, width, STEP);
        }
        loads_first();
        UNROLL
        for (int a = 0; a < AHEAD; a++) {
            if (row + a * p.step >= t.rows)
                break;
            for (int j = 0; j < WIDE; j++)
                v[a][j] = normed(v[a][j], m[j], s[j], w[j], b[j]);
            if (onto)
                add(v[a], o[a], onto);
            if (RELU)
                narrow(v[a], x);
            for (int j = 0; RELU && j < WIDE; j++)
                v[a][j] = v[a][j] < 0 ? 0.0f : v[a][j];
            leave(y + (row + a * p.step) * width, v[a], p.column, width, STEP);
        }
    }
}

template <bool RELU>
static void forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                    const float *bias, const real *onto, long rows, long width, float eps)
{
    Walk t = walk_of(rows, width);
    if (width % WIDE)
        LAUNCH((normalize<1, RELU>), t.blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, onto, t, width, eps);
    else
        LAUNCH((normalize<0, RELU>), t.blocks, (unsigned)BLOCK, st, y, x, mean, var, weight, bias, onto, t, width, eps);
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, const real *onto, long rows, long width, float eps)
{
    forward<false>(st, y, x, mean, var, weight, bias, onto, rows, width, eps);
}

void batchnorm_relu_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                            const float *bias, long rows, long width, float eps)
{
    forward<true>(st, y, x, mean, var, weight, bias, 0, rows, width, eps);
}

void batchnorm_add_relu_forward(Stage *st, real *y, const real *skip, const real *x, const float *mean, const float *var,
                                const float *weight, const float *bias, long rows, long width, float eps)
{
    forward<true>(st, y, x, mean, var, weight, bias, skip, rows, width, eps);
}

/* Is there a Relu behind, and where does its sign stand: in its result, or in that of the norm, which is made again? */
enum { NO_RELU, RELU_OF_Y, RELU_AGAIN };

/* d counts where y is above 0. */
FN void let_through(float (&d)[WIDE], const float (&y)[WIDE])
{
    for (int j = 0; j < WIDE; j++)
        d[j] = y[j] > 0 ? d[j] : 0.0f;
}

/* dy, and dy u with u = (x - mean) / sqrt(var + eps); kept: the dy that the Relu with result y lets through.  SUM: dy is the
 * sum of two, rounded. */
template <int RELU, bool SUM>
struct Slopes {
    enum { SUMS = 2, READS = 2 + (RELU == RELU_OF_Y) + SUM, FIXED = RELU == RELU_AGAIN ? 4 : 2 };
    const real *dy, *more, *y, *x;
    real *kept;
    const float *mean, *var, *weight, *bias;
    float eps;
    FIELD void hold(float (&fixed)[FIXED][WIDE], long i, long width, int step) const
    {
        if (RELU == RELU_AGAIN) {
            take(fixed[FIXED - 2], weight, i, width, step);
            take(fixed[FIXED - 1], bias, i, width, step);
        }
        take(fixed[0], mean, i, width, step);
        take(fixed[1], var, i, width, step, 1.0f);
        for (int j = 0; j < WIDE; j++)
            fixed[1][j] = frsqrt(fixed[1][j] + eps);
    }
    FIELD void read(float (&r)[READS][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], dy + row * width, i, width, step);
        take(r[1], x + row * width, i, width, step);
        if (RELU == RELU_OF_Y)
            take(r[2], y + row * width, i, width, step);
        if (SUM)
            take(r[READS - 1], more + row * width, i, width, step);
    }
    FIELD void at(float (&v)[2][WIDE], const float (&r)[READS][WIDE], const float (&fixed)[FIXED][WIDE], long row, long i,
                  long width, int step) const
    {
        for (int j = 0; j < WIDE; j++)
            v[0][j] = SUM ? __fadd_rn(r[0][j], r[READS - 1][j]) : r[0][j];
        if (SUM)
            narrow(v[0], dy);
        if (RELU == RELU_OF_Y)
            let_through(v[0], r[2]);
        if (RELU == RELU_AGAIN) {
            float y[WIDE];
            for (int j = 0; j < WIDE; j++)
                y[j] = normed(r[1][j], fixed[0][j], fixed[1][j], fixed[FIXED - 2][j], fixed[FIXED - 1][j]);
            narrow(y, x);
            let_through(v[0], y);
        }
        if (RELU && kept && step == 0)
            store_out(kept + row * width + i, v[0]);
        else if (RELU && kept)
            leave(kept + row * width, v[0], i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[1][j] = v[0][j] * ((r[1][j] - fixed[0][j]) * fixed[1][j]);
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

template <int STEP, int RELU>
static __global__ void __launch_bounds__(BLOCK, 2)
normalize_back(real *dx, const real *dy, const real *y, const real *x, const float *mean, const float *var, const float *weight,
               const float *bias, const real *onto, const float *average, Walk t, long width, float eps)
{
    enum { AHEAD = STEP ? 1 : RELU ? 3 : 4 };
    Walker p = walker_of(t);
    float m[WIDE], s[WIDE], w[WIDE], b[WIDE], first[WIDE], second[WIDE];
    take(m, mean, p.column, width, STEP);
    take(s, var, p.column, width, STEP);
    take(w, weight, p.column, width, STEP);
    take(first, average, p.column, width, STEP);
    take(second, average + width, p.column, width, STEP);
    if (RELU == RELU_AGAIN)
        take(b, bias, p.column, width, STEP);
    for (int j = 0; j < WIDE; j++)
        s[j] = frsqrt(s[j] + eps);
    for (long row = p.first; row < t.rows; row += AHEAD * p.step) {
        float d[AHEAD][WIDE], v[AHEAD][WIDE], o[AHEAD][WIDE], r[AHEAD][WIDE];
        UNROLL
        for (int a = 0; a < AHEAD; a++) {
            long at = row_within(t, row + a * p.step, row);
            take(d[a], dy + at * width, p.column, width, STEP);
            take(v[a], x + at * width, p.column, width, STEP);
            if (RELU == RELU_OF_Y)
                take(r[a], y + at * width, p.column, width, STEP);
            if (onto)
                take(o[a], onto + at * width, p.column, width, STEP);
        }
        loads_first();
        UNROLL
        for (int a = 0; a < AHEAD; a++) {
            if (row + a * p.step >= t.rows)
                break;
            for (int j = 0; RELU == RELU_AGAIN && j < WIDE; j++)
                r[a][j] = normed(v[a][j], m[j], s[j], w[j], b[j]);
            if (RELU == RELU_AGAIN)
                narrow(r[a], x);
            if (RELU)
                let_through(d[a], r[a]);
            for (int j = 0; j < WIDE; j++) {
                v[a][j] = (v[a][j] - m[j]) * s[j];
                d[a][j] = d[a][j] - first[j] - v[a][j] * second[j];
                d[a][j] = s[j] * w[j] * d[a][j];
            }
            if (onto)
                add(d[a], o[a], onto);
            leave(dx + (row + a * p.step) * width, d[a], p.column, width, STEP);
        }
    }
}

/* What a gradient reads; more: dy is the sum of both; y: of a Relu behind; bias: there is one, and y is not read. */
typedef struct { const real *dy, *more, *y, *x; const float *mean, *var, *weight, *bias; const real *onto; } Reads;

template <int RELU>
static void spread(Stage *st, real *dx, const Reads &r, const float *average, long rows, long width, float eps)
{
    Walk t = walk_of(rows, width);
    if (width % WIDE)
        LAUNCH((normalize_back<1, RELU>), t.blocks, (unsigned)BLOCK, st, dx, r.dy, r.y, r.x, r.mean, r.var, r.weight, r.bias,
               r.onto, average, t, width, eps);
    else
        LAUNCH((normalize_back<0, RELU>), t.blocks, (unsigned)BLOCK, st, dx, r.dy, r.y, r.x, r.mean, r.var, r.weight, r.bias,
               r.onto, average, t, width, eps);
}

template <int RELU, bool SUM>
static void backward(Stage *st, real *dx, real *kept, Gradient to, Reads r, long rows, long width, float eps)
{
    typedef Slopes<RELU, SUM> Term;
    Columns c = columns_of(rows, width, 0);
    long front = ceil_div(2 * width, 64) * 64;
    float *average = (float *)workspace_of(st, (size_t)front * sizeof *average + columns_scratch(c, Term::SUMS));
    column_sums_in(st, Term{r.dy, r.more, r.y, r.x, kept, r.mean, r.var, r.weight, r.bias, eps},
                   Averages{to, average, width, (float)rows}, c, average + front, 0);
    r.dy = kept ? kept : r.dy;
    if (dx && RELU && !kept)
        spread<RELU>(st, dx, r, average, rows, width, eps);
    else if (dx)
        spread<NO_RELU>(st, dx, r, average, rows, width, eps);
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps)
{
    backward<NO_RELU, false>(st, dx, 0, Gradient{{dbias, dweight}, acc}, Reads{dy, 0, 0, x, mean, var, weight, 0, onto}, rows,
                             width, eps);
}

void batchnorm_relu_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *mean, const float *var, const float *weight, const float *bias, const real *onto,
                             int acc, long rows, long width, float eps)
{
    backward<RELU_AGAIN, false>(st, dx, 0, Gradient{{dbias, dweight}, acc}, Reads{dy, 0, 0, x, mean, var, weight, bias, onto},
                                rows, width, eps);
}

void batchnorm_add_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *dy, const real *y,
                                 const real *x, const float *mean, const float *var, const float *weight, const real *onto,
                                 int acc, long rows, long width, float eps)
{
    backward<RELU_OF_Y, false>(st, dx, dskip, Gradient{{dbias, dweight}, acc}, Reads{dy, 0, y, x, mean, var, weight, 0, onto},
                               rows, width, eps);
}

/* What the Relu lets through of a + b waits in dskip, or in dx: a thread reads and writes the same elements. */
void add_batchnorm_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *a, const real *b,
                                 const real *y, const real *x, const float *mean, const float *var, const float *weight,
                                 const real *onto, int acc, long rows, long width, float eps)
{
    backward<RELU_OF_Y, true>(st, dx, dskip ? dskip : dx, Gradient{{dbias, dweight}, acc},
                              Reads{a, b, y, x, mean, var, weight, 0, onto}, rows, width, eps);
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
