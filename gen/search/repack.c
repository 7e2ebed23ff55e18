/* SPDX-License-Identifier: Apache-2.0
 *
 * repack.c: plans that are too large once packed.
 *
 * Problem: planners see every byte but those that packing adds, some per cent where buffers are large and few, and so fill a
 * device to the brim.  Other systems plan with a margin that somebody has guessed, or fail when memory is fragmented.
 *
 * Method: the cuts stand.  Then stages are independent: the fates of one follow from its target limit, and its arena from its
 * fates.  So the target limit of each is bisected between the largest that is known to pack and the smallest that is not, all
 * stages at once: a round is one plan, which costs a few prices, and no search.  A larger limit does not always have a larger
 * arena; what is taken has been packed.
 *
 * What that costs may be less at other cuts, which no planner can know: cuts are moved one at a time, by one, two and four
 * operators, and what is better laid out goes on.
 *
 * Cost: at most TRIES plans and one; polish() about TRIED operators in all cuts, of ROUNDS plans each, where it is not
 * seen before that none can help.
 */
#include "search.h"
#include "budgets.h"

/* ---- the target limit of a stage --------------------------------------------------------------------------------------- */

#define NONE INT64_MAX

/* good: the largest that packs, -1: unknown; bad: the smallest that does not. */
typedef struct { Bytes now, good, bad; } StageTarget;

/* What the devices of a stage need and have not, once packed. */
static Bytes excess(const Plan *p, int stage)
{
    Bytes most = INT64_MIN;
    for (int d = 0; d < p->devices; d++) {
        Bytes over = p->dev.at[d].arena - p->dev.at[d].limit;
        if (plan_stage(p, d) == stage)
            most = over > most ? over : most;
    }
    return most;
}

static Bytes between(const StageTarget *k)
{
    return k->good + (k->bad - k->good) / 2;
}

static void learn_stage(StageTarget *k, const Plan *p, int stage, Bytes need)
{
    Bytes over = excess(p, stage);
    if (over > 0) {
        Bytes ask = need - over;
        k->bad = k->now < k->bad ? k->now : k->bad;
        k->now = k->good >= 0 ? between(k) : ask < k->bad ? ask : k->bad - over;
    } else {
        k->good = k->now > k->good ? k->now : k->good;
        k->now = k->bad < NONE && k->bad - k->good > k->good / 256 ? between(k) : k->good;
    }
}

static void learn(StageTarget *target, const Plan *p, int stages)
{
    Bytes *need = alloc(sizeof *need * (size_t)p->devices);
    keep_needs(p, need);
    for (int s = 0; s < stages; s++)
        learn_stage(&target[s], p, s, need[s]);
}

/* ---- the same cuts, other fates -------------------------------------------------------------------------------------- */

typedef struct {
    const Candidate *k;
    Ask ask;
    StageTarget *target;
    Bytes *limit;
    Plan *best, *last;
    const Plan *first;
    int idle;
} Repack;

/* A planner that has no choice of fates makes the same plan under any limits: no stage needs less than in the last one. */
static bool same(const Repack *r, const Plan *p)
{
    bool same = true;
    for (int s = 0; s < r->k->stages; s++)
        same &= excess(p, s) <= 0 || excess(p, s) >= excess(r->last, s);
    return same;
}

/* One plan under the limits at hand. */
static Verdict try_limits(Repack *r, bool good)
{
    Verdict why;
    for (int s = 0; s < r->k->stages; s++)
        r->limit[s] = good ? r->target[s].good : r->target[s].now;
    Plan *p = pass(r->k, &r->ask, r->limit, &why), *old[] = {r->last, r->best};
    if (why == PLANNED && (!r->best || better(p, r->best)))
        r->best = p;
    if (why != NO_PLAN && !good)
        learn(r->target, p, r->k->stages);
    r->idle = why == OVER_DEVICE && same(r, p) ? r->idle + 1 : 0;
    r->last = why == NO_PLAN ? r->last : p;
    for (int i = 0; i < 2; i++)
        if (old[i] && old[i] != r->last && old[i] != r->best && old[i] != r->first)
            plan_drop(old[i]);
    if (why == NO_PLAN)
        plan_drop(p);
    return why;
}

/* Nothing fits under limits that are not known to do: halfway back to those that asked too little.  False: that is where they
 * are. */
static bool raise_limits(Repack *r)
{
    bool moved = false;
    for (int s = 0; s < r->k->stages; s++) {
        StageTarget *k = &r->target[s];
        Bytes step = k->good < 0 && k->bad < NONE ? (k->bad - k->now) / 2 : 0;
        k->now += step;
        moved |= step > k->now / 256;
    }
    return moved;
}

/* Frees the lists of a plan, unless the candidate still has it. */
static void forget(const Candidate *k, Plan *p)
{
    if (p && p != k->first && p != k->best && p != k->failed)
        plan_drop(p);
}

/* The target limits stay where the last plan that fits had them. */
static void bisect_limits(Repack *r, int rounds)
{
    int stages = r->k->stages;
    bool open = true, known = true;
    for (int round = 0; round < rounds && open && r->idle < 2 && !(r->best && r->k->soon); round++) {
        if (try_limits(r, false) == NO_PLAN && !raise_limits(r))
            return;
        open = false;
        for (int s = 0; s < stages; s++)
            open |= r->target[s].now != r->target[s].good;
    }
    for (int s = 0; s < stages; s++)
        known &= r->target[s].good >= 0;
    if (known && open && !(r->best && r->k->soon))      /* of some stage the last trial was too large */
        try_limits(r, true);
    for (int s = 0; s < stages; s++)
        r->limit[s] = r->target[s].good >= 0 ? r->target[s].good : r->target[s].now;
}

/* ask: of the plan that is too large; its cuts are given. */
static Plan *bisect(const Candidate *k, const Ask *ask, Plan *was, Bytes *limit, int rounds)
{
    int stages = k->stages;
    Ints *cuts = alloc(sizeof *cuts);
    Repack r = {.k = k, .ask = *ask, .limit = limit, .target = alloc(sizeof *r.target * (size_t)stages), .last = was,
                .first = was};
    if (!part_cuts(was, cuts))
        return NULL;
    r.ask.choice.cuts = cuts;
    for (int s = 0; s < stages; s++)
        r.target[s] = (StageTarget){limit[s], -1, NONE};
    learn(r.target, was, stages);
    bisect_limits(&r, rounds);
    if (r.last != r.best && r.last != was)
        forget(k, r.last);
    return r.best;
}

/* ---- other cuts, under the limits that were found -------------------------------------------------------------------- */

/* Packing costs more than 1/128 of what the planner expected. */
static bool suffers(const Candidate *k)
{
    return k->best->step - k->proof.value > k->proof.value / 128;
}

/* The plan is no longer the one that its planner expected: proven under the limits, not under lower ones. */
static void tell(Candidate *k)
{
    k->proof = below_step(k->first->predicted, k->best);
    if (is_exact(k) && k->best->step < k->first->predicted.value)
        k->proof.note = "found by moving cuts of the plan that was expected to be the fastest";
    else if (is_exact(k))
        k->proof.note = strf("%.3f ms were expected, before packing took its room", (double)k->first->predicted.value / 1e6);
    else
        k->proof.note = k->best->predicted.note;
}

/* Where packing leaves a planner no plan, or costs it much, it is asked again under the limits that were found. */
static void feed_back(Candidate *k)
{
    Plan *p = k->first;
    for (int round = 0;;) {
        Plan *fits = k->why == OVER_DEVICE ? bisect(k, &k->ask, p, k->limit, TRIES) : k->why == PLANNED ? p : NULL;
        Plan *old[] = {k->failed, k->best, fits, p};
        k->failed = k->why == OVER_DEVICE ? p : k->failed;      /* limits fed back may leave no cut: that is not why */
        if (fits && (!k->best || better(fits, k->best)))
            k->best = fits;
        for (int i = 0; i < 4; i++)
            forget(k, old[i]);
        if (++round == ROUNDS || is_spent(k) || k->why != OVER_DEVICE || (k->best && (round > 1 || !suffers(k))))
            break;
        p = pass_wide(k, k->limit, &k->why);
    }
}

/* Where chunks share a device, a limit that is lowered too far leads to plans that are far slower, and no way leads back.  So
 * plans that take 1/NEAR_PART longer than was expected count as none at first. */
void repack(Candidate *k)
{
    const Ns most = k->proof.value + k->proof.value / NEAR_PART, cutoff = k->ask.effort.cutoff;
    const Candidate was = *k;
    bool several = plan_chunks(k->first) > plan_stages(k->first);
    bool tighter = several && candidate_predicts(k) && (cutoff == 0 || most < cutoff);
    if (tighter) {
        k->limit = alloc(sizeof *k->limit * (size_t)k->first->devices);
        memcpy(k->limit, was.limit, sizeof *k->limit * (size_t)k->first->devices);
        k->ask.effort.cutoff = most;
        feed_back(k);
        k->ask.effort.cutoff = cutoff;
    }
    if (!k->best) {
        k->limit = was.limit;
        k->why = was.why;
        k->failed = was.failed;
        feed_back(k);
    }
    if (k->best)
        tell(k);
}

/* ---- cuts that are moved --------------------------------------------------------------------------------------------- */

typedef struct { const Candidate *k; Ask ask; const Plan *best; Plan *p; } Try;

/* A cut may be forbidden: then there is no plan. */
static void try_cuts(void *ctx)
{
    Try *t = ctx;
    Verdict why;
    Bytes *limit = least_memory(t->k->m, t->k->stages);
    Plan *p = pass(t->k, &t->ask, limit, &why);
    t->p = why == PLANNED ? p : NULL;
    if (why == OVER_DEVICE && p->predicted.value < t->best->step)
        t->p = bisect(t->k, &t->ask, p, limit, ROUNDS);
    if (t->p != p)
        plan_drop(p);
}

static Plan *plan_with(const Candidate *k, const Ask *ask, const Plan *best, const Ints *cuts)
{
    Try t = {k, *ask, best, NULL};
    t.ask.choice.cuts = cuts;
    t.ask.effort.below_step = best->step;
    return diag_accepts(try_cuts, &t) ? t.p : NULL;
}

static Plan *move_cut(const Candidate *k, const Ask *ask, const Plan *best, int i, int to)
{
    Ints *cuts = alloc(sizeof *cuts);
    part_cuts(best, cuts);
    int before = i ? cuts->at[i - 1] : -1, after = i + 1 < cuts->n ? cuts->at[i + 1] : k->g->nf - 1;
    if (to <= before || to >= after)
        return NULL;
    cuts->at[i] = to;
    return plan_with(k, ask, best, cuts);
}

void polish_above(Candidate *k, Ns expected)
{
    int most = TRIED / k->g->nf;
    Ints *cuts = alloc(sizeof *cuts);        /* the plan that is taken keeps them in its question */
    Plan *best = k->best;
    if (!is_free(k) || best->step <= expected + expected / 1024 || !part_cuts(best, cuts))
        return;
    Ask quick = k->ask;                 /* any arena that fits, until the last move */
    quick.trials = trials_of(&k->ask);
    Candidate first = candidate_with(k, &quick);
    first.seen = seen_new();
    for (int i = 0, trials = 0, idle = 0; idle < cuts->n && trials < most && !is_spent(k); i = (i + 1) % cuts->n) {
        Plan *was = best;
        for (int n = 0; n < 6 && best == was; n++, trials++) {
            int to = cuts->at[i] + (n % 2 ? 1 << n / 2 : -(1 << n / 2));
            Plan *p = move_cut(&first, &quick, best, i, to);
            Plan *old = promises(p, best) ? best : p;
            if (old == best) {
                best = p;
                cuts->at[i] = to;
            }
            if (old && old != k->best)
                plan_drop(old);
        }
        idle = best == was ? idle + 1 : 0;
    }
    Ask full = k->ask;
    if (is_spent(k))            /* for what was found, where looking for it took all */
        full.work = purse_new(NULL, QUESTION_WORK);
    best = best == k->best ? NULL : plan_with(k, &full, k->best, cuts);
    if (!best || !better(best, k->best))
        return;
    k->best = best;
    tell(k);
}

void polish(Candidate *k)
{
    polish_above(k, k->best->predicted.value);
}
