/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c: the numbers of one step, a function of the job and the step alone.
 *
 * Rates: warm-up is linear, lr (step+1)/warmup, as PyTorch's LinearLR and nanoGPT have it; from there, with
 * t = (step - warmup) / (steps - warmup), linear and cosine go from lr to final*lr, and stay there; step multiplies by
 * `factor` every `every` steps.  All of it is double and is rounded to float once, at the end.
 */
#include <string.h>
#include "number.h"
#include "run.h"

static double rate_constant(const Job *job, int64_t step, double t)
{
    (void)step, (void)t;
    return job->lr;
}

static double rate_cosine(const Job *job, int64_t step, double t)
{
    (void)step;
    double low = job->final * job->lr;
    return low + 0.5 * (1 + number_cos_turn(0.5 * t)) * (job->lr - low);
}

static double rate_linear(const Job *job, int64_t step, double t)
{
    (void)step;
    return job->lr + t * (job->final * job->lr - job->lr);
}

static double rate_step(const Job *job, int64_t step, double t)
{
    (void)t;
    return job->lr * number_power(job->factor, job->every > 0 ? step / job->every : 0);
}

static double rate(const Job *job, int64_t step)
{
    static double (*const kind[])(const Job *, int64_t, double) = {
        [JOB_CONSTANT] = rate_constant, [JOB_COSINE] = rate_cosine, [JOB_LINEAR] = rate_linear, [JOB_STEP] = rate_step
    };
    if (step < job->warmup)
        return job->lr * (double)(step + 1) / (double)job->warmup;
    int64_t past = step - job->warmup, whole = job->steps - job->warmup;
    double t = past >= whole ? 1 : (double)past / (double)whole;
    return kind[job->lr_kind](job, step, t);
}

void values_fill(Values *v, const Job *job, int64_t step, bool eval)
{
    memset(v, 0, sizeof *v);
    v->step = step;
    v->seed = job->seed;
    v->norm = -1;
    v->lr = (float)rate(job, step);
    v->bias1 = (float)(1 - number_power(job->beta1, step + 1));
    v->bias2 = (float)(1 - number_power(job->beta2, step + 1));
    v->weight_decay = (float)job->weight_decay;
    v->micro = (int32_t)(eval ? job->eval_batches : job->micro);
    v->batch = (int32_t)job->batch;
    v->eval = eval;
}
