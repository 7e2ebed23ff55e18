/* SPDX-License-Identifier: Apache-2.0
 *
 * losses.c: the loss of a step whose micro-batches were computed by several replicas, or by several pipelines of one.
 *
 * Problem: the loss of a step is a sum over its micro-batches in ascending order.  Sums of each replica, added, would be
 * another sum, with other bits, and a log would tell how wide the job was.  Method: each replica keeps the losses of its
 * micro-batches apart; after the step they travel in pieces that link_share() takes, and every stage adds all of them in
 * ascending order.  A device that is in several copies has the losses of those in turn.  An evaluation is dealt out to the
 * replicas in runs of micro-batches and added up the same way.
 *
 * Cost: one more exchange a step for 62 micro-batches of a replica.  With one replica nothing here is called.
 */
#include <stdlib.h>
#include <string.h>
#include "link.h"
#include "run.h"

enum { ROOM = (LINK_SHARE - sizeof(int64_t)) / sizeof(float) };
typedef struct { int64_t n; float x[ROOM]; } Piece;

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
static int copies_of(const Job *job)
{
    return replicas_of(job) * (job->ways > 1 ? job->ways : 1);
}

/* Where a replica begins, or ends, with n things dealt out to all.  Where stages are in different numbers of copies, the first
 * one has all of them. */
long losses_begin(const Worker *w, int end, long n)
{
    const Job *job = w->run->job;
    return job->homes ? end * n : n * (replica_of(w) + end) / replicas_of(job);
}

/* The most that one replica, or device, keeps. */
static long most(const Job *job)
{
    long r = job->homes ? 1 : replicas_of(job), eval = (job->eval_batches + r - 1) / r, step = job->micro / copies_of(job);
    step = job->homes ? job->micro : step;
    return eval > step ? eval : step;
}

int losses_open(Worker *w)
{
    const Job *job = w->run->job;
    size_t n = (size_t)most(job) + 1, r = (size_t)copies_of(job);
    if (r == 1)
        return DONE;
    w->stage.room = job->overlap ? (long)n : 0;
    w->stage.loss = arena_shared(2 * n * sizeof(float));
    w->eval_loss = calloc(n, sizeof(float));
    w->losses = calloc(n * r, sizeof(float));
    w->counts = calloc(r, sizeof *w->counts);
    w->turn = calloc((size_t)firsts_of(job), sizeof *w->turn);
    bool good = true;
    for (int64_t i = 0; w->ended && i < w->endings; i++)
        good &= (w->ended[i].losses = calloc(n, sizeof(float))) != NULL;
    if (!good || !w->stage.loss || !w->eval_loss || !w->losses || !w->counts || !w->turn)
        return complain(STATUS_RUN, "no memory for the losses of %ld micro-batches", job->micro);
    return DONE;
}

void losses_close(Worker *w)
{
    for (int64_t i = 0; w->ended && i < w->endings; i++)
        free(w->ended[i].losses);
    free(w->ended);
    free(w->losses);
    free(w->eval_loss);
    free(w->counts);
    free(w->turn);
}

long losses_each(const Worker *w)
{
    return w->run->job->micro / copies_of(w->run->job) * (w->run->job->homes ? w->info->turns : 1);
}

static void take(Worker *w, const Piece *all, long room)
{
    const Job *job = w->run->job;
    int ways = copies_of(job) / replicas_of(job);
    for (int i = 0; i < firsts_of(job); i++) {          /* the others of a stage have the same */
        const StageInfo *s = &job->stage[i];
        int copy = job->homes ? s->copy : i / homes_of(job) * ways + (w->eval ? 0 : s->pipeline);
        int turns = job->homes && !w->eval ? s->turns : 1;
        for (int64_t k = 0; k < all[i].n; k++, w->turn[i]++) {
            int in = copy + (int)(w->turn[i] % turns);
            w->losses[in * room + w->counts[in]++] = all[i].x[k];
        }
    }
}

/* All stages call it, each with what it has; of a copy of the model one has any. */
double losses_sum(Worker *w, const float *mine, long n)
{
    int r = copies_of(w->run->job);
    long room = most(w->run->job);
    double sum = 0;
    memset(w->counts, 0, (size_t)r * sizeof *w->counts);
    memset(w->turn, 0, (size_t)firsts_of(w->run->job) * sizeof *w->turn);
    for (long from = 0; from < room; from += ROOM) {
        Piece piece = {0};
        piece.n = n - from < 0 ? 0 : n - from < ROOM ? n - from : ROOM;
        memcpy(piece.x, mine + (piece.n ? from : 0), (size_t)piece.n * sizeof(float));
        link_share(&w->stage, &piece, w->board, sizeof piece);
        take(w, w->board, room);
    }
    for (int q = 0; q < r; q++)
        for (long i = 0; i < w->counts[q]; i++)
            sum += (double)w->losses[q * room + i];
    return sum;
}
