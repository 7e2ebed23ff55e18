/* SPDX-License-Identifier: Apache-2.0
 *
 * least.c: the plan of least bytes that some questions find, whatever limit was asked.
 *
 * Problem: planners fill what a limit allows, and packing needs some bytes more.  Near the least limit it is luck whether the
 * cuts and fates of a limit pack.  So a limit may have no plan, though a smaller one has.  Users of other systems find such
 * limits by trial.
 *
 * Method: plans are asked for with targets that follow from the model alone.  A target is what planners fill, and a plan is
 * taken with the arenas that it has, which are mostly a little larger: so one plan says what a limit has to be, and none is
 * packed again and again to fit a limit that nobody asked for.  Targets begin at what the cheapest fates of the best cut need,
 * and go up until there is a plan.  Then they go down from its bytes, by ever smaller parts of them, while plans get smaller.
 * Fates of other planners, who compute all of a layer again, may pack in less than the cheapest: tinyllama in zb-h2 takes 6 %
 * less so.  Each of these planners is asked first.
 *
 * Where chunks share a device, packing decides, for their peaks need not meet.  The plan of a target far below the need may be
 * smaller than that of the need, so targets go down until a chunk alone has no room.  Cuts that are fast may pack better than
 * those that need least, and the first choices that fit may pack at the need itself.  Luck is not monotone, so a few limits
 * below the answer are tried at last, with all remedies of a search.
 *
 * The search for fast plans falls back on the fastest of these plans that fits, and a report promises the bytes of the least.
 * So a promise does not depend on the limit that was asked, it holds, and so does each larger limit.
 *
 * A step of very many micro-batches is asked for as a shorter one (shorter.c).  The plan of least bytes is then laid out in
 * full, and what that takes is promised.
 *
 * Cost: SEARCH_WORK in all, of which a question has a part, twice QUESTION_WORK of it for limits at last, and as much more
 * where chunks share a device; LEAST_STEPS of placement, and as many for fast plans; FIRST_WORK to make the plan faster that
 * is taken.  Not handled: a plan of fewer bytes that these questions do not meet.
 */
#include "search.h"
#include "budgets.h"
#include "passes.h"
#include "planner.h"

typedef struct {
    const Options *x;
    const Model *full, *m;      /* m: full, or a shorter step of it */
    bool scaled;
    Bytes most;                 /* the largest memory, of which others have their part; 0: nobody wants a plan under it */
    Purse *work, *trials;
    Bytes fits;                 /* 0: none is known */
    Bytes none[2];              /* by no_offload: the largest target for which no cut was found */
    const Planner *other;       /* the rival that is asked; NULL: the planner of the model is */
    Plan *best;                 /* of fits */
    Plan *fast;                 /* the fastest that was met and fits it */
} Least;

/* Of a limit, what no arena can have. */
static Bytes taken(const Device *k)
{
    return k->reserve + k->workspace;
}

static Bytes whole(const Device *k)
{
    return k->memory + taken(k);
}

static bool are_equal(const Model *m)
{
    bool same = true;
    for (int d = 0; d < m->devices.n; d++)
        same &= whole(&m->devices.at[d]) == whole(&m->devices.at[0]) && !m->devices.at[d].without;
    return same;
}

static Bytes most_of(const Model *m)
{
    Bytes most = 0;
    for (int d = 0; d < m->devices.n; d++)
        most = whole(&m->devices.at[d]) > most ? whole(&m->devices.at[d]) : most;
    return most;
}

/* As --limit would: a max_memory of plan.constraints stays above it. */
static const Model *limited(const Least *l, Bytes limit)
{
    Model *m = alloc(sizeof *m);
    *m = *l->m;
    memset(&m->devices, 0, sizeof m->devices);
    for (int d = 0; d < l->m->devices.n; d++) {
        Device *k = PUSH(&m->devices);
        *k = l->m->devices.at[d];
        Bytes bytes = l->scaled ? (Bytes)((double)limit / (double)l->most * (double)whole(k)) : limit;
        Bytes memory = bytes > taken(k) ? bytes - taken(k) : 1;
        k->memory = k->without && memory > k->memory ? k->memory : memory;
    }
    return m;
}

/* The limit that the arenas of a plan want. */
static Bytes wanted(const Least *l, const Plan *p)
{
    Bytes most = 0;
    for (int d = 0; d < p->devices; d++) {
        const Device *k = &p->m->devices.at[d];
        Bytes bytes = p->dev.at[d].arena + k->memory - p->dev.at[d].limit + taken(k);
        if (l->scaled)
            bytes = (Bytes)((double)bytes / (double)whole(same_device(l->m, k)) * (double)l->most) + 1;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ONCE: the limit is a target, and the first plan is taken with the arenas that it has.  FAST: likewise the plan that is
 * expected to be the fastest.  WHOLE: the first plan that fits, with all remedies of a search.  BRIEF: likewise, with the first
 * choices of fates. */
typedef enum { ONCE, FAST, WHOLE, BRIEF } How;

/* A plan under a limit, for a part of what is left. */
static Plan *ask(Least *l, Bytes limit, bool no_offload, How how, Plan **failed)
{
    Ask one = {.choice.no_offload = no_offload, .choice.planner = l->other ? l->other->name : NULL,
               .effort = {.first_fit = how != FAST, .any_arena = how < WHOLE, .unproven = how == FAST},
               .more = (l->full->train.micro - l->m->train.micro) / l->m->plan.replicas,
               .work = purse_new(l->work, how == FAST ? QUESTION_WORK : how == BRIEF ? 0 : 2 * ROW_WORK),
               .trials = how == FAST ? purse_new(NULL, LEAST_STEPS / TRIES) : l->trials};
    return search_with(l->x, limited(l, limit), &one, failed);
}

/* The bytes of the plan of this question; 0: it has none.  Where no cut was found for a target, whether there is none or the
 * work ended first, a smaller one is not asked for. */
static Bytes try_limit(Least *l, Bytes limit, bool no_offload, How how)
{
    const bool complete = how != FAST && !l->other;
    if (complete && limit <= l->none[no_offload])
        return 0;
    void *mark = mem_mark();
    Plan *failed, *p = ask(l, limit, no_offload, how, &failed);
    const Bytes fits = p ? wanted(l, p) : 0;
    if (complete && !p && failed && failed->chunk.n == 0)
        l->none[no_offload] = limit;
    const bool least = p && (!l->fits || fits < l->fits), fast = p && fits <= l->most && (!l->fast || better(p, l->fast));
    Plan *old[] = {l->best, l->fast};
    if (least)
        l->fits = fits, l->best = p;
    if (fast)
        l->fast = p;
    for (int i = 0; i < 2; i++)
        if (old[i] && old[i] != l->best && old[i] != l->fast)
            plan_drop(old[i]);
    if (!least && !fast)
        mem_release(mark);
    return fits;
}

static bool is_smaller(Least *l, Bytes limit, bool no_offload, How how)
{
    const Bytes before = l->fits, now = try_limit(l, limit, no_offload, how);
    return now && now < before;
}

/* What the cheapest fates need, under the cut that needs least; 0: there is no cut. */
static Bytes need_of(Least *l)
{
    Plan *failed = NULL;
    Bytes beside = 0;
    if (ask(l, 1, false, WHOLE, &failed) || !failed || !plan_chunks(failed))
        return 0;
    Plan with = *failed;
    with.ask.work = purse_new(NULL, QUESTION_WORK);
    if (with.chunk.n == 0)
        part_blame(&with);
    for (int d = 0; d < l->m->devices.n; d++)
        beside = taken(&l->m->devices.at[d]) > beside ? taken(&l->m->devices.at[d]) : beside;
    return with.shortfall.device >= 0 ? with.shortfall.need + beside : 0;
}

/* Targets from the need up to one that has a plan, by a 64th of it, then by twice as much each time. */
static void search_up(Least *l, Bytes need, bool no_offload)
{
    const Bytes most = 8 * need + 2 * l->m->devices.n * transport_of(l->m)->pair;      /* messages, which no need has */
    for (Bytes target = need, more = need / 64 + 1; need && target < most && !l->fits && purse_left(l->work); more *= 2) {
        try_limit(l, target, no_offload, ONCE);
        target += more;
    }
}

/* Targets below the least plan so far, by a quarter of it, then by half as much each time one has no plan, or a larger one. */
static void search_down(Least *l, bool no_offload, int64_t work)
{
    for (int part = 4; l->fits && part <= 1024 && purse_left(l->work) > work;)
        part *= is_smaller(l, l->fits - l->fits / part, no_offload, ONCE) ? 1 : 2;
}

/* Each other planner near the least plan so far, and as far down as it comes.  The one that found the least; NULL: none.  A
 * large graph has no work for them. */
static const Planner *ask_others(Least *l, bool no_offload)
{
    const PlanSpec *plan = &l->m->plan;
    const bool open = planner_named(plan->planner)->complete && !plan->cuts.n && l->best->g->nf <= OPS_MANY;
    const Planner *found = NULL;
    for (const Planner *r = planners; open && r->name; r++) {
        const Bytes before = l->fits;
        if (r->blind || l->best->g->nf > r->rival)
            continue;
        l->other = r;
        const Bytes now = try_limit(l, before - before / 256, no_offload, ONCE);
        if (now && now - now / 16 <= before)
            search_down(l, no_offload, SEARCH_WORK / 4);
        found = l->fits < before ? r : found;
    }
    l->other = NULL;
    return found;
}

/* Targets from `target` down, such a part of it apart, and below each plan that is smaller; until so many in a row are not. */
static void search_near(Least *l, Bytes target, bool no_offload, How how, int part, int tries)
{
    const Bytes less = target / part;
    for (int failed = 0; failed < tries && purse_left(l->work); failed++) {
        failed = is_smaller(l, target, no_offload, how) ? -1 : failed;
        target = target - less < l->fits - less / 2 ? target - less : l->fits - less / 2;
    }
}

/* Where chunks share a device, with work of its own: limits from a little below the need up to the least plan; targets down
 * from the need by a 16th of it, then by smaller parts once there is no plan; fast plans of the lowest targets. */
static void search_shared(Least *l, Bytes need, bool no_offload)
{
    Bytes low = need;
    l->work = purse_new(NULL, 2 * QUESTION_WORK);
    for (Bytes limit = need - need / 32; limit < l->fits && purse_left(l->work); limit += need / 64 + (need < 64))
        try_limit(l, limit, no_offload, BRIEF);
    for (int part = 16; part <= 64 && purse_left(l->work);)
        if (try_limit(l, low - need / part, no_offload, ONCE))
            low -= need / part;
        else
            part *= 2;
    search_near(l, low + need / 64 * ROUNDS, no_offload, FAST, 64, TRIES);
}

/* What a shorter step found, in full: more buffers take turns there, and may take more. */
static Plan *lengthen(const Least *l, const Plan *p)
{
    Plan any = *p;
    any.ask.effort.any_arena = true;
    return lengthened(l->x, l->full, &any);
}

static void lengthen_both(Least *l)
{
    Plan *fast = l->fast && l->fast != l->best ? lengthen(l, l->fast) : NULL;
    l->best = lengthen(l, l->best);
    l->fits = l->best ? wanted(l, l->best) : 0;
    l->fast = fast && wanted(l, fast) <= l->most ? fast : l->fits && l->fits <= l->most ? l->best : NULL;
}

/* Where copies may be made, first without them: that costs a tenth. */
static Bytes least_of(Least *l)
{
    const bool copies = l->full->plan.offload == OFFLOAD_AUTO;
    l->m = shorter(l->x, l->full, 1, 0);
    Bytes need = need_of(l);
    if (!need && l->m != l->full) {         /* no list is alike */
        l->m = l->full;
        need = need_of(l);
    }
    search_up(l, need, copies);
    search_up(l, need, false);
    if (!l->best)
        return 0;
    const bool shared = plan_chunks(l->best) > plan_stages(l->best);
    const Planner *found = ask_others(l, copies);
    if (shared) {
        search_near(l, need, copies, FAST, 128, TRIES);
    } else {
        if (copies)
            search_down(l, true, SEARCH_WORK / 4 * 3);
        search_down(l, false, SEARCH_WORK / 2);
    }
    l->work = purse_new(l->work, 2 * QUESTION_WORK);
    for (l->other = found; found; l->other = found = NULL)
        search_near(l, l->fits - l->fits / 256, copies, WHOLE, 256, TRIES);
    search_near(l, l->fits - l->fits / 256, copies, WHOLE, 256, TRIES);
    if (shared)
        search_shared(l, need, copies);
    if (l->m != l->full)
        lengthen_both(l);
    return l->fits;
}

Bytes least_limit(const Options *x, const Model *m)
{
    Least l = {.x = x, .full = m, .m = m, .work = purse_new(NULL, SEARCH_WORK), .trials = purse_new(NULL, LEAST_STEPS)};
    return least_of(&l);
}

/* The plan of least bytes, faster where limits leave it room: its cuts with prices of their fates, then cuts near them. */
static Plan *hasten(const Least *l, Plan *p)
{
    Ints *cuts = alloc(sizeof *cuts);
    if (l->m != l->full || !part_cuts(p, cuts))
        return p;
    Options quiet = *l->x;
    quiet.dump = NULL;
    Candidate k = {.x = &quiet, .g = p->g, .c = p->c, .m = p->m, .stages = plan_stages(p), .schedule = schedule_of(p->schedule),
                   .key = p->key, .ask = {.choice = p->ask.choice, .work = purse_new(NULL, FIRST_WORK),
                                          .layouts = purse_new(NULL, SEARCH_STEPS)}};
    k.ask.choice.cuts = cuts;
    k.ask.choice.planner = NULL;
    candidate_finish(&k);
    k.best = k.best && better(k.best, p) ? k.best : p;
    k.ask.choice.cuts = NULL;
    polish_above(&k, 0);
    k.best->proof = p->proof;
    return k.best;
}

Plan *least_plan(const Options *x, const Model *m, Bytes *least)
{
    const bool scaled = !are_equal(m);
    Least l = {.x = x, .full = m, .m = m, .scaled = scaled, .most = most_of(m), .work = purse_new(NULL, SEARCH_WORK),
               .trials = purse_new(NULL, LEAST_STEPS)};
    Bytes fits = least_of(&l);
    *least = scaled ? 0 : fits ? fits : -1;
    if (!l.fast)
        return NULL;
    Plan *first = under_limits(l.fast, m), *p = hasten(&l, first);
    p->proof.bound = 0;         /* it was of smaller limits */
    p->proof.note = p == first && l.fast == l.best ? "the plan of least bytes: the search for faster plans found none"
        : "near the plan of least bytes: the search for faster plans found none";
    return p;
}
