/* SPDX-License-Identifier: Apache-2.0
 *
 * shorter.c: a step of very many micro-batches, searched as a shorter one.
 *
 * Problem: the lists of a plan have a place for each micro-batch on each device, and a search lays out tens of plans.  Llama
 * 70B on 64 stages took 9 s with 64 micro-batches, and 39 s and 1.9 GB with 256.  Other planners do not lay out plans at all,
 * so they cannot say what one needs.
 *
 * Method: once a pipeline is full, its beats are alike.  A schedule that holds a bounded number of micro-batches needs the same
 * memory in a step of any length, and the longest stage decides how long it is.  So cuts, fates and targets are searched with
 * as many micro-batches as stages, or twice as many, and SHORTER_PLACES places in all lists.  Those that are left out count as
 * a beat of the longest device each (Ask.more).  The plan that is found is laid out once in full, with all passes and checks.
 * Schedules that hold more in the longer step, as gpipe, are not shortened.  More buffers take turns in the longer step and
 * leave other gaps, so a part of the memory is spared for them at first.
 *
 * The bound is of the full step: the largest target that floors of prices refute.
 *
 * Cost: one plan in full.  Not handled: micro-batches or widths that are left open, lists and orders that are given, `optimal`.
 */
#include "search.h"
#include "budgets.h"
#include "key.h"
#include "planner.h"

const Model *shorter(const Options *x, const Model *m, int times, int spare)
{
    const Schedule *k = schedule_open(m->plan.schedule) ? NULL : schedule_of(m->plan.schedule);
    const int64_t stages = m->plan.stages_max, micro = m->train.micro, one = m->plan.replicas * m->train.groups;
    bool open = m->train.batch == 0 || m->plan.widths.n || m->plan.replicas_auto || m->device_order == ORDER_FREE ||
                m->plan.custom.word;
    if (open || x->from || x->foreign || (k && (k->async || k->improves || k->given || k->custom)) || m->plan.objective)
        return m;
    int64_t both = one / number_common(one, stages) * stages, unit = micro % both ? one : both;
    int64_t least = SHORTER_PLACES / stages > stages ? SHORTER_PLACES / stages : stages;
    int64_t few = (times * least * m->plan.replicas + unit - 1) / unit * unit;
    if (few > micro / 4 * 3)
        return m;
    Model *with = alloc(sizeof *with);
    *with = *m;
    with->train.micro = few;
    with->train.global = few * m->train.batch;
    memset(&with->devices, 0, sizeof with->devices);
    for (int d = 0; d < m->devices.n; d++) {
        *PUSH(&with->devices) = m->devices.at[d];
        with->devices.at[d].memory -= spare ? m->devices.at[d].memory / spare : 0;
    }
    return with;
}

bool shorter_is_alike(const Graph *g, const Cost *c, const Model *m, int64_t more, int stages, const Schedule *k)
{
    if (more == 0 || k->ways > 1)
        return more == 0;
    void *mark = mem_mark();
    Graph longer = *g;
    longer.micro += more * m->plan.replicas;
    Plan *a = new_plan(g, c, m, stages, k->name, NULL), *b = new_plan(&longer, c, m, stages, k->name, NULL);
    bool alike = !order(a) && !order(b);
    for (int chunk = 0; alike && chunk < plan_chunks(a); chunk++)
        alike = order_flight(a, chunk) == order_flight(b, chunk);
    mem_release(mark);
    return alike;
}

/* What is proven of every plan of the planner's space. */
static Proof proof_of(const Plan *p, const Candidate *k, const Bytes *limit)
{
    Proof known = p->proof;
    Plan *lists = new_plan(k->g, k->c, k->m, k->stages, k->schedule->name, &k->ask);
    known.value = p->step;
    known.note = strf("searched with %s%s%s", count_text(p->g->micro, "micro-batch"), known.note ? "; " : "",
                      known.note ? known.note : "");
    if (known.bound == 0 || order(lists))
        return known;
    known.bound = plan_ways(lists) > 1 ? 0 : part_least(lists, limit);
    return known;
}

Plan *lengthened(const Options *x, const Model *full, const Plan *p)
{
    Model *m = alloc(sizeof *m);
    Ints *cuts = alloc(sizeof *cuts);
    *m = *p->m;
    m->train.micro = full->train.micro;
    m->train.global = full->train.global;
    m->devices = full->devices;
    Options quiet = *x;
    quiet.dump = NULL;
    const Graph *g = graph_of(&quiet, m);
    const Cost *c = cost_shared(cost(g, m, x->times), m, p->devices);
    Candidate k = {.x = &quiet, .g = g, .c = c, .m = m, .stages = plan_stages(p), .schedule = schedule_of(p->schedule),
                   .ask = p->ask, .key = numeric_key(g, m, c)};
    Proof proof = proof_of(p, &k, least_memory(m, k.stages));
    k.first = k.failed = run_longer(&quiet, p, g, c, m, &k.why);
    k.best = k.why == PLANNED ? k.first : NULL;
    if (k.why == OVER_DEVICE) {         /* more buffers take turns, and leave other gaps */
        k.ask = k.first->ask;
        k.soon = true;                  /* the shorter step has found the cuts and the fates */
        k.ask.work = purse_new(NULL, FIRST_WORK);
        k.ask.choice.cuts = part_cuts(p, cuts) ? cuts : k.ask.choice.cuts;
        k.limit = memcpy(alloc(sizeof *k.limit * (size_t)p->devices), p->target, sizeof *k.limit * (size_t)p->devices);
        plan_drop(k.first);             /* its lists are large, and only what it lacks is asked */
        repack(&k);
    }
    if (!k.best)
        return NULL;
    k.best->proof = below_step(proof, k.best);
    return k.best;
}
