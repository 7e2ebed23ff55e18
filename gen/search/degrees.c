/* SPDX-License-Identifier: Apache-2.0
 *
 * degrees.c: plan.tensor: auto, the number of devices of a stage.
 *
 * Problem.  With T devices a stage, a pipeline of as many devices has 1/T of the stages: its bubble is shorter, and sums cost
 * messages.  Megatron-LM's rule is T = devices of a machine (Narayanan et al., Efficient Large-Scale Language Model Training on
 * GPU Clusters, 2021); Alpa and Piper search T with the cuts.  Their users ask why a degree was chosen, and get no answer.
 *
 * Method.  An offer is a number of devices of a stage, with numbers of stages and replicas and a micro-batch.  The step of 1f1b
 * with equal stages says which comes first, and that one is searched in full.  Another is left out without search if no
 * plan of it can be faster than the best so far: all its work shared out evenly, or its longest operator, takes longer.  The
 * rest are searched as the rows of schedules are (rows.c): with the best step as a cutoff, which `exact` refutes first, nothing
 * proven, and layouts that only have to fit.  If one of them is better, it is searched in full.  So the answer is the plan,
 * with its bound, that the model has when it names these numbers.
 *
 * Cost: a graph and its prices for each T, and DEGREES_WORK.  Not handled: stages of unequal T; a graph that is read has its
 * own T.  Rows of schedules are tried for the best offer alone.
 */
#include "degrees.h"
#include "budgets.h"
#include "list.h"
#include "planner.h"
#include "search.h"
#include "shorter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const Model *m;             /* stages of one number, and of so many devices */
    const Graph *g;
    const Cost *c;
    Ns guess, least, step;      /* least: no plan is faster; step: of the plan that was found; 0: nobody knows */
    Ns weight;                  /* of the step: longer with an idle device */
} Offer;
typedef struct { int tensor; const char *why; } Refused;
typedef struct {
    const Options *x;
    const Model *m;
    int tensor;
    VEC(Offer) offer;
    VEC(Refused) refused;
} Degrees;

/* ---- what there is ------------------------------------------------------------------------------------------------- */

static Model *copy_of(const Model *m)
{
    Model *with = alloc(sizeof *with);
    *with = *m;
    return with;
}

static Candidate candidate_of(const Offer *o)
{
    return (Candidate){.g = o->g, .c = o->c, .m = o->m, .stages = o->m->plan.stages_max,
                       .schedule = schedule_of(o->m->plan.schedule)};
}

/* The step of 1f1b with equal stages, if messages between them are free and all fits. */
static Ns guess_of(const Offer *o)
{
    Ns sum = 0;
    int stages = o->m->plan.stages_max;
    for (int i = 0; i < o->g->nb; i++) {
        Ns least = o->c->ns[0][i];
        for (int k = 1; k < o->c->classes; k++)
            least = o->c->ns[k][i] < least ? o->c->ns[k][i] : least;
        sum += least;
    }
    return sum / stages * (o->g->micro / o->m->plan.replicas + stages - 1);
}

/* Of one size: all numbers of stages. */
static void offer_stages(Degrees *all, const Model *m)
{
    const Options quiet = {.times = all->x->times, .from = all->x->from, .foreign = all->x->foreign};
    const Graph *g = graph_of(&quiet, m);
    const Cost *c = cost(g, m, all->x->times);
    for (int stages = m->plan.stages_min; stages <= m->plan.stages_max; stages++) {
        Model *with = copy_of(m);
        with->plan.stages_min = with->plan.stages_max = stages;
        if (order_refuses(g, with, schedule_of(with->plan.schedule), stages))
            continue;
        Offer *o = PUSH(&all->offer);
        *o = (Offer){.m = with, .g = g, .c = cost_shared(c, with, stages * with->plan.replicas)};
        o->guess = guess_of(o);
    }
}

static void offer_sizes(void *ctx)
{
    Degrees *all = ctx;
    Model *m = copy_of(with_team(all->m, all->tensor));
    m->plan.chunks = m->plan.chunks_auto ? 1 : m->plan.chunks;
    m->plan.chunks_auto = false;
    m->plan.fuse = m->plan.fuse == FUSE_FASTEST ? FUSE_AUTO : m->plan.fuse;
    if (schedule_open(m->plan.schedule))
        m->plan.schedule = schedule_of(m->plan.schedule)->name;
    Models sizes = {0};
    search_sizes(m, &sizes);
    for (int i = 0; i < sizes.n; i++)
        offer_stages(all, sizes.at[i]);
}

static int by_guess(const void *a, const void *b)
{
    const Offer *x = a, *y = b;
    return x->guess != y->guess ? (x->guess < y->guess ? -1 : 1) : x->m->plan.tensor - y->m->plan.tensor;
}

static void find_offers(Degrees *all)
{
    const Model *m = all->m;
    int most = all->x->from || all->x->foreign ? 1 : (int)m->train.blocks;
    for (int t = 1; t <= most && t * m->plan.stages_min * m->plan.replicas <= m->devices.n; t *= 2) {
        int known = all->offer.n;
        all->tensor = t;
        if (diag_accepts(offer_sizes, all))
            continue;
        all->offer.n = known;
        *PUSH(&all->refused) = (Refused){t, strf("%s", diag_refusal())};
    }
    if (all->offer.n)
        qsort(all->offer.at, (size_t)all->offer.n, sizeof *all->offer.at, by_guess);
}

/* ---- what it comes to ---------------------------------------------------------------------------------------------- */

/* The step of a plan; 0: there is none that is faster, and least says what is proven. */
static void try_offer(const Degrees *all, Offer *o, Ns best, int64_t *left)
{
    const int64_t had = *left < ROW_WORK ? *left : ROW_WORK;
    int64_t work = had, steps = 0;
    void *mark = mem_mark();
    const Model *few = planner_named(o->m->plan.planner)->complete ? shorter(all->x, o->m, 1, 0) : o->m;
    Ask ask = {.cutoff = best, .unseeded = true, .work_left = &work, .steps_left = &steps,
               .more = (int)((o->m->train.micro - few->train.micro) / o->m->plan.replicas)};
    Plan *failed = NULL, *p = search_with(all->x, few, &ask, &failed);
    o->step = !p ? 0 : ask.more ? plan_proof(p).value : p->step;
    o->weight = p ? o->step + with_idle(p) - p->step : 0;
    if (!p && failed && plan_proof(failed).bound > o->least)
        o->least = plan_proof(failed).bound;
    mem_release(mark);
    *left -= had - work;
}

static const Offer *best_offer(Degrees *all, const Offer *first)
{
    const Offer *best = first;
    int64_t left = DEGREES_WORK;
    for (int i = 1; i < all->offer.n && !busy_stopped(); i++) {
        Offer *o = &all->offer.at[i];
        const Candidate k = candidate_of(o);
        busy_at(", %s of %s", count_text(o->m->plan.stages_max, "stage"), count_text(o->m->plan.tensor, "device"));
        o->least = candidate_least(&k);
        if (best && (o->least >= best->weight || left <= 0))
            continue;
        try_offer(all, o, best ? best->weight : 0, &left);
        if (o->step > 0 && (!best || o->weight < best->weight))
            best = o;
    }
    return best;
}

/* ---- for people ---------------------------------------------------------------------------------------------------- */

/* Of all offers with that T: the best plan, or what none of them is below. */
static const char *outcome(const Degrees *all, int tensor)
{
    const Offer *found = NULL;
    Ns least = INT64_MAX;
    for (int i = 0; i < all->refused.n; i++)
        if (all->refused.at[i].tensor == tensor)
            return all->refused.at[i].why;
    for (int i = 0; i < all->offer.n; i++) {
        const Offer *o = &all->offer.at[i];
        if (o->m->plan.tensor != tensor)
            continue;
        found = o->step > 0 && (!found || o->step < found->step) ? o : found;
        least = o->step == 0 && o->least > 0 && o->least < least ? o->least : least;
    }
    return found && found->step <= least ? strf("%.3f ms", (double)found->step / 1e6)
         : least < INT64_MAX ? strf("not below %.3f ms", (double)least / 1e6) : "none";
}

static const char *note_of(const Degrees *all, int tensor)
{
    const char *text = "";
    for (int t = 1; t <= all->tensor; t *= 2)
        if (t != tensor)
            text = strf("%s%s%d %s", text, *text ? ", " : "", t, outcome(all, t));
    return strf("tensor %d%s%s", tensor, *text ? "; others: " : "", text);
}

/* As the model would say it. */
static const Model *named(const Model *m, const Offer *o)
{
    Model *with = copy_of(o->m);
    with->plan.chunks_auto = m->plan.chunks_auto;
    with->plan.fuse = m->plan.fuse;
    with->plan.schedule = m->plan.schedule;
    return with;
}

Plan *degrees_search(SearchOf *full, const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Degrees all = {.x = x, .m = m};
    Options quiet = *x;
    quiet.dump = NULL;
    find_offers(&all);
    if (!all.offer.n)
        return full(x, with_team(m, 1), ask, failed);
    Offer *first = &all.offer.at[0];
    Plan *p = full(&quiet, named(m, first), ask, failed);
    const Candidate k = candidate_of(first);
    first->least = candidate_least(&k);
    first->step = p ? p->step : 0;
    first->weight = p ? with_idle(p) : 0;
    const Offer *best = best_offer(&all, p ? first : NULL);
    if (best && (best != first || x->dump))
        p = full(x, named(m, best), ask, failed);
    const char *note = p ? note_of(&all, p->m->plan.tensor) : NULL;
    if (note)
        p->proof.note = strf("%s%s%s", note, p->proof.note ? "; " : "", p->proof.note ? p->proof.note : "");
    return p;
}
