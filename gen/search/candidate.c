/* SPDX-License-Identifier: Apache-2.0
 *
 * candidate.c: the plan of one candidate: one graph, one number of stages, one schedule.
 *
 * Two loops stand here in sight: over soft limits, when packing needs more than the planner expected; and over the hurry of
 * what is offloaded.  1f1b* and MadPipe, whose lists and maps depend on times, are asked several times; so are the two warm-ups
 * of 1f1b.
 */
#include "candidate.h"
#include "mem/trial_cache.h"
#include "key.h"
#include "passes.h"
#include "rivals/madpipe.h"
#include "plan/planner.h"
#include "repack.h"
#include "star_depths.h"

#include <stdlib.h>
#include <string.h>

/* ---- one candidate ----------------------------------------------------------------------------------------------- */

/* A stage has the least memory that any of its replicas has. */
Bytes *least_memory(const Model *m, int stages)
{
    int devices = stages * m->plan.replicas;
    Bytes *limit = alloc(sizeof *limit * (size_t)devices);
    for (int d = 0; d < devices; d++)
        limit[d] = m->devices.at[d].memory;
    for (int d = devices - 1; d >= stages; d--)
        limit[d - stages] = limit[d] < limit[d - stages] ? limit[d] : limit[d - stages];
    return limit;
}

/* Faster; as fast and smaller. */
bool better(const Plan *a, const Plan *b)
{
    Bytes x = 0, y = 0;
    for (int d = 0; d < a->devices; d++)
        x += a->dev.at[d].arena;
    for (int d = 0; d < b->devices; d++)
        y += b->dev.at[d].arena;
    return a->step != b->step ? a->step < b->step : x < y;
}

/* What is proven of the cheapest fates, of a plan whose fates may hide better. */
static Ns proven(const Plan *p, Ns bound)
{
    return bound < p->step ? bound : p->step;
}

/* What packing costs is more than 1/128 of what the planner expected. */
static bool suffers(const Plan *p, const Plan *expected)
{
    return p->step - expected->value > expected->value / 128;
}

/* Copies to the host are priced on the safe side, and mem has the last word: a planner that has no plan with them is asked
 * under limits that are so much larger, which then are those that packing is told of. */
static Plan *ask(const Asked *asked, Bytes *limit, int *why)
{
    static const int parts[] = {1, 4, 16, 32, 96};          /* of 32 */
    Plan *first = pass(asked, NULL, limit, why);
    Bytes *more = alloc(sizeof *more * (size_t)first->devices);
    bool open = *why == 1 && first->value == 0 && first->nofit_device < 0 && asked->m->plan.offload != OFFLOAD_NONE;
    for (size_t i = 0; open && i < sizeof parts / sizeof *parts; i++) {
        for (int d = 0; d < first->devices; d++)
            more[d] = limit[d] + limit[d] / 32 * parts[i];
        Plan *p = pass(asked, NULL, more, why);
        if (*why == 1)
            continue;
        memcpy(limit, more, sizeof *more * (size_t)first->devices);
        return p;
    }
    return first;
}

/* Where packing leaves a planner no plan, or costs it much, it is asked again under the limits that were found. */
static Plan *plan_under(const Options *x, const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule,
                        Hurry hurry)
{
    const Asked asked = {x, g, c, m, stages, schedule, hurry, numeric_key(g, m, c), seen_new()};
    Bytes *limit = least_memory(m, stages);
    Plan *best = NULL, *first = NULL, *p = NULL, *packed = NULL;
    for (int round = 0, why = 2; round < ROUNDS && why == 2 && (!best || (round < 2 && suffers(best, first))); round++) {
        p = ask(&asked, limit, &why);
        first = first ? first : p;
        packed = why == 2 ? p : packed;
        Plan *fits = why == 2 ? repack(&asked, p, limit) : why == 0 ? p : NULL;
        if (fits && (!best || better(fits, best)))
            best = fits;
    }
    p = packed ? packed : p;        /* what is fed back may leave no cut: that is not why */
    if (best && (best != first || best->host.n > 0))
        best = polish(&asked, best);
    if (!best)
        p->step = 0;
    else if (best != first) {           /* proven under the limits, not under lower ones */
        best->bound = proven(best, first->bound);
        best->space = first->space;
        if (!strcmp(m->plan.planner, "exact"))
            best->note = strf("%.3f ms were expected, before packing took its room", (double)first->value / 1e6);
    }
    if (best)
        best->value = first->value;
    return best ? best : p;
}

/* What is offloaded gets into a hurry only where that is what makes the plan fit. */
static Plan *plan_once(const Options *x, const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule)
{
    Plan *first = plan_under(x, g, c, m, stages, schedule, HURRY_NONE);
    for (Hurry hurry = HURRY_NEXT; first->step == 0 && first->host.n > 0 && !first->nofit_host && hurry <= HURRY_NOW; hurry++) {
        Plan *p = plan_under(x, g, c, m, stages, schedule, hurry);
        if (p->step > 0)
            return p;
        if (p->routine.n > 0 && p->nofit_need < first->nofit_need)
            first = p;              /* lacks less: so much is needed */
    }
    if (first->step > 0 || first->chunk.n == 0 || m->plan.soon || strcmp(m->plan.planner, "exact"))
        return first;
    Model *soon = alloc(sizeof *soon);      /* the fastest were too tight to pack: one with room may not be */
    *soon = *m;
    soon->plan.soon = true;
    Plan *p = plan_under(x, g, c, soon, stages, schedule, HURRY_NONE);
    p->m = m;
    p->value = first->value;
    return p->step > 0 ? p : first;
}

/* ---- as its planner asks ------------------------------------------------------------------------------------------- */

/* MadPipe chooses how many chunks there are and on which device, so it is asked before any list is made; NULL: it has no
 * answer.  After it, its map and cuts stand as if the model file said them. */
static const Model *mapped(const Graph *g, const Cost *c, const Model *m, int *stages, const char *schedule, const char **note)
{
    Plan *p = new_plan(g, c, m, *stages, schedule);
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    MadPipe found;
    for (int d = 0; d < p->devices; d++)
        limit[d] = m->devices.at[d].memory;
    if (strcmp(m->plan.planner, "madpipe") || m->plan.map.n || m->plan.cuts.n)
        return m;
    if (m->plan.chunks > 1 || m->plan.replicas > 1)
        err(m->plan.loc, NULL, "planner madpipe chooses the chunks; plan.chunks and plan.replicas are not for it");
    if (!madpipe(p, limit, &found))
        return NULL;
    Model *with = alloc(sizeof *with);
    *with = *m;
    with->plan.map = found.map;
    with->plan.cuts = found.cuts;
    with->plan.chunks = found.map.n - found.devices + 1;        /* one device alone has several */
    with->plan.stages_min = with->plan.stages_max = *stages = found.devices;
    *note = strf("%d pieces; a period of %.3f ms by MadPipe's program and 1F1B*", found.map.n, (double)found.period / 1e6);
    return with;
}

/* Could it, laid out in full, be better? */
static bool promises(const Plan *p, const Plan *best)
{
    return p->step > 0 && (best->step == 0 || p->step <= best->step);
}

/* `exact` judges by a preview, and packing or copies to the host may undo what it chose: then the plans of its rivals are laid
 * out too. */
static Plan *beside_rivals(const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule, Plan *best)
{
    Options quiet = {0};
    Plan *own = best;
    bool right = own->step > 0 && own->step <= own->value;
    bool asked = !strcmp(m->plan.planner, "exact") && !m->plan.soon && !m->plan.cuts.n;
    int64_t *rough = layout_rough(m);
    for (const Planner *k = planners; k->name && asked; k++) {
        if (g->nf > k->rival || (right && g->nf <= k->seed))
            continue;
        void *mark = mem_mark();
        Model *with = alloc(sizeof *with);
        *with = *m;
        with->plan.planner = k->name;
        with->plan.rough = rough;
        Plan *p = plan_once(&quiet, g, c, with, stages, schedule);
        with->plan.rough = m->plan.rough;
        p = promises(p, best) ? plan_once(&quiet, g, c, with, stages, schedule) : p;
        if (!promises(p, best) || (best->step > 0 && !better(p, best))) {
            mem_release(mark);
            continue;
        }
        p->m = m;
        p->note = strf("as %s cuts", k->name);
        p->bound = own->step > 0 ? proven(p, own->bound) : 0;
        p->space = own->space;
        best = p;
    }
    return best;
}

/* Where a device has several chunks, its limit is shared out among them, and what is too much for one may be right for all: a
 * plan under larger limits, or under none, that fits as it is.  `best` if there is none. */
static Plan *beside_limits(Asked asked, Plan *best)
{
    static const int parts[] = {2, 4, 8, 16, 32, 64, 0};    /* of 32; 0: no limit */
    enum { PARTS = sizeof parts / sizeof *parts };
    const Bytes *limit = least_memory(asked.m, asked.stages);
    Bytes *more = alloc(sizeof *more * (size_t)(asked.stages * asked.m->plan.replicas));
    bool several = asked.m->plan.chunks > 1 || asked.m->plan.map.n > asked.stages;
    Hurry last = asked.m->plan.offload != OFFLOAD_NONE ? HURRY_NOW : HURRY_NONE;
    if (best->step > 0 || !several || strcmp(asked.m->plan.planner, "exact"))
        return best;
    asked.key = numeric_key(asked.g, asked.m, asked.c);
    for (asked.hurry = HURRY_NONE; asked.hurry <= last; asked.hurry++)
        for (int i = 0, why = 0; i < PARTS; i++) {
            void *mark = mem_mark();
            for (int d = 0; d < asked.stages * asked.m->plan.replicas; d++)
                more[d] = parts[i] ? limit[d] + limit[d] / 32 * parts[i] : INT64_MAX / 4;
            Plan *p = pass(&asked, NULL, more, &why);
            if (why == 0)
                return p;
            mem_release(mark);
        }
    return best;
}

/* Operators: of graphs that this is done for; of all trials together, and where nothing fits yet; of those that are packed
 * under other limits too. */
enum { CUT_OPERATORS = 600, CUTS_TRIED = 4000, CUTS_PACKED = 2400 };

/* What --cuts would give; once: if it fits as it is.  rough: with any arena that fits. */
static Plan *plan_cuts(const Asked *asked, const int *last, int chunks, bool once, int64_t *rough)
{
    Model *with = alloc(sizeof *with);
    int why = 0;
    *with = *asked->m;
    with->plan.rough = rough;
    for (int c = 0; c + 1 < chunks; c++)
        *PUSH(&with->plan.cuts) = last[c];
    Asked given = *asked;
    given.m = with;
    given.seen = rough ? asked->seen : NULL;
    Plan *p = once ? pass(&given, NULL, least_memory(with, asked->stages), &why)
        : plan_once(&(Options){0}, asked->g, asked->c, with, asked->stages, asked->schedule);
    p->m = asked->m;
    p->step = why == 0 ? p->step : 0;
    return p;
}

/* Did `exact` choose the cuts, by what it expected of them? */
static bool chose(const Model *m, const Plan *own, const Plan *p)
{
    return !strcmp(m->plan.planner, "exact") && !m->plan.soon && !m->plan.cuts.n && own->chunk.n > 0 && p->chunk_device.n > 1;
}

/* Is the plan at hand no answer?  Overlapping steps have no preview. */
static bool expects_less(const Asked *asked, const Plan *own, const Plan *best, const Plan *p)
{
    bool less = best->step == 0 || best->step > own->value || p->chunk_device.n > plan_stages(p);
    return less && asked->g->nf <= CUT_OPERATORS && !order_overlap(p);
}

static int most_cuts(const Graph *g, const Plan *best, bool once)
{
    return (once || best->step == 0 ? CUTS_TRIED : CUTS_PACKED) / g->nf;
}

/* Where the plan takes longer than `exact` expected, because of packing or of chunks that share a device, cuts of which it
 * expected less may take less: all that it expects to be faster than the plan at hand are laid out, the fastest first. */
static Plan *beside_cuts(Asked asked, const Plan *own, Plan *best)
{
    Cuts all = {0};
    Plan *p = new_plan(asked.g, asked.c, asked.m, asked.stages, asked.schedule);
    if (order(p) || !chose(asked.m, own, p))
        return best;
    best->nofit_open = best->step == 0;
    if (!expects_less(&asked, own, best, p))
        return best;
    asked.key = numeric_key(asked.g, asked.m, asked.c);
    asked.seen = seen_new();
    int64_t *rough = layout_rough(asked.m);
    bool ends = part_below(p, least_memory(asked.m, asked.stages), best->step > 0 ? best->step : INT64_MAX / 4, &all);
    for (int once = 1; once >= 0; once--) {
        int i = 0;
        for (; i < all.n && i < most_cuts(asked.g, best, once) && (best->step == 0 || all.at[i].value < best->step); i++) {
            void *mark = mem_mark();
            Plan *with = plan_cuts(&asked, all.at[i].last, p->chunk_device.n, once, rough);
            if (promises(with, best))
                with = plan_cuts(&asked, all.at[i].last, p->chunk_device.n, once, asked.m->plan.rough);
            if (!promises(with, best) || (best->step > 0 && !better(with, best))) {
                if (!once)              /* those laid out once share what asked.seen keeps */
                    mem_release(mark);
                continue;
            }
            with->bound = own->step > 0 ? proven(with, own->bound) : 0;
            with->space = own->space;
            with->note = "found by laying out what was predicted to be nearly as fast";
            best = with;
        }
        best->nofit_open &= !ends || i < all.n;
    }
    return best;
}

/* A candidate that is predicted to take longer than a plan at hand is not laid out: no packing makes it faster.  1f1b* has its
 * depths from the plan that is slower. */
static bool may_stop(const Search *s, const Model *m, const char *schedule)
{
    const Schedule *k = schedules;
    while (strcmp(k->name, schedule))
        k++;
    return s->below > 0 && !strcmp(m->plan.planner, "exact") && !m->plan.soon && !k->async && strcmp(schedule, "1f1b*");
}

/* What is proven of all candidates of this search together. */
static void note_bound(Search *s, const Plan *own, bool slow)
{
    Ns least = own->step > 0 || slow ? own->bound : 0;
    s->least = s->candidates++ == 0 || least < s->least ? least : s->least;
}

static void try_plan(Search *s, const Graph *g, const Cost *c, int stages, const char *schedule)
{
    const char *note = NULL;
    const Model *m = mapped(g, c, s->m, &stages, schedule, &note);
    Model *exact = alloc(sizeof *exact);
    *exact = *s->m;
    exact->plan.planner = "exact";
    m = m ? m : exact;
    Model *with = alloc(sizeof *with);
    *with = *m;
    with->plan.below = may_stop(s, m, schedule) ? s->below : 0;
    Plan *p = plan_once(s->x, g, c, with, stages, schedule);
    p->m = m;
    bool slow = with->plan.below > 0 && p->chunk.n == 0;    /* or does not fit */
    if (m == exact || note)
        p->note = note;
    p->step = m == exact ? 0 : p->step;                     /* it was asked for the report alone */
    Plan *own = p;
    const Asked asked = {s->x, g, c, s->m, stages, schedule, HURRY_NONE, NULL, NULL};
    p = slow ? p : beside_cuts(asked, own, beside_limits(asked, beside_rivals(g, c, s->m, stages, schedule, own)));
    note_bound(s, own, slow);
    if (p->step == 0)
        s->failed = p;
    else if (!s->best || better(p, s->best))
        s->best = p;
    if (s->best && (s->below == 0 || s->best->step < s->below))
        s->below = s->best->step;
}

enum { PERIODS = 8 };           /* that 1f1b* tries */

/* The loads of a plan tell which depths a period needs, a plan with those depths has other loads: from 1F1B's own depths, or
 * one micro-batch in flight where those do not fit, to the first few periods that make a difference, shortest first. */
static void try_star(Search *s, const Graph *g, const Cost *c, int stages)
{
    const Model *was = s->m;
    Model *with = alloc(sizeof *with);
    Ns *load = alloc(sizeof *load * (size_t)(2 * stages)), *period = alloc(sizeof *period * (size_t)(2 * stages * stages + 1));
    *with = *was;
    s->m = with;
    try_plan(s, g, c, stages, "1f1b*");
    if (!s->best) {
        for (int d = 0; d < stages; d++)
            *PUSH(&with->plan.depth) = 1;
        try_plan(s, g, c, stages, "1f1b*");
    }
    int n = 0;
    if (s->best && plan_stages(s->best) == stages) {
        star_loads(s->best, load);
        n = star_periods(load, stages, period);
    }
    const Ints *last = &with->plan.depth;
    for (int i = 0, tried = 0; i < n && tried < PERIODS; i++) {
        Ints depth = {alloc(sizeof(int) * (size_t)stages), stages, stages};
        star_depths(load, stages, period[i], depth.at);
        if (last->n == stages && !memcmp(last->at, depth.at, sizeof(int) * (size_t)stages))
            continue;
        with = alloc(sizeof *with);
        *with = *was;
        with->plan.depth = depth;
        last = &with->plan.depth;
        s->m = with;
        try_plan(s, g, c, stages, "1f1b*");
        tried++;
    }
    s->m = was;
}

/* 1f1b by its two warm-ups, or the one that is asked for: B holds more micro-batches, and waits less for messages.  A is the
 * last, for where neither fits it lacks less.  With one stage, or two micro-batches, they are the same list. */
static void try_warmups(Search *s, const Graph *g, const Cost *c, int stages)
{
    const Model *was = s->m;
    bool same = stages == 1 || g->micro / was->plan.replicas <= 2, any = was->plan.warmup == WARMUP_AUTO;
    static const int both[] = {WARMUP_B, WARMUP_A};
    for (int i = 0; i < 2; i++) {
        Model *with = alloc(sizeof *with);
        int k = both[i];
        if (any ? same && k == WARMUP_B : (int)was->plan.warmup != k)
            continue;
        *with = *was;
        with->plan.warmup = k;
        s->m = with;
        try_plan(s, g, c, stages, "1f1b");
    }
    s->m = was;
}

void try_schedule(Search *s, const Graph *g, const Cost *c, int stages, const Schedule *k)
{
    if (!strcmp(k->name, "1f1b*"))
        try_star(s, g, c, stages);
    else if (!strcmp(k->name, "1f1b"))
        try_warmups(s, g, c, stages);
    else
        try_plan(s, g, c, stages, k->name);
}
