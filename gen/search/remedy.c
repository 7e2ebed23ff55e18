/* SPDX-License-Identifier: Apache-2.0
 *
 * remedy.c: rows of the table in candidate.c that plan the same question in another way.
 *
 * Trials that only have to show whether they can win are laid out no lower than the limit asks, and share one budget of
 * placement steps.  A trial that can win is laid out again in full.
 */
#include "search.h"
#include "budgets.h"
#include "planner.h"

static void take(Candidate *k, Plan *p, Proof proof)
{
    if (k->best && k->best != k->first && k->best != p)
        plan_drop(k->best);
    k->best = p;
    k->proof = proof;
}

/* The bound of the candidate's own planner holds for every plan of its space; what fits nowhere has no bound. */
static Proof proof_of(const Candidate *k, const Plan *before, const Plan *p, const char *note)
{
    Proof known = k->proof;
    known.bound = before ? known.bound : 0;
    known.note = note;
    return below_step(known, p);
}

/* The same question in another way, as far as packing. */
static Candidate asked(const Candidate *k, const Ask *ask)
{
    Candidate with = candidate_with(k, ask);
    candidate_start(&with, 0);
    if (with.why == OVER_DEVICE)
        repack(&with);
    return with;
}

void cut_slack(Candidate *k)
{
    for (CopySlack slack = COPY_SLACK_SECOND; slack <= COPY_SLACK_NONE && !k->best && k->failed->host.n > 0; slack++) {
        Ask ask = k->ask;
        ask.choice.copy_slack = slack;
        Candidate with = asked(k, &ask);
        if (with.best && (with.best != with.first || with.best->host.n > 0))
            polish(&with);
        if (with.best)
            take(k, with.best, with.proof);
        else if (with.failed->routine.n > 0 && with.failed->shortfall.need < k->failed->shortfall.need)
            k->failed = with.failed;            /* lacks less: so much is needed */
    }
}

void stay_home(Candidate *k)
{
    Ask ask = k->ask;
    ask.choice.no_offload = true;
    ask.work = purse_new(NULL, FIRST_WORK);      /* of its own: prices of copies may have spent the rest */
    Candidate with = candidate_with(k, &ask);
    Ns cutoff = k->best ? k->best->step : 0;
    candidate_start(&with, cutoff);
    while (candidate_refine(&with, cutoff))
        ;
    if (with.best && (!k->best || better(with.best, k->best)))
        take(k, with.best, proof_of(k, k->first->chunk.n ? k->first : NULL, with.best, "nothing is copied to the host"));
}

void take_any(Candidate *k)
{
    Ask ask = k->ask;
    ask.effort.first_fit = true;
    ask.layouts = purse_new(NULL, SEARCH_STEPS);      /* of its own: it is the last that may find a plan */
    Candidate with = asked(k, &ask);
    if (!with.best)
        return;
    with.proof.value = k->proof.value;
    with.proof.alone = k->proof.alone;
    take(k, with.best, with.proof);
}

/* A cut has one message or more under way for each value that crosses it. */
void take_narrow(Candidate *k)
{
    Ask ask = k->ask;
    for (ask.choice.narrow = MOST_REQUESTS / 2; !k->best && ask.choice.narrow > 0 && !is_spent(k); ask.choice.narrow /= 2) {
        Candidate with = asked(k, &ask);
        if (with.best)
            take(k, with.best, proof_of(k, NULL, with.best, "cuts that fewer values cross"));
    }
}

/* The whole plan of one planner; NULL: it has none. */
static Plan *plan_of_rival(const Candidate *k, const Ask *as, const char *name, Purse *trials)
{
    Ask ask = *as;
    ask.choice.planner = name;
    ask.trials = trials;
    ask.effort.below_step = k->best ? k->best->step : 0;
    Candidate with = candidate_with(k, &ask);
    candidate_finish(&with);
    if (with.first != with.best)
        plan_drop(with.first);
    return with.best;
}

/* May a rival still win what counts?  `exact` has begun with the answers of those that are cheap for this graph.  The plan of
 * least bytes asks no others. */
static bool may_win(const Candidate *k, const Planner *r, bool right)
{
    int n = k->g->nf;
    if (k->ask.effort.any_arena && n > OPS_MANY)
        return false;
    bool near = k->best && k->best->step - k->proof.bound <= k->best->step / PACKED_PART;
    return n <= r->rival && !(right && n <= r->seed) && !(near && n > r->seed && n > OPS_MANY);
}

/* Graphs that no seed is asked for, and those that have spent the work of the search, have work of their own here. */
void ask_rivals(Candidate *k)
{
    const Plan *before = k->best;
    bool right = before && before->step <= k->proof.value;
    Purse *trials = trials_of(&k->ask);
    for (const Planner *r = planners; r->name; r++) {
        Ask ask = k->ask;
        if (!may_win(k, r, right))
            continue;
        if (is_spent(k) || k->g->nf > OPS_MANY)
            ask.work = purse_new(NULL, k->g->nf > OPS_MANY ? QUESTION_WORK : ROW_WORK);
        void *mark = mem_mark();
        Plan *p = plan_of_rival(k, &ask, r->name, trials);
        if (promises(p, k->best) && !k->ask.trials)
            p = in_full(k->x, p, p->ask.choice.cuts, QUESTION_WORK);
        if (!promises(p, k->best) || (k->best && !better(p, k->best)))
            mem_release(mark);
        else
            take(k, p, proof_of(k, before, p, strf("as %s cuts", r->name)));
    }
}

Bytes rung_below(Bytes limit, int steps)
{
    Bytes unit = 1;
    if (limit < 1)
        return 0;
    while ((limit - 1) / unit >= steps)
        unit *= 2;
    return (limit - 1) / unit * unit;
}

/* Does some device want so much more than it has that other fates of these cuts will not mend it? */
static bool is_far_over(const Plan *p)
{
    bool over = false;
    for (int d = 0; d < p->devices; d++)
        over |= p->dev.at[d].arena - p->dev.at[d].limit > p->dev.at[d].limit / SHARE_FAR;
    return over;
}

/* The plan under these targets, with a part of the work that is left.  False: there are no cuts. */
static bool try_targets(Candidate *k, const Bytes *target, int part)
{
    const int devices = devices_for(k->m, k->stages);
    Ask ask = k->ask;
    ask.work = purse_new(k->ask.work, purse_left(k->ask.work) / part);
    ask.effort.below_step = k->best ? k->best->step : 0;
    Candidate with = candidate_with(k, &ask);
    with.seen = seen_new();
    with.limit = alloc(sizeof *with.limit * (size_t)devices);
    memcpy(with.limit, target, sizeof *target * (size_t)devices);
    with.first = with.failed = pass_wide(&with, with.limit, &with.why);
    with.best = with.why == PLANNED ? with.first : NULL;
    with.proof = with.first->predicted;
    if (with.why == OVER_DEVICE && !(k->best && is_far_over(with.first)))
        repack(&with);
    if (with.best && (!k->best || better(with.best, k->best)))
        take(k, with.best, proof_of(k, k->best, with.best, with.best->predicted.note));
    return with.first->chunk.n > 0;
}

Bytes largest_arena(const Plan *p)
{
    Bytes most = 0;
    for (int d = 0; d < p->devices; d++)
        most = p->dev.at[d].arena > most ? p->dev.at[d].arena : most;
    return most;
}

/* Peaks of chunks that share a device need not meet, so targets above the limits may pack: each part of the work that is left
 * tries larger ones.  The cuts of such chunks are not proven, and those for less memory may be faster.  So a ladder of targets
 * follows, from what the plan at hand takes on: where that is below the limits, all larger ones have the same ladder. */
void share_limits(Candidate *k)
{
    static const int parts[] = {16, 8, 4, 2};
    enum { PARTS = sizeof parts / sizeof *parts };
    const Bytes *limit = least_memory(k->m, k->stages);
    const int devices = devices_for(k->m, k->stages);
    Bytes *target = alloc(sizeof *target * (size_t)devices);
    const Bytes most = k->best ? largest_arena(k->best) : INT64_MAX;
    for (int d = 0; d < devices; d++)
        target[d] = limit[d] < most ? limit[d] : most;
    bool open = k->best && !k->ask.effort.unseeded && k->best->step - k->proof.bound > k->proof.bound / 2;
    while (open && !is_spent(k)) {
        for (int d = 0; d < devices; d++)
            target[d] = rung_below(target[d], 2 * TRIES);
        open = target[0] > 0 && try_targets(k, target, TRIES);
    }
    const bool slow = !k->best || k->best->step - k->proof.alone > k->proof.alone / 128;
    for (int i = 0; slow && i < PARTS && !is_spent(k); i++) {
        for (int d = 0; d < devices; d++)
            target[d] = limit[d] + limit[d] / parts[i];
        try_targets(k, target, PARTS - i);
    }
}

/* ---- cuts that were expected to be nearly as fast -------------------------------------------------------------------- */

/* Given cuts; once: only if they fit as they are.  Under less memory nothing gets faster, so one that is slow then stays so. */
static Plan *lay_out(const Candidate *k, Cut *cut, int chunks, bool once, Purse *trials)
{
    Ints *cuts = alloc(sizeof *cuts);
    for (int c = 0; c + 1 < chunks; c++)
        *PUSH(cuts) = cut->last[c];
    Ask ask = k->ask;
    ask.choice.cuts = cuts;
    ask.trials = trials;
    ask.effort.below_step = k->best ? k->best->step : 0;
    Candidate with = candidate_with(k, &ask);
    if (!once) {
        candidate_finish(&with);
        return with.best;
    }
    Verdict why;
    with.seen = trials != k->ask.trials ? k->seen : NULL;
    Plan *p = pass(&with, &ask, least_memory(k->m, k->stages), &why);
    cut->slow = why == NO_PLAN && ask.effort.below_step > 0 && p->step > ask.effort.below_step;
    return why == PLANNED ? p : NULL;
}

/* Is the plan at hand slower than was expected?  Steps that overlap have no preview. */
static bool expects_less(const Candidate *k, const Plan *p)
{
    bool less = !k->best || k->best->step > k->proof.value || plan_chunks(p) > plan_stages(p);
    return less && k->g->nf <= OPS_SOME && !order_overlap(p);
}

/* Tries them in turn; how many were tried.  `i` is the last that won: the others only had to fit. */
static int try_all(Candidate *k, Cuts *all, const Plan *before, int chunks, bool once, Purse *trials)
{
    int i = 0, won = -1;
    for (; i < all->n && !is_spent(k) && i < TRIED / k->g->nf && (!k->best || all->at[i].value < k->best->step); i++) {
        if (all->at[i].slow)
            continue;
        void *mark = mem_mark();
        Plan *p = lay_out(k, &all->at[i], chunks, once, trials);
        if (promises(p, k->best)) {
            take(k, p, proof_of(k, before, p, "found by laying out what was predicted to be nearly as fast"));
            won = i;
        } else if (!once || all->at[i].slow) {      /* others laid out once share what k->seen keeps */
            mem_release(mark);
        }
    }
    Plan *full = won < 0 ? NULL : lay_out(k, &all->at[won], chunks, once, k->ask.trials);
    if (full && full->step <= k->best->step)
        k->best = full;
    return i;
}

/* Is the plan at hand much slower than the first cut of the list, or is there none? */
static bool is_far(const Candidate *k, const Cuts *list)
{
    return !k->best || (list->n && k->best->step - list->at[0].value > list->at[0].value / NEAR_PART);
}

/* Cuts have all remedies only where nothing fits: beside a plan these took up to a third of a search, and earned 0.04 %.
 * A preview gives each chunk all memory of its device, so where chunks share one the list of a larger limit may be full of cuts
 * that pack nowhere.  Lists of smaller limits have fewer of them, and a larger limit is to find what a smaller one does. */
void lay_out_others(Candidate *k)
{
    Cuts all = {0};
    const Plan *before = k->best;
    Plan *p = new_plan(k->g, k->c, k->m, k->stages, k->schedule->name, &k->ask);
    if (order(p))
        return;
    bool open = !k->best, ends = true;
    if (expects_less(k, p)) {
        Purse *trials = trials_of(&k->ask);
        const int rungs = plan_chunks(p) > plan_stages(p) ? TRIES : 0;
        Bytes *limit = least_memory(k->m, k->stages);
        k->seen = seen_new();   /* of layouts that only have to fit */
        for (int rung = 0; rung <= rungs && k->best == before && (!rung || (is_far(k, &all) && !is_spent(k))); rung++) {
            Cuts list = {0};
            const bool whole = part_below(p, limit, k->best ? k->best->step : INT64_MAX / 4, &list);
            const bool tried = try_all(k, &list, before, plan_chunks(p), true, trials) == list.n;
            if (rung == 0)          /* what the report says is of the limit that was asked */
                all = list, ends = whole, open &= !tried || !whole;
            for (int s = 0; s < k->stages; s++)
                limit[s] = rung_below(limit[s], 128);
        }
        open &= !k->best && (try_all(k, &all, before, plan_chunks(p), false, trials) < all.n || !ends);
    }
    if (!k->best && open) {
        Plan *with = alloc(sizeof *with);
        *with = *k->failed;
        with->shortfall.open = true;
        k->failed = with;
    }
}
