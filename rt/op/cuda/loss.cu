/* SPDX-License-Identifier: Apache-2.0
 *
 * MeanSquaredError, BinaryCrossEntropy and the single numbers around a loss: rt/op/loss.c and bce.c.  Values are in the GPU's
 * memory, and so is dloss: a factor that depends on them is made where it is used.
 *
 * loss_report: with several replicas st->loss is pinned memory of the host, which the GPU writes; how many losses there are
 * is known when the call is enqueued.
 */
#include "totals.h"

struct Differences {
    const real *x, *targets;
    FIELD double at(long i) const
    {
        double d = (double)one(x, i) - (double)one(targets, i);
        return d * d;
    }
};

struct MeanLoss {
    float *loss;
    const Values *vals;
    long n;
    FIELD void put(double sum) const { *loss = (float)(sum / ((double)n * vals->micro)); }
};

static __global__ void differences(real *to, const real *a, const real *b, const float *dloss, const Values *vals, long n)
{
    float factor = (float)(2.0 * (double)*dloss / ((double)n * vals->micro));
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], w[WIDE];
        take(v, a, i, n, step);
        take(w, b, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = (v[j] - w[j]) * factor;
        leave(to, v, i, n, step);
    }
}

struct BinaryLosses {
    const real *x, *targets;
    FIELD double at(long i) const { return (double)binary_loss(one(x, i), one(targets, i)); }
};

/* sigmoid(x) - t, or without targets -x, by the loss's gradient. */
static __global__ void binary_slopes(real *to, const real *x, const real *targets, const float *dloss, const Values *vals,
                                     long n)
{
    float factor = (float)((double)*dloss / ((double)n * vals->micro));
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], w[WIDE];
        take(v, x, i, n, step);
        if (targets)
            take(w, targets, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = (targets ? fsigmoid(v[j]) - w[j] : -v[j]) * factor;
        leave(to, v, i, n, step);
    }
}

static __global__ void number_sum(float *y, const float *a, const float *b) { *y = *a + *b; }
static __global__ void number_product(float *y, const float *x, float factor) { *y = *x * factor; }
static __global__ void number_one(float *y) { *y = 1.0f; }

static __global__ void number_report(const float *x, Values *vals, float *host, int acc)
{
    vals->loss = (acc ? vals->loss : 0) + (double)*x;
    if (host)
        *host = *x;
}

void mse_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n)
{
    total(st, Differences{x, targets}, MeanLoss{loss, vals, n}, n);
}

void mse_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets,
                  const Values *vals, long n)
{
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    if (dx)
        LAUNCH(differences, blocks, (unsigned)BLOCK, st, dx, x, targets, dloss, vals, n);
    if (dtargets)
        LAUNCH(differences, blocks, (unsigned)BLOCK, st, dtargets, targets, x, dloss, vals, n);
}

void bce_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n)
{
    total(st, BinaryLosses{x, targets}, MeanLoss{loss, vals, n}, n);
}

void bce_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets,
                  const Values *vals, long n)
{
    const real *none = 0;
    unsigned blocks = blocks_for(ceil_div(n, WIDE));
    if (dx)
        LAUNCH(binary_slopes, blocks, (unsigned)BLOCK, st, dx, x, targets, dloss, vals, n);
    if (dtargets)
        LAUNCH(binary_slopes, blocks, (unsigned)BLOCK, st, dtargets, x, none, dloss, vals, n);
}

void loss_add_forward(Stage *st, float *y, const float *a, const float *b) { LAUNCH(number_sum, 1u, 1u, st, y, a, b); }
void loss_scale_forward(Stage *st, float *y, const float *x, float factor) { LAUNCH(number_product, 1u, 1u, st, y, x, factor); }
void loss_seed(Stage *st, float *y) { LAUNCH(number_one, 1u, 1u, st, y); }

void loss_report(Stage *st, const float *x, Values *vals, int acc)
{
    float *host = 0;
    if (st->loss) {
        st->losses = acc ? st->losses : 0;
        host = st->loss + st->losses++;
    }
    LAUNCH(number_report, 1u, 1u, st, x, vals, host, acc);
}
