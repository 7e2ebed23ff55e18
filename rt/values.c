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

/* The rate behind the warmup; t: how far it has come, from 0 to 1. */
static double rate_at(const Job *job, double lr, int64_t step, double t)
{
    switch (job->lr_kind) {
    case JOB_COSINE: return job->final * lr + 0.5 * (1 + number_cos_turn(0.5 * t)) * (lr - job->final * lr);
    case JOB_LINEAR: return lr + t * (job->final * lr - lr);
    case JOB_STEP: return lr * number_power(job->factor, job->every > 0 ? step / job->every : 0);
    default: return lr;
    }
}

static double rate(const Job *job, double lr, int64_t step)
{
    int64_t past = step - job->warmup, whole = job->steps - job->warmup;
    if (past < 0)
        return lr * (double)(step + 1) / (double)job->warmup;
    return rate_at(job, lr, step, past >= whole ? 1 : (double)past / (double)whole);
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
