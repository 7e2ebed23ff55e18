/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.c: runs of a job with overlapping steps: prologue, periods, epilogue.
 *
 * The pipeline must be drained at a checkpoint, at an evaluation and at the end.  Between two such points a stage calls its
 * prologue, a period for each step but the last few, and its epilogue, all in the phase of their step.  If there are fewer
 * steps than the epilogue holds, they run one by one.  The way of putting them together changes no bit: a step reads the
 * versions of the weights that its number names.
 *
 * Synchronous stages meet after every step.  Here that would make the first stage wait for the last each time.  Losses are
 * kept as steps end, and all stages meet once in job->report steps, at the end of the same period, while the pipeline is full.
 * If a signal asked for it, the epilogue then follows.  A stop takes at most that many steps and those under way.
 */
#include <stdlib.h>
#include <string.h>
#include "run.h"

enum { PROLOGUE, PERIOD, EPILOGUE, ALONE, EVAL, PIECES };

static void call(Worker *w, int piece, int64_t step)
{
    w->info->piece[step % w->info->phases * PIECES + piece](&w->stage);
}

static int open(Worker *w)
{
    w->endings = w->run->job->report + w->run->job->overlap + 1;
    w->ended = calloc((size_t)w->endings, sizeof *w->ended);
    return w->ended ? DONE : complain(STATUS_RUN, "no memory for %s", w->info->name);
}

static void ended(Worker *w, const Values *v)
{
    Ended *e = &w->ended[v->step % w->endings];
    const Stage *st = &w->stage;
    /* forwards of the next step may have reported theirs already */
    *e = (Ended){v->loss, v->norm, seconds(), v->lr, e->losses, e->losses && st->losses ? job_parts.losses->each(w) : 0};
    if (e->n)
        memcpy(e->losses, st->loss + (v->step & 1) * st->room, (size_t)e->n * sizeof *e->losses);
}

/* All stages tell what these steps gave. */
static int report(Worker *w, int64_t from, int64_t to)
{
    int want = 0;
    for (int64_t step = from; step < to; step++) {
        const Ended *e = &w->ended[step % w->endings];
        Report r = worker_share(w, e->loss, e->norm);
        if (w->stage.loss)
            r.loss = job_parts.losses->sum(w, e->losses, e->n);
        want |= r.want | worker_judge(w, step + 1, &r);
        if (w->stage.index == 0)
            metrics_step(w->run, step, r.loss, r.norm, (double)e->lr, e->at - w->shown);
        w->shown = e->at;
    }
    return ckpt_turn(w) == DONE ? want : want | WANT_SAVE;      /* one that failed is told when no step is under way */
}

static int one_by_one(Worker *w, int64_t from, int64_t *to)
{
    int want = 0;
    int64_t step = from;
    for (; step < *to && !want; step++) {
        call(w, ALONE, step);
        want = report(w, step, step + 1);
    }
    *to = step;
    return want;
}

/* The next multiple of `every` after `done`, but at most `to`. */
static int64_t nearer(int64_t done, long every, int64_t to)
{
    int64_t next = every > 0 ? (done / every + 1) * every : to;
    return next < to ? next : to;
}

/* Until the pipeline has to be empty. */
static int run_pieces(Worker *w, int64_t from, int64_t *to)
{
    const Job *job = w->run->job;
    int64_t step = from, told = from;
    int want = 0;
    w->eval = false;
    w->next = from;
    w->shown = seconds();
    if (*to - from < job->overlap)
        return one_by_one(w, from, to);
    call(w, PROLOGUE, from);
    for (; step < *to - job->overlap; step++) {
        call(w, PERIOD, step);
        if (step + 1 - told < job->report)
            continue;
        want = report(w, told, step + 1);
        told = step + 1;
        if (want)
            *to = told + job->overlap;
    }
    call(w, EPILOGUE, step);
    return want | report(w, told, *to);
}

static int run(Worker *w, int64_t from, int64_t *to)
{
    const Job *job = w->run->job;
    *to = nearer(from, job->eval.format ? job->eval_every : 0, w->run->opt.steps);
    *to = nearer(from, w->run->opt.checkpoint ? job->ckpt_every : 0, *to);
    int want = run_pieces(w, from, to);
    worker_rest(w);
    return want;
}

typedef struct { Worker *w; const StateInfo *s; long done; } Spread;

static bool spread_piece(void *to, const void *piece, size_t bytes)
{
    Spread *x = to;
    long n = (long)(bytes / sizeof(float));
    for (int v = 1; v < state_versions(x->s); v++)
        init_place(x->w, x->s, v, piece, x->done, n);
    x->done += n;
    return true;
}

static void spread(Worker *w)
{
    for (int i = 0; i < w->info->states; i++) {
        Spread x = {w, &w->info->state[i], 0};
        const float *first = state_data(w, x.s, 0);
        if (first && state_versions(x.s) > 1)
            arena_read(w, first, (size_t)x.s->n * sizeof *first, spread_piece, &x);
    }
}

static void eval(Worker *w)
{
    call(w, EVAL, w->done);
}

const Overlap overlap_pieces = {open, run, ended, spread, eval};
