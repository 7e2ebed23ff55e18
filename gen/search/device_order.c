/* SPDX-License-Identifier: Apache-2.0
 *
 * device_order.c: one candidate under every order of its devices, where devices.order is free.
 *
 * Orders that differ in nothing a plan could notice are one (search/arrange.c).  Each is bounded from below; they are planned
 * from the lowest bound on, by whatever planner is asked, until the next bound is above the best step.  The order that is
 * chosen is baked into the model of the plan: its device i does stage i.
 *
 * The bound printed is of all orders: of those planned what `exact` proved of each, of the others their own bound, and where
 * they are too many to be written down, what the program over multisets proves of all.  Budgets count orders, never time.
 */
#include "search.h"
#include "budgets.h"

typedef struct {                /* one graph, depth and schedule under all orders */
    const Graph *g;
    const Model *m;
    int stages;
    const Schedule *k;
    Orders list;                /* that are known, by ascending bound */
    bool every;                 /* there are no others */
    bool runs;                  /* one run of operators a stage, as the list of its schedule has it: bounds can use that */
    Ns least;                   /* no plan of any order has a shorter step */
    int planned;
    bool proven;                /* those that were not planned are slower */
} Arranged;

static const Cost *cost_of(const Search *s, const Arranged *a, const Model *with)
{
    return cost_with(cost_shared(cost(a->g, with, s->x->times), with, a->stages), a->k);
}

/* What is proven of one order, and with `best` of all of them, and which one to begin with. */
static Ns least_with(const Search *s, Arranged *a, const Kinds *kinds, const Model *with, const Ask *ask, int *best)
{
    Plan *p = new_plan(a->g, cost_of(s, a, with), with, a->stages, a->k->name, ask);
    if (order(p))
        return 0;
    Question q = part_question(p, least_memory(with, a->stages));
    bad_stop();
    if (best) {
        Plan given = *p;
        given.m = a->m;
        given.c = cost_of(s, a, a->m);
        Ns longest = orders_longest(kinds, &given, q.cut, best);
        a->least = !a->runs || order_overlap(p) || longest == INT64_MAX ? 0 : a->g->micro * longest;
    }
    return order_least(&q, a->runs);
}

/* Of either warm-up of 1f1b, where both are tried. */
static Ns least_of(const Search *s, Arranged *a, const Kinds *kinds, const int *device, int *best)
{
    Model *with = ordered(a->m, a->stages, device);
    Ask other = s->ask;
    Ns least = least_with(s, a, kinds, with, &s->ask, best), least_other = least;
    if (a->m->plan.warmup == WARMUP_AUTO && a->k->warmups) {
        other.choice.warmup = 1 + WARMUP_B;
        least_other = least_with(s, a, kinds, with, &other, NULL);
    }
    return least < least_other ? least : least_other;
}

/* The order of a planner that has its own, of all devices, the first ones used. */
static int *own_order(const Cost *c, const Model *m, Orderer *make)
{
    int n = m->devices.n, *order = alloc(sizeof *order * (size_t)n);
    int64_t *rate = alloc(sizeof *rate * (size_t)(n * n));
    for (int i = 0; i < n * n; i++)         /* KiB a second, of messages of a MiB there and back */
        rate[i] = i / n == i % n ? 0
            : 2 * 1024 * INT64_C(1000000000) / (1 + cost_wire(c, i / n, i % n, 1 << 20) + cost_wire(c, i % n, i / n, 1 << 20));
    make(rate, n, order);
    return order;
}

static void arrange(const Search *s, Arranged *a, const Kinds *kinds)
{
    Orderer *orderer = planner_named(s->ask.choice.planner ? s->ask.choice.planner : a->m->plan.planner)->orderer;
    int *given = alloc(sizeof *given * (size_t)a->stages), *best = alloc(sizeof *best * (size_t)a->stages);
    int most = a->g->nf > 1000 ? (int)(ORDERS * (int64_t)1000 / a->g->nf) : ORDERS;
    for (int i = 0; i < a->stages; i++)
        given[i] = i;
    least_of(s, a, kinds, given, best);
    a->every = !orderer && orders_all(kinds, a->stages, most, &a->list);
    if (orderer) {
        *PUSH(&a->list) = (DeviceOrder){own_order(cost_of(s, a, a->m), a->m, orderer), 0};
    } else if (!a->every) {
        a->list.n = 1;          /* the given one, and what the program found */
        orders_near(kinds, a->stages, best, &a->list);
    }
    for (int i = 0; i < a->list.n; i++)
        a->list.at[i].least = least_of(s, a, kinds, a->list.at[i].device, NULL);
    /* Stable: of equal bounds the one written first, and the given order is. */
    for (int i = 1; i < a->list.n; i++)
        for (int j = i; j > 0 && a->list.at[j - 1].least > a->list.at[j].least; j--) {
            DeviceOrder swap = a->list.at[j];
            a->list.at[j] = a->list.at[j - 1];
            a->list.at[j - 1] = swap;
        }
}

/* One order, planned, if it may be better than the best; soon: any plan will do.  least: proven of it. */
static Plan *plan_order(const Search *s, const Plan *best, const Arranged *a, const int *device, bool soon, Ns *least,
                        Plan **failed)
{
    const Model *with = ordered(a->m, a->stages, device);
    Search one = {.x = s->x, .ask = s->ask, .best = -1, .cutoff = best ? best->step : 0};
    one.ask.effort.first_fit |= soon;
    list_schedule(&one, a->g, cost_of(s, a, with), with, a->stages, a->k);
    search_all(&one);
    *failed = *failed ? *failed : search_failed(&one);
    if (one.best >= 0 && soon && !s->ask.effort.first_fit)
        return plan_order(s, best, a, device, false, least, failed);
    *least = a->runs ? search_least(&one) : 0;
    return search_best(&one);
}

/* From the lowest bound on, until the next bound is above the best step, or as many are planned as may be; on, while there is
 * no plan at all. */
static Plan *plan_orders(const Search *s, Arranged *a, Plan **failed)
{
    Plan *best = NULL;
    int most = TRIED / a->g->nf;
    Ns covered = INT64_MAX;     /* the least of what is proven of each */
    most = most < TRIES ? TRIES : most > MOST_TRIED ? MOST_TRIED : most;
    for (int i = 0; i < a->list.n; i++) {
        const DeviceOrder *x = &a->list.at[i];
        a->proven = best && x->least >= best->step;
        if (a->proven || (best && (a->planned >= most || s->ask.effort.first_fit))) {
            covered = x->least < covered ? x->least : covered;
            break;
        }
        Ns known = 0;
        Plan *p = plan_order(s, best, a, x->device, a->planned >= most, &known, failed);
        known = known > x->least ? known : x->least;
        covered = known < covered ? known : covered;
        a->planned++;
        best = p && (!best || better(p, best)) ? p : best;
    }
    a->proven |= a->planned == a->list.n;
    a->least = a->every && covered > a->least ? covered : a->least;
    return best;
}

static const char *order_text(const Model *m, int stages)
{
    const char *text = "";
    for (int s = 0; s < stages; s++)
        text = strf("%s%s%s", text, s ? " " : "", m->devices.at[s].name);
    return text;
}

/* How the order was found, in front of the note; the bound is of all orders. */
static Proof proof_of(const Plan *p, const Arranged *a)
{
    Proof known = p->proof;
    bool all = a->planned == a->list.n && a->every;
    const char *rest = all ? "" : a->every && a->proven ? ", the others are proven to be no faster"
        : known.bound > 0 ? ", the bound is of all there are" : ", others were not tried";
    const char *text = strf("device order %s: %d of %d orders planned%s", order_text(p->m, a->stages), a->planned, a->list.n,
                            rest);
    known.note = known.note ? strf("%s; in that order: %s", text, known.note) : text;
    if (known.bound > 0)
        known.bound = a->least < p->step ? a->least : p->step;
    return known;
}

void search_orders(Search *s, const Graph *g, const Model *m, const Cost *c, int stages, const Schedule *k)
{
    Kinds kinds = kinds_of(m, c);
    Arranged a = {.g = g, .m = m, .stages = stages, .k = k,
                  .runs = !planner_named(m->plan.planner)->map && !k->depths};
    Candidate one = {.x = s->x, .g = g, .c = c, .m = m, .stages = stages, .schedule = k, .ask = s->ask, .done = true};
    arrange(s, &a, &kinds);
    one.best = plan_orders(s, &a, &one.failed);
    one.first = one.best ? one.best : one.failed;
    one.why = one.best ? PLANNED : NO_PLAN;
    if (one.best) {
        bool moved = false;
        for (int d = 0; d < stages; d++)
            moved |= one.best->m->devices.at[d].entry != d;
        for (int d = 0; d < stages && moved; d++)
            one.best->dev.at[d].entry = 1 + one.best->m->devices.at[d].entry;
        one.proof = proof_of(one.best, &a);
    }
    *PUSH(&s->all) = one;
}
