/* SPDX-License-Identifier: Apache-2.0
 *
 * least.c: the plan of least bytes that some questions find, whatever limit was asked.
 *
 * Problem: planners fill what a limit allows, and packing needs some bytes more.  Near the least limit it is luck whether the
 * cuts and fates of a limit pack.  So a limit may have no plan, though a smaller one has.  Users of other systems find such
 * limits by trial.
 *
 * Method: the question for any plan is asked with targets that follow from the model alone.  A target is what planners fill,
 * and a plan is taken with the arenas that it has, which are mostly a little larger: so one plan says what a limit has to be,
 * and none is packed again and again to fit a limit that nobody asked for.  Targets begin at what the cheapest fates of the
 * best cut need, go up until there is a plan, then down to where there is none, or a larger one.  Since luck is not monotone,
 * a few limits below the answer are tried too, with all remedies of a search.
 *
 * Where chunks share a device, the need is no bound, and packing decides.  Cuts that are fast may then pack better than those
 * that need least.  So the plan that is expected to be the fastest is asked for too, under a few targets of its own.
 *
 * The search for fast plans falls back on the plan of least bytes, and a report promises those bytes.  So a promise does not
 * depend on the limit that was asked, it holds, and so does each larger limit.
 *
 * Cost: LEAST_WORK and LEAST_STEPS in all, of which a question has a part; and where chunks share a device LEAST_FAST questions
 * more, of QUESTION_WORK each, and as many steps.  Not handled: a plan of fewer bytes that these questions do not meet.
 */
#include "least.h"
#include "budgets.h"
#include "passes.h"
#include "search.h"
#include <string.h>

#define NONE INT64_MAX

typedef struct {
    const Options *x;
    const Model *m;
    bool scaled;
    Bytes most;                 /* scaled: the largest memory, of which others have their part */
    int64_t work, steps;
    Bytes fits;                 /* 0: none is known */
    Bytes none;                 /* the largest target that had no plan */
    Plan *best;                 /* of fits */
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
 * expected to be the fastest. */
typedef enum { WHOLE, ONCE, FAST } How;

/* Any plan under a limit, for a part of what is left. */
static Plan *ask(Least *l, Bytes limit, bool no_offload, How how, Plan **failed)
{
    const int64_t part = l->work < LEAST_QUESTION ? l->work : LEAST_QUESTION, work = how == FAST ? QUESTION_WORK : part;
    int64_t *steps = alloc(sizeof *steps);
    *steps = LEAST_STEPS / LEAST_FAST;
    Ask one = {.first_fit = how != FAST, .any_arena = how != WHOLE, .unproven = how == FAST, .no_offload = no_offload,
               .work_left = alloc(sizeof work), .steps_left = how == FAST ? steps : &l->steps};
    *one.work_left = work;
    Plan *p = search_with(l->x, limited(l, limit), &one, failed);
    l->work -= how == FAST ? 0 : work - *one.work_left;
    return p;
}

/* The limit that the plan of this question wants, NONE if there is no plan. */
static Bytes try_limit(Least *l, Bytes limit, bool no_offload, How how)
{
    void *mark = mem_mark();
    Plan *failed, *p = ask(l, limit, no_offload, how, &failed);
    Bytes fits = p ? wanted(l, p) : NONE;
    if (p && (!l->fits || fits < l->fits)) {
        l->fits = fits;
        l->best = p;
        return fits;
    }
    mem_release(mark);
    l->none = !p && how == ONCE && limit > l->none ? limit : l->none;
    return fits;
}

/* What the cheapest fates need, under the cut that needs least; 0: there is no cut. */
static Bytes need_of(Least *l)
{
    Plan *failed = NULL;
    int64_t work = BLAME_WORK;          /* of a plan that is not kept */
    Bytes beside = 0;
    if (ask(l, 1, false, WHOLE, &failed) || !failed || !plan_chunks(failed))
        return 0;
    Plan with = *failed;
    with.ask.work_left = &work;
    if (with.chunk.n == 0)
        part_blame(&with);
    for (int d = 0; d < l->m->devices.n; d++)
        beside = taken(&l->m->devices.at[d]) > beside ? taken(&l->m->devices.at[d]) : beside;
    return with.shortfall.device >= 0 ? with.shortfall.need + beside : 0;
}

/* Targets up from the need to one that has a plan, by a 64th of it, then by twice as much each time; down likewise to one that
 * has none, or a larger one; then by halves.  Then a few limits below the arenas that were met, each with all remedies, since
 * luck is not monotone.  Until so much work is left. */
static void search_down(Least *l, Bytes need, bool no_offload, int64_t work)
{
    l->none = 0;
    Bytes target = need, more = need / 64 + 1, fails = 0, met = NONE;
    Bytes pairs = 2 * l->m->devices.n * transport_of(l->m)->pair;       /* at most, of messages; no need has them */
    for (; met == NONE && target < 8 * need + pairs && l->work > work; more *= 2) {
        met = try_limit(l, target, no_offload, ONCE);
        target += met == NONE ? more : 0;
    }
    for (more = need / 64 + 1; target > more && !fails && l->work > work; more *= 2) {
        Bytes lower = try_limit(l, target - more, no_offload, ONCE);
        fails = lower > met ? target - more : 0;
        target -= lower > met ? 0 : more;
        met = lower < met ? lower : met;
    }
    while (target - fails > target / 1024 + 1 && l->work > work) {
        Bytes middle = fails + (target - fails) / 2;
        Bytes lower = try_limit(l, middle, no_offload, ONCE);
        *(lower > met ? &fails : &target) = middle;
        met = lower < met ? lower : met;
    }
    for (int k = 1; k <= LEAST_PROBES && l->fits - l->fits / 256 * k > l->none && l->work > work; k++) {
        Bytes was = l->fits;
        try_limit(l, l->fits - l->fits / 256 * k, no_offload, WHOLE);
        k = l->fits < was ? 0 : k;
    }
}

/* Where copies may be made, first without them: that costs a tenth. */
static Bytes least_of(Least *l)
{
    const Bytes need = need_of(l);
    const bool copies = l->m->plan.offload == OFFLOAD_AUTO;
    if (!need)
        return 0;
    if (copies)
        search_down(l, need, true, l->work / 2);
    search_down(l, need, false, 0);
    const bool shared = l->best && plan_chunks(l->best) > plan_stages(l->best);
    for (int k = 0; shared && k < LEAST_FAST; k++)
        try_limit(l, need - need / 128 * k, copies, FAST);
    return l->fits;
}

Bytes least_limit(const Options *x, const Model *m)
{
    Least l = {.x = x, .m = m, .work = LEAST_WORK, .steps = LEAST_STEPS};
    return least_of(&l);
}

Plan *least_plan(const Options *x, const Model *m, Bytes *least)
{
    const bool scaled = !are_equal(m);
    Least l = {.x = x, .m = m, .scaled = scaled, .most = most_of(m), .work = LEAST_WORK, .steps = LEAST_STEPS};
    Bytes fits = least_of(&l);
    *least = scaled ? 0 : fits ? fits : -1;
    if (!l.best || fits > l.most)
        return NULL;
    Plan *p = under_limits(l.best, m);
    p->proof.bound = 0;         /* it was of smaller limits */
    p->proof.note = "the plan of least bytes: the search for faster plans found none";
    return p;
}
