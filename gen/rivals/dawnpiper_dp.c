/* SPDX-License-Identifier: Apache-2.0
 *
 * dawnpiper_dp.c: the binary partition of DawnPiper, limited to the interval of its theorem.
 *
 * Problem: cut n operators into stages so that the slowest, memory optimisation included, is as fast as possible.  The
 * optimiser must not be asked about every cut.
 *
 * Method: stages are halved; of an odd number the larger half is on the left.  One cut balances compute, i_c, and one balances
 * memory, i_m.  The cut between two halves is looked for between these two, where the theorem says that the best one lies.
 * Each half is solved in the same way.  Candidates nearest to i_c need least optimisation and come first.  A group's demand is
 * priced with the mean of its stages' micro-batches in flight.
 *
 * Source: Peng, Shi, Zhang, Zhao, Qian, DawnPiper: A Memory-scalable Pipeline Parallel Training Framework, 2025.  Only the
 * abstract and the start of the paper were at hand: halving, odd counts and group means are our reading.
 *
 * Is the theorem true?  It needs that the two sides pay alike for a byte saved.  Under 1F1B they do not.  A tensor dropped on
 * an early stage frees one copy for every micro-batch in flight, and costs one recomputation all the same.  So bytes are
 * cheaper in front.  There the interval is a heuristic and can miss the best cut.  Where large parameters sit at one end, the
 * memory-balanced cut cannot fit while others do, and no plan is found.  `exact` (exact.c) searches all cuts and proves its
 * answer; only `exact` says "does not fit".
 *
 * Memo: a group with the same operators always gets the same answer, so the answer is kept.  A search that was given up
 * because a bound was passed knows only ">= bound"; an entry says which of the two it is.  To take the second for the first
 * loses plans: 12 of 400, up to 13.7 % slower, in our simulation.
 *
 * Cost: at most the number of (group, first, last) met, each with its interval; hundreds of prices for hundreds of operators.
 *
 * Not handled: messages in the price of a stage.  Cuts with messages that do not hide are passed over, unless all between i_m
 * and i_c are such.
 */
#include "rivals.h"
#include "planner.h"

typedef struct {
    Ns time;                    /* exact; else at least this, INT64_MAX: there is no plan */
    bool exact, met;
    int cut;                    /* of a group of several stages: last operator of the left half */
} DawnpiperEntry;

typedef struct {
    const DawnpiperHalves *h;
    int *musts, *mays;          /* [n+1]: cuts that must, may or must be behind operators 0..i-1 */
    Memo memo;
    VEC(DawnpiperEntry) entry;  /* by index of memo */
} DawnpiperSearch;

typedef struct { int first, last, from, to; } DawnpiperGroup; /* operators; stages */

static int left_half(const DawnpiperGroup *g)
{
    return (g->to - g->from + 2) / 2;
}

/* Cuts that may be made behind operators a..b */
static int cuts_in(const DawnpiperSearch *x, int a, int b)
{
    return b >= a ? x->mays[b + 1] - x->mays[a] : 0;
}

static int musts_in(const DawnpiperSearch *x, int a, int b)
{
    return b >= a ? x->musts[b + 1] - x->musts[a] : 0;
}

/* Is a cut behind operator i possible?  Each half must have cuts enough for its stages, and forced cuts not too many. */
static bool possible(const DawnpiperSearch *x, const DawnpiperGroup *g, int i)
{
    int l = left_half(g), r = g->to - g->from + 1 - l;
    return x->h->cut[i] != CUT_NEVER && cuts_in(x, g->first, i - 1) >= l - 1 && cuts_in(x, i + 1, g->last - 1) >= r - 1
        && musts_in(x, g->first, i - 1) <= l - 1 && musts_in(x, i + 1, g->last - 1) <= r - 1;
}

/* The bytes of the group's mean stage, times the number of its stages squared. */
static int64_t demand(const DawnpiperSearch *x, int first, int last, int from, int to)
{
    const DawnpiperHalves *h = x->h;
    int64_t stages = to - from + 1, copies = 0;
    for (int s = from; s <= to; s++)
        copies += h->flight[s];
    return (h->fixed[last + 1] - h->fixed[first]) * stages + (h->saved[last + 1] - h->saved[first]) * copies;
}

/* The larger of both halves' mean, in whole numbers: of time, or of memory. */
static int64_t balance(const DawnpiperSearch *x, const DawnpiperGroup *g, int i, bool memory)
{
    int64_t l = left_half(g), r = g->to - g->from + 1 - l;
    int m = g->from + (int)l - 1;
    if (memory)
        return max_of(demand(x, g->first, i, g->from, m) * r * r, demand(x, i + 1, g->last, m + 1, g->to) * l * l);
    return max_of((x->h->time[i + 1] - x->h->time[g->first]) * r, (x->h->time[g->last + 1] - x->h->time[i + 1]) * l);
}

static int balanced(const DawnpiperSearch *x, const DawnpiperGroup *g, bool memory)
{
    int best = -1;
    for (int i = g->first; i < g->last; i++)
        if (possible(x, g, i) && (best < 0 || balance(x, g, i, memory) < balance(x, g, best, memory)))
            best = i;
    return best;
}

typedef struct { int cut, far; } DawnpiperCandidate;

ORDER(by_distance, DawnpiperCandidate, order_of(x->far, y->far), order_of(x->cut, y->cut))

/* Move i by so many possible cuts. */
static int widen(const DawnpiperSearch *x, const DawnpiperGroup *g, int i, int way)
{
    int left = x->h->guard;
    for (int k = i + way; left > 0 && k >= g->first && k < g->last; k += way)
        if (possible(x, g, k)) {
            i = k;
            left--;
        }
    return i;
}

/* The cuts to try, nearest to i_c first. */
static DawnpiperCandidate *candidates(const DawnpiperSearch *x, const DawnpiperGroup *g, int *n)
{
    int ic = balanced(x, g, false), im = balanced(x, g, true);
    *n = 0;
    if (ic < 0)
        return NULL;
    int low = widen(x, g, ic < im ? ic : im, -1), high = widen(x, g, ic > im ? ic : im, 1);
    if (x->h->all) {
        low = g->first;
        high = g->last - 1;
    }
    DawnpiperCandidate *list = alloc(sizeof *list * (size_t)(high - low + 1));
    for (int hidden = 1; hidden >= 0 && *n == 0; hidden--)
        for (int i = low; i <= high; i++)
            if (possible(x, g, i) && (!hidden || !x->h->hidden || x->h->hidden[i]))
                list[(*n)++] = (DawnpiperCandidate){i, abs(i - ic)};
    SORT(list, *n, by_distance);
    return list;
}

static Ns solve(DawnpiperSearch *x, DawnpiperGroup g, Ns bound);

/* One stage. */
static DawnpiperEntry leaf(const DawnpiperSearch *x, const DawnpiperGroup *g)
{
    DawnpiperEntry e = {.time = INT64_MAX, .exact = true, .met = true};
    if (musts_in(x, g->first, g->last - 1) == 0 && !x->h->price(x->h->ctx, g->first, g->last, g->from, &e.time))
        e.time = INT64_MAX;
    return e;
}

/* A lower bound of both halves: none is faster than the mean of its stages. */
static Ns mean_time(const DawnpiperSearch *x, const DawnpiperGroup *g, int i)
{
    int l = left_half(g), r = g->to - g->from + 1 - l;
    return max_of((x->h->time[i + 1] - x->h->time[g->first]) / l, (x->h->time[g->last + 1] - x->h->time[i + 1]) / r);
}

static DawnpiperEntry split(DawnpiperSearch *x, const DawnpiperGroup *g, Ns bound)
{
    DawnpiperEntry best = {.time = bound, .met = true};
    int n, m = g->from + left_half(g) - 1;
    const DawnpiperCandidate *list = candidates(x, g, &n);
    for (int k = 0; k < n; k++) {
        int i = list[k].cut;
        if (mean_time(x, g, i) >= best.time)
            continue;
        Ns left = solve(x, (DawnpiperGroup){g->first, i, g->from, m}, best.time);
        if (left >= best.time)
            continue;
        Ns right = solve(x, (DawnpiperGroup){i + 1, g->last, m + 1, g->to}, best.time);
        if (right < best.time)
            best = (DawnpiperEntry){.time = max_of(left, right), .exact = true, .met = true, .cut = i};
    }
    best.exact |= bound == INT64_MAX;
    return best;
}

/* The entry of a group, by its first stage and number of stages. */
static int index_of(DawnpiperSearch *x, const DawnpiperGroup *g)
{
    int i = memo_index(&x->memo, g->first, g->last, g->from * (x->h->stages + 1) + g->to - g->from);
    if (i == x->entry.n)
        *PUSH(&x->entry) = (DawnpiperEntry){0};
    return i;
}

/* The time of the group if that is below the bound; else some time that is not below it. */
static Ns solve(DawnpiperSearch *x, DawnpiperGroup g, Ns bound)
{
    int i = index_of(x, &g);
    DawnpiperEntry e = x->entry.at[i];
    if (!e.met || (!e.exact && e.time < bound)) {
        e = g.from == g.to ? leaf(x, &g) : split(x, &g, bound);
        x->entry.at[i] = e;     /* after the call: it may have moved the array */
    }
    return e.time;
}

static void trace(DawnpiperSearch *x, DawnpiperGroup g, int *last)
{
    if (g.from == g.to) {
        last[g.from] = g.last;
        return;
    }
    int cut = x->entry.at[index_of(x, &g)].cut, m = g.from + left_half(&g) - 1;
    trace(x, (DawnpiperGroup){g.first, cut, g.from, m}, last);
    trace(x, (DawnpiperGroup){cut + 1, g.last, m + 1, g.to}, last);
}

bool halves(const DawnpiperHalves *h, int *last, Ns *time)
{
    DawnpiperSearch x = {.h = h};
    DawnpiperGroup all = {0, h->n - 1, 0, h->stages - 1};
    x.musts = alloc(sizeof *x.musts * (size_t)(h->n + 1));
    x.mays = alloc(sizeof *x.mays * (size_t)(h->n + 1));
    for (int i = 0; i < h->n; i++) {
        x.musts[i + 1] = x.musts[i] + (h->cut[i] == CUT_MUST);
        x.mays[i + 1] = x.mays[i] + (h->cut[i] != CUT_NEVER);
    }
    *time = solve(&x, all, INT64_MAX);
    if (*time == INT64_MAX)
        return false;
    trace(&x, all, last);
    return true;
}
