/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c: the loop of the search.
 *
 * Problem: a model may leave micro-batch, width, depth, schedule and warm-up open.  To plan one candidate to the end takes
 * tens to thousands of rounds of all passes, and most candidates never win.
 *
 * Method: best first.  Each candidate is planned once.  Its planner then expects a step, and packing makes nothing faster, so
 * that is its promise.  The candidate with the least promise gets its next remedy, until the least promise is no shorter than
 * the best plan at hand.  Candidates whose planner found nothing come last, and only while nothing fits.
 *
 * 1F1B* has a list only for depths that follow from a finished plan: when one is finished, its successors are appended.  The
 * leads and lags of zb* follow from cuts alone.
 *
 * Last of all, candidates that may still win are asked once more with sends that skip stages waited for later.  Their
 * bytes are held for longer, so neither choice is always the better one.  Then come exchanges of replicas in pieces.
 */
#include "search.h"
#include "key.h"
#include "budgets.h"
#include "list/transport.h"
#include "planner.h"
#include "rivals/madpipe.h"
#include "moves.h"
#include "tune/tune.h"

/* ---- the list -------------------------------------------------------------------------------------------------------- */

/* Plans with several chunks a device are many, for cuts that were expected to be slower may be faster. */
static void loosen(Search *s, Candidate *x)
{
    if (x->m->plan.chunks <= 1 || s->ask.trials || s->ask.effort.first_fit || !is_exact(x))
        return;
    if (!s->loose)
        s->loose = purse_new(NULL, SEARCH_STEPS);
    x->ask.trials = s->loose;
}

static Candidate *add(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    Candidate *x = PUSH(&s->all);
    *x = (Candidate){.x = s->x, .g = g, .c = c, .m = m, .stages = stages, .schedule = k, .ask = s->ask,
                     .key = numeric_key(g, m, c)};
    loosen(s, x);
    return x;
}

/* MadPipe chooses how many chunks there are and on which device, so it is asked before any list is made.  Without an answer,
 * `exact` says what is missing. */
static void map_chunks(Candidate *k)
{
    Plan *p = new_plan(k->g, k->c, k->m, k->stages, k->schedule->name, NULL);
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    MadPipe *found = alloc(sizeof *found);
    for (int d = 0; d < p->devices; d++)
        limit[d] = k->m->devices.at[d].memory;
    if (k->m->plan.chunks > 1 || k->m->plan.replicas > 1)
        err(k->m->plan.loc, NULL, "planner madpipe chooses the chunks; plan.chunks and plan.replicas are not for it");
    if (!madpipe(p, limit, found)) {
        k->ask.choice.planner = planners->name;
        k->report_only = true;
        return;
    }
    k->ask.choice.map = &found->map;
    k->ask.choice.cuts = &found->cuts;
    k->stages = found->devices;
    k->note = strf("%d pieces; a period of %.3f ms by MadPipe's program and 1F1B*", found->map.n, (double)found->period / 1e6);
}

/* Warm-up B of 1f1b holds more micro-batches, and waits less for messages.  A is the last: where neither fits, it lacks less.
 * With one stage, or two micro-batches, they are the same list. */
static void add_warmups(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    bool same = stages == 1 || g->micro / m->plan.replicas <= 2;
    if (!same)
        add(s, g, c, m, stages, k)->ask.choice.warmup = 1 + WARMUP_B;
    add(s, g, c, m, stages, k)->ask.choice.warmup = 1 + WARMUP_A;
}

/* Early merges use idle time, but a device waits for them.  Late ones are the last, for they need less memory. */
static void add_merges(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    add(s, g, c, m, stages, k)->ask.choice.early = true;
    add(s, g, c, m, stages, k);
}

static void add_row(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    if (k->ways > 1)
        add_merges(s, g, c, m, stages, k);
    else if (k->warmups && m->plan.warmup == WARMUP_AUTO)
        add_warmups(s, g, c, m, stages, k);
    else
        add(s, g, c, m, stages, k);
}

/* Those of every row that trains alike and may have these numbers; they are optimal's to begin with. */
static void add_seeds(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *schedule)
{
    s->improves = true;
    if (!s->ask.trials)                 /* one plan wins: the layouts of all others only have to fit */
        s->ask.trials = s->loose = trials_of(&s->ask);
    for (const Schedule *k = schedules; k->name; k++) {
        bool map = k->any_map || (m->plan.chunks > 1 ? k->folds : k->one_chunk);
        if (k->async || k->given || k->improves || k->ways > 1 || !map || order_refuses(g, m, k, stages))
            continue;
        int from = s->all.n;
        add_row(s, g, c, m, stages, k);
        for (int i = from; i < s->all.n; i++) {
            s->all.at[i].schedule = schedule;
            s->all.at[i].ask.choice.seed = k;
        }
    }
}

/* The row that its lists are of. */
static const Schedule *row_of(const Candidate *k)
{
    return k->ask.choice.seed ? k->ask.choice.seed : k->schedule;
}

void list_schedule(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    int from = s->all.n;
    const char *planner = s->ask.choice.planner ? s->ask.choice.planner : m->plan.planner;
    (k->improves ? add_seeds : add_row)(s, g, c, m, stages, k);
    for (int i = from; i < s->all.n; i++) {
        s->all.at[i].grows = row_of(&s->all.at[i])->depths;
        if (planner_named(planner)->map && !m->plan.map.n && !m->plan.cuts.n)
            map_chunks(&s->all.at[i]);
    }
}

/* ---- 1f1b* ----------------------------------------------------------------------------------------------------------- */

static Candidate *add_like(Search *s, const Candidate *like)
{
    const Schedule *seed = like->ask.choice.seed;
    Candidate *one = add(s, like->g, like->c, like->m, like->stages, like->schedule);
    one->ask.choice.seed = seed;
    return one;
}

/* The loads of a plan tell which depths a period needs, a plan with those depths has other loads: from 1F1B's own depths, or
 * one micro-batch in flight where those do not fit.  Where the step of that plan is near its bound, holding less is no use. */
static void add_depths(Search *s, const Candidate *k)
{
    const Candidate like = *k;
    if (!like.best)
        return;
    bool shallow = like.ask.choice.depth || like.best->step - like.proof.bound > like.proof.bound / NEAR_PART;
    Depths all = star_tries(like.best, shallow);
    for (int i = 0; i < all.n; i++) {
        Candidate *one = add_like(s, &like);
        one->ask.choice.depth = all.at[i];
        one->ask.effort.unproven = is_exact(one);
    }
}

static void add_shallow(Search *s, const Candidate *k)
{
    const Candidate like = *k;
    Ints *depth = alloc(sizeof *depth);
    for (int d = 0; d < like.stages; d++)
        *PUSH(depth) = 1;
    Candidate *one = add_like(s, &like);
    one->ask.choice.depth = depth;
    one->grows = true;
}

/* ---- zb* ------------------------------------------------------------------------------------------------------------- */

static const char *pace_text(const Ints *lead, const Ints *lag)
{
    const char *leads = "", *lags = "";
    for (int i = 0; i < lead->n; i++) {
        leads = strf("%s %d", leads, lead->at[i]);
        lags = strf("%s %s", lags, lag->at[i] < 0 ? "none" : strf("%d", lag->at[i]));
    }
    return strf("leads%s, lags%s", leads, lags);
}

/* Leads and lags for the cuts of a plan, from those of 1f1b on; then once more for the cuts that those have. */
static void add_paces(Search *s, const Candidate *k)
{
    const Candidate like = *k;
    Ints *lead = alloc(sizeof *lead), *lag = alloc(sizeof *lag);
    if (!paces_of(like.best ? like.best : like.first, least_memory(like.m, like.stages), lead, lag))
        return;
    Candidate *one = add_like(s, &like);
    one->ask.choice.lead = lead;
    one->ask.choice.lag = lag;
    one->note = pace_text(lead, lag);
    one->grows = !like.ask.choice.lead && !row_of(one)->joins;
}

/* From I to W a device holds more than 1f1b does.  Where nothing fits so, the lists of 1f1b come first, and then those that
 * have I and W apart on the devices with room. */
static void add_joined(Search *s, const Candidate *k)
{
    const Candidate like = *k;
    Ints *lead = alloc(sizeof *lead), *lag = alloc(sizeof *lag);
    for (int i = 0; i < like.stages; i++) {
        *PUSH(lead) = like.stages - 1 - i;
        *PUSH(lag) = -1;
    }
    Candidate *one = add_like(s, &like);
    one->ask.choice.lead = lead;
    one->ask.choice.lag = lag;
    one->note = pace_text(lead, lag);
    one->grows = true;
}

/* The first plan ends a search that asks for no more, and an interrupt any. */
static bool is_over(const Search *s)
{
    return busy_stopped() || ((s->ask.effort.first_fit || s->ask.effort.any_arena) && s->best >= 0);
}

/* ---- optimal --------------------------------------------------------------------------------------------------------- */

static Plans plans_like(const Search *s, const Candidate *like)
{
    Plans all = {0};
    for (int i = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        if (k->best && k->g == like->g && k->m == like->m && k->stages == like->stages && k->schedule == like->schedule)
            *PUSH(&all) = k->best;
    }
    return all;
}

/* Better lists for the cuts of the best plan; false: there are none. */
static bool add_lists(Search *s)
{
    if (s->best < 0 || is_over(s))
        return false;
    const Candidate like = s->all.at[s->best];
    Plans from = plans_like(s, &like);
    const Actions *lists = lists_of(like.best, least_memory(like.m, like.stages), &from);
    if (!lists)
        return false;
    Candidate *one = add_like(s, &like);
    one->ask.choice.lists = lists;
    one->note = "lists found by local search";
    return true;
}

/* Planners prove for one set of lists.  The bound of the best plan is over all lists, for its cuts. */
static void prove_lists(Search *s)
{
    Candidate *k = s->best < 0 ? NULL : &s->all.at[s->best];
    if (!k || s->ask.effort.any_arena || (!s->improves && plan_ways(k->best) == 1))     /* the bound counts on the limit */
        return;
    k->proof.bound = lists_bound(k->best, least_memory(k->m, k->stages));
    k->proof.space = lists_space;
    if (k->proof.bound > k->best->step)
        die("no lists were to be shorter than %lld ns, and these take %lld", (long long)k->proof.bound,
            (long long)k->best->step);
}

static bool has_beats(const Candidate *k)
{
    return row_of(k)->lead;
}

static void add_successors(Search *s, const Candidate *k)
{
    if (k->schedule->joins && !k->best && !k->ask.choice.lag)
        add_joined(s, k);
    else if (k->grows && has_beats(k))
        add_paces(s, k);
    else if (k->grows && !k->best && !k->ask.choice.depth)
        add_shallow(s, k);
    else if (k->grows)
        add_depths(s, k);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------- */

/* Does some device compute for less than a thirty-second of the step? */
static bool is_idle(const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        if (p->dev.at[d].busy < p->step / 32)
            return true;
    return false;
}

Ns with_idle(const Plan *p)
{
    return p->step + (is_idle(p) ? p->step / 64 : 0);
}

/* Beside a plan of fewer devices an idle one wins only by what is worth one. */
bool wins(const Plan *a, const Plan *b)
{
    return a->devices == b->devices || is_idle(a) == is_idle(b) ? better(a, b) : with_idle(a) < with_idle(b);
}

static Ns best_step(const Search *s)
{
    Ns best = s->best >= 0 ? with_idle(s->all.at[s->best].best) : s->cutoff;
    return s->cutoff > 0 && s->cutoff < best ? s->cutoff : best;
}

static void note_best(Search *s, int i)
{
    const Candidate *k = &s->all.at[i];
    if (k->best && !k->report_only && i != s->best && (s->best < 0 || wins(k->best, s->all.at[s->best].best)))
        s->best = i;
    if (s->best >= 0 && s->ask.work)
        s->ask.work->kept = 0;
}

/* Every candidate once, from `from` on. */
static void plan_each(Search *s, int from)
{
    for (int i = from, n = s->all.n - from; i < s->all.n && !is_over(s); i++) {
        Ask *ask = &s->all.at[i].ask;
        ask->effort.proofs = ask->effort.proofs > n ? ask->effort.proofs : n;
        busy_at(", plan %d of %d", i + 1, s->all.n);
        if (!s->all.at[i].done)
            candidate_start(&s->all.at[i], best_step(s));
        note_best(s, i);
        /* Leads and lags need the cuts of a plan, and not the best ones. 1f1b* needs its loads, so that is finished first. */
        Candidate *k = &s->all.at[i];
        if (!k->grows || !k->best || !has_beats(k))
            continue;
        k->grows = false;
        add_paces(s, k);
    }
}

/* The candidate with the least promise that is not done; -1: all are. */
static int most_promising(const Search *s)
{
    int found = -1;
    for (int i = 0; i < s->all.n; i++)
        if (!s->all.at[i].done && (found < 0 || candidate_promise(&s->all.at[i]) < candidate_promise(&s->all.at[found])))
            found = i;
    return found;
}

static bool is_hopeless(const Search *s, int i)
{
    Ns most = i == s->best ? s->cutoff : best_step(s);
    return most > 0 && candidate_promise(&s->all.at[i]) >= most;
}

static void refine_all(Search *s)
{
    for (int i; !is_over(s) && (i = most_promising(s)) >= 0;) {
        int known = s->all.n;
        if (!is_hopeless(s, i) && candidate_refine(&s->all.at[i], i == s->best ? s->cutoff : best_step(s))) {
            note_best(s, i);
            continue;
        }
        s->all.at[i].done = true;
        if (move_is_on("successors"))
            add_successors(s, &s->all.at[i]);
        plan_each(s, known);
    }
}

/* Of those tried without a proof, the one with the least expected step that is not above `most`; -1: there is none. */
static int next_unproven(const Search *s, Ns most)
{
    int found = -1;
    for (int i = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        bool open = k->ask.effort.unproven && k->proof.value > 0 && k->proof.value <= most;
        if (open && (found < 0 || k->proof.value < s->all.at[found].proof.value))
            found = i;
    }
    return found;
}

/* Depths were tried without proofs; the best few are asked for once more, with one. */
static void plan_whole(Search *s)
{
    for (int n = 0, i; n < ROUNDS && s->best >= 0 && !is_over(s); n++) {
        Ns best = s->all.at[s->best].best->step;
        if ((i = next_unproven(s, best + best / 8)) < 0 || (n > 0 && is_spent(&s->all.at[i])))
            return;
        const Candidate like = s->all.at[i];
        int at = s->all.n;
        s->all.at[i].ask.effort.unproven = false;
        Candidate *one = add_like(s, &like);
        one->ask.choice.depth = like.ask.choice.depth;
        plan_each(s, at);
        refine_all(s);
        if (s->best == i && s->all.at[at].best && !better(like.best, s->all.at[at].best))
            s->best = at;
    }
}

/* ---- depths of other planners ---------------------------------------------------------------------------------------- */

/* The plan of a rival under these lists; NULL: it has none, or one under depths that everybody tries. */
static const Plan *plan_of_rival(const Search *s, const Candidate *like, const char *name, Purse *trials)
{
    Search rival = {.x = s->x, .ask = s->ask, .best = -1};
    rival.ask.choice.planner = name;
    rival.ask.trials = trials;
    list_schedule(&rival, like->g, like->c, like->m, like->stages, like->schedule);
    search_all(&rival);
    const Plan *p = rival.best < 0 ? NULL : rival.all.at[rival.best].best;
    return p && p->ask.choice.depth ? p : NULL;
}

/* The depths that are tried follow from plans of this planner alone, and others may lead to a shorter step.  So those of a
 * rival that is faster are tried too, the fastest first. */
static void try_rival_depths(Search *s)
{
    const Candidate like = s->best < 0 ? s->all.at[0] : s->all.at[s->best];
    VEC(const Plan *) faster = {0};
    Purse *trials = trials_of(&s->ask);
    if (!is_free(&like) || !row_of(&like)->depths || has_beats(&like) || purse_left(trials) == 0)
        return;
    for (const Planner *r = planners; r->name && !is_over(s); r++) {
        const Plan *p = like.g->nf <= r->rival ? plan_of_rival(s, &like, r->name, trials) : NULL;
        if (p)
            *PUSH(&faster) = p;
    }
    for (int i = 0; i < faster.n; i++)
        for (int k = i + 1; k < faster.n; k++)
            if (faster.at[k]->step < faster.at[i]->step) {
                const Plan *one = faster.at[i];
                faster.at[i] = faster.at[k];
                faster.at[k] = one;
            }
    for (int i = 0; i < faster.n && (s->best < 0 || faster.at[i]->step < best_step(s)); i++) {
        int known = s->all.n;
        add_like(s, &like)->ask.choice.depth = faster.at[i]->ask.choice.depth;
        plan_each(s, known);
        refine_all(s);
    }
}

static const char far_note[] = "sends that skip stages are waited for when their readers have come to them";

static bool skips_stages(const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++) {
            const Action *k = &p->dev.at[d].list.at[i];
            int way = k->kind == K_SEND && k->tensor >= 0 ? plan_stage(p, k->peer) - plan_stage(p, d) : 0;
            if (way > 1 || way < -1)
                return true;
        }
    return false;
}

/* No plan, because another one was faster: with far sends that may change. */
static bool was_cut_off(const Candidate *k)
{
    return !k->best && k->why == NO_PLAN && k->proof.value > 0 && plan_chunks(k->first) > 0;
}

/* May far sends make it the best?  Where devices have no order yet, each order has asked. */
static bool may_far(const Search *s, int i, bool skips)
{
    const Candidate *k = &s->all.at[i];
    if (k->report_only || k->ask.choice.far || k->m->device_order == ORDER_FREE || !(k->best || was_cut_off(k)))
        return false;
    bool far = transport_may_far(k->best ? k->best : k->first) && (k->best ? skips_stages(k->best) : skips);
    return far && (i == s->best || k->proof.bound < best_step(s));
}

/* A candidate once more; its place. */
static int plan_far(Search *s, int i, bool home)
{
    const Candidate like = s->all.at[i];
    int at = s->all.n;
    Candidate *one = add_like(s, &like);
    one->ask = like.ask;
    one->ask.choice.far = true;
    one->ask.choice.no_offload |= home;
    one->ask.work = home ? purse_new(NULL, FIRST_WORK) : one->ask.work;
    const char *note = home ? strf("nothing is copied to the host; %s", far_note) : far_note;
    one->note = like.note ? strf("%s; %s", like.note, note) : note;
    plan_each(s, at);
    refine_all(s);
    return at;
}

/* Both kinds of lists were to choose from, so the bound is of both.  Copies are priced for slower than they are, and may hide
 * a plan that needs none. */
static void add_far(Search *s, int i)
{
    bool home = i == s->best && candidate_is_open(&s->all.at[i]);
    int at = plan_far(s, i, false);
    Ns *a = &s->all.at[i].proof.bound, *b = &s->all.at[at].proof.bound;
    *a = *b > 0 && *b < *a ? *b : *a;
    *b = *a < *b ? *a : *b;
    Ns bound = *a;
    if (home && bound < best_step(s))
        s->all.at[plan_far(s, i, true)].proof.bound = bound;
}

/* Nothing fits, and the cuts are given: other lists may. */
static void fit_far(Search *s)
{
    for (int i = 0, n = s->all.n; i < n && s->best < 0 && !is_over(s); i++) {
        const Candidate *k = &s->all.at[i];
        const Ints *cuts = k->ask.choice.cuts ? k->ask.choice.cuts : &k->m->plan.cuts;
        bool given = cuts->n > 0 && k->first->shortfall.device >= 0 && !k->ask.choice.far;
        if (given && k->m->device_order != ORDER_FREE && transport_may_far(k->first) && skips_stages(k->first))
            plan_far(s, i, false);
    }
}

/* The best one first, so the others have more to beat. */
static void try_far(Search *s)
{
    int best = s->best, n = s->all.n;
    if (best < 0)
        fit_far(s);
    bool skips = false;
    for (int i = 0; i < n; i++)
        skips |= s->all.at[i].best && skips_stages(s->all.at[i].best);
    for (int i = -1; best >= 0 && i < n && !is_over(s); i++) {
        int at = i < 0 ? best : i;
        if (i != best && may_far(s, at, skips))
            add_far(s, at);
    }
}

/* The best one first, so the others have more to beat. */
static void try_buckets(Search *s)
{
    const int best = s->best;
    for (int i = best < 0 ? 0 : -1; i < s->all.n && !is_over(s); i++)
        if (i != best && buckets_try(&s->all.at[i < 0 ? best : i], i < 0 ? 0 : best_step(s)))
            note_best(s, i < 0 ? best : i);
}

/* The work of the search may be spent before cuts near those of the best plan had their turn.  They have work of their own
 * then, for --cuts is never to find a faster plan next to it.  The bound is of all lists that were to choose from. */
static void polish_best(Search *s)
{
    Candidate *k = s->best < 0 ? NULL : &s->all.at[s->best];
    if (!k || is_over(s) || s->ask.trials || s->ask.effort.first_fit || !is_spent(k))
        return;
    Purse *before = k->ask.work;
    Ns bound = k->proof.bound;
    k->ask.work = purse_new(NULL, QUESTION_WORK);
    polish_above(k, k->proof.value);
    k->ask.work = before;
    k->proof.bound = bound < k->proof.bound ? bound : k->proof.bound;
}

void search_all(Search *s)
{
    s->best = -1;
    plan_each(s, 0);
    refine_all(s);
    for (int round = 0; round < ROUNDS && s->improves && move_is_on("lists") && add_lists(s); round++) {
        plan_each(s, s->all.n - 1);
        refine_all(s);
    }
    if (next_unproven(s, INT64_MAX) >= 0 && move_is_on("whole"))
        plan_whole(s);
    if (s->all.n > 0 && row_of(&s->all.at[0])->depths && move_is_on("rival-depths"))
        try_rival_depths(s);
    if (move_is_on("far"))
        try_far(s);
    if (move_is_on("polish-best"))
        polish_best(s);
    prove_lists(s);
    if (move_is_on("buckets"))
        try_buckets(s);
}

/* ---- the answer ------------------------------------------------------------------------------------------------------ */

Plan *search_best(const Search *s)
{
    if (s->best < 0)
        return NULL;
    const Candidate *k = &s->all.at[s->best];
    Plan *p = k->best;
    p->proof = k->proof;
    if (k->note)
        p->proof.note = p->proof.note ? strf("%s; %s", k->note, p->proof.note) : k->note;
    if (busy_stopped() && s->all.n > 1) {       /* others may have been left out */
        p->proof = plan_proof(p);
        p->proof.bound = search_least(s);
    }
    buckets_note(p, &p->proof);
    return p;
}

Plan *search_failed(const Search *s)
{
    Plan *last = NULL;
    for (int i = 0; i < s->all.n; i++)
        last = s->all.at[i].best && !s->all.at[i].report_only ? last : s->all.at[i].failed;
    return last;
}

Ns search_least(const Search *s)
{
    Ns least = 0;
    for (int i = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        Ns bound = !k->first ? 0 : k->best || k->first->chunk.n == 0 ? k->proof.bound : 0;
        least = i == 0 || bound < least ? bound : least;
    }
    return least;
}
