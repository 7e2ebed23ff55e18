/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: the rows of schedules.def that schedule: auto tries beside gpipe and 1f1b.
 *
 * Problem: a search for each of some twenty rows, for each number of stages, costs far more than the search for gpipe and 1f1b,
 * and most rows never win.
 *
 * Method: the best plan of gpipe and 1f1b says how much there is to compute.  Shared out evenly, and with the bubble of its
 * closed form, a row promises a step.  It is tried if that, and the bound of its plans, are well below the best step: first the
 * rows of one chunk a device, which cost a tenth of the others, and among alike ones by promise.  Each has a search of its own,
 * with the best step as its cutoff, in which layouts only have to fit and nothing is proven.  The winner is searched again in
 * full.
 *
 * Tried are the synchronous rows that are legal, with the micro-batch and the replicas of the best plan, and all numbers of
 * stages.  A row has its own number of chunks, unless the model says one.  `optimal` has to be asked for.
 *
 * The promise is no bound: closed forms have messages free, and the plan may make tensors again that a row can keep.
 *
 * Cost: ROWS_WORK, of which each row has a part.  Not handled: rows where neither gpipe nor 1f1b fits; free device
 * orders.
 */
#include "rows.h"
#include "budgets.h"
#include "shorter.h"

#include <stdlib.h>

typedef struct {
    const Schedule *schedule;
    const Model *m;
    const Cost *c;
    int stages;
    Ns promise;
} Offer;
typedef VEC(Offer) Offers;

/* What a device computes in a step, if all compute alike. */
static Ns share_of(const Plan *p, int stages)
{
    Ns sum = 0;
    for (int d = 0; d < p->devices; d++)
        sum += p->dev.at[d].busy;
    return sum / (stages * p->m->plan.replicas);
}

/* In units of a chunk's forward, input or weight gradient.  Without a closed form: the bubble of its kind at best. */
static int64_t form_of(const Schedule *k, int p, int m, int v)
{
    int64_t form = schedule_form(k, p, m, v);
    return form ? form : 3 * (int64_t)v * m + (k->split ? 1 : k->folds ? 2 : 3) * (p - 1);
}

static bool is_row(const Schedule *k, const Model *m, int stages)
{
    int cuts = m->plan.cuts.n, chunks = m->plan.chunks * stages;
    bool like = k->depths && !k->split;         /* 1f1b* promises what 1f1b does */
    return !k->async && !k->tried && !like && !k->given && !k->custom && !k->improves && (cuts == 0 || cuts == chunks - 1);
}

static void add_rows(const Search *s, const Plan *p, const Cost *c, int stages, Offers *all)
{
    for (const Schedule *k = schedules; k->name; k++) {
        Offer x = {k, with_schedule(p->m, k), c, stages, 0};
        if (!is_row(k, x.m, stages) || x.m->plan.chunks * stages > p->g->nf || order_refuses(p->g, x.m, k, stages))
            continue;
        if (!shorter_is_alike(p->g, c, x.m, s->ask.more, stages, k))
            continue;
        int v = x.m->plan.chunks, micro = (int)(p->g->micro / x.m->plan.replicas);
        x.promise = share_of(p, x.stages) / (3 * (int64_t)v * micro) * form_of(x.schedule, x.stages, micro, v);
        *PUSH(all) = x;
    }
}

static int by_promise(const void *a, const void *b)
{
    const Offer *x = a, *y = b;
    if (x->m->plan.chunks != y->m->plan.chunks)
        return x->m->plan.chunks - y->m->plan.chunks;
    if (x->promise != y->promise)
        return x->promise < y->promise ? -1 : 1;
    return x->stages != y->stages ? x->stages - y->stages : x->schedule < y->schedule ? -1 : x->schedule > y->schedule;
}

/* Of all numbers of stages that were tried with the graph of the best plan. */
static Offers rows_of(const Search *s, const Plan *p)
{
    Offers all = {0};
    int last = 0;
    for (int i = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        if (k->g == p->g && k->stages > last)
            add_rows(s, p, k->c, last = k->stages, &all);
    }
    if (all.n > 0)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_promise);
    return all;
}

/* A search of one row, in which layouts only have to fit. */
static Plan *try_row(const Search *s, const Offer *x, const Plan *best, int64_t *left)
{
    int64_t had = *left < ROW_WORK ? *left : ROW_WORK, *work = alloc(sizeof *work);
    Search one = {.x = s->x, .ask = s->ask, .best = -1, .cutoff = best->step};
    *work = had;
    one.ask.work_left = work;
    one.ask.unseeded = !x->schedule->depths;    /* those follow from the cuts of a plan: better ones make better rows */
    one.ask.steps_left = alloc(sizeof *one.ask.steps_left);     /* none: the fixed orders, and a few more */
    list_schedule(&one, best->g, x->c, x->m, x->stages, x->schedule);
    search_all(&one);
    *left -= had - *work;
    return search_best(&one);
}

/* Rows that follow from the times of a plan take several times as long as others. */
static bool is_worth_it(const Offer *x, const Plan *best)
{
    Ns most = best->step - best->step / (x->schedule->depths ? LEAST_GAIN / 2 : LEAST_GAIN);
    const Candidate k = {.g = best->g, .c = x->c, .m = x->m, .stages = x->stages, .schedule = x->schedule};
    return x->promise < most && candidate_least(&k) < most;
}

Plan *search_rows(const Search *s, Plan *best)
{
    const Plan *first = best;
    Offers all = rows_of(s, best);
    int64_t left = ROWS_WORK;
    for (int i = 0; i < all.n && left > 0 && !busy_stopped(); i++) {
        const Offer *x = &all.at[i];
        if (!is_worth_it(x, best))
            continue;
        void *mark = mem_mark();
        busy_at(", schedule %s", x->schedule->name);
        Plan *p = try_row(s, x, best, &left);
        if (p && wins(p, best))
            best = p;
        else
            mem_release(mark);
    }
    return best == first ? best : search_full(s, best, best->ask.cuts, ROW_WORK);
}
