/* SPDX-License-Identifier: Apache-2.0
 *
 * brute.c: every cut, every fate.
 *
 * Problem: other planners need an oracle to be tested against.
 *
 * Method: all cuts into chunks are tried.  For each run price_with prices all fates of the tensors that may be dropped or
 * offloaded, one after another.  The answer is the plan of the smallest objective; of equal ones, the first.  The oracle
 * shares prices, constraints and the objective with the planners, and no part of any search.
 *
 * Fates are chosen run by run: the cheapest that fits.  This is exact where the objective does not fall when a chunk takes
 * longer.  Runs with more than 2^FATE_TENSORS choices are priced by price_best.
 *
 * Cost: binomial(n - 1, chunks - 1) plans and n^2/2 2^tensors prices.  Not handled: more than BRUTE_PLANS plans are refused.
 */
#include "exact.h"
#include "fates/fates.h"
#include "budgets.h"

typedef struct {
    const Question *q;
    Facts *x;
    Preview *view;
    const int *base;            /* fates without a choice */
    const char *may;            /* by tensor: the choice that auto has */
    Price **run;                /* [(chunk * n + first) * n + last]: the cheapest; NULL: not priced yet */
    const Price **price;        /* of the plan at hand */
    int *last;
    int *best;
    Ns value;
} Brute;

static bool cheaper(const Price *a, const Price *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (!a->fits)
        return a->need < b->need;
    return a->forward + a->backward < b->forward + b->backward;
}

static int ways(const Brute *x, int tensor)
{
    return 1 + ((x->may[tensor] & MAY_DROP) > 0) + ((x->may[tensor] & MAY_SEND) > 0);
}

/* Way 0 keeps the tensor; the others are its other fates, in turn. */
static int fate_of(const Brute *x, int tensor, int way)
{
    return way == 0 ? FATE_KEEP : way == 1 && x->may[tensor] & MAY_DROP ? FATE_RECOMPUTE : FATE_OFFLOAD;
}

static Price *enumerate(const Brute *x, int chunk, int first, int last, const int *open, int n)
{
    const Graph *g = x->q->p->g;
    Price *best = NULL;
    int *fate = alloc(sizeof *fate * (size_t)g->tensor.n), sets = 1;
    for (int i = 0; i < n; i++)
        sets *= ways(x, open[i]);
    for (int set = 0; set < sets; set++) {
        memcpy(fate, x->base, sizeof *fate * (size_t)g->tensor.n);
        for (int i = 0, rest = set; i < n; rest /= ways(x, open[i++]))
            fate[open[i]] = fate_of(x, open[i], rest % ways(x, open[i]));
        Price *k = alloc(sizeof *k);
        *k = price_with(x->q->prices, first, last, chunk, fate);
        best = !best || cheaper(k, best) ? k : best;
    }
    return best;
}

static const Price *run(Brute *x, int chunk, int first, int last)
{
    const Graph *g = x->q->p->g;
    Price **known = &x->run[((size_t)chunk * (size_t)x->q->n + (size_t)first) * (size_t)x->q->n + (size_t)last];
    int open[FATE_TENSORS], n = 0, sets = 1;
    if (*known)
        return *known;
    for (int t = 0; t < g->tensor.n && sets <= 1 << FATE_TENSORS; t++) {
        int op = g->tensor.at[t].op;
        if (op < first || op > last || !x->may[t])
            continue;
        sets *= ways(x, t);
        if (sets <= 1 << FATE_TENSORS)
            open[n++] = t;
    }
    if (sets <= 1 << FATE_TENSORS)
        return *known = enumerate(x, chunk, first, last, open, n);
    *known = alloc(sizeof **known);
    **known = *price_best(x->q->prices, first, last, chunk);
    return *known;
}

static void compare(Brute *x)
{
    bool bound = !strcmp(x->q->objective, "bound") || !x->x->step;
    Ns value = bound ? bound_plan(x->x, x->last, x->price) : preview(x->view, x->last, x->price, x->value);
    if (value >= x->value)
        return;
    x->value = value;
    memcpy(x->best, x->last, sizeof *x->last * (size_t)x->q->chunks);
}

static void every_cut(Brute *x, int chunk, int first)
{
    if (chunk == x->q->chunks) {
        compare(x);
        return;
    }
    for (int b = first; b < x->q->n; b++) {
        bool end = chunk == x->q->chunks - 1;
        if (x->q->cut[b] != CUT_NEVER && end == (b == x->q->n - 1)) {
            x->last[chunk] = b;
            x->price[chunk] = run(x, chunk, first, b);
            if (x->price[chunk]->fits)
                every_cut(x, chunk + 1, b + 1);
        }
        if (x->q->cut[b] == CUT_MUST)
            break;
    }
}

bool brute(const Question *q, Answer *a)
{
    const Plan *p = q->p;
    int64_t plans = 1;          /* binomial(n - 1, chunks - 1) */
    for (int i = 1; i < q->chunks && plans <= BRUTE_PLANS; i++)
        plans = plans * (q->n - i) / i;
    if (plans > BRUTE_PLANS)
        fail(EXIT_MODEL, "planner brute tries every cut: it is for up to %d of them, and %d operators in %d chunks have more",
             BRUTE_PLANS, q->n, q->chunks);
    Brute x = {.q = q, .x = facts_of(q), .base = keep_fates(p, false), .value = INT64_MAX};
    x.may = fates_may(p, x.base);
    x.view = preview_open(x.x);
    x.run = alloc(sizeof *x.run * (size_t)q->chunks * (size_t)q->n * (size_t)q->n);
    x.price = alloc(sizeof *x.price * (size_t)q->chunks);
    x.last = alloc(sizeof(int) * (size_t)q->chunks);
    x.best = alloc(sizeof(int) * (size_t)q->chunks);
    every_cut(&x, 0, 0);
    if (x.value == INT64_MAX)
        return false;
    *a = (Answer){.last = x.best, .value = x.value, .bound = bound_closed(x.x)};
    a->fate = alloc(sizeof(int) * (size_t)p->g->tensor.n);
    memcpy(a->fate, x.base, sizeof(int) * (size_t)p->g->tensor.n);
    for (int s = 0, first = 0; s < q->chunks; first = x.best[s++] + 1) {
        const Price *k = run(&x, s, first, x.best[s]);
        for (int t = 0; t < p->g->tensor.n; t++)
            if (p->g->tensor.at[t].op >= first && p->g->tensor.at[t].op <= x.best[s])
                a->fate[t] = FATE_KEEP;
        for (int i = 0; i < k->tensor.n; i++)
            a->fate[k->tensor.at[i]] = k->fate.at[i];
    }
    return true;
}
