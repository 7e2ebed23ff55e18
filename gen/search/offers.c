/* SPDX-License-Identifier: Apache-2.0
 *
 * offers.c: what else a plan could be made of: rows of schedules.def, and numbers of devices of a stage.
 *
 * Problem: a search for each of some twenty rows, for each number of stages and of devices of a stage, costs far more than one
 * search, and most never win.  With T devices a stage, a pipeline of as many devices has 1/T of the stages: its bubble is
 * shorter, and sums cost messages.  Megatron-LM's rule is T = devices of a machine (Narayanan et al., Efficient Large-Scale
 * Language Model Training on GPU Clusters, 2021); Alpa and Piper search T with the cuts.  Their users ask why a degree was
 * chosen, and get no answer.
 *
 * Method: an offer is a model with one number of stages, and one schedule.  Its guess is all there is to compute, shared out
 * evenly, with the bubble of the schedule's closed form.  The guess says which offer comes first.  An offer is left out without
 * search if no plan of it can be faster than the best so far: all its work shared out evenly, or its longest operator, takes
 * longer.  Others have a search of their own, with the best step as its cutoff, which `exact` refutes first, in which layouts
 * only have to fit and nothing is proven.  The winner is searched in full.
 *
 * schedule: auto begins with the best plan of gpipe and 1f1b that is found soon.  It offers the rows beside these two that are
 * synchronous and legal, with the micro-batch and the replicas of that plan, and all numbers of stages, by their guesses.  They
 * have FIRST_WORK: with a quarter of it the best row of four corpus cases had no turn, which was 1.5 to 11 % faster.  A row has
 * its own number of chunks, unless the model says one.  It asks no more questions about a plan that does not fit.  Rows that
 * were expected to come near the best step are asked once more in full, with the work that is left.  A note names those that
 * had too little.  Then gpipe and 1f1b are searched in full, and what is no faster than the best row is refuted or left out.
 * Where packing takes much of the best one's time, it is asked again, alone.
 *
 * plan.tensor: auto offers numbers of devices of a stage, plan.positions: auto whole and divided rows of each, and
 * plan.experts: auto divided and whole ones, with numbers of stages and replicas and a micro-batch; with schedule: auto all
 * rows of each.  An offer is not searched if its states alone need more memory than its devices have.  The first is searched
 * in full before the others.  So the answer is the plan, with its bound, that the model has when it names these numbers.  The
 * plan of least bytes is searched only if no offer has a plan.
 *
 * plan.widths: auto offers numbers of copies of each stage.  PipeDream's and DAPPLE's planners choose them by formulas of
 * times; here a replay of all lists decides, and the longest share of a device, over all cuts, is guess and bound.  Equal ones
 * come first, as with replicas: auto; of the others MOST_TRIED are searched.
 *
 * Cost: QUESTION_WORK, of rows FIRST_WORK, of which each offer has a part; a graph and its prices for each T.  Not handled:
 * rows where neither gpipe nor 1f1b fits, or with free device orders; stages of unequal T; lists of widths beyond
 * MOST_WIDTHS, which the model reader refuses.
 */
#include "search.h"
#include "budgets.h"
#include "key.h"
#include "planner.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const Model *m;
    const Graph *g;
    const Cost *c;
    int stages;
    const Schedule *schedule;
    int64_t more;               /* Ask.more */
    const Model *named;         /* by a number of devices of a stage: the model that says so */
    const Ints *list;           /* copies of its stages, where plan.widths is open */
    Ns guess, least, step;      /* least: no plan is faster; step: of the plan that was found; 0: nobody knows */
    Ns weight;                  /* of the step: longer with an idle device */
    Ns near;                    /* asked in full, it may come to that; 0: nobody knows */
    bool over;                  /* its states alone need more memory than its devices have */
    bool tried;
    Plan *plan;
} Offer;
typedef VEC(Offer) Offers;

/* Of a list of widths that differ guess and bound are known, and there are thousands of them. */
static bool uneven(const Offer *o)
{
    return o->m->plan.widths.n > 0;
}

/* In units of a chunk's forward, input or weight gradient.  Without a closed form: the bubble of its kind at best. */
static int64_t form_of(const Schedule *k, int p, int m, int v)
{
    int64_t form = schedule_form(k, p, m, v);
    return form ? form : 3 * (int64_t)v * m + (k->split ? 1 : k->folds ? 2 : 3) * (p - 1);
}

/* work: of a step on all devices of a replica. */
static void add(Offers *all, Offer x, Ns work)
{
    int chunks = x.m->plan.chunks, micro = (int)(x.g->micro / x.m->plan.replicas + x.more);
    Ns guess = work / x.stages / (3 * (int64_t)chunks * micro) * form_of(x.schedule, x.stages, micro, chunks);
    x.guess = x.guess > guess ? x.guess : guess;
    *PUSH(all) = x;
}

static int compare_lists(const Ints *x, const Ints *y)
{
    for (int s = 0; s < x->n && x->n == y->n; s++)
        if (x->at[s] != y->at[s])
            return x->at[s] - y->at[s];
    return x->n - y->n;
}

static int by_guess(const void *a, const void *b)
{
    const Offer *x = a, *y = b;
    if (x->over != y->over)
        return y->over ? -1 : 1;
    if (uneven(x) != uneven(y))
        return uneven(y) ? -1 : 1;
    if (x->guess != y->guess)
        return x->guess < y->guess ? -1 : 1;
    if (x->m->plan.tensor != y->m->plan.tensor)
        return x->m->plan.tensor - y->m->plan.tensor;
    if (x->list && compare_lists(x->list, y->list))
        return compare_lists(x->list, y->list);
    return x->stages != y->stages ? x->stages - y->stages : x->schedule < y->schedule ? -1 : x->schedule > y->schedule;
}

/* ---- what they come to ---------------------------------------------------------------------------------------------- */

typedef struct { Search s; Offer *o; } OfferTrial;

static void try_offer(void *ctx)
{
    OfferTrial *t = ctx;
    list_schedule(&t->s, t->o->g, t->o->c, t->o->m, t->o->stages, t->o->schedule);
    search_all(&t->s);
    t->o->plan = search_best(&t->s);
    Ns least = t->o->plan ? 0 : search_least(&t->s);
    t->o->least = least > t->o->least ? least : t->o->least;
}

static void note_plan(Offer *o, Plan *p)
{
    o->plan = p;
    o->step = p ? p->step : 0;
    o->weight = p ? with_idle(p) : 0;
}

/* What the row of a trial that was not asked in full is likely to be no better than. */
static Ns near_of(const Search *trial)
{
    Ns least = INT64_MAX;
    for (int i = 0; i < trial->all.n; i++) {
        const Candidate *k = &trial->all.at[i];
        const Ns expected = k->proof.value > k->proof.bound ? k->proof.value : INT64_MAX;
        least = expected < least ? expected : least;
    }
    if (trial->ask.effort.unseeded && least < INT64_MAX)
        return least - least / PACKED_PART;
    return purse_ended(trial->ask.work) ? 0 : INT64_MAX;
}

/* May it be better than the best, by its guess and by its bound? */
static bool is_open(const Offer *o, const Offer *best)
{
    const Ns most = best ? best->weight : INT64_MAX;
    const Ns vague = uneven(o) ? o->guess / 8 : o->m->plan.chunks > 1 ? 0 : o->guess / PACKED_PART;
    return o->guess - vague < most && o->least < most;
}

/* The best of an offer and of `best`, if that is not NULL.  Its part of the work: full, as for one question. */
static Offer *try_one(const Search *s, Offer *o, Offer *best, Purse *work, bool full)
{
    busy_at(", schedule %s, %s of %s", o->schedule->name, count_text(o->stages, "stage"),
            count_text(o->m->plan.tensor, "device"));
    o->tried = true;
    void *mark = mem_mark();
    OfferTrial t = {{.x = s->x, .ask = s->ask, .best = -1, .cutoff = best ? best->weight : 0}, o};
    t.s.ask.more = o->more;
    t.s.ask.effort.unseeded = !full && !o->schedule->depths;     /* they follow from cuts: better ones help */
    t.s.ask.work = purse_new(work, full ? QUESTION_WORK : ROW_WORK);
    t.s.ask.trials = purse_new(NULL, 0);    /* the fixed orders, and a few more */
    note_plan(o, diag_accepts(try_offer, &t) ? o->plan : NULL);
    o->near = near_of(&t.s);
    if (o->plan && (!best || wins(o->plan, best->plan)))
        return o;
    mem_release(mark);
    return best;
}

static Offer *best_offer(const Search *s, Offers *all, Offer *best, Purse *work)
{
    for (int i = 0, lists = 0; i < all->n && !busy_stopped(); i++) {
        Offer *o = &all->at[i];
        const Candidate k = {.g = o->g, .c = o->c, .m = o->m, .stages = o->stages, .schedule = o->schedule,
                             .ask = {.more = o->more}};
        if (o->over || (!o->named && !is_open(o, best)))
            continue;
        o->least = uneven(o) ? o->least : candidate_least(&k);
        const int64_t left = purse_left(work);
        if (is_open(o, best) && left && !(uneven(o) && lists++ >= MOST_TRIED))
            best = try_one(s, o, best, work, false);
        if (!o->plan && left - purse_left(work) > ROUNDS * ROW_WORK)        /* one pass takes more than all may */
            purse_spend(work, left);
    }
    return best;
}

/* Of those that may still be better, the one that was expected to come nearest; NULL: none was. */
static Offer *next_offer(const Offers *all, const Offer *best)
{
    Offer *found = NULL;
    for (int i = 0; i < all->n; i++) {
        Offer *o = &all->at[i];
        if (o != best && is_open(o, best) && o->near > 0 && o->near < best->weight && (!found || o->near < found->near))
            found = o;
    }
    return found;
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static bool is_row(const Schedule *k, const Model *m, int stages)
{
    int cuts = m->plan.cuts.n, chunks = m->plan.chunks * stages;
    bool like = k->depths && !k->split;         /* 1f1b* promises what 1f1b does */
    return !k->async && !k->tried && !like && !k->given && !k->custom && !k->improves && (cuts == 0 || cuts == chunks - 1);
}

/* Beside an offer: all rows of the same numbers. */
static void add_rows(Offers *all, Offer like, Ns work)
{
    const Model *m = like.m;
    for (const Schedule *k = schedules; k->name; k++) {
        like.m = with_schedule(m, k);
        like.schedule = k;
        if (is_row(k, like.m, like.stages) && like.m->plan.chunks * like.stages <= like.g->nf
            && !order_refuses(like.g, like.m, k, like.stages)
            && shorter_is_alike(like.g, like.c, like.m, like.more, like.stages, k))
            add(all, like, work);
    }
}

/* The best plan of all candidates at hand, as rows are tried. */
static Plan *scout(const Search *s)
{
    Search t = {.x = s->x, .ask = s->ask, .best = -1, .cutoff = s->cutoff};
    t.ask.work = purse_new(NULL, QUESTION_WORK);
    t.ask.trials = purse_new(NULL, 0);
    t.ask.effort.unseeded = true;
    for (int i = 0; i < s->all.n; i++) {
        Ask ask = t.ask;
        ask.choice = s->all.at[i].ask.choice;
        Candidate *k = PUSH(&t.all);
        *k = candidate_with(&s->all.at[i], &ask);
        k->alone = true;
    }
    search_all(&t);
    return search_best(&t);
}

/* Of all numbers of stages that were tried with the graph of the best plan.  left: rows that had no work, or too little. */
static Offer *try_rows(const Search *s, Offer *first, const char **left)
{
    Offers all = {0};
    Ns busy = 0;
    for (int d = 0; d < first->plan->devices; d++)
        busy += first->plan->dev.at[d].busy;
    for (int i = 0, last = 0; i < s->all.n; i++) {
        const Candidate *k = &s->all.at[i];
        if (k->g == first->plan->g && k->stages > last)
            add_rows(&all, (Offer){first->plan->m, k->g, k->c, last = k->stages, .more = s->ask.more},
                     busy / first->plan->m->plan.replicas);
    }
    if (all.n > 0)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_guess);
    Purse *work = purse_new(NULL, FIRST_WORK);
    Offer *best = best_offer(s, &all, first, work), *next = next_offer(&all, best);
    work = purse_new(work, ROUNDS * ROW_WORK);
    for (; next && purse_left(work) && !busy_stopped(); next = next_offer(&all, best))
        best = try_one(s, next, best, work, true);
    *left = NULL;
    for (int i = 0; i < all.n; i++)
        if (all.at[i].near == 0 && is_open(&all.at[i], best))
            *left = strf("%s%s%s", *left ? *left : "not searched: ", *left ? ", " : "", all.at[i].schedule->name);
    return best;
}

Plan *offer_rows(const Search *s, Plan *best, const char **left)
{
    Offer first = {0};
    best = best ? best : scout(s);
    if (!best)
        return NULL;
    note_plan(&first, best);
    return try_rows(s, &first, left)->plan;
}

Plan *offer_full(const Search *s, Plan *p, int64_t work, bool unseeded)
{
    if (!purse_ended(p->ask.work))
        return in_full(s->x, p, p->ask.choice.cuts, ROW_WORK);
    Search t = {.x = s->x, .ask = s->ask, .best = -1, .cutoff = with_idle(p) + 1};
    t.ask.work = purse_new(NULL, work);
    t.ask.effort.unseeded = unseeded;
    Candidate *k = PUSH(&t.all);
    *k = (Candidate){.x = s->x, .g = p->g, .c = p->c, .m = p->m, .stages = plan_stages(p), .schedule = schedule_of(p->schedule),
                     .ask = t.ask, .key = numeric_key(p->g, p->m, p->c)};
    k->ask.choice = p->ask.choice;
    k->ask.choice.cuts = NULL;
    search_all(&t);
    Plan *full = t.best >= 0 ? search_best(&t) : NULL;
    return full && wins(full, p) ? full : in_full(s->x, p, p->ask.choice.cuts, ROW_WORK);
}

/* ---- devices of a stage ---------------------------------------------------------------------------------------------- */

typedef struct { TeamForm form; const char *why; } Refused;
typedef struct {
    const Options *x;
    const Model *m;
    TeamForm form;
    Teams tried;
    Offers offer;
    VEC(Refused) refused;
} Degrees;

static Model *copy_of(const Model *m)
{
    Model *with = alloc(sizeof *with);
    *with = *m;
    return with;
}

/* What one size has: prices of the fastest device, summed up by operators of forward with what is behind them. */
typedef struct { const Graph *g; const Cost *c; Ns *sum; } Priced;

static Priced priced(const Degrees *all, const Model *m)
{
    const Graph *g = graph_of(all->x, m);
    Priced x = {g, cost(g, m, all->x->times), alloc(sizeof(Ns) * ((size_t)g->nf + 1))};
    for (int i = 0; i < g->nb; i++) {
        Ns least = x.c->ns[0][i];
        for (int class = 1; class < x.c->classes; class++)
            least = x.c->ns[class][i] < least ? x.c->ns[class][i] : least;
        x.sum[g->op.at[i].fwd + 1] += least;
    }
    for (int i = 0; i < g->nf; i++)
        x.sum[i + 1] += x.sum[i];
    return x;
}

/* Can cuts give each device no more of a micro-batch than that?  A stage that ends later is never worse. */
static bool shared_out(const Priced *x, const Ints *widths, Ns share)
{
    int done = 0;
    for (int s = 0; s < widths->n; s++)
        for (Ns from = x->sum[done]; done < x->g->nf && x->sum[done + 1] - from <= share * widths->at[s]; )
            done++;
    return done == x->g->nf;
}

/* Of a step, over all cuts: the share of some device is no less.  Less than 1 ns of each micro-batch is cut off. */
static Ns longest_share(const Priced *x, const Ints *widths)
{
    Ns low = 0, high = x->sum[x->g->nf];
    while (low < high) {
        Ns mid = low + (high - low) / 2;
        if (shared_out(x, widths, mid))
            high = mid;
        else
            low = mid + 1;
    }
    return high > 0 ? (high - 1) * x->g->micro : 0;
}

/* With these cuts: a device begins once the stages in front of its own have had one micro-batch, and ends before they do. */
static Ns guess_of(const Priced *x, const Ints *widths, Ns share)
{
    Ns guess = 0;
    for (int s = 0, done = 0; s < widths->n; s++) {
        Ns from = x->sum[done];
        while (done < x->g->nf && x->sum[done + 1] - from <= share * widths->at[s])
            done++;
        Ns longest = (x->sum[done] - from) / widths->at[s] * x->g->micro + from;
        guess = longest > guess ? longest : guess;
    }
    return guess;
}

/* One number of stages.  A step of very many micro-batches is tried as a shorter one, if its lists are alike. */
static void offer_one(Degrees *all, const Priced *x, const Model *with, Offer o)
{
    const Graph *g = x->g;
    const Model *m = with;
    const Schedule *k = schedule_of(m->plan.schedule);
    const int stages = with->plan.stages_max;
    if (order_refuses(g, with, k, stages))
        return;
    o.over = states_over(g, with, stages) > 0;
    o.m = o.named = with, o.g = g, o.stages = stages, o.schedule = k;
    o.c = cost_shared(x->c, with, devices_for(with, stages));
    const Model *few = planner_named(with->plan.planner)->complete ? shorter(all->x, with, 1, 0) : with;
    Graph *less = alloc(sizeof *less);
    *less = *g;
    less->micro = few->train.micro;
    int64_t more = (g->micro - less->micro) / with->plan.replicas;
    if (more && shorter_is_alike(less, o.c, few, more, stages, k))
        o.g = less, o.m = few, o.more = more;
    const Ns work = x->sum[g->nf] * g->micro / devices_for(with, stages) * stages;
    if (uneven(&o)) {
        *PUSH(&all->offer) = o;
        return;
    }
    add(&all->offer, o, work);
    if (all->m->plan.any_row && schedule_open(all->m->plan.schedule))
        add_rows(&all->offer, o, work);
}

/* The lists of widths that the planner would have; without choices of its own, all. */
static WidthLists lists_for(const Priced *x, const Model *m)
{
    WidthLists all = {0};
    const Planner *planner = planner_named(m->plan.planner);
    const int least = m->plan.stages_min, most = m->plan.stages_max < x->g->nf ? m->plan.stages_max : x->g->nf;
    for (int stages = least; stages <= m->plan.stages_max && !planner->copies; stages++)
        widths_lists(m, stages, &all);
    if (!planner->copies || least > most)
        return all;
    Plan *p = new_plan(x->g, cost_shared(x->c, m, m->devices.n), m, most, m->plan.schedule, NULL);
    if (order_refuses(x->g, m, schedule_of(p->schedule), most) || order(p))
        return all;
    const Question q = part_question(p, least_memory(m, most));
    planner->copies(&q, least, &all);
    return all;
}

static void offer_stages(Degrees *all, const Model *m)
{
    const Priced x = priced(all, m);
    for (int stages = m->plan.stages_min; stages <= m->plan.stages_max && !m->plan.widths_auto; stages++) {
        Model *with = copy_of(m);
        with->plan.stages_min = with->plan.stages_max = stages;
        offer_one(all, &x, with, (Offer){0});
    }
    const WidthLists lists = m->plan.widths_auto ? lists_for(&x, m) : (WidthLists){0};
    for (int i = 0; i < lists.n; i++) {
        const Ints *list = &lists.at[i];
        Ns least = longest_share(&x, list);
        offer_one(all, &x, with_widths(m, list),
                  (Offer){.list = list, .least = least, .guess = guess_of(&x, list, least / x.g->micro + 1)});
    }
}

static void offer_sizes(void *ctx)
{
    Degrees *all = ctx;
    Model *m = copy_of(with_team(all->m, all->form));
    m->plan.chunks = m->plan.chunks_auto ? 1 : m->plan.chunks;
    m->plan.chunks_auto = false;
    m->plan.fuse = m->plan.fuse == FUSE_FASTEST ? FUSE_AUTO : m->plan.fuse;
    if (schedule_open(m->plan.schedule))
        m->plan.schedule = schedule_of(m->plan.schedule)->name;
    Models sizes = {0};
    search_sizes(m, &sizes);
    for (int i = 0; i < sizes.n; i++)
        offer_stages(all, sizes.at[i]);
}

static void find_degrees(Degrees *all)
{
    const Model *m = all->m;
    const Teams forms = team_offers(m);
    const bool foreign = all->x->from || all->x->foreign;
    for (int i = 0; i < forms.n; i++) {
        const TeamForm form = all->form = forms.at[i];
        const int devices = m->listed.n ? m->listed.n : m->devices.n, known = all->offer.n;
        if (form.devices > (foreign ? 1 : m->train.blocks) || form.devices * m->plan.stages_min * m->plan.replicas > devices)
            continue;
        *PUSH(&all->tried) = form;
        if (diag_accepts(offer_sizes, all))
            continue;
        all->offer.n = known;
        *PUSH(&all->refused) = (Refused){form, strf("%s", diag_refusal())};
    }
    if (all->offer.n)
        qsort(all->offer.at, (size_t)all->offer.n, sizeof *all->offer.at, by_guess);
}

/* ---- for people ---------------------------------------------------------------------------------------------------- */

static bool is_form(const Model *m, TeamForm form)
{
    return m->plan.tensor == form.devices && (int)m->plan.positions == form.rows && (int)m->plan.experts == form.experts;
}

/* Of all offers of that form: the best plan, or what none of them is below. */
static const char *outcome(const Degrees *all, TeamForm form)
{
    const Offer *found = NULL;
    Ns least = INT64_MAX;
    for (int i = 0; i < all->refused.n; i++)
        if (!memcmp(&all->refused.at[i].form, &form, sizeof form))
            return all->refused.at[i].why;
    for (int i = 0; i < all->offer.n; i++) {
        const Offer *o = &all->offer.at[i];
        if (!is_form(o->m, form))
            continue;
        found = o->step > 0 && (!found || o->step < found->step) ? o : found;
        least = o->step == 0 && o->least > 0 && o->least < least ? o->least : least;
    }
    return found && found->step <= least ? strf("%.3f ms", (double)found->step / 1e6)
         : least < INT64_MAX ? strf("not below %.3f ms", (double)least / 1e6) : "none";
}

/* Where plan.positions is open, a number stands for whole rows; where plan.experts is, for divided ones. */
static const char *form_text(const Model *m, TeamForm form)
{
    bool rows = m->plan.positions == POSITIONS_AUTO && form.rows == POSITIONS_DIVIDED;
    bool experts = m->plan.experts == EXPERTS_AUTO && form.experts == EXPERTS_DEVICES;
    return strf("%d%s%s", form.devices, rows ? " with positions divided" : "",
                !experts ? "" : rows ? " and whole experts" : " with whole experts");
}

static int by_step(const void *a, const void *b)
{
    const Offer *x = a, *y = b;
    return (x->step == 0) != (y->step == 0) ? (x->step == 0) - (y->step == 0)
         : x->step != y->step ? (x->step < y->step ? -1 : 1) : x->least < y->least ? -1 : x->least > y->least;
}

/* The lists of widths: the best of those that were searched, what none of the others is below, and how many of these could be
 * faster for all that is known. */
static const char *lists_note(const Degrees *all, const Offer *best)
{
    enum { SHOWN = 3 };
    Offers one = {0};
    const char *text = "";
    Ns least = INT64_MAX;
    int others = 0, open = 0;
    for (int i = 0; i < all->offer.n; i++)
        *PUSH(&one) = all->offer.at[i];
    qsort(one.at, (size_t)one.n, sizeof *one.at, by_step);
    for (int i = 0, shown = 0; i < one.n; i++) {
        const Offer *o = &one.at[i];
        bool known = !compare_lists(o->list, best->list);
        for (int k = 0; k < i && !known && o->step > 0 && shown <= SHOWN; k++)
            known = !compare_lists(one.at[k].list, o->list);
        if (known)
            continue;
        Ns step = o->step ? o->step : o->least;
        if (o->step && shown++ < SHOWN)
            text = strf("%s%s[%s] %.3f ms", text, *text ? ", " : "; others: ", widths_text(o->list),
                        (double)o->step / 1e6);
        else
            others++, open += !o->tried && step < best->step, least = step < least ? step : least;
    }
    if (others)
        text = strf("%s%s %s not below %.3f ms%s", text, *text ? ", and" : "; others:", count_text(others, "plan"),
                    (double)least / 1e6, open ? strf(", %d of them not searched", open) : "");
    return strf("widths [%s]%s", widths_text(best->list), text);
}

static const char *note_of(const Degrees *all, const Model *chosen, const Offer *best)
{
    const PlanSpec *p = &all->m->plan;
    const char *text = "", *lists = p->widths_auto ? lists_note(all, best) : NULL;
    TeamForm is = {chosen->plan.tensor, (int)chosen->plan.positions, (int)chosen->plan.experts};
    if (lists && !p->tensor_auto && p->positions != POSITIONS_AUTO && p->experts != EXPERTS_AUTO)
        return lists;
    for (int i = 0; i < all->tried.n; i++)
        if (!is_form(chosen, all->tried.at[i]))
            text = strf("%s%s%s %s", text, *text ? ", " : "", form_text(all->m, all->tried.at[i]),
                        outcome(all, all->tried.at[i]));
    return strf("tensor %s%s%s%s%s", form_text(all->m, is), *text ? "; others: " : "", text, lists ? "; " : "",
                lists ? lists : "");
}

/* As the model would say it. */
static const Model *named(const Model *m, const Offer *o)
{
    Model *with = copy_of(o->named);
    with->plan.chunks_auto = m->plan.chunks_auto;
    with->plan.fuse = m->plan.fuse;
    with->plan.schedule = m->plan.schedule;
    return with;
}

Plan *offer_degrees(SearchOf *each, SearchOf *last, const Options *x, const Model *m, const Ask *ask, Plan **failed)
{
    Options quiet = *x;
    quiet.dump = NULL;
    Degrees all = {.x = &quiet, .m = m};
    find_degrees(&all);
    if (!all.offer.n && !all.refused.n && m->plan.widths_auto)
        err(m->plan.widths_at, "a list, or --planner exact", "plan.widths: auto: planner %s has no list of so many stages",
            m->plan.planner);
    const Search s = {.x = &quiet, .ask = ask ? *ask : (Ask){.more = 0}};
    Offer none = {.named = with_team(m, (TeamForm){m->plan.tensor, POSITIONS_WHOLE, EXPERTS_DIVIDED})};
    Offer *first = all.offer.n ? &all.offer.at[0] : &none;
    Plan *p = each(&quiet, named(m, first), ask, failed);
    note_plan(first, p);
    first->tried = true;
    Offers others = {first + 1, all.offer.n ? all.offer.n - 1 : 0, 0};
    const Offer *found = best_offer(&s, &others, p ? first : NULL, purse_new(NULL, QUESTION_WORK));
    const Offer *best = found ? found : first;
    if (best != first || x->dump)
        p = each(x, named(m, best), ask, failed);
    if (!p && last)
        p = last(x, named(m, best), ask, failed);
    const char *note = p && all.offer.n ? note_of(&all, p->m, best) : NULL;
    if (note)
        p->proof.note = strf("%s%s%s", note, p->proof.note ? "; " : "", p->proof.note ? p->proof.note : "");
    return p;
}
