/* SPDX-License-Identifier: Apache-2.0
 *
 * candidate.c: the plan of one candidate, from its first round through the table of remedies.
 *
 * A planner expects bytes and times; packing, and copies to the host, may undo what it expected.  Each remedy is a row of
 * remedies.def: when it applies, and what it does.  list.c goes from row to row only while the candidate can still become
 * the best.
 *
 * Cost: a plan of all passes for each round; budgets.h has the numbers.
 */
#include "search.h"
#include "budgets.h"
#include "exact/exact.h"
#include "moves.h"
#include "planner.h"

Bytes *least_memory(const Model *m, int stages)
{
    int devices = devices_for(m, stages);
    Bytes *limit = alloc(sizeof *limit * (size_t)devices);
    for (int d = 0; d < devices; d++)
        limit[d] = m->devices.at[d].memory;
    for (int copy = 1, d = stages; copy < m->plan.replicas; copy++)
        for (int s = 0; s < stages; s++) {
            const int turns = m->plan.widths.n ? m->plan.replicas / m->plan.widths.at[s] : 1;
            if (copy % turns == 0 && limit[d++] < limit[s])
                limit[s] = limit[d - 1];
        }
    return limit;
}

bool better(const Plan *a, const Plan *b)
{
    Bytes x = 0, y = 0;
    for (int d = 0; d < a->devices; d++)
        x += a->dev.at[d].arena;
    for (int d = 0; d < b->devices; d++)
        y += b->dev.at[d].arena;
    return a->step != b->step ? a->step < b->step : x < y;
}

bool is_exact(const Candidate *k)
{
    return planner_named(k->ask.choice.planner ? k->ask.choice.planner : k->m->plan.planner)->complete;
}

bool is_spent(const Candidate *k)
{
    return purse_left(k->ask.work) <= 0;
}

bool is_free(const Candidate *k)
{
    return is_exact(k) && !k->ask.effort.first_fit && !(k->ask.choice.cuts ? k->ask.choice.cuts->n : k->m->plan.cuts.n);
}

Proof below_step(Proof known, const Plan *p)
{
    known.bound = known.bound < p->step ? known.bound : p->step;
    return known;
}

static Bytes alive(const Plan *p)
{
    Bytes sum = 0;
    for (int d = 0; d < p->devices; d++)
        sum += p->dev.at[d].bound;
    return sum;
}

bool promises(const Plan *p, const Plan *best)
{
    return p && (!best || p->step < best->step || (p->step == best->step && alive(p) < alive(best)));
}

/* ---- one round ----------------------------------------------------------------------------------------------------- */

Plan *pass(const Candidate *k, const Ask *ask, const Bytes *limit, Verdict *why)
{
    Plan *p = new_plan(k->g, k->c, k->m, k->stages, k->schedule->name, ask);
    p->key = k->key;
    p->seen = k->seen;
    purse_spend(ask->work, (int64_t)k->g->op.n * PASSES);
    *why = run(k->x, p, limit);
    int64_t work = -(int64_t)k->g->op.n * PASSES;
    for (int d = 0; d < p->devices; d++)
        work += p->dev.at[d].ticks * LAID_OUT;
    purse_spend(ask->work, work > 0 ? work : 0);
    return p;
}

Plan *pass_wide(const Candidate *k, Bytes *limit, Verdict *why)
{
    static const int parts[] = {1, 4, 16, 32, 96};          /* of 32 */
    Plan *first = pass(k, &k->ask, limit, why);
    Bytes *more = alloc(sizeof *more * (size_t)first->devices);
    bool none = *why == NO_PLAN && first->predicted.value == 0 && first->shortfall.device < 0 && first->step == 0;
    bool open = none && k->m->plan.offload != OFFLOAD_NONE && !k->ask.choice.no_offload;
    for (size_t i = 0; open && !is_spent(k) && i < sizeof parts / sizeof *parts; i++) {
        for (int d = 0; d < first->devices; d++)
            more[d] = limit[d] + limit[d] / 32 * parts[i];
        Plan *p = pass(k, &k->ask, more, why);
        if (*why == NO_PLAN)
            continue;
        memcpy(limit, more, sizeof *more * (size_t)first->devices);
        return p;
    }
    return first;
}

/* Any plan will do, and one that fills its devices to the brim does not pack: at first packing has its room. */
static Plan *pass_spare(const Candidate *k, Bytes *limit, Verdict *why)
{
    const int devices = devices_for(k->m, k->stages);
    Bytes *less = alloc(sizeof *less * (size_t)devices);
    for (int d = 0; d < devices; d++)
        less[d] = limit[d] - limit[d] / (PACKED_PART / 2);
    Plan *p = pass_wide(k, less, why);
    if (*why == NO_PLAN)
        return pass_wide(k, limit, why);
    memcpy(limit, less, sizeof *less * (size_t)devices);
    return p;
}

Plan *in_full(const Options *x, Plan *p, const Ints *cuts, int64_t work)
{
    Ask ask = p->ask;
    Candidate k = {.x = x, .g = p->g, .c = p->c, .m = p->m, .stages = plan_stages(p), .schedule = schedule_of(p->schedule),
                   .key = p->key};
    Verdict why;
    ask.work = purse_new(NULL, work);
    ask.trials = NULL;
    ask.choice.cuts = cuts;
    ask.effort.cutoff = ask.effort.below_step = 0;
    ask.effort.unseeded = false;
    Plan *full = pass(&k, &ask, p->target, &why);
    if (why != PLANNED || full->step > p->step)
        return p;
    full->proof = below_step(p->proof, full);
    return full;
}

Candidate candidate_with(const Candidate *k, const Ask *ask)
{
    return (Candidate){.x = k->x, .g = k->g, .c = k->c, .m = k->m, .stages = k->stages, .schedule = k->schedule, .ask = *ask,
                       .key = k->key};
}

bool candidate_predicts(const Candidate *k)
{
    return is_exact(k) && !k->ask.effort.first_fit && !k->schedule->async;
}

Ns candidate_least(const Candidate *k)
{
    void *mark = mem_mark();
    Plan *p = new_plan(k->g, k->c, k->m, k->stages, k->schedule->name, &k->ask);
    Ns bound = INT64_MAX;
    if (!order(p)) {
        Question q = part_question(p, least_memory(k->m, k->stages));
        bound = bound_closed(facts_of(&q));
    }
    mem_release(mark);
    return bound;
}

void candidate_start(Candidate *k, Ns cutoff)
{
    k->seen = seen_new();
    k->limit = least_memory(k->m, k->stages);
    k->ask.effort.cutoff = candidate_predicts(k) && !k->grows ? cutoff : 0;
    k->first = k->failed = k->ask.effort.spare ? pass_spare(k, k->limit, &k->why) : pass_wide(k, k->limit, &k->why);
    k->best = k->why == PLANNED ? k->first : NULL;
    k->proof = k->first->predicted;
}

/* ---- the table of remedies ------------------------------------------------------------------------------------------- */

static bool was_packed(const Candidate *k)
{
    return k->why == OVER_DEVICE;
}

/* The cuts were chosen for other fates, or by prices of copies, which are near. */
static bool was_changed(const Candidate *k)
{
    return k->best && (k->best != k->first || k->best->host.n > 0);
}

static bool is_full(const Candidate *k)
{
    return !k->best && k->failed->shortfall.stuck && is_free(k) && k->failed->chunk.n > 0;
}

/* With a step to beat, a plan that does not fit is no reason to ask for a slower one: nor has_cuts(). */
static bool lacks_slack(const Candidate *k)
{
    return !k->best && !k->ask.effort.cutoff && k->ask.choice.copy_slack == COPY_SLACK_ALL && k->failed->host.n > 0 &&
           !k->failed->shortfall.host;
}

/* The fastest plans were too tight to pack. */
static bool has_cuts(const Candidate *k)
{
    return !k->best && !k->ask.effort.cutoff && is_exact(k) && !k->ask.effort.first_fit && k->failed->chunk.n > 0;
}

/* Chunks share a device. */
static bool has_shared_devices(const Candidate *k)
{
    int chunks = k->ask.choice.map ? k->ask.choice.map->n : k->m->plan.map.n;
    return is_exact(k) && !k->ask.effort.first_fit && (k->m->plan.chunks > 1 || chunks > k->stages);
}

bool candidate_is_open(const Candidate *k)
{
    return k->best && k->best->step > k->proof.bound && is_exact(k) && !k->ask.effort.first_fit &&
        k->m->plan.offload == OFFLOAD_AUTO && !k->ask.choice.no_offload;
}

static bool chose_cuts(const Candidate *k)
{
    return is_free(k) && k->failed->chunk.n > 0 && plan_chunks(k->failed) > 1;
}

/* ---- once the work of the search is done ------------------------------------------------------------------------------ */

static bool is_needed(const Candidate *k)
{
    return !k->best;
}

/* Smaller graphs have begun with the answers of other planners, which may pack where `exact` has none that does.  The row has
 * work of its own. */
static bool is_unseeded(const Candidate *k)
{
    return (!k->best && !k->ask.effort.cutoff) || k->g->nf > OPS_MANY;
}

static const struct {
    const char *move;
    bool (*applies)(const Candidate *k);
    void (*run)(Candidate *k);
    bool (*late)(const Candidate *k);
    bool others;
} remedies[] = {
#define REMEDY(...) {__VA_ARGS__},
#include "remedies.def"
};
enum { REMEDIES = sizeof remedies / sizeof *remedies };

static bool is_late(const Candidate *k, int row)
{
    return is_spent(k) && !(remedies[row].late && remedies[row].late(k));
}

Bytes states_over(const Graph *g, const Model *m, int stages)
{
    const Bytes *limit = least_memory(m, stages);
    Bytes over = 0;
    for (int s = 0; s < g->state.n; s++)
        over += g->state.at[s].param >= 0 ? g->state.at[s].bytes : 0;
    for (int d = 0; d < stages && over > 0; d++)
        over -= limit[d] < over ? limit[d] : over;
    return m->train.shard ? 0 : over;
}

static bool refine(Candidate *k)
{
    if (k->report_only || (!k->best && k->why == NO_PLAN && plan_chunks(k->first) == 0))
        return false;           /* there are no lists: nothing to mend */
    if (!k->best && states_over(k->g, k->m, k->stages) > 0)
        return false;           /* no cut mends that */
    while (k->next < REMEDIES && !(k->alone && remedies[k->next].others)) {
        int row = k->next++;
        if (!remedies[row].applies(k) || !move_is_on(remedies[row].move))
            continue;
        if (!k->best && is_spent(k))
            k->failed->shortfall.open = true;
        if (is_late(k, row))
            continue;
        remedies[row].run(k);
        return true;
    }
    return false;
}

bool candidate_refine(Candidate *k, Ns cutoff)
{
    k->ask.effort.cutoff = candidate_predicts(k) && !k->grows ? cutoff : 0;
    return refine(k);
}

void candidate_finish(Candidate *k)
{
    k->alone = true;
    candidate_start(k, 0);
    while (refine(k))
        ;
}

/* Where its planner found nothing, or expected to be slower than the plan at hand, it is left for when nothing else fits. */
Ns candidate_promise(const Candidate *k)
{
    return !k->best && k->first->chunk.n == 0 ? INT64_MAX : candidate_predicts(k) ? k->proof.value : 0;
}
