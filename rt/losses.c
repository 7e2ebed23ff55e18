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
 * Cost: one more exchange a step for 62 micro-batches of a replica.  A job of one copy has no such file.
 */
#include <stdlib.h>
#include <string.h>
#include "link.h"
#include "run.h"

enum { ROOM = (LINK_SHARE - sizeof(int64_t)) / sizeof(float) };
typedef struct { int64_t n; float x[ROOM]; } Piece;

/* The most that one replica, or device, keeps. */
static long most(const Job *job)
{
    long r = job->homes ? 1 : replicas_of(job), eval = (job->eval_batches + r - 1) / r, step = job->micro / copies_of(job);
    step = job->homes ? job->micro : step;
    return eval > step ? eval : step;
}

static int open_losses(Worker *w)
{
    const Job *job = w->run->job;
    size_t n = (size_t)most(job) + 1, r = (size_t)copies_of(job);
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

static void close_losses(Worker *w)
{
    for (int64_t i = 0; w->ended && i < w->endings; i++)
        free(w->ended[i].losses);
    free(w->losses);
    free(w->eval_loss);
    free(w->counts);
    free(w->turn);
}

static long each(const Worker *w)
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
static double sum_losses(Worker *w, const float *mine, long n)
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

const Losses losses_copies = {open_losses, close_losses, each, sum_losses};
