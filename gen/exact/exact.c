/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.c: the contiguous cut with the shortest step, and a proof of how short a step can be.
 *
 * Problem: n forward operators stand in one order and are cut into chunks, between any two of them and not only between
 * layers.  Each chunk keeps, makes again or sends to the host whatever is cheapest under its device's limit.  The objective is
 * the simulated time of the step.  It has no closed form.
 *
 * Method: lazy and exact, in four parts.
 *   1. The smallest target that reach.c cannot refute is found, by floors that cost nothing.  The chunks of its plan are then
 *      priced, and the prices replace the floors.  This is repeated until a plan stands on prices alone.  Every target
 *      refuted on the way is proven: no plan has so short a step.
 *   2. preview.c compares three kinds of plans: those met so far, those of somewhat longer targets that send less, and the
 *      answers of all other planners of the same space.  So `exact` is never worse than any of them.  If none fits, each
 *      chunk is made as long as it fits, front to back, and its time is bisected (the probe of Pinar and Aykanat, 2004).
 *   3. The best plan is improved by moving one cut at a time, by powers of two, while that helps (improve.c).  If part 4 ends
 *      without a proof, two and three cuts in a row are moved too.
 *   4. Branch and bound goes over all plans with a bound below the best one found; preview.c compares each.  If it ends, no
 *      plan of the space is faster.
 * Parts 1, 3 and 4 have budgets of runs, prices and simulated computations, never of time.  So the plan is the same on any
 * machine.  When a budget is used up, the gap that is left is printed.  Many operators are searched on a grid first: a
 * hundred, then a few hundred cuts that cross few bytes.  Part 3 then moves cuts over all positions.
 *
 * Source: targets in place of costs are from Zheng et al., Alpa, 2022.  Chunk costs by an optimiser of their own are from
 * Tarnawski et al., Piper, 2021, and Sun et al., AdaPipe, 2024.  The bound is added here: it tells how good a plan is.
 *
 * The search is exact for one chunk a device, with devices in the order given.  With several chunks a device, each chunk is
 * asked to take its share of the time, and the plan is a heuristic.  The bound then gives each chunk the whole device.
 *
 * Cost: see reach.c for targets and replay/fast.c for prices.  bench/planner-scale measures both.
 */
#include "moves.h"
#include "exact.h"

/* ---- comparing plans --------------------------------------------------------------------------------------------- */

/* The value of a plan; where it is no less than `most`, any such time. */
static Ns value_below(ExactSearch *s, const int *last, const Price *const *price, Ns most)
{
    if (s->by_bound || !s->x->step)
        return bound_plan(s->x, last, price);
    return preview(s->view, last, price, most);
}

static void keep_best(ExactSearch *s, const int *last, const Price *const *price, Ns value, int *fate)
{
    s->best.value = value;
    s->best.fate = fate;
    memcpy(s->best.last, last, sizeof *last * (size_t)s->q->chunks);
    memcpy(s->best.price, price, sizeof *price * (size_t)s->q->chunks);
}

/* Simulated computations; one takes as long as two replayed calls.  As many as are looked at anyway cost nothing. */
static void pay_preview(ExactSearch *s)
{
    int64_t actions = 2 * s->q->p->g->micro * s->x->chunks + s->x->edge.n / 8;
    s->actions += actions;
    prices_pay(s->q->prices, actions > SHORTER_PLACES ? 2 * (actions - SHORTER_PLACES) : 0);
}

/* The value of a cut by what is known of its chunks' costs: never more than its true value.  most: as above. */
static Ns promise(ExactSearch *s, const int *last, Ns most)
{
    for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1) {
        Ns time = reach_time(s->r, c, first, last[c]);
        if (time == NEVER)
            return NEVER;
        s->guess[c] = (Price){.fits = true, .forward = facts_forward(s->x, c, first, last[c])};
        s->guess[c].backward = time - s->guess[c].forward;
        s->guess[c].early = time - facts_time(s->x, c, first, last[c]);     /* at most */
        s->price[c] = &s->guess[c];
    }
    pay_preview(s);
    return value_below(s, last, s->price, most);
}

static const Price *buy(ExactSearch *s, int chunk, int first, int last)
{
    s->priced += reach_bought(s->r, chunk, first, last) ? 0 : last - first + 1;
    return reach_buy(s->r, chunk, first, last);
}

/* True if the chunks of some device cannot fit, however little they keep.  Counted are the states of all and the least
 * that one of them needs besides. */
static bool never_together(const ExactSearch *s, const int *last)
{
    const Plan *p = s->q->p;
    for (int d = 0; d < p->devices && s->many; d++) {
        Bytes states = 0, most = 0;
        for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1) {
            Bytes need = price_least(s->q->prices, first, last[c], c, 0) - s->price[c]->states;
            bool here = stage_of(p, c) == d;
            states += here ? s->price[c]->states : 0;
            most = here && need > most ? need : most;
        }
        if (states + most > s->q->limit[d])
            return true;
    }
    return false;
}

static void meet(ExactSearch *s, const int *last, Ns value)
{
    if (never_together(s, last))
        return;
    Cut *k = PUSH(s->met);
    *k = (Cut){.last = alloc(sizeof *last * (size_t)s->q->chunks), .value = value};
    memcpy(k->last, last, sizeof *last * (size_t)s->q->chunks);
}

/* The fates of the prices at hand, by tensor. */
static int *fates_of(const ExactSearch *s)
{
    int *fate = alloc(sizeof *fate * (size_t)s->q->p->g->tensor.n);
    for (int c = 0; c < s->q->chunks; c++)
        for (int i = 0; i < s->price[c]->tensor.n; i++)
            fate[s->price[c]->tensor.at[i]] = s->price[c]->fate.at[i];
    return fate;
}

/* Recomputation before the gradient arrives may be free, while the cheapest choice costs time.  So each chunk in turn drops
 * all that it may, and keeps that choice if the step is shorter.  NULL: no chunk does. */
static int *hide(ExactSearch *s, const int *last, Ns *value)
{
    bool any = false;
    for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1) {
        const Price *was = s->price[c];
        if (was->dropped == 0)
            continue;
        Price *price = alloc(sizeof *price);
        *price = price_with(s->q->prices, first, last[c], c, s->all);
        if (!price->fits || price->backward - price->early >= was->backward - was->early)
            continue;
        pay_preview(s);
        s->price[c] = price;
        Ns now = preview(s->view, last, s->price, *value);
        s->price[c] = now < *value ? price : was;
        any |= now < *value;
        *value = now < *value ? now : *value;
    }
    return any ? fates_of(s) : NULL;
}

bool exact_judge(ExactSearch *s, const int *last)
{
    int *fate = NULL;
    const Ns best = s->best.value, near = s->all && best < NEVER / 2 ? best + best / (NEAR_PART - 1) + 2 : best;
    Ns promised = promise(s, last, best);
    if (promised >= best)
        return false;
    for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1) {
        s->price[c] = buy(s, c, first, last[c]);
        if (!s->price[c]->fits)
            return false;
    }
    s->least = promised < s->least ? promised : s->least;
    Ns value = value_below(s, last, s->price, near);
    if (s->all && value - value / NEAR_PART < best)
        fate = hide(s, last, &value);
    if (value >= best)
        return false;
    if (s->met)
        meet(s, last, value);
    else
        keep_best(s, last, s->price, value, fate);
    return !s->met;
}

bool exact_judge_with(ExactSearch *s, const int *last, int *fate)
{
    for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1) {
        Price *price = alloc(sizeof *price);
        *price = price_with(s->q->prices, first, last[c], c, fate);
        s->price[c] = price;
        if (!price->fits)
            return false;
    }
    pay_preview(s);
    Ns value = value_below(s, last, s->price, s->best.value);
    if (value >= s->best.value)
        return false;
    keep_best(s, last, s->price, value, fate);
    return true;
}

/* ---- 1. the smallest target that is not refuted ------------------------------------------------------------------ */

static bool out_of_runs(const ExactSearch *s)
{
    return s->r->runs > s->r->most;
}

bool exact_spent(const ExactSearch *s)
{
    return s->priced >= s->buys || prices_spent(s->q->prices);
}

/* The smallest target from refuted + step on.  Tables are left as for the answer.  NEVER: nothing fits, or no runs left. */
static Ns smallest(ExactSearch *s, Ns step)
{
    Ns high = s->refuted + step, end = NEVER / 4;
    while (!reach(s->r, high)) {
        if (out_of_runs(s) || high == end)
            return NEVER;
        s->refuted = high;
        step *= 4;
        high = step > 4 * (s->refuted / 4 + 1) ? end : high + step;
    }
    while (high - s->refuted > 1 + (s->r->runs > s->r->most / 4 ? s->refuted >> 14 : 0)) {
        Ns mid = s->refuted + (high - s->refuted) / 2;
        if (high == end)        /* from here on by doubling */
            mid = s->refuted < end / 4 ? 2 * s->refuted : mid;
        if (reach(s->r, mid))
            high = mid;
        else if (out_of_runs(s))
            return NEVER;
        else
            s->refuted = mid;
    }
    return reach(s->r, high) ? high : NEVER;
}

/* Did the trace stand on real prices? */
static bool all_bought(const ExactSearch *s, const int *last)
{
    for (int c = 0, first = 0; c < s->q->chunks; first = last[c++] + 1)
        if (!reach_bought(s->r, c, first, last[c]))
            return false;
    return true;
}

/* Does every plan take longer than the question allows?  Only the whole grid can tell, with all the memory. */
static bool is_over(const ExactSearch *s)
{
    bool all = s->x->step && s->r->cut == s->q->cut && s->r->share == 1;
    return all && s->q->below > 0 && s->refuted >= s->q->below && s->best.value > s->q->below;
}

/* False if no plan exists, or none that the question allows. */
static bool tighten(ExactSearch *s)
{
    Ns target = smallest(s, s->refuted / 1024 + 1);
    bool feasible = target != NEVER;
    while (target != NEVER && !out_of_runs(s) && !exact_spent(s)) {
        if (is_over(s))
            return false;
        reach_trace(s->r, s->last);
        bool real = all_bought(s, s->last);
        for (int c = 0, first = 0; c < s->q->chunks; first = s->last[c++] + 1)
            buy(s, c, first, s->last[c]);
        exact_judge(s, s->last);
        if (real || s->best.value <= target)
            break;
        if (reach(s->r, target))
            continue;
        if (out_of_runs(s))
            break;
        s->refuted = target;
        target = smallest(s, target / 65536 + 1);
        if (target == NEVER && !out_of_runs(s))
            return false;
    }
    return feasible || out_of_runs(s);
}

/* May anything go to the host? */
static bool may_leave(const Question *q)
{
    return q->p->m->plan.offload != OFFLOAD_NONE && !q->p->ask.choice.no_offload;
}

/* Where results may be offloaded, a price takes a copy for slower than it may be, and lets nothing pass while the device waits:
 * it refutes nothing.  So only floors count there, under a link that has all of the step. */
static Reach *floors_of(const ExactSearch *s)
{
    Reach *r = reach_open(s->x);
    r->most = REACHED_RUNS, r->apart = true;
    return r;
}

/* Do floors refute every plan that the question allows? */
static bool is_refuted(ExactSearch *s)
{
    Ns below = s->q->below;
    if (below == 0 || !s->x->step || s->refuted >= below)
        return below > 0 && s->x->step;
    Reach *r = may_leave(s->q) ? floors_of(s) : s->r;
    if (!reach(r, below) && r->runs <= r->most)
        s->refuted = below;
    return s->refuted >= below;
}

/* ---- 2. other plans ---------------------------------------------------------------------------------------------- */

/* The longest chunk as short as it can be: near the best where there are many micro-batches. */
static void try_shortest(ExactSearch *s)
{
    Ns refuted = s->refuted;
    s->x->step = false;
    s->refuted = bound_closed(s->x) - 1;
    if (smallest(s, s->refuted / 1024 + 1) != NEVER) {
        reach_trace(s->r, s->last);
        s->x->step = true;
        exact_judge(s, s->last);
    }
    s->x->step = true;
    s->refuted = refuted;
}

static void try_longer(ExactSearch *s)
{
    static const int parts[] = {256, 64, 16};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !out_of_runs(s); i++)
        if (reach(s->r, s->refuted + s->refuted / parts[i] + 1)) {
            reach_trace(s->r, s->last);
            exact_judge(s, s->last);
        }
}

/* Other planners' cuts with the cheapest fates, and with their own. */
static void try_seeds(ExactSearch *s)
{
    for (const Planner *k = s->q->seeds; k && k->name && !prices_spent(s->q->prices); k++) {
        Answer a = {0};
        if (k->seed < s->q->n || !k->plan(s->q, &a))
            continue;
        exact_judge(s, a.last);
        if (a.fate)
            exact_judge_with(s, a.last, a.fate);
    }
}

/* ---- 4. branch and bound ----------------------------------------------------------------------------------------- */

static int by_room(const void *a, const void *b)
{
    const Branch *x = a, *y = b;
    return x->room != y->room ? (x->room < y->room) - (x->room > y->room) : x->last - y->last;
}

/* All plans that begin with last[0 .. c-1]; false: the budget is used up. */
static bool branch(ExactSearch *s, int c, int first, Ns head, int64_t end)
{
    const Reach *r = s->r;
    if (c == s->q->chunks) {
        int *last = s->last;
        Ns least = r->apart ? promise(s, last, s->least) : NEVER;
        s->least = least < s->least ? least : s->least;
        if (!r->apart && exact_judge(s, last) && s->best.value > s->refuted + 1)
            reach(s->r, s->best.value - 1);
        return s->actions < end;
    }
    Branches *list = &s->list[c];
    list->n = 0;
    for (int b = first; b <= r->must[first]; b++) {
        s->actions++;
        if (s->q->cut[b] == CUT_NEVER || r->head[(c + 1) * r->width + b + 1] < 0)
            continue;
        Ns room = reach_room(r, c, first, b);
        if (room >= head)
            *PUSH(list) = (Branch){room, b};
    }
    if (list->n)
        qsort(list->at, (size_t)list->n, sizeof *list->at, by_room);
    for (int i = 0; i < list->n; i++) {
        int b = list->at[i].last;
        if (!r->apart)
            buy(s, c, first, b);
        if (s->actions >= end || (!r->apart && exact_spent(s)))
            return false;
        if (reach_room(r, c, first, b) < head)
            continue;
        s->last[c] = b;
        if (!branch(s, c + 1, b + 1, reach_head(r, c, first, b, head), end))
            return false;
    }
    return true;
}

/* Refutes the target, or of it what previews of all cuts do, which only plain lists match.  False: too many cuts. */
static bool refute(ExactSearch *s, Ns target, int64_t end)
{
    s->r->runs = 0;
    bool possible = reach(s->r, target);
    s->least = target + 1;
    if (out_of_runs(s) || (possible && !branch(s, 0, 0, 0, end)) || out_of_runs(s))
        return false;
    if ((!possible || (s->q->p->m->plan.replicas == 1 && !s->x->split)) && s->least > s->refuted)
        s->refuted = s->least - 1;
    return true;
}

/* The best plan, or a better one that is met on the way. */
static void prove(ExactSearch *s)
{
    if (s->best.value == NEVER || s->r->share > 1)
        return;
    if (out_of_runs(s)) {
        s->r->most *= ROUNDS;
        tighten(s);
    }
    s->buys = s->priced + BOUGHT_OPERATORS;
    const Ns best = s->best.value - 1, below = s->q->below > 0 && s->q->below < best ? s->q->below : best;
    s->proven = below <= s->refuted || refute(s, below, s->actions + PREVIEWED_ACTIONS);
}

/* ---- plans that fit ----------------------------------------------------------------------------------------------- */

/* Is the run known to fit and to take at most that time? */
static bool is_within(ExactSearch *s, int c, int first, int last, Ns most)
{
    if (price_floor(s->q->prices, first, last, c) > most)
        return false;
    const Price *price = buy(s, c, first, last);
    return price->fits && price->forward + price->backward <= most;
}

/* The same near `end`, from the longest run down to those beyond `from`; -1: none is.  A large result that no cut crosses, as
 * the scores of a vocabulary, leaves room again behind its last reader. */
static int longest_near(ExactSearch *s, int c, int first, int from, int end, Ns most)
{
    Bytes limit = s->q->share[c];
    for (int cut = end - 1; cut > from && cut >= end - NEAR_OPERATORS; cut--)
        if (s->q->cut[cut] != CUT_NEVER && price_least(s->q->prices, first, cut, c, 0) <= limit
            && is_within(s, c, first, cut, most))
            return cut;
    return -1;
}

/* The longest chunk from `first` on that fits within that time, as if longer ones never did, but for the end; -1: none does. */
static int longest(ExactSearch *s, int c, int first, Ns most)
{
    int low = first - 1, high = s->r->must[first] + 1, end = s->q->n - (s->q->chunks - c) + 1, found = -1;
    high = end = high < end ? high : end;
    while (high - low > 1) {
        int mid = low + (high - low) / 2, cut = mid;
        while (cut > low && s->q->cut[cut] == CUT_NEVER)
            cut--;
        bool within = cut > low && is_within(s, c, first, cut, most);
        found = within ? cut : found;
        if (within || cut == low)
            low = mid;
        else
            high = mid;
    }
    int near = longest_near(s, c, first, found < first ? first - 1 : found, end, most);
    return near >= 0 ? near : found;
}

/* Makes each chunk as long as it may be.  That gives a plan, unless memory is less monotone than it mostly is.  Returns the
 * time of the longest chunk; NEVER: no plan. */
static Ns fill(ExactSearch *s, Ns most)
{
    int first = 0, c = 0;
    Ns worst = 0;
    for (; c + 1 < s->q->chunks && (s->last[c] = longest(s, c, first, most)) >= 0; c++)
        first = s->last[c] + 1;
    if (c + 1 < s->q->chunks || s->r->must[first] < s->q->n - 1 || !is_within(s, c, first, s->q->n - 1, most))
        return NEVER;
    s->last[c] = s->q->n - 1;
    for (c = first = 0; c < s->q->chunks; first = s->last[c++] + 1) {
        Ns time = reach_time(s->r, c, first, s->last[c]);
        worst = time > worst ? time : worst;
    }
    exact_judge(s, s->last);
    return worst;
}

/* A plan that fits, whatever its time.  Floors rule runs out; prices tell whether the others fit. */
static void try_any(ExactSearch *s)
{
    bool step = s->x->step;
    Ns low = 0, high = NEVER;   /* of the longest chunk; runs of large graphs without a bound of time cost all of the work */
    for (int c = 0; c < s->q->chunks; c++)
        low += facts_time(s->x, c, 0, s->q->n - 1) / s->q->chunks / s->q->chunks;
    for (Ns all = low * s->q->chunks, more = low / TRIES + 1, most = low; high == NEVER && most < NEVER - 1; more *= ROUNDS) {
        low = most;
        most = s->q->n <= OPS_SOME || low + more >= all ? NEVER - 1 : low + more;
        high = fill(s, most);
    }
    for (int i = 0; i < HALVINGS && high != NEVER && !prices_spent(s->q->prices) && high - low > low / 256; i++) {
        Ns mid = low + (high - low) / 2, worst = fill(s, mid);
        low = worst == NEVER ? mid : low;
        high = worst == NEVER ? high : worst;
    }
    s->x->step = false;
    s->r->runs = 0;
    int64_t end = s->priced + (prices_spent(s->q->prices) ? s->q->n : BOUGHT_OPERATORS / 2);
    if (s->q->n > GRID_CUTS + 8 * s->q->chunks)
        s->r->cut = facts_grid(s->x, GRID_CUTS);
    while (s->best.value == NEVER && s->priced < end && reach(s->r, NEVER / 4)) {
        reach_trace(s->r, s->last);
        exact_judge(s, s->last);
    }
    s->r->cut = s->q->cut;
    s->x->step = step;
    if (step && s->best.value != NEVER)
        s->best.value = value_below(s, s->best.last, s->best.price, NEVER);
}

/* ---- the planner ------------------------------------------------------------------------------------------------- */

/* The most chunks of a device that are priced under all of its memory: 1 where each has a share of its own. */
static int most_share(const Question *q)
{
    int most = 1;
    for (int d = 0; d < q->p->devices; d++) {
        int n = 0;
        Bytes sum = 0;
        for (int c = 0; c < q->chunks; c++) {
            n += stage_of(q->p, c) == d;
            sum += stage_of(q->p, c) == d ? q->share[c] : 0;
        }
        most = n > most && sum > q->limit[d] ? n : most;
    }
    return most;
}

static ExactSearch begin(const Question *q)
{
    ExactSearch s = {.q = q, .x = facts_of(q), .best = {.value = NEVER}, .by_bound = !strcmp(q->objective, "bound")};
    size_t chunks = (size_t)q->chunks;
    s.all = s.x->step && !s.by_bound && q->p->m->plan.recompute == RECOMPUTE_AUTO ? keep_fates(q->p, true) : NULL;
    s.r = reach_open(s.x);
    s.view = preview_open(s.x);
    s.best.last = alloc(sizeof(int) * chunks);
    s.best.price = alloc(sizeof(Price *) * chunks);
    s.list = alloc(sizeof *s.list * chunks);
    s.last = alloc(sizeof(int) * chunks);
    s.price = alloc(sizeof(Price *) * chunks);
    s.guess = alloc(sizeof(Price) * chunks);
    s.buys = BOUGHT_OPERATORS;
    s.closed = s.refuted = frontier_bound(frontier_open(s.x), bound_closed(s.x) - 1);
    return s;
}

/* Plans on a grid.  Its targets prove nothing about cuts off the grid. */
static void search_grid(ExactSearch *s, int pieces)
{
    Ns proven = s->refuted;
    s->r->cut = facts_grid(s->x, pieces);
    s->r->share = most_share(s->q);
    s->r->runs = 0;
    s->buys = s->priced + BOUGHT_OPERATORS;
    if (tighten(s))
        try_longer(s);
    s->r->cut = s->q->cut;
    s->refuted = proven;
}

bool exact(const Question *q, Answer *a)
{
    ExactSearch s = begin(q);
    int share = most_share(q);
    prices_reserve(q->prices, RESERVED_PART);
    s.r->most = REACHED_RUNS + (int64_t)REACHED_RUNS * q->n / 1000;
    const bool refuted = is_refuted(&s), possible = !refuted && ((q->unseeded && share > 1) || tighten(&s));
    if (refuted || is_over(&s)) {
        *a = (Answer){.value = q->below + 1, .bound = (refuted || !may_leave(q) ? q->below : s.closed) + 1};
        return false;
    }
    if (share == 1 && !out_of_runs(&s) && possible)
        try_longer(&s);
    if (share == 1 && s.x->step && possible)
        try_shortest(&s);
    if (possible && (share > 1 || out_of_runs(&s))) {
        if (q->n > GRID_CUTS)
            search_grid(&s, GRID_CUTS / 4 + 8 * q->chunks);       /* where memory is short, prices are needed: fewer of them */
        search_grid(&s, GRID_CUTS + 8 * q->chunks);
        if (s.best.value == NEVER && share == 1)            /* where few values cross */
            search_grid(&s, 2 * q->chunks);
    }
    if (q->like)
        exact_judge(&s, q->like);
    if (possible && (!q->unseeded || s.best.value == NEVER) && move_is_on("seeds"))
        try_seeds(&s);
    if (possible && share == 1 && s.best.value == NEVER)
        try_any(&s);
    exact_improve(&s, PREVIEWED_ACTIONS);
    if (!q->unseeded && !q->p->ask.effort.unproven) {
        prove(&s);
        exact_improve_more(&s);
    }
    if (s.best.value == NEVER)
        return false;
    Ns bound = s.refuted < s.best.value ? s.refuted + 1 : s.best.value;     /* what hides takes less than the cheapest */
    bool meets = s.best.value - bound < bound / 2000;       /* a gap of 0.0 % */
    *a = (Answer){.last = s.best.last, .fate = s.best.fate, .value = s.best.value, .bound = bound, .proven = s.proven,
                  .note = s.proven && meets ? "no plan of this space is predicted to be faster" : NULL};
    if (q->p->m->plan.replicas > 1)                 /* preview.c takes them to be alike */
        a->note = NULL;
    const bool slow = q->below > 0 && s.best.value > q->below;
    a->bound = slow && may_leave(q) ? s.closed + 1 : bound;
    if (may_leave(q) && !slow) {
        s.r = floors_of(&s);
        s.refuted = s.closed;
        smallest(&s, s.refuted / 64 + 1);
        const Ask *ask = &s.q->p->ask;
        const int n = ask->effort.proofs;
        int64_t most = n > 1 ? APART_ACTIONS / n : APART_ACTIONS;
        bool trial = s.q->unseeded || ask->effort.unproven || ask->trials || most < PREVIEWED_ACTIONS;
        int64_t end = s.actions + (trial ? PREVIEWED_ACTIONS : most);
        for (int part = 1 << ROUNDS; part > 0 && s.best.value > s.refuted + 1; part /= 2)
            if (!refute(&s, s.refuted + (s.best.value - 1 - s.refuted + part - 1) / part, end))
                break;
        Ns refuted = s.refuted;
        a->bound = refuted < s.best.value ? refuted + 1 : s.best.value;
        a->note = NULL;
    }
    return true;
}

Ns exact_least(const Question *q)
{
    ExactSearch s = begin(q);
    s.r->most = REACHED_RUNS + (int64_t)REACHED_RUNS * q->n / 1000;
    s.r->apart = may_leave(q);
    smallest(&s, s.refuted / 1024 + 1);
    return s.refuted + 1;
}

bool exact_any(const Question *q, Answer *a)
{
    ExactSearch s = begin(q);
    s.r->most = REACHED_RUNS + (int64_t)REACHED_RUNS * q->n / 1000;
    if (q->like)
        exact_judge(&s, q->like);
    if (s.best.value == NEVER)
        try_any(&s);
    *a = (Answer){.last = s.best.last, .value = s.best.value};
    return s.best.value != NEVER;
}

static int by_value(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

bool exact_below(const Question *q, Ns below, Cuts *all)
{
    ExactSearch s = begin(q);
    s.best.value = below;
    s.met = all;
    s.many = most_share(q) > 1;
    bool ends = reach(s.r, below - 1) ? branch(&s, 0, 0, 0, PREVIEWED_ACTIONS) : !out_of_runs(&s);
    if (all->n)
        qsort(all->at, (size_t)all->n, sizeof *all->at, by_value);
    return ends;
}
