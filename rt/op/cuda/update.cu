/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of one parameter, and gradient norms: formulas as in rt/op/update.c, sgd.c, adam.c and rmsprop.c.  A thread takes
 * 4 elements: 16 bytes of each f32 state, 8 of the bf16 copy, which is written in the same pass.
 */
#include "table.h"
#include "totals.h"

enum { FOUR = 4 };

struct Squares {
    const float *g;
    FIELD double at(long i) const { return (double)g[i] * (double)g[i]; }
};

/* The sum of a parameter's squares, its pieces as in totals.h. */
struct Norm {
    const float *g;
    double *to;
    long n, each;
    unsigned first, blocks;
};

static __global__ void norm_pieces(Table<Norm> t, double *piece)
{
    int at = t.of_block();
    double sum = 0;
    long from = (long)(blockIdx.x - t.line[at].first) * t.line[at].each, until = from + t.line[at].each;
    until = until < t.line[at].n ? until : t.line[at].n;
    for (long i = from + threadIdx.x; i < until; i += BLOCK)
        sum += Squares{t.line[at].g}.at(i);
    sum = team_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        *(t.line[at].blocks == 1 ? t.line[at].to : piece + blockIdx.x) = sum;
}

/* A block a parameter. */
static __global__ void norm_totals(Table<Norm> t, const double *piece)
{
    double sum = 0;
    if (t.line[blockIdx.x].blocks == 1)
        return;
    for (long i = threadIdx.x; i < t.line[blockIdx.x].blocks; i += BLOCK)
        sum += piece[t.line[blockIdx.x].first + i];
    sum = team_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        *t.line[blockIdx.x].to = sum;
}

static void norms_together(Stage *st, const void *rows, int n)
{
    Table<Norm> t = table_of<Norm>(rows, n);
    double *piece = t.blocks > (unsigned)n ? (double *)workspace_of(st, t.blocks * sizeof *piece) : 0;
    LAUNCH(norm_pieces, t.blocks, (unsigned)BLOCK, st, t, piece);
    if (piece)
        LAUNCH(norm_totals, (unsigned)n, (unsigned)BLOCK, st, t, (const double *)piece);
}

struct Total {
    double *to;
    FIELD void put(double sum) const { *to = sum; }
};

struct Clip {
    float *clip;
    Values *vals;
    float limit;
    FIELD void put(double sum) const
    {
        double root = sqrt(sum), factor = (double)limit / (root + 1e-6);
        *clip = factor < 1 ? (float)factor : 1.0f;
        if (vals)
            vals->norm = root;
    }
};

void tie_add(Stage *st, float *g, const float *other, long n)
{
    group_fold(st, g, other, n);
}

void norm_partial(Stage *st, double *norm, const float *g, long n, long index)
{
    long each = piece_of(n);
    Norm row = {g, norm + index, n, each, 0, (unsigned)ceil_div(n, each)};
    gather_row(st, norms_together, &row, sizeof row);
}

void norm_blocks(Stage *st, double *blocks, const float *g, long n, long each, long first)
{
    double *to = blocks + first;
    LAUNCH((total_pieces<Squares, Total>), (unsigned)ceil_div(n, each), (unsigned)BLOCK, st, Squares{g}, Total{to}, to, n,
           each);
}

void norm_sum(Stage *st, double *norm, const double *blocks, long n, long first, long index)
{
    LAUNCH((total_pieces<Numbers, Total>), 1u, (unsigned)BLOCK, st, Numbers{blocks + first}, Total{norm + index}, (double *)0,
           n, n);
}

void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit)
{
    total(st, Numbers{norm}, Clip{clip, vals, limit}, count);
}

static __global__ void cast(real *y, const float *x, long n)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        take(v, x, i, n, step);
        leave(y, v, i, n, step);
    }
}

struct Sgd {
    float *p;
    real *c;
    const float *g;
    float *m;
    const float *clip;
    const Values *vals;
    long n;
    float momentum;
    int decay;
    unsigned first, blocks;
};

static __global__ void sgd_rows(Table<Sgd> t)
{
    const Sgd a = t.line[t.of_block()];
    float lr = a.vals->lr, weight_decay = a.decay ? a.vals->weight_decay : 0, factor = a.clip ? *a.clip : 1.0f;
    for (long i = ((long)(blockIdx.x - a.first) * BLOCK + threadIdx.x) * FOUR; i < a.n; i += (long)a.blocks * BLOCK * FOUR) {
        float x[FOUR], d[FOUR], moment[FOUR];
        int step = i + FOUR <= a.n ? 0 : 1;
        take(x, a.p, i, a.n, step);
        take(d, a.g, i, a.n, step);
        for (int j = 0; j < FOUR; j++)
            d[j] = d[j] * factor + weight_decay * x[j];
        if (a.m) {
            take(moment, a.m, i, a.n, step);
            for (int j = 0; j < FOUR; j++)
                d[j] = a.momentum * moment[j] + d[j];
            leave(a.m, d, i, a.n, step);
        }
        for (int j = 0; j < FOUR; j++)
            x[j] -= lr * d[j];
        leave(a.p, x, i, a.n, step);
        if (a.c)
            leave(a.c, x, i, a.n, step);
    }
}

static_assert(Table<Sgd>::MOST == 55, "as gen/cost/pairs.c and bench/gpu/kernels.model say");
static void sgd_together(Stage *st, const void *rows, int n)
{
    Table<Sgd> t = table_of<Sgd>(rows, n);
    LAUNCH(sgd_rows, t.blocks, (unsigned)BLOCK, st, t);
}

static __global__ void nesterov(float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                                float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], d[FOUR], u[FOUR];
        take(x, p, i, n, step);
        take(d, g, i, n, step);
        take(u, m, i, n, step);
        for (int j = 0; j < FOUR; j++) {
            d[j] = d[j] * factor + weight_decay * x[j];
            u[j] = momentum * u[j] + d[j];
            x[j] -= lr * (d[j] + momentum * u[j]);
        }
        leave(m, u, i, n, step);
        leave(p, x, i, n, step);
        if (c)
            leave(c, x, i, n, step);
    }
}

static __global__ void rmsprop(float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals,
                               long n, float alpha, float eps, float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], d[FOUR], u[FOUR] = {}, v1[FOUR];
        take(x, p, i, n, step);
        take(d, g, i, n, step);
        take(v1, v, i, n, step);
        if (m)
            take(u, m, i, n, step);
        for (int j = 0; j < FOUR; j++) {
            d[j] = d[j] * factor + weight_decay * x[j];
            v1[j] = alpha * v1[j] + (1.0f - alpha) * (d[j] * d[j]);
            u[j] = momentum * u[j] + d[j] / (fsqrt(v1[j]) + eps);
            x[j] -= lr * u[j];
        }
        leave(v, v1, i, n, step);
        if (m)
            leave(m, u, i, n, step);
        leave(p, x, i, n, step);
        if (c)
            leave(c, x, i, n, step);
    }
}

static __global__ void rmsprop_about(float *p, real *c, const float *g, float *m, float *v, float *centre, const float *clip,
                                     const Values *vals, long n, float alpha, float eps, float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], d[FOUR], u[FOUR] = {}, v1[FOUR], a[FOUR];
        take(x, p, i, n, step);
        take(d, g, i, n, step);
        take(v1, v, i, n, step);
        take(a, centre, i, n, step);
        if (m)
            take(u, m, i, n, step);
        for (int j = 0; j < FOUR; j++) {
            d[j] = d[j] * factor + weight_decay * x[j];
            v1[j] = alpha * v1[j] + (1.0f - alpha) * (d[j] * d[j]);
            a[j] += (1.0f - alpha) * (d[j] - a[j]);
            float spread = v1[j] - a[j] * a[j];
            u[j] = momentum * u[j] + d[j] / (fsqrt(spread > 0 ? spread : 0.0f) + eps);
            x[j] -= lr * u[j];
        }
        leave(v, v1, i, n, step);
        leave(centre, a, i, n, step);
        if (m)
            leave(m, u, i, n, step);
        leave(p, x, i, n, step);
        if (c)
            leave(c, x, i, n, step);
    }
}

struct Adam {
    float *p;
    real *c;
    const float *g;
    float *m, *v;
    const float *clip;
    const Values *vals;
    long n;
    float beta1, beta2, eps;
    int decay;
    unsigned first, blocks;
};

/* NESTEROV: the next step's share of m, and the gradient's own share. */
template <int NESTEROV> static __global__ void adam_rows(Table<Adam> t)
{
    const Adam a = t.line[t.of_block()];
    float shrink = a.decay ? 1.0f - a.vals->lr * a.vals->weight_decay : 1.0f, factor = a.clip ? *a.clip : 1.0f;
    float beta1 = a.beta1, beta2 = a.beta2, lr = a.vals->lr, bias1 = a.vals->bias1, root = fsqrt(a.vals->bias2);
    float rate = lr / bias1, next = lr * beta1 / (1.0f - beta1 * (1.0f - bias1)), now = lr * (1.0f - beta1) / bias1;
    for (long i = ((long)(blockIdx.x - a.first) * BLOCK + threadIdx.x) * FOUR; i < a.n; i += (long)a.blocks * BLOCK * FOUR) {
        float x[FOUR], d[FOUR], m1[FOUR], v1[FOUR];
        int step = i + FOUR <= a.n ? 0 : 1;
        take(x, a.p, i, a.n, step);
        take(d, a.g, i, a.n, step);
        take(m1, a.m, i, a.n, step);
        take(v1, a.v, i, a.n, step);
        for (int j = 0; j < FOUR; j++) {
            float gradient = d[j] * factor;
            m1[j] = beta1 * m1[j] + (1.0f - beta1) * gradient;
            v1[j] = beta2 * v1[j] + (1.0f - beta2) * (gradient * gradient);
            float by = fsqrt(v1[j]) / root + a.eps;
            x[j] = NESTEROV ? x[j] * shrink - (next * m1[j] + now * gradient) / by : x[j] * shrink - rate * (m1[j] / by);
        }
        leave(a.m, m1, i, a.n, step);
        leave(a.v, v1, i, a.n, step);
        leave(a.p, x, i, a.n, step);
        if (a.c)
            leave(a.c, x, i, a.n, step);
    }
}

static_assert(Table<Adam>::MOST == 45 && Table<Norm>::MOST == 99, "the same");
template <int NESTEROV> static void adam_together(Stage *st, const void *rows, int n)
{
    Table<Adam> t = table_of<Adam>(rows, n);
    LAUNCH((adam_rows<NESTEROV>), t.blocks, (unsigned)BLOCK, st, t);
}

static __global__ void spike(float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                             float momentum, long decay, float a, float b)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], d[FOUR], u[FOUR] = {0};
        take(x, p, i, n, step);
        take(d, g, i, n, step);
        if (m)
            take(u, m, i, n, step);
        for (int j = 0; j < FOUR; j++) {
            d[j] = d[j] * factor + weight_decay * x[j];
            u[j] = (m ? momentum * u[j] : 0.0f) + d[j];
            x[j] -= lr * (a * u[j] + b * d[j]);
        }
        if (m)
            leave(m, u, i, n, step);
        leave(p, x, i, n, step);
        if (c)
            leave(c, x, i, n, step);
    }
}

static __global__ void drift(float *p, real *c, const float *g, float *m, float *old, const float *clip, const Values *vals,
                             long n, float momentum, long decay, long late, long anneal)
{
    float lr = drift_rate(vals->lr, vals->step, late, anneal), stays = late ? fexp(-2.0f / (float)late) : 0.0f;
    float weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], d[FOUR], u[FOUR] = {0}, mean[FOUR];
        take(x, p, i, n, step);
        take(d, g, i, n, step);
        take(mean, old, i, n, step);
        if (m)
            take(u, m, i, n, step);
        for (int j = 0; j < FOUR; j++) {
            float was = x[j];
            u[j] = (m ? momentum * u[j] : 0.0f) + (d[j] * factor + weight_decay * was);
            x[j] = was - lr * u[j];
            mean[j] = stays * mean[j] + (1.0f - stays) * (x[j] - was);
        }
        if (m)
            leave(m, u, i, n, step);
        leave(old, mean, i, n, step);
        leave(p, x, i, n, step);
        if (c)
            leave(c, x, i, n, step);
    }
}

static __global__ void line_back(float *to, const float *newer, const float *old, float times, long n)
{
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], mean[FOUR];
        take(x, newer, i, n, step);
        take(mean, old, i, n, step);
        for (int j = 0; j < FOUR; j++)
            x[j] = x[j] - times * mean[j];
        leave(to, x, i, n, step);
    }
}

static __global__ void line(float *to, const float *newer, const float *older, float times, long n)
{
    GROUPS(i, step, FOUR, n) {
        float x[FOUR], before[FOUR];
        take(x, newer, i, n, step);
        take(before, older, i, n, step);
        for (int j = 0; j < FOUR; j++)
            x[j] = x[j] + times * (x[j] - before[j]);
        leave(to, x, i, n, step);
    }
}

void cast_forward(Stage *st, real *y, const float *x, long n)
{
    LAUNCH(cast, blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, x, n);
}

void sgd_update(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                float momentum, long decay)
{
    Sgd row = {p, c, g, m, clip, vals, n, momentum, decay != 0, 0, blocks_for(ceil_div(n, FOUR))};
    gather_row(st, sgd_together, &row, sizeof row);
}

void sgd_nesterov(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                  float momentum, long decay)
{
    LAUNCH(nesterov, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, p, c, g, m, clip, vals, n, momentum, decay);
}

void rmsprop_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals,
                    long n, float alpha, float eps, float momentum, long decay)
{
    LAUNCH(rmsprop, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, p, c, g, m, v, clip, vals, n, alpha, eps, momentum,
           decay);
}

void rmsprop_centred(Stage *st, float *p, real *c, const float *g, float *m, float *v, float *centre, const float *clip,
                     const Values *vals, long n, float alpha, float eps, float momentum, long decay)
{
    LAUNCH(rmsprop_about, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, p, c, g, m, v, centre, clip, vals, n, alpha, eps,
           momentum, decay);
}

void adamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip,
                  const Values *vals, long n, float beta1, float beta2, float eps, long decay)
{
    Adam row = {p, c, g, m, v, clip, vals, n, beta1, beta2, eps, decay != 0, 0, blocks_for(ceil_div(n, FOUR))};
    gather_row(st, adam_together<0>, &row, sizeof row);
}

void nadamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip,
                   const Values *vals, long n, float beta1, float beta2, float eps, long decay)
{
    Adam row = {p, c, g, m, v, clip, vals, n, beta1, beta2, eps, decay != 0, 0, blocks_for(ceil_div(n, FOUR))};
    gather_row(st, adam_together<1>, &row, sizeof row);
}

void sgd_spike(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
               float momentum, long decay, long late)
{
    float a = 1.0f, b = 0.0f;
    for (; late > 0; late--) {
        a *= momentum;
        b = b * momentum + 1.0f;
    }
    LAUNCH(spike, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, p, c, g, m, clip, vals, n, momentum, decay, a, b);
}

void sgd_drift(Stage *st, float *p, real *c, const float *g, float *m, float *old, const float *clip, const Values *vals,
               long n, float momentum, long decay, long late, long anneal)
{
    LAUNCH(drift, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, p, c, g, m, old, clip, vals, n, momentum, decay, late,
           anneal);
}

void predict_old(Stage *st, float *to, const float *newer, const float *old, long behind, long n)
{
    LAUNCH(line_back, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, to, newer, old, (float)behind, n);
}

void predict(Stage *st, float *to, const float *newer, const float *older, long ahead, long n)
{
    LAUNCH(line, blocks_for(ceil_div(n, FOUR)), (unsigned)BLOCK, st, to, newer, older, (float)ahead, n);
}
