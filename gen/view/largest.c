/* SPDX-License-Identifier: Apache-2.0
 *
 * largest.c: the largest micro-batch that can be planned, found with few plans.
 *
 * Problem: "largest trainable batch" is what papers on memory report, and means little unless it is said what it costs.
 * Here it is the largest micro-batch that fits and at which a sample takes at most twice what it takes at that planner's
 * best micro-batch; the largest that fits at any price stands beside it.
 *
 * Method: double until one does not fit, bisect, then try the next eight: whether a plan fits is not monotone, since a
 * larger micro-batch may lead a planner to other cuts.  One of the eight that fits is where it goes on; all eight failing
 * is what is reported.  The best is among the micro-batches that were tried, all powers of two below the largest included.
 * Cost: about 2 log2(b) + 8 plans.  Not handled: sizes that fit further above than eight, but
 * for a hint: what fits with somebody else.
 */
#include "largest.h"

typedef struct { int64_t b; Ns ns; } LargestKnown;
typedef struct { LargestProbe probe; void *ctx; int64_t most; Ns limit; VEC(LargestKnown) known; int tried; } LargestSearch;

static Ns ask(LargestSearch *x, int64_t b)
{
    for (int i = 0; i < x->known.n; i++)
        if (x->known.at[i].b == b)
            return x->known.at[i].ns;
    bool may = b <= x->most;
    Ns ns = may ? x->probe(x->ctx, b) : 0;
    x->tried += may;
    *PUSH(&x->known) = (LargestKnown){b, ns};
    return ns;
}

static bool good(LargestSearch *x, int64_t b)
{
    Ns ns = ask(x, b);
    return ns > 0 && ns <= x->limit;
}

/* The largest good one at or above `low`, which is. */
static int64_t rise(LargestSearch *x, int64_t low)
{
    int64_t high = 2 * low;
    for (; good(x, high); high *= 2)
        low = high;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (good(x, middle))
            low = middle;
        else
            high = middle;
    }
    for (int64_t next = low + 1; next <= low + LARGEST_AFTER; next++)
        if (good(x, next))
            low = next;
    return low;
}

Largest largest(LargestProbe probe, void *ctx, int64_t most, int64_t hint)
{
    LargestSearch x = {.probe = probe, .ctx = ctx, .most = most, .limit = INT64_MAX};
    Largest l = {0};
    if (!good(&x, 1))
        return l;
    l.any = rise(&x, 1);
    if (hint > l.any && good(&x, hint))
        l.any = rise(&x, hint);
    l.at_any = ask(&x, l.any);
    for (EACH(const LargestKnown, k, x.known)) {
        bool better = l.best == 0 || k->ns < l.at_best || (k->ns == l.at_best && k->b < l.best);
        if (k->ns > 0 && better) {
            l.best = k->b;
            l.at_best = k->ns;
        }
    }
    x.limit = 2 * l.at_best;
    l.b = good(&x, l.any) ? l.any : rise(&x, l.best);
    l.at_b = ask(&x, l.b);
    l.tried = x.tried;
    return l;
}
