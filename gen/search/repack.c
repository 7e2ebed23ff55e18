/* SPDX-License-Identifier: Apache-2.0
 *
 * repack.c: plans that are too large once packed.
 *
 * Problem: planners see every byte but those that packing adds, some per cent where buffers are large and few, and so fill a
 * device to the brim.  Other systems plan with a margin that somebody has guessed, or fail when memory is fragmented.
 *
 * Method: the cuts stand.  Then stages are independent: the fates of one follow from its soft limit, and its arena from its
 * fates.  So the soft limit of each is bisected between the largest that is known to pack and the smallest that is not, all
 * stages at once: a round is one plan, which costs a few prices, and no search.  A larger limit does not always have a larger
 * arena; what is taken has been packed.
 *
 * What that costs may be less at other cuts, which no planner can know: cuts are moved one at a time, by one, two and four
 * operators, and what is better laid out goes on.
 *
 * Cost: at most REPACKS plans and one; polish() about TRIALS cuts, fewer of large models, of TRIAL_REPACKS plans, where it is
 * not seen before that none can help.
 */
#include "repack.h"
#include "candidate.h"
#include "mem/trial_cache.h"
#include "passes.h"

#include <string.h>

enum { REPACKS = 8, TRIALS = 24, TRIED = 8000, TRIAL_REPACKS = 3 };    /* TRIED: operators, of all trials together */

/* ---- one round ----------------------------------------------------------------------------------------------------- */

Plan *pass(const Asked *asked, const Ints *cuts, const Bytes *limit, int *why)
{
    const Model *m = asked->m;
    Model *with = alloc(sizeof *with);
    *with = *m;
    if (cuts)
        with->plan.cuts = *cuts;
    Plan *p = new_plan(asked->g, asked->c, cuts ? with : m, asked->stages, asked->schedule);
    p->hurry = asked->hurry;
    p->key = asked->key;
    p->seen = asked->seen;
    *why = run(asked->x, p, limit);
    p->m = m;
    return p;
}

/* ---- the soft limit of a stage --------------------------------------------------------------------------------------- */

#define NONE INT64_MAX

/* good: the largest that packs, -1: unknown; bad: the smallest that does not. */
typedef struct { Bytes now, good, bad; } Soft;

/* What the devices of a stage need and have not, once packed. */
static Bytes excess(const Plan *p, int stage)
{
    Bytes most = INT64_MIN;
    for (int d = 0; d < p->devices; d++) {
        Bytes over = p->dev.at[d].arena - p->m->devices.at[d].memory;
        if (plan_stage(p, d) == stage)
            most = over > most ? over : most;
    }
    return most;
}

static Bytes between(const Soft *k)
{
    return k->good + (k->bad - k->good) / 2;
}

static void learn(Soft *k, const Plan *p, int stage)
{
    Bytes over = excess(p, stage);
    if (over > 0) {
        Bytes ask = keep_need(p, stage) - over;
        k->bad = k->now < k->bad ? k->now : k->bad;
        k->now = k->good >= 0 ? between(k) : ask < k->bad ? ask : k->bad - over;
    } else {
        k->good = k->now > k->good ? k->now : k->good;
        k->now = k->bad < NONE && k->bad - k->good > k->good / 256 ? between(k) : k->good;
    }
}

/* ---- the same cuts, other fates -------------------------------------------------------------------------------------- */

typedef struct { const Asked *asked; Ints cuts; Soft *soft; Bytes *limit; Plan *best; const Plan *last; int idle; } Repack;

/* A planner that has no choice of fates makes the same plan under any limits: no stage needs less than in the last one. */
static bool same(const Repack *r, const Plan *p)
{
    bool same = true;
    for (int s = 0; s < r->asked->stages; s++)
        same &= excess(p, s) <= 0 || excess(p, s) >= excess(r->last, s);
    return same;
}

/* One plan under the limits at hand; returns as run(). */
static int try_limits(Repack *r, bool good)
{
    int why;
    for (int s = 0; s < r->asked->stages; s++)
        r->limit[s] = good ? r->soft[s].good : r->soft[s].now;
    Plan *p = pass(r->asked, &r->cuts, r->limit, &why);
    if (why == 0 && (!r->best || better(p, r->best)))
        r->best = p;
    for (int s = 0; why != 1 && !good && s < r->asked->stages; s++)
        learn(&r->soft[s], p, s);
    r->idle = why == 2 && same(r, p) ? r->idle + 1 : 0;
    r->last = why == 1 ? r->last : p;
    return why;
}

/* Nothing fits under limits that are not known to do: halfway back to those that asked too little.  False: that is where they
 * are. */
static bool raise_limits(Repack *r)
{
    bool moved = false;
    for (int s = 0; s < r->asked->stages; s++) {
        Soft *k = &r->soft[s];
        Bytes step = k->good < 0 && k->bad < NONE ? (k->bad - k->now) / 2 : 0;
        k->now += step;
        moved |= step > k->now / 256;
    }
    return moved;
}

static Plan *bisect(const Asked *asked, const Plan *was, Bytes *limit, int rounds)
{
    int stages = asked->stages;
    Repack r = {.asked = asked, .limit = limit, .soft = alloc(sizeof *r.soft * (size_t)stages), .last = was};
    if (!part_cuts(was, &r.cuts))
        return NULL;
    for (int s = 0; s < stages; s++) {
        r.soft[s] = (Soft){limit[s], -1, NONE};
        learn(&r.soft[s], was, s);
    }
    bool open = true;
    for (int round = 0; round < rounds && open && r.idle < 2; round++) {
        if (try_limits(&r, false) == 1 && !raise_limits(&r))
            return r.best;
        open = false;
        for (int s = 0; s < stages; s++)
            open |= r.soft[s].now != r.soft[s].good;
    }
    bool known = true;
    for (int s = 0; s < stages; s++)
        known &= r.soft[s].good >= 0;
    if (known && open)                  /* of some stage the last trial was too large */
        try_limits(&r, true);
    for (int s = 0; s < stages; s++)
        limit[s] = r.soft[s].good >= 0 ? r.soft[s].good : r.soft[s].now;
    return r.best;
}

Plan *repack(const Asked *asked, const Plan *was, Bytes *limit)
{
    return bisect(asked, was, limit, REPACKS);
}

/* ---- what packing did to the best cut ------------------------------------------------------------------------------ */

typedef struct { const Asked *asked; Ints cuts; const Plan *best; Plan *p; } Try;

/* A cut may be forbidden: then there is no plan. */
static void try_cuts(void *ctx)
{
    Try *t = ctx;
    int why;
    Bytes *limit = least_memory(t->asked->m, t->asked->stages);
    Plan *p = pass(t->asked, &t->cuts, limit, &why);
    t->p = why == 0 ? p : why == 2 && p->value < t->best->step ? bisect(t->asked, p, limit, TRIAL_REPACKS) : NULL;
}

static Plan *move_cut(const Asked *asked, const Plan *best, int i, int to)
{
    Try t = {asked, {0}, best, NULL};
    part_cuts(best, &t.cuts);
    int before = i ? t.cuts.at[i - 1] : -1, after = i + 1 < t.cuts.n ? t.cuts.at[i + 1] : asked->g->nf - 1;
    if (to <= before || to >= after)
        return NULL;
    t.cuts.at[i] = to;
    return diag_accepts(try_cuts, &t) ? t.p : NULL;
}

Plan *polish(const Asked *asked, Plan *best)
{
    const PlanSpec *spec = &asked->m->plan;
    int most = TRIED / asked->g->nf < TRIALS ? TRIED / asked->g->nf : TRIALS;
    Ints cuts = {0};
    if (strcmp(spec->planner, "exact") || spec->soon || spec->cuts.n)
        return best;
    if (best->step <= best->value + best->value / 1024 || !part_cuts(best, &cuts))
        return best;
    Model *rough = alloc(sizeof *rough);        /* any arena that fits, until it is known that the step is shorter */
    *rough = *asked->m;
    rough->plan.rough = layout_rough(asked->m);
    Asked first = *asked;
    first.m = rough;
    first.seen = seen_new();
    for (int i = 0, trials = 0, idle = 0; idle < cuts.n && trials < most; i = (i + 1) % cuts.n) {
        Plan *was = best;
        for (int k = 0; k < 6 && best == was; k++, trials++) {
            int to = cuts.at[i] + (k % 2 ? 1 << k / 2 : -(1 << k / 2));
            Plan *p = move_cut(&first, best, i, to);
            p = p && p->step <= best->step ? move_cut(asked, best, i, to) : NULL;
            if (p && better(p, best)) {
                best = p;
                cuts.at[i] = to;
            }
        }
        idle = best == was ? idle + 1 : 0;
    }
    return best;
}
