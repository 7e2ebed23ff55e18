/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c: candidates, and the best of them.
 *
 * A candidate is a micro-batch, a width, a number of stages, a schedule and its warm-up; those that the model leaves open are
 * listed here.  list.c plans them.  The best by simulation wins; PipeDream-2BW's planner has estimates of its own that choose
 * instead.
 */
#include "search.h"
#include "moves.h"
#include "budgets.h"
#include "key.h"
#include "planner.h"
#include "rivals/twobw.h"
#include <string.h>

/* Why there is no such list of so many stages; NULL: there is. */
static const char *refuses(const Graph *g, const Model *m, const Schedule *k, int stages)
{
    if (k->async && m->plan.replicas > 1 && !m->plan.widths.n)
        return "its replicas are not built; set plan.replicas to 1, or take a synchronous schedule";
    if (!k->any_map && planner_named(m->plan.planner)->map)
        return strf("its lists are for one map, and planner %s gives one device several chunks; take schedule 1f1b or gpipe",
                    m->plan.planner);
    return order_refuses(g, m, k, stages);
}

static void list_one(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    const char *why = refuses(g, m, k, stages);
    if (why)
        s->refused = strf("schedule %s: %s", k->name, why);
    else if (m->device_order == ORDER_FREE)
        search_orders(s, g, m, c, stages, k);
    else
        list_schedule(s, g, c, m, stages, k);
}

/* chunks: auto is one a device, two, and so on; one where the schedule or the planner takes no more, and what it folds. */
static void list_chunks(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k)
{
    bool one = k->one_chunk || planner_named(m->plan.planner)->map;
    int least = k->folds && !k->improves ? m->plan.chunks : 1, most = k->improves ? 2 : k->folds ? least : one ? 1 : ROUNDS;
    for (int v = least; v <= most && (v == least || v * stages <= g->nf); v++) {
        Model *with = alloc(sizeof *with);
        *with = *m;
        with->plan.chunks = v;
        with->plan.chunks_auto = with->plan.chunks_said = false;
        list_one(s, g, c, with, stages, k);
    }
}

/* Does another word of fuse make the same graph?  Each joins all that the one before it does, and more. */
static bool is_listed(const Search *s, const Graph *g, const Model *m)
{
    for (int i = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        if (k->m->plan.fuse != m->plan.fuse && k->m->train.batch == m->train.batch && k->m->plan.replicas == m->plan.replicas
            && k->g->op.n == g->op.n)
            return true;
    }
    return false;
}

/* The candidates of one model: of one graph. */
static void list_graph(Search *s, const Model *m)
{
    const Graph *g = graph_of(s->x, m);
    if (is_listed(s, g, m))
        return;
    const Cost *c = cost(g, m, s->x->times);
    check_cost(g, c);
    purse_spend(s->ask.work, (int64_t)g->op.n * PASSES);
    bool any = schedule_open(m->plan.schedule);                        /* of those that train alike: the synchronous ones */
    for (int stages = m->plan.stages_min; stages <= m->plan.stages_max; stages++) {
        const Cost *shared = cost_shared(c, m, devices_for(m, stages));
        check_cost(g, shared);
        for (const Schedule *k = schedules; k->name; k++) {
            bool asked = any ? k->tried : !strcmp(m->plan.schedule, k->name);
            if (asked && shorter_is_alike(g, shared, m, s->ask.more, stages, k))
                (m->plan.chunks_auto ? list_chunks : list_one)(s, g, shared, m, stages, k);
        }
    }
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* micro: auto is all powers of two that divide the step and leave the gradient groups equal. */
static void add_batches(const Model *m, Models *all)
{
    if (m->train.batch > 0)
        *PUSH(all) = m;
    for (int64_t b = 1; m->train.batch == 0 && b <= m->train.global; b *= 2) {
        Model *with = alloc(sizeof *with);
        *with = *m;
        with->train.batch = b;
        with->train.micro = m->train.global / b;
        if (m->train.global % b == 0 && with->train.micro % m->train.groups == 0)
            *PUSH(all) = with;
    }
}

/* replicas: auto is all widths that the gradient groups can be dealt out to and that there are devices for. */
static void add_widths(const Model *m, Models *all)
{
    int64_t groups = m->train.groups & (m->train.groups - 1) ? 1 : m->train.groups;
    for (int r = 1; r <= groups && r * m->plan.stages_min <= m->devices.n; r *= 2) {
        Model *with = alloc(sizeof *with);
        *with = *m;
        with->plan.replicas = r;
        with->plan.replicas_auto = false;
        if (with->plan.stages_max > m->devices.n / r)
            with->plan.stages_max = m->devices.n / r;
        add_batches(with, all);
    }
}

void search_sizes(const Model *m, Models *all)
{
    (m->plan.replicas_auto ? add_widths : add_batches)(m, all);
}

/* ---- PipeDream-2BW's choice of them -------------------------------------------------------------------------------- */

/* Its formulas for all depths of one size. */
static void add_layouts(const Search *s, const Model *m, Guesses *all)
{
    const Graph *g = graph_of(s->x, m);
    const Cost *c = cost(g, m, s->x->times);
    bool either = m->plan.recompute == RECOMPUTE_AUTO, full = m->plan.recompute == RECOMPUTE_FULL;
    const Schedule *k = schedule_of(m->plan.schedule);
    for (int stages = m->plan.stages_min; stages <= m->plan.stages_max; stages++) {
        Plan *p = new_plan(g, cost_shared(c, m, devices_for(m, stages)), m, stages, k->name, NULL);
        Bytes *limit = least_memory(m, stages);
        if (refuses(g, m, k, stages) || order(p))
            continue;
        Question q = part_question(p, limit);
        for (int again = full; again <= (either || full); again++) {
            Guess x = {.depth = stages, .width = m->plan.replicas, .batch = m->train.batch, .recompute = again};
            if (!twobw_judge(&q, again, &x.step))
                continue;
            /* A model with one depth, and recomputation decided. */
            Recompute recompute = !either ? m->plan.recompute : again ? RECOMPUTE_FULL : RECOMPUTE_NONE;
            Model *with = alloc(sizeof *with);
            *with = *m;
            with->plan.stages_min = with->plan.stages_max = stages;
            with->plan.recompute = recompute;
            x.m = with;
            *PUSH(all) = x;
        }
    }
}

/* The planner's own estimates choose; the plan is the layout that they like best and dpgen's memory model accepts.  False:
 * they have none. */
static bool search_layouts(Search *s, const Models *sizes, Plan **best)
{
    Guesses all = {0};
    Search quiet = *s;
    for (int i = 0; i < sizes->n; i++)
        add_layouts(s, sizes->at[i], &all);
    twobw_sort(&all);
    for (int i = 0; i < all.n && !*best; i++) {
        *s = quiet;
        list_graph(s, all.at[i].m);
        search_all(s);
        *best = search_best(s);
        if (*best)
            (*best)->proof.note = (*best)->proof.note ? strf("%s; %s", twobw_note(&all, i), (*best)->proof.note)
                                                      : twobw_note(&all, i);
    }
    return all.n > 0;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static bool single(const Model *m)
{
    return m->train.batch > 0 && m->plan.fuse != FUSE_FASTEST && m->device_order != ORDER_FREE && !m->plan.replicas_auto
        && !m->plan.chunks_auto && m->plan.stages_min == m->plan.stages_max && m->plan.chunks <= 1
        && !schedule_open(m->plan.schedule) && m->plan.warmup != WARMUP_AUTO
        && schedule_of(m->plan.schedule)->ways <= 1 && (m->plan.replicas == 1 || m->plan.buckets == 1);
}

/* A planner that proves looks at all rows; others are as published. */
static bool tries_rows(const Search *s, const Model *m)
{
    const char *planner = s->ask.choice.planner ? s->ask.choice.planner : m->plan.planner;
    bool any = m->plan.any_row && schedule_open(m->plan.schedule);
    return any && planner_named(planner)->complete && m->plan.objective == STEP_TIME && m->device_order == ORDER_GIVEN
        && !s->ask.effort.first_fit && !s->ask.effort.any_arena && !busy_stopped();
}

static Plan *lay_out_winner(const Search *s, Plan *best)
{
    Ints *cuts = alloc(sizeof *cuts);
    return part_cuts(best, cuts) ? in_full(s->x, best, cuts, FIRST_WORK) : best;
}

static Plan *search_asked(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Search s = {.x = x, .ask = ask ? *ask : (Ask){.more = 0}, .best = -1};
    s.cutoff = s.ask.effort.cutoff;
    /* Forms of fuse: a graph that was read has its own. */
    Models all = {0};
    const Model *form[FORMS] = {m};
    int n = x->from || m->plan.fuse != FUSE_FASTEST ? 1 : fuse_forms(m, form);
    if (n > 1 && m->plan.cuts.n)
        err(m->plan.cuts_at, "fuse: auto", "plan.cuts count operators, and fuse: fastest leaves open how many there are");
    for (int k = 0; k < n; k++)
        search_sizes(form[k], &all);
    Models sizes = all;
    Plan *best = NULL;
    if (!s.ask.work) {
        s.ask.work = purse_new(NULL, SEARCH_WORK);
        s.ask.work->kept = SEARCH_WORK - (s.ask.effort.stop_early ? QUESTION_WORK : FIRST_WORK);
    }
    if (!s.ask.layouts)
        s.ask.layouts = purse_new(NULL, SEARCH_STEPS);
    bool open = sizes.n > 1 || m->plan.stages_min < m->plan.stages_max;
    if (!planner_named(m->plan.planner)->layout || !open || !search_layouts(&s, &sizes, &best)) {
        for (int i = 0; i < sizes.n; i++)
            list_graph(&s, sizes.at[i]);
        /* What rows come to is the cutoff of the search in full. */
        const bool rows = tries_rows(&s, m) && move_is_on("rows");
        const char *left = NULL;
        Plan *row = rows ? offer_rows(&s, NULL, &left) : NULL;
        if (row && (s.cutoff == 0 || with_idle(row) < s.cutoff))
            s.cutoff = with_idle(row) + 1;
        search_all(&s);
        best = search_best(&s);
        if (best && rows && (!row || best->g != row->g))
            row = offer_rows(&s, best, &left);
        const bool other = row && row != best && (!best || wins(row, best));
        if (other)
            best = offer_full(&s, row, QUESTION_WORK, true);
        else if (best && rows && purse_ended(s.ask.work) && best->step - best->proof.value > best->proof.value / PACKED_PART)
            best = offer_full(&s, best, FIRST_WORK, false);
        if (best && left)
            best->proof.note = best->proof.note ? strf("%s; %s", best->proof.note, left) : left;
        if (best && s.loose && best->ask.trials == s.loose)
            best = lay_out_winner(&s, best);
    }
    if (best && m->plan.fuse != best->m->plan.fuse)
        best->proof.note = strf("fuse %s%s%s", fuse_words[best->m->plan.fuse], best->proof.note ? "; " : "",
                                best->proof.note ? best->proof.note : "");
    *failed = search_failed(&s);
    if (!best && !*failed && s.refused)
        err(m->plan.custom.word ? m->plan.custom.at : m->plan.loc, NULL, "%s", s.refused);
    return best;
}

/* ---- calls joined, and apart --------------------------------------------------------------------------------------- */

/* No cut divides a joined call, and positions of given cuts count them. */
static bool may_part(const Options *x, const Model *m, const Graph *g)
{
    return m->plan.fuse == FUSE_AUTO && !m->plan.cuts.n && !x->from && !x->foreign && chains_joined(g);
}

/* Memory may be what keeps it from being faster: some device is three quarters full. */
static bool is_full(const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        if (p->dev.at[d].arena > p->dev.at[d].limit / 4 * 3)
            return true;
    return false;
}

/* A joined call is faster.  Where memory is short, a cut inside one may save more.  All share the work of layouts. */
static Plan *search_graphs(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Ask with = ask ? *ask : (Ask){.more = 0};
    with.layouts = with.layouts ? with.layouts : purse_new(NULL, SEARCH_STEPS);
    Plan *best = search_asked(x, m, &with, failed);
    bool enough = best && (with.effort.first_fit || with.effort.any_arena || !is_full(best));
    const Plan *seen = best ? best : *failed;
    if (enough || busy_stopped() || !seen || !may_part(x, m, seen->g) || !move_is_on("apart"))
        return best;
    with.effort.cutoff = best ? best->step : with.effort.cutoff;
    with.work = with.work ? with.work : purse_new(NULL, FIRST_WORK);
    Plan *none, *apart = search_with(x, fuse_as(m, FUSE_SUMS), &with, &none);
    if (!apart || (best && !wins(apart, best)))
        return best;
    const char *note = "memory is short, and each activation is a call of its own: --fuse sums";
    apart->proof.note = apart->proof.note ? strf("%s; %s", apart->proof.note, note) : note;
    return apart;
}

/* The dumps that -d asks for, of a finished plan: the graph's, and behind those the plan's. */
static void dump(const Options *x, const Plan *p)
{
    graph_of(x, p->m);
    for (const char *letter = "opkclmta"; *letter; letter++)
        dump_plan(x, p, *letter);
}

static Plan *search_whole(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Options quiet = *x;
    quiet.dump = NULL;
    bool passes = single(m) && !ask->more && !(x->dump && may_part(x, m, graph_of(&quiet, m)));
    Plan *best = search_graphs(passes ? x : &quiet, m, ask, failed);
    if (!best && !passes && single(m) && !ask->more)
        search_asked(x, m, ask, failed);
    if (best && passes)
        dump_plan(x, best, 'a');
    else if (best && x->dump && !ask->more)
        dump(x, best);
    return best;
}

/* A shorter step in place of one of very many micro-batches, if one has lists that are alike. */
static Plan *search_lengths(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Ask with = ask ? *ask : (Ask){.more = 0};
    Options quiet = *x;
    quiet.dump = NULL;
    for (int i = 0; i < 4 && shorter(x, m, 1 + i / 2, 0) != m; i++) {
        const Model *few = shorter(x, m, 1 + i / 2, i % 2 ? 0 : PACKED_PART);
        if (few == m)
            continue;
        with.more = (m->train.micro - few->train.micro) / m->plan.replicas;
        Room *lists = mem_room();
        Plan *p = search_whole(&quiet, few, &with, failed);
        if (p)                  /* its cuts, fates and targets are in no room, and nothing else of it is read */
            mem_drop_since(lists);
        Plan *best = p ? lengthened(&quiet, m, p) : NULL;
        if (best && x->dump)
            dump(x, best);
        if (best || (i % 2 && !p && *failed))
            return best;
        i += i % 2 == 0 && !p && !*failed;      /* no list is alike */
    }
    with.more = 0;
    return search_whole(x, m, &with, failed);
}

/* The plan of least bytes, where nothing else fits, whatever the length of the step. */
static Plan *search_least_bytes(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    (void)ask;
    const Plan *last = *failed;
    if (!last || last->g->nf > OPS_HUGE || !move_is_on("least"))
        return NULL;
    Plan *best = least_plan(x, m, &(*failed)->shortfall.least);
    if (best && x->dump)
        dump(x, best);
    return best;
}

typedef struct { SearchOf *of; const Options *x; const Model *m; const Ask *ask; Plan *best, *failed; } SearchTrial;

static void try_search(void *ctx)
{
    SearchTrial *t = ctx;
    t->best = t->of(t->x, t->m, t->ask, &t->failed);
}

static Plan *try_quietly(SearchOf *of, const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Options quiet = {.times = x->times, .from = x->from, .foreign = x->foreign};
    SearchTrial t = {of, &quiet, m, ask, NULL, NULL};
    bool model = diag_accepts(try_search, &t);
    *failed = model ? t.failed : NULL;
    return model ? t.best : NULL;
}

/* ---- smaller limits -------------------------------------------------------------------------------------------------- */

/* The same model with the memory of each device on a rung of a ladder that all limits have: the next below its own, or below
 * `most`. */
static const Model *on_rung(const Model *m, Bytes most, int steps)
{
    Model *with = COPY(m);
    memset(&with->devices, 0, sizeof with->devices);
    for (int d = 0; d < m->devices.n; d++) {
        Device *k = PUSH(&with->devices);
        *k = m->devices.at[d];
        k->memory = rung_below(k->memory < most ? k->memory : most, steps);
    }
    return with;
}

/* Previews and packing err, so the plan for less memory may be the faster one: 1f1b-split of GPT-2 355M took 9 % longer with
 * more of it.  Limits of a ladder are asked for a faster plan: the next below what this plan takes, then coarser ones.  Most
 * are refuted at once.  A step that was searched as a shorter one costs too much. */
static Plan *search_below(const Options *x, const Model *m, Plan *best)
{
    const Plan *first = best;
    const Model *rung = shorter(x, best->m, 1, 0) == best->m && move_is_on("below") ? m : NULL;
    Ask with = {.layouts = purse_new(NULL, SEARCH_STEPS)};
    Purse *work = purse_new(NULL, TRIES / 2 * ROW_WORK);
    for (int steps = 64; rung && steps >= 16 && best->step - first->proof.bound > best->step / 128 && purse_left(work);
         steps /= 2) {
        rung = on_rung(rung, largest_arena(best), steps);
        void *mark = mem_mark();
        Plan *none;
        with.work = purse_new(work, purse_left(work) / 2 + 1);
        with.effort.cutoff = best->step;
        Plan *p = search_with(x, rung, &with, &none);
        if (!p || !wins(p, best)) {
            mem_release(mark);
            continue;
        }
        Proof proof = first->proof;
        proof.note = p->proof.note;
        best = under_limits(p, m);
        best->proof = below_step(proof, best);
    }
    return best;
}

/* A planner that proves has no bound for a plan that it did not find.  Such a step may be twice that of a smaller limit: zb-v
 * of GPT-2 355M took 913 ms in 2,884 MiB and 447 in 2,804.  The search behind the plan of least bytes may have a faster one. */
static Plan *search_beside(const Options *x, const Model *m, Plan *best)
{
    Bytes none = 0;
    if (!planner_named(m->plan.planner)->complete || schedule_of(best->schedule)->async || best->g->nf > OPS_HUGE
        || !move_is_on("least"))
        return best;
    Plan *p = least_plan(x, m, &none);
    return p && wins(p, best) ? p : best;
}

/* Other questions about a plan that was found.  In 25 cases with memory to spare they had no answer. */
static Plan *search_more(const Options *x, const Model *m, Plan *best)
{
    if (!best || !is_full(best) || m->plan.cuts.n || m->plan.objective != STEP_TIME || busy_stopped())
        return best;
    return best->proof.bound > 0 ? search_below(x, m, best) : search_beside(x, m, best);
}

/* A dump is of one plan: first it is seen whether the other questions have a better one. */
static Plan *search_followed(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    if (!x->dump)
        return search_more(x, m, search_lengths(x, m, ask, failed));
    Options quiet = *x;
    quiet.dump = NULL;
    Plan *first = try_quietly(search_lengths, x, m, ask, failed), *best = search_more(&quiet, m, first);
    if (best == first)
        return search_lengths(x, m, ask, failed);
    dump(x, best);
    return best;
}

static Plan *search_or_any(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    if (team_open(m))
        return offer_degrees(search_followed, search_least_bytes, x, m, ask, failed);
    Plan *best = search_followed(x, m, ask, failed);
    return best ? best : search_least_bytes(x, m, ask, failed);
}

static Plan *search_one(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    return team_open(m) ? offer_degrees(search_graphs, NULL, x, m, ask, failed)
                        : search_graphs(x, m, ask, failed);
}

/* A single candidate is dumped pass by pass, so that it is seen how far it came; of several only the best.  Calls joined and
 * apart are two. */
Plan *search(const Options *x, const Model *m, Plan **failed)
{
    return search_or_any(x, m, NULL, failed);
}

Plan *search_brief(const Options *x, const Model *m, Plan **failed)
{
    return search_or_any(x, m, &(Ask){.effort.stop_early = true}, failed);
}

Plan *search_quiet(const Options *x, const Model *m, Plan **failed)
{
    return try_quietly(search_or_any, x, m, NULL, failed);
}

Plan *search_with(const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    return try_quietly(search_one, x, m, ask, failed);
}

/* It may be no model at all: with a smaller micro-batch the shapes of one that says 4 where it means B no longer agree. */
bool search_fits(const Options *x, const Model *m, const Ask *budget, Bytes *need)
{
    void *mark = mem_mark();
    Plan *failed = NULL;
    Ask ask = {.effort = {.first_fit = true, .spare = true}, .choice.no_offload = budget->choice.no_offload,
               .work = budget->work, .trials = trials_of(budget)};
    bool fits = search_with(x, m, &ask, &failed);
    *need = !fits && failed ? failed->shortfall.need : 0;
    mem_release(mark);
    return fits;
}

/* ---- one plan, changed ----------------------------------------------------------------------------------------------- */

static void try_again(void *ctx)
{
    search_all(ctx);
}

Plan *search_again(const Plan *p, const Model *m, const Ints *cuts, Plan **failed, bool *spent)
{
    static const Options quiet;
    const Schedule *k = schedule_of(p->schedule);
    Search s = {.x = &quiet, .best = -1};
    Candidate *one = PUSH(&s.all);
    *one = (Candidate){.x = &quiet, .g = p->g, .c = p->c, .m = m, .stages = plan_stages(p), .schedule = k,
                       .key = numeric_key(p->g, m, p->c)};
    one->ask = (Ask){.choice = p->ask.choice, .effort.estimate_only = true,
                      .work = purse_new(NULL, QUESTION_WORK), .trials = purse_new(NULL, SEARCH_STEPS)};
    one->ask.choice.cuts = cuts;
    one->ask.choice.planner = NULL;
    one->ask.choice.copy_slack = COPY_SLACK_ALL;
    one->ask.choice.narrow = 0;
    bool model = diag_accepts(try_again, &s);
    *spent = !purse_left(s.all.at[0].ask.work);
    *failed = model ? search_failed(&s) : NULL;
    return model ? search_best(&s) : NULL;
}
