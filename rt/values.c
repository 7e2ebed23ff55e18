/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c: the numbers of one step, a function of the job and the step alone.
 *
 * Rates: warm-up is linear, lr (step+1)/warmup, as PyTorch's LinearLR and nanoGPT have it; from there, with
 * t = (step - warmup) / (steps - warmup), linear and cosine go from lr to final*lr, and stay there; step multiplies by
 * `factor` every `every` steps.  All of it is double and is rounded to float once, at the end.  A parameter group has the same
 * course of the rate, from its own lr.
 */
#include <string.h>
#include "number.h"
#include "values.h"

static double rate_constant(const Job *job, double lr, int64_t step, double t)
{
    (void)job, (void)step, (void)t;
    return lr;
}

static double rate_cosine(const Job *job, double lr, int64_t step, double t)
{
    (void)step;
    double low = job->final * lr;
    return low + 0.5 * (1 + number_cos_turn(0.5 * t)) * (lr - low);
}

static double rate_linear(const Job *job, double lr, int64_t step, double t)
{
    (void)step;
    return lr + t * (job->final * lr - lr);
}

static double rate_step(const Job *job, double lr, int64_t step, double t)
{
    (void)t;
    return lr * number_power(job->factor, job->every > 0 ? step / job->every : 0);
}

static double rate(const Job *job, double lr, int64_t step)
{
    static double (*const kind[])(const Job *, double, int64_t, double) = {
        [JOB_CONSTANT] = rate_constant, [JOB_COSINE] = rate_cosine, [JOB_LINEAR] = rate_linear, [JOB_STEP] = rate_step
    };
    if (step < job->warmup)
        return lr * (double)(step + 1) / (double)job->warmup;
    int64_t past = step - job->warmup, whole = job->steps - job->warmup;
    double t = past >= whole ? 1 : (double)past / (double)whole;
    return kind[job->lr_kind](job, lr, step, t);
}

static void fill(Values *v, const Job *job, const GroupInfo *k, int64_t step, bool eval)
{
    memset(v, 0, sizeof *v);
    v->step = step;
    v->seed = job->seed;
    v->norm = -1;
    v->lr = (float)rate(job, k->lr, step);
    v->bias1 = (float)(1 - number_power(k->beta1, step + 1));
    v->bias2 = (float)(1 - number_power(k->beta2, step + 1));
    v->weight_decay = (float)k->weight_decay;
    v->micro = (int32_t)(eval ? job->eval_batches : job->micro);
    v->batch = (int32_t)job->batch;
    v->eval = eval;
}

void values_fill(Values *v, const Job *job, int64_t step, bool eval)
{
    const GroupInfo all = {job->lr, job->beta1, job->beta2, job->weight_decay};
    fill(v, job, &all, step, eval);
    for (int i = 0; i < job->param_groups; i++)
        fill(v + 1 + i, job, &job->param_group[i], step, eval);
}

size_t values_bytes(const Job *job)
{
    return (size_t)(1 + job->param_groups) * sizeof(Values);
}
