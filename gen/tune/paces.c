/* SPDX-License-Identifier: Apache-2.0
 *
 * paces.c: the lead and the lag of each device of zb*, for the cuts of a plan.
 *
 * Problem: a weight gradient that waits fills idle time, and holds tensors meanwhile.  How many may wait differs by device:
 * memory does, and so does the use of it.  Numbers for all devices at once, as those of zb-h1, either leave time or do not fit.
 *
 * Method: local search.  The lead of device i is p-1-i to twice that, its lag -1 to 2i.  With lag -1 the device has I and W in
 * one computation, as 1f1b.  A choice costs what preview.c predicts for its lists, with the cheapest fates of each chunk.  A
 * device is priced once for each lead and lag, and for the slack of messages that others leave it.  The search begins with
 * several families of choices: the lags of zb-h1 less a number, those up to a number, and the steps from zb-h1 to zb-h2.  Then
 * one device changes, or two do, while that helps.  1f1b-split asks too, where nothing fits with I and W apart on every device:
 * its leads stand, and its lags are -1 or 0.
 *
 * The cuts of the answer are those of the plan.  list.c plans again with the lists, as for 1f1b*.
 *
 * Source: the two ends are of Qi et al., Zero Bubble Pipeline Parallelism, 2024, as is the idea to choose under a limit.
 *
 * Cost: ORDERS times the edges of the graph and the computations, and a price for each device, lead and lag that is met.
 * Not handled: packing; more lead than zb-h2 has, or less than 1f1b.
 */
#include "tune.h"
#include "exact/exact.h"

#define NEVER INT64_MAX

/* What the lists of a device say of its memory: its numbers; how early receives are posted, how late sends are waited for. */
typedef struct { int lead, lag, ahead, slack[2]; } TunerState;
typedef struct { TunerState state; Price price; } PacesKnown;
typedef struct { PacesKnown *at; int n; } Knowns;   /* one more a trial, at most */
typedef struct { int *lead, *lag; } Pace;

typedef struct {
    const Plan *p;              /* has the cuts */
    const Bytes *limit;
    int n;                      /* devices of a replica */
    int *last;
    const Facts *facts;         /* of the lists of p */
    Knowns *known;              /* by device */
    Pace best, now;
    Ns value;                   /* of the best */
    Plan *lists;                /* its lists, in a room; NULL: there are none */
    Room *room;
    int left;                   /* trials */
    bool joins;                 /* the leads are those of 1f1b, and no W waits */
} PacesTuner;

static bool is_legal(const PacesTuner *x, const Pace *a)
{
    bool legal = true;
    for (int i = 0; i < x->n; i++) {
        int least_lead = x->n - 1 - i;
        legal &= a->lead[i] >= least_lead && a->lead[i] <= (x->joins ? least_lead : 2 * least_lead);
        legal &= a->lag[i] >= -1 && a->lag[i] <= (x->joins ? 0 : 2 * i);
        legal &= i == 0 || a->lead[i] <= a->lead[i - 1];
    }
    return legal;
}

static const Price *known_of(const PacesTuner *x, int device, const TunerState *state)
{
    for (int i = 0; i < x->known[device].n; i++)
        if (!memcmp(&x->known[device].at[i].state, state, sizeof *state))
            return &x->known[device].at[i].price;
    return NULL;
}

/* False: some device has no fates that fit. */
static bool find_prices(PacesTuner *x, const Plan *p, int ahead, const Price **price)
{
    Prices *prices = NULL;
    bool fits = true;
    for (int d = 0; d < x->n; d++) {
        const int *slack = &p->slack.at[2 * d];
        TunerState state = (TunerState){x->now.lead[d], x->now.lag[d], ahead, {slack[0], slack[1]}};
        price[d] = known_of(x, d, &state);
        if (!price[d]) {
            prices = prices ? prices : prices_open(p, price_whole(p, x->limit));
            PacesKnown *k = &x->known[d].at[x->known[d].n++];
            *k = (PacesKnown){state, *price_best(prices, d ? x->last[d - 1] + 1 : 0, x->last[d], d)};
            price[d] = &k->price;
        }
        fits &= price[d]->fits;
    }
    return fits;
}

static Plan *plan_with(const PacesTuner *x, const Pace *a)
{
    Ints *lead = alloc(sizeof *lead), *lag = alloc(sizeof *lag);
    *lead = (Ints){a->lead, x->n, x->n};
    *lag = (Ints){a->lag, x->n, x->n};
    Ask ask = x->p->ask;
    ask.choice.lead = lead;
    ask.choice.lag = lag;
    return new_plan(x->p->g, x->p->c, x->p->m, x->n, x->p->schedule, &ask);
}

/* The step of the choice at hand; NEVER: it does not fit. */
static Ns step_of(PacesTuner *x)
{
    void *mark = mem_mark();
    Plan *p = plan_with(x, &x->now);
    Ns step = NEVER;
    if (!order_like(p, x->lists)) {
        Question q = part_question(p, x->limit);
        const Price **price = alloc(sizeof *price * (size_t)x->n);
        const Facts *facts = facts_again(x->facts, &q);
        if (find_prices(x, q.p, facts->ahead, price))
            step = preview(preview_open(facts), x->last, price, x->value);
    }
    mem_release(mark);          /* of a price the times stay, and no more is read */
    return step;
}

static void copy(const PacesTuner *x, Pace *to, const Pace *from)
{
    memcpy(to->lead, from->lead, sizeof *to->lead * (size_t)x->n);
    memcpy(to->lag, from->lag, sizeof *to->lag * (size_t)x->n);
}

/* Takes the choice at hand if it is the best. */
static bool judge(PacesTuner *x)
{
    if (!is_legal(x, &x->now) || x->left-- <= 0)
        return false;
    Ns step = step_of(x);
    if (step >= x->value)
        return false;
    x->value = step;
    copy(x, &x->best, &x->now);
    if (x->room)
        mem_drop(x->room);
    x->room = mem_room();
    Room *was = mem_in(x->room);
    x->lists = plan_with(x, &x->best);
    order(x->lists);
    mem_in(was);
    return true;
}

/* zb-h1 with lags less `less`, from `from` up to `most`; then more of both. */
static void try_family(PacesTuner *x, int less, int from, int most, int more)
{
    for (int i = 0; i < x->n; i++) {
        int least_lead = x->n - 1 - i, lag = (int)min_of(i - less, most);
        x->now.lead[i] = least_lead + (int)min_of(more, least_lead);
        x->now.lag[i] = (lag > from ? lag : from) + (int)min_of(more, i);
    }
    judge(x);
}

static void try_families(PacesTuner *x)
{
    for (int k = 0; k < x->n; k++)
        for (int from = -1; from <= 0; from++) {
            try_family(x, k, from, x->n, 0);
            try_family(x, 0, from, k, 0);
        }
    for (int more = 1; more < x->n; more++)
        try_family(x, 0, 0, x->n, more);
}

static const struct { int lead, lag; } moves[] = {{0, 1}, {1, 0}, {1, 1}, {0, -1}, {-1, 0}, {-1, -1}, {1, -1}, {-1, 1}};
enum { MOVES = sizeof moves / sizeof *moves };

static void move(PacesTuner *x, int device, int k)
{
    x->now.lead[device] += moves[k].lead;
    x->now.lag[device] += moves[k].lag;
}

/* One device changes, then two. */
static bool improve(PacesTuner *x)
{
    for (int pair = 0; pair < 2; pair++)
        for (int d = 0; d < x->n; d++)
            for (int k = 0; k < MOVES; k++)
                for (int e = pair ? d + 1 : x->n - 1; e < x->n; e++)
                    for (int j = 0; j < (pair ? MOVES : 1); j++) {
                        copy(x, &x->now, &x->best);
                        move(x, d, k);
                        if (pair)
                            move(x, e, j);
                        if (judge(x))
                            return true;
                    }
    return false;
}

static Pace pace_new(int n)
{
    return (Pace){alloc(sizeof(int) * (size_t)n), alloc(sizeof(int) * (size_t)n)};
}

bool paces_of(const Plan *p, const Bytes *limit, Ints *lead, Ints *lag)
{
    int n = plan_stages(p);
    PacesTuner x = {.p = p, .limit = limit, .n = n, .last = part_last(p, n), .known = alloc(sizeof(Knowns) * (size_t)n),
                    .best = pace_new(n), .now = pace_new(n), .value = NEVER, .left = ORDERS};
    x.joins = schedule_of(p->schedule)->joins;
    if (!x.last)
        return false;
    for (int d = 0; d < n; d++) {
        x.known[d].at = alloc(sizeof(PacesKnown) * ORDERS);
        x.now.lead[d] = p->ask.choice.lead ? p->ask.choice.lead->at[d] : n - 1 - d;
        x.now.lag[d] = p->ask.choice.lag ? p->ask.choice.lag->at[d] : -1;
    }
    const Question q = part_question(p, limit);
    x.facts = facts_of(&q);
    judge(&x);
    Pace start = pace_new(n);
    copy(&x, &start, &x.now);
    copy(&x, &x.best, &x.now);
    try_families(&x);
    while (improve(&x))
        ;
    if (x.room)
        mem_drop(x.room);
    *lead = (Ints){x.best.lead, n, n};
    *lag = (Ints){x.best.lag, n, n};
    return memcmp(start.lead, x.best.lead, sizeof(int) * (size_t)n) || memcmp(start.lag, x.best.lag, sizeof(int) * (size_t)n);
}
