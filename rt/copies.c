/* SPDX-License-Identifier: Apache-2.0
 *
 * copies.c: which copy of the model a stage is in, and which of its devices.
 */
#include "run.h"

int replicas_of(const Job *job)
{
    return job->replicas > 1 ? job->replicas : 1;
}

int replica_of(const Worker *w)
{
    return copy_of(w) % replicas_of(w->run->job);
}

int team_of(const Job *job)
{
    return job->team > 1 ? job->team : 1;
}

int homes_of(const Job *job)
{
    return job->homes ? job->homes : job->stages / (replicas_of(job) * team_of(job));
}

int home_at(const Job *job, int stage)
{
    return job->homes ? job->stage[stage].like : stage % homes_of(job);
}

int firsts_of(const Job *job)
{
    return job->stages / team_of(job);
}

int copy_of(const Worker *w)
{
    const Job *job = w->run->job;
    return job->homes ? w->stage.index / firsts_of(job) * replicas_of(job) + w->info->copy : w->stage.index / homes_of(job);
}

bool evaluates(const Worker *w)
{
    return !w->run->job->homes || replica_of(w) == 0;
}

/* Copies of the model, each with a share of a step's micro-batches.  An evaluation runs through the first one of a replica. */
int copies_of(const Job *job)
{
    return replicas_of(job) * (job->ways > 1 ? job->ways : 1);
}

/* Where a replica begins, or ends, with n things dealt out to all.  Where stages are in different numbers of copies, the first
 * one has all of them. */
long eval_begin(const Worker *w, int end, long n)
{
    const Job *job = w->run->job;
    return job->homes ? end * n : n * (replica_of(w) + end) / replicas_of(job);
}
