/* SPDX-License-Identifier: Apache-2.0
 *
 * part.c: which chunk each operator belongs to.
 *
 *   needs   home and dev[].order; the limits, one a device
 *   fills   chunk (of every operator), predicted, target; chosen, for keep
 *   keeps   chunks are runs of forward operators, none empty; backward follows its forward
 *           operator, the update of a parameter follows its first use, the norm is totalled in chunk 0
 *   fails   nonzero if no cut fits.  part_blame then finds the cut that lacks least, for the report: shortfall names the
 *           device that lacks most under it, and what it needs, and chunk holds the cut.  Device -1: the constraints leave no
 *           cut into that many chunks at all
 *
 * Names in constraints are matched against operator names; a pattern also names every operator below it, so `h.5` is
 * the whole block.  cut_after: a cut behind the last operator named.  no_cut: none between two neighbours that are both
 * named.  same_stage: none between the first and the last operator named.  cuts: exactly these.
 *
 * The planner is a row of a table (planners.def); it sees only positions, prices and limits.  Prices know what a run needs,
 * but for packing, and what that adds the search feeds back.
 */
#include "planner.h"

/* ---- constraints ------------------------------------------------------------------------------------------------- */

static Loc place(const Plan *p, const char *pattern)
{
    return mark_of(p->m, pattern, p->m->plan.loc);
}

static void must_name(const Plan *p, const char *key, const char *pattern)
{
    const Graph *g = p->g;
    const char **all = alloc(sizeof *all * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++) {
        all[o] = g->op.at[o].name;
        if (match_block(pattern, all[o]))
            return;
    }
    bad(place(p, pattern), did_you_mean(pattern, all, g->nf, NULL), "plan.constraints: %s: no operator is named '%s'",
        key, pattern);
}

static void no_cut(const Plan *p, char *cut, const char *pattern)
{
    for (int o = 0; o + 1 < p->g->nf; o++)
        if (match_block(pattern, p->g->op.at[o].name) && match_block(pattern, p->g->op.at[o + 1].name))
            cut[o] = CUT_NEVER;
}

static void same_stage(const Plan *p, char *cut, const Strs *patterns)
{
    int first = p->g->nf, last = -1;
    for (int o = 0; o < p->g->nf; o++)
        for (int i = 0; i < patterns->n; i++)
            if (match_block(patterns->at[i], p->g->op.at[o].name)) {
                first = o < first ? o : first;
                last = o;
            }
    for (int o = first; o < last; o++)
        cut[o] = CUT_NEVER;
}

/* What keeps operators o and o + 1 together */
static const char *forbids(const Plan *p, int o)
{
    const PlanSpec *spec = &p->m->plan;
    char *cut = alloc((size_t)p->g->nf);
    memset(cut, CUT_MAY, (size_t)p->g->nf);
    for (int i = 0; i < spec->no_cut.n; i++) {
        no_cut(p, cut, spec->no_cut.at[i]);
        if (cut[o] == CUT_NEVER)
            return strf("{no_cut: %s}", spec->no_cut.at[i]);
    }
    for (int i = 0; i < spec->same_stage.n; i++) {
        same_stage(p, cut, &spec->same_stage.at[i]);
        if (cut[o] == CUT_NEVER)
            return strf("{same_stage: [%s, ...]}", spec->same_stage.at[i].at[0]);
    }
    die("no constraint forbids a cut after %s", p->g->op.at[o].name);
}

static void cut_after(const Plan *p, char *cut, const char *pattern)
{
    int last = -1;
    for (int o = 0; o < p->g->nf; o++)
        if (match_block(pattern, p->g->op.at[o].name))
            last = o;
    if (last < 0 || last == p->g->nf - 1)
        return;                 /* unknown: said; the end: cut anyway */
    if (cut[last] == CUT_NEVER)
        bad(place(p, pattern), NULL,
            "plan.constraints: a cut after '%s' is asked for, but %s forbids it", pattern, forbids(p, last));
    cut[last] = CUT_MUST;
}

static void only_these(const Plan *p, char *cut, const Ints *cuts)
{
    int n = p->g->nf;
    Loc at = p->m->plan.cuts_at.line ? p->m->plan.cuts_at : p->m->plan.loc;
    if (cuts->n != plan_chunks(p) - 1)
        err(at, NULL, "plan.cuts: %d cuts make %d chunks, but the plan has %d", cuts->n, cuts->n + 1,
            plan_chunks(p));
    for (int i = 0; i < cuts->n; i++) {
        int o = cuts->at[i];
        if (o < 0 || o >= n - 1 || (i > 0 && o <= cuts->at[i - 1]))
            err(at, NULL, "plan.cuts: %d is not a position after the one before and below %d", o, n - 1);
        if (cut[o] == CUT_NEVER)
            err(at, NULL, "plan.cuts: no cut is possible after operator %d, '%s': a constraint forbids it", o,
                p->g->op.at[o].name);
    }
    for (int o = 0, i = 0; o < n - 1; o++) {
        bool here = i < cuts->n && cuts->at[i] == o;
        i += here;
        cut[o] = here ? CUT_MUST : CUT_NEVER;
    }
}

/* Where more values cross than were asked for, a cut that is not given. */
static void only_narrow(const Plan *p, char *cut)
{
    const Graph *g = p->g;
    int *last = alloc(sizeof *last * (size_t)g->tensor.n), *ends = alloc(sizeof *ends * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->kind == ARG_READ && !a->state)
                last[a->index] = o;
    for (int t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].op >= 0 && g->tensor.at[t].op < last[t]) {
            ends[g->tensor.at[t].op]++;
            ends[last[t]]--;
        }
    for (int o = 0, cross = 0; o + 1 < g->nf; o++) {
        cross += ends[o];
        if (cross > p->ask.choice.narrow && cut[o] == CUT_MAY)
            cut[o] = CUT_NEVER;
    }
}

static char *positions(const Plan *p)
{
    const Graph *g = p->g;
    const PlanSpec *spec = &p->m->plan;
    char *cut = alloc((size_t)g->nf);
    memset(cut, CUT_MAY, (size_t)g->nf);
    cut[g->nf - 1] = CUT_MUST;
    for (int i = 0; i < spec->no_cut.n; i++) {
        must_name(p, "no_cut", spec->no_cut.at[i]);
        no_cut(p, cut, spec->no_cut.at[i]);
    }
    for (int i = 0; i < spec->same_stage.n; i++) {
        for (int j = 0; j < spec->same_stage.at[i].n; j++)
            must_name(p, "same_stage", spec->same_stage.at[i].at[j]);
        same_stage(p, cut, &spec->same_stage.at[i]);
    }
    for (int i = 0; i < spec->cut_after.n; i++) {
        must_name(p, "cut_after", spec->cut_after.at[i]);
        cut_after(p, cut, spec->cut_after.at[i]);
    }
    if (p->ask.choice.narrow)
        only_narrow(p, cut);
    if (plan_cuts(p)->n)
        only_these(p, cut, plan_cuts(p));
    return cut;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void assign(Plan *p, const int *last)
{
    const Graph *g = p->g;
    p->chunk = (Ints){0};
    for (int o = 0, s = 0; o < g->op.n; o++) {
        int at = 0;
        if (o < g->nf) {
            at = s;
            s += o == last[s];
        } else if (o < g->nb) {
            at = p->chunk.at[g->op.at[o].fwd];
        } else {
            /* The chunk of an update: the home of its parameter. */
            int param = update_param(p->g, &g->op.at[o]);
            at = param < 0 ? 0 : p->chunk.at[p->g->state.at[param].op];
        }
        *PUSH(&p->chunk) = at;
    }
}

/* By tensor: the cheapest of each chunk. */
static int *cheapest(const Question *q, const int *last)
{
    int *fate = alloc(sizeof *fate * (size_t)q->p->g->tensor.n);        /* FATE_KEEP */
    for (int s = 0, first = 0; s < q->chunks; first = last[s++] + 1) {
        const Price *k = price_best(q->prices, first, last[s], s);
        for (int i = 0; i < k->tensor.n; i++)
            fate[k->tensor.at[i]] = k->fate.at[i];
    }
    return fate;
}

static void answer(Plan *p, const Question *q, const Answer *a)
{
    assign(p, a->last);
    p->chosen = a->fate ? a->fate : cheapest(q, a->last);
}

bool part_cuts(const Plan *p, Ints *cuts)
{
    for (int o = 0; o + 1 < p->g->nf; o++)
        if (p->chunk.at[o] != p->chunk.at[o + 1])
            *PUSH(cuts) = o;
    return cuts->n == plan_chunks(p) - 1;
}

int *part_last(const Plan *p, int chunks)
{
    Ints cuts = {0};
    if (p->chunk.n == 0 || !part_cuts(p, &cuts))
        return NULL;
    *PUSH(&cuts) = p->g->nf - 1;
    return cuts.n == chunks ? cuts.at : NULL;
}

/* With plan.widths a device of a narrow stage takes as many rows' micro-batches in the time of one: so much longer they take in
 * the first row.  What more micro-batches need of memory there, mem finds. */
static const Cost *slowed(const Plan *p)
{
    Cost *c = COPY(p->c);
    c->classes = plan_stages(p);
    c->of = (Ints){0};
    c->ns = alloc(sizeof *c->ns * (size_t)c->classes), c->alone = alloc(sizeof *c->alone * (size_t)c->classes);
    for (int d = 0; d < c->classes; d++) {
        *PUSH(&c->of) = d;
        c->ns[d] = alloc(sizeof(Ns) * (size_t)c->ops), c->alone[d] = alloc(sizeof(Ns) * (size_t)c->ops);
        for (int o = 0; o < c->ops; o++) {
            int turns = o < p->g->nb ? p->m->plan.replicas / p->m->plan.widths.at[d] : 1;
            c->ns[d][o] = cost_op(p->c, d, o) * turns;
            c->alone[d][o] = cost_alone(p->c, d, o) * turns;
        }
    }
    return c;
}

/* What a planner sees of several copies of the model: the first one, as if its micro-batches were all. */
const Plan *part_row(const Plan *p)
{
    if (plan_rows(p) == 1)
        return p;
    Plan *one = alloc(sizeof *one), with = *p;
    Graph *g = COPY(p->g);
    g->micro = plan_micro(p);
    g->groups /= plan_rows(p);
    with.g = g;
    with.devices = plan_stages(p);
    with.replicas = 0;
    with.tree_depth = plan_levels(p);
    with.home.n = 1;
    if (plan_uneven(p)) {
        with.c = slowed(p);
        with.chunk.n = 0;
    }
    *one = with;
    if (plan_ways(p) > 1 || plan_uneven(p))
        plan_keep_row(one);
    return one;
}

/* share: NULL, each chunk under all of its device's memory. */
static Question ask(const Plan *plan, const char *cut, const Bytes *limit, const Bytes *share)
{
    const Plan *p = part_row(plan);
    share = share ? share : price_whole(p, limit);
    int chunks = plan_chunks(p), *flight = alloc(sizeof *flight * (size_t)chunks);
    for (int s = 0; s < chunks; s++)
        flight[s] = order_flight(p, s);
    return (Question){.p = p, .prices = prices_open(p, share), .n = p->g->nf, .chunks = chunks, .cut = cut, .flight = flight,
                      .limit = limit, .share = share, .objective = "step", .below = p->ask.effort.cutoff,
                      .unseeded = p->ask.effort.unseeded, .seeds = planners};
}

Question part_question(const Plan *plan, const Bytes *limit)
{
    const Plan *p = part_row(plan);
    return (Question){.p = p, .n = p->g->nf, .chunks = plan_chunks(p), .cut = positions(plan), .limit = limit,
                      .share = price_whole(p, limit), .objective = "step", .seeds = planners};
}

bool part_below(const Plan *p, const Bytes *limit, Ns below, Cuts *all)
{
    Question q = ask(p, positions(p), limit, NULL);
    return exact_below(&q, below, all);
}

Ns part_least(const Plan *p, const Bytes *limit)
{
    Question q = ask(p, positions(p), limit, NULL);
    return exact_least(&q);
}

/* ---- nothing fits ------------------------------------------------------------------------------------------------ */

/* What a chunk needs under this answer: with the fates of its planner, or with the cheapest. */
static Bytes need_of(const Question *q, const Answer *a, int chunk)
{
    int first = chunk ? a->last[chunk - 1] + 1 : 0, last = a->last[chunk];
    Ns time;
    return a->fate ? price_need(q->prices, first, last, chunk, a->fate, &time)
                   : price_best(q->prices, first, last, chunk)->need;
}

/* What the chunks of each device need. */
static Bytes *needs(const Plan *p, const Question *q, const Answer *a)
{
    Bytes *need = alloc(sizeof *need * (size_t)q->p->devices);
    for (int s = 0; s < q->chunks; s++) {
        Bytes bytes = need_of(q, a, s);
        for (int way = 0; way < plan_ways(p); way++)
            need[plan_home(p, way, s)] += bytes;
    }
    return need;
}

static bool fits_with(const Plan *p, const char *cut, const Bytes *limit, Bytes more, Answer *a)
{
    Bytes *all = alloc(sizeof *all * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++)
        all[d] = limit[d] + more;
    int *last = alloc(sizeof *last * (size_t)plan_chunks(p));
    void *mark = mem_mark();
    Question q = ask(p, cut, all, NULL);
    Answer tried;
    bool found = exact_any(&q, &tried);
    if (found)
        memcpy(last, tried.last, sizeof *last * (size_t)plan_chunks(p));
    mem_release(mark);
    if (found)
        *a = (Answer){.last = last};
    return found;
}

/* No work is left: the cut at hand is the answer. */
static bool is_spent(const Plan *p)
{
    return purse_left(p->ask.work) <= 0;
}

void part_blame(Plan *p)
{
    Answer found;
    Bytes low = 0, high = 1;
    const char *cut = positions(p);
    const Bytes *limit = p->target;
    Bytes parameters = 0;
    for (EACH(const State, s, p->g->state))
        parameters += s->kind == S_PARAM ? s->bytes : 0;
    while (high < limit[0] / 64 || high < (parameters / p->devices - limit[0]) / 2)
        high *= 2;
    if (!fits_with(p, cut, limit, INT64_MAX / 4, &found))
        return;
    while (!fits_with(p, cut, limit, high, &found) && !is_spent(p)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1 + high / 64 && !is_spent(p)) {
        Answer tried;
        Bytes mid = low + (high - low) / 2;
        if (fits_with(p, cut, limit, mid, &tried)) {
            high = mid;
            found = tried;
        } else {
            low = mid;
        }
    }
    /* Which device lacks most, under the cut that fits with the least more on every device. */
    Question q = ask(p, cut, limit, NULL);
    const Bytes *need = needs(p, &q, &found);
    Bytes worst = INT64_MIN;
    for (int d = 0; d < q.p->devices; d++)
        if (need[d] - limit[d] > worst) {
            worst = need[d] - limit[d];
            p->shortfall.device = d;
            p->shortfall.need = need[d];
        }
    answer(p, &q, &found);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* What a chunk of an answer needs and takes for a micro-batch, where it may need so much; each fits in more than the last. */
typedef struct { Bytes need; Ns time; } PartPrice;

/* TRIES for each chunk, from the least that it may need to all of its device. */
static PartPrice *part_prices(const Question *q, const Answer *a, const Bytes *whole)
{
    PartPrice *price = alloc(sizeof *price * (size_t)q->chunks * TRIES);
    Bytes *least = alloc(sizeof *least * (size_t)q->chunks), *share = alloc(sizeof *share * (size_t)q->chunks);
    const int *all = keep_fates(q->p, q->p->m->plan.recompute == RECOMPUTE_AUTO);
    for (int s = 0; s < q->chunks; s++) {
        Ns time;
        Bytes need = need_of(q, a, s);
        least[s] = price_need(q->prices, s ? a->last[s - 1] + 1 : 0, a->last[s], s, all, &time);
        least[s] = least[s] < need ? least[s] : need;
    }
    for (int i = 0; i < TRIES; i++) {
        for (int s = 0; s < q->chunks; s++)
            share[s] = least[s] + (whole[s] > least[s] ? (whole[s] - least[s]) / TRIES * i : 0);
        void *mark = mem_mark();
        Prices *prices = prices_open(q->p, share);
        PartPrice now;
        for (int s = 0; s < q->chunks; s++) {
            const Price *k = price_best(prices, s ? a->last[s - 1] + 1 : 0, a->last[s], s);
            now = (PartPrice){k->need > least[s] ? k->need : least[s], k->forward + k->backward};
            PartPrice *to = &price[s * TRIES + i];
            *to = i && (!k->fits || now.time > to[-1].time) ? to[-1] : now;
        }
        mem_release(mark);
    }
    return price;
}

/* Gives bytes to the chunk of this device that wins most time by each; false: none has room for more. */
static bool give_most(const Plan *p, const Question *q, int device, const PartPrice *price, int *at, Bytes *room)
{
    double most = 0;
    int chunk = -1, to = -1;
    for (int s = 0; s < q->chunks; s++)
        for (int i = at[s] + 1; plan_holds(p, device, s) && i < TRIES; i++) {
            const PartPrice *now = &price[s * TRIES + at[s]], *then = &price[s * TRIES + i];
            const Bytes more = then->need > now->need ? then->need - now->need : 1;
            const double won = (double)(now->time - then->time) / (double)more;
            if (more <= *room && won > most) {
                most = won;
                chunk = s;
                to = i;
            }
        }
    if (chunk < 0)
        return false;
    *room -= price[chunk * TRIES + to].need - price[chunk * TRIES + at[chunk]].need;
    at[chunk] = to;
    return true;
}

/* What a device has beyond the least of each of its chunks goes to those that win most time by it; where it has not that much,
 * they share all of it as the least.  Without an answer all parts are equal. */
static void share_out(const Plan *p, const Question *q, const Answer *a, const Bytes *limit, Bytes *share)
{
    const PartPrice *price = a ? part_prices(q, a, price_whole(q->p, limit)) : NULL;
    int *at = alloc(sizeof *at * (size_t)q->chunks);
    Bytes *least = alloc(sizeof *least * (size_t)q->chunks);
    for (int s = 0; s < q->chunks; s++) {
        least[s] = price ? price[s * TRIES].need : 0;
        share[s] = INT64_MAX;
    }
    for (int d = 0; d < q->p->devices; d++) {
        Bytes room = limit[d], n = 0;
        memset(at, 0, sizeof *at * (size_t)q->chunks);
        for (int s = 0; s < q->chunks; s++)
            if (plan_holds(p, d, s)) {
                room -= least[s];
                n++;
            }
        while (price && room > 0 && give_most(p, q, d, price, at, &room))
            ;
        const double few = (double)limit[d] / (double)(limit[d] - room);
        for (int s = 0; s < q->chunks; s++)
            if (plan_holds(p, d, s)) {
                Bytes has = price ? price[s * TRIES + at[s]].need : 0;
                Bytes part = room < 0 ? (Bytes)((double)has * few) : has + room / n;
                share[s] = part < share[s] ? part : share[s];
            }
    }
}

/* One question, in a room of its own, which goes once its prices are read.  The answer is not in it. */
static bool put(const Planner *k, const Plan *p, const char *cut, const Bytes *limit, const Bytes *share, const int *like,
                Question *q, Answer *a, Room **room)
{
    *room = mem_room();
    Room *was = mem_in(*room);
    Answer found = {0};
    *q = ask(p, cut, limit, share);
    q->like = like;
    bool any = q->n >= q->chunks && k->plan(q, &found);
    mem_in(was);
    const size_t last = sizeof *found.last * (size_t)q->chunks, fate = sizeof *found.fate * (size_t)p->g->tensor.n;
    found.last = any ? memcpy(alloc(last), found.last, last) : NULL;
    found.fate = any && found.fate ? memcpy(alloc(fate), found.fate, fate) : NULL;
    found.note = found.note ? strf("%s", found.note) : NULL;
    *a = found;
    return any;
}

/* No chunk of a device with too much may need more than its largest one, less as much.  False: nothing new is asked. */
static bool cap_largest(const Plan *p, const Question *q, const Answer *a, const Bytes *limit, Bytes *share)
{
    const Bytes *need = needs(p, q, a);
    bool changed = false;
    for (int d = 0; d < q->p->devices; d++) {
        Bytes over = need[d] - limit[d], most = 0;
        for (int s = 0; over > 0 && s < q->chunks; s++) {
            Bytes bytes = plan_holds(p, d, s) ? need_of(q, a, s) : 0;
            most = bytes > most ? bytes : most;
        }
        for (int s = 0; over > 0 && s < q->chunks; s++)
            if (stage_of(q->p, s) == d) {
                changed |= share[s] != most - over;
                share[s] = most - over;
            }
    }
    return changed;
}

typedef struct {
    const Planner *k;
    const char *cut;
    const Bytes *limit;
    Bytes *share;
    Question q;                 /* of the best answer, and the room of its prices */
    Answer best;
    Room *room, *behind;        /* behind: of the last question, where its answer is not the best */
    Ns alone;                   /* the step that the first answer expects */
    Bytes over;                 /* by the device that is over most; INT64_MAX: no answer */
} Sharing;

static void share_done(Sharing *x)
{
    if (x->behind)
        mem_drop(x->behind);
    x->behind = NULL;
}

/* One more question.  Of those that fit the fastest stays, else the one that is over least; with the bound of the first.  What
 * is slower than the cutoff replaces nothing.  False: there is no answer. */
static bool try_shares(const Plan *p, Sharing *x, Question *q, Answer *a, bool *better)
{
    Room *room;
    share_done(x);
    bool first = !x->room, found = put(x->k, p, x->cut, x->limit, x->share, x->best.last, q, a, &room);
    const Ns bound = first ? a->bound : x->best.bound;          /* later ones are of smaller limits */
    const Bytes *need = found ? needs(p, q, a) : NULL;
    Bytes over = found ? INT64_MIN : INT64_MAX;
    for (int d = 0; d < q->p->devices && found; d++)
        over = max_of(over, need[d] - x->limit[d]);
    const bool fits = over <= 0 && x->over <= 0;
    const bool slow = p->ask.effort.cutoff > 0 && found && a->value > p->ask.effort.cutoff;
    *better = first || (!slow && (fits ? a->value < x->best.value : over < x->over));
    if (*better) {
        if (x->room)
            mem_drop(x->room);
        x->over = over;
        x->best = *a;
        x->q = *q;
        x->room = room;
    } else {
        x->behind = room;
    }
    x->best.bound = bound;
    x->alone = x->alone > 0 || !found ? x->alone : a->value;
    return found;
}

/* Is there a step below the cutoff for the cuts of the best answer, if each chunk has the part with which they are fastest?
 * What is not over by far may pack, for peaks need not meet. */
static bool may_win(const Plan *p, Sharing *x)
{
    const bool far = x->over < INT64_MAX && x->over > x->limit[0] / SHARE_FAR;
    if (!far || p->ask.effort.cutoff == 0 || plan_cuts(p)->n)
        return x->over < INT64_MAX;
    char *cut = alloc((size_t)x->q.n);          /* CUT_NEVER */
    for (int s = 0; s < x->q.chunks; s++)
        cut[x->best.last[s]] = CUT_MUST;
    Question q;
    Answer a;
    Room *spare;
    share_out(p, &x->q, &x->best, x->limit, x->share);
    bool found = put(x->k, p, cut, x->limit, x->share, x->best.last, &q, &a, &spare);
    mem_drop(spare);
    return found && a.value <= p->ask.effort.cutoff;
}

/* Chunks that share a device: at first each is priced under all of its memory, which keeps the bound a bound.  Where they do
 * not fit together, the largest gets less.  Where that is far from enough, or leaves no cuts, each gets the part with which the
 * last answer would be fastest, and the cuts are asked again.  What is over least goes on: peaks of two chunks need not meet,
 * and mem has the last word.  With a step to beat, it only goes on if that may be. */
static bool share(const Plan *p, Sharing *x)
{
    Question q;
    Answer a;
    bool open = true, far = false;
    x->share = price_whole(p, x->limit);
    x->over = INT64_MAX;
    for (int round = 0; round < TRIES && open && !far && !(round && is_spent(p)); round++) {
        bool found = try_shares(p, x, &q, &a, &open);
        if (!found && x->over == INT64_MAX && q.below > 0 && a.value > q.below)
            return false;       /* too slow: with less memory no plan is faster */
        far = x->over > x->limit[0] / SHARE_FAR && plan_cuts(p)->n == 0 && !x->k->blind;
        open = found && x->over > 0 && !x->k->blind && cap_largest(p, &q, &a, x->limit, x->share);
    }
    for (int round = 0; round < TRIES && far && !is_spent(p); round++) {
        share_out(p, &x->q, x->over < INT64_MAX ? &x->best : NULL, x->limit, x->share);
        try_shares(p, x, &q, &a, &far);
    }
    return may_win(p, x);
}

/* Does each device have the states of all its runs, and what one has beside, with the planner's fates or the cheapest? */
static bool may_pack(const Plan *p, const Question *q, const Answer *a, const Bytes *limit)
{
    Bytes *states = alloc(sizeof *states * (size_t)q->p->devices), *most = alloc(sizeof *most * (size_t)q->p->devices);
    for (int s = 0, first = 0; s < q->chunks; first = a->last[s++] + 1) {
        Price k = a->fate ? price_with(q->prices, first, a->last[s], s, a->fate) : *price_best(q->prices, first, a->last[s], s);
        const int d = stage_of(p, s);
        states[d] += k.states;
        most[d] = max_of(most[d], k.need - k.states);
        if (states[d] + most[d] > limit[d])
            return false;
    }
    return true;
}

int part(Plan *p, const Bytes *limit)
{
    const Planner *planner = planner_named(plan_planner(p)), any = {.plan = exact_any, .space = planner->space};
    planner = p->ask.effort.first_fit && planner->complete ? &any : planner;
    p->target = alloc_copy(limit, sizeof *limit * (size_t)p->devices);
    char *cut = positions(p);
    Sharing x = {.k = planner, .cut = cut, .limit = limit};
    bool several = plan_chunks(p) * plan_ways(p) > plan_stages(p);
    bool found = several ? share(p, &x) : put(planner, p, cut, limit, NULL, NULL, &x.q, &x.best, &x.room);
    share_done(&x);
    const Answer a = x.best;
    if (found && p->ask.trials && plan_ways(p) == 1 && (planner->blind || (!several && !a.fate)))
        found = may_pack(p, &x.q, &a, limit);       /* one of many plans is laid out only if it may fit */
    p->predicted = (Proof){.note = plan_ways(p) > 1 ? NULL : a.note};
    p->shortfall = (Shortfall){.device = -1};
    p->predicted.value = found ? a.value : a.bound;
    p->predicted.alone = x.alone > 0 ? x.alone : p->predicted.value;
    p->predicted.bound = a.bound;
    /* Where steps overlap, it is of the longest chunk; where two pipelines share the devices, of one of them.  With plan.widths
     * micro-batches of a row stand for those of several. */
    if (found && (order_overlap(p) || plan_ways(p) > 1 || plan_uneven(p)))
        p->predicted.bound = 0;
    if (!found || (p->ask.effort.cutoff > 0 && a.value > p->ask.effort.cutoff)) {
        mem_drop(x.room);
        return 1;
    }
    answer(p, &x.q, &a);
    mem_drop(x.room);
    p->predicted.space = planner_space(planner, p);
    return 0;
}
