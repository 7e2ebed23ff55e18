/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.c: the best contiguous cut of n forward operators into chunks, proven.
 *
 * Problem: choose the last operator of each chunk so that the largest chunk time is as small as possible, each chunk
 * within the memory of its device.  Not only cuts between layers: any place between two operators of different fusion
 * groups.
 *
 * Method: dynamic programming from the last chunk to the first.  best(s, a) is the smallest bottleneck of chunks s..
 * over operators a..; it is the minimum over the end b of chunk s of max(time(a, b), best(s+1, b+1)), over all b that
 * fit.  All runs that begin at a are priced by growing one Span.  Bisecting for "the longest run that fits" would be
 * faster and wrong: what a chunk receives and makes again depends on where it begins, so neither time nor memory is
 * monotone.  Only two things prune, and both are proven: the time of a run without what is made again never falls when
 * it grows, and it adds up, so under a cap C chunk s can begin at a only if a.. takes at most (chunks - s) C and what
 * is before at most s C.  The cap starts just above the lower bound max(total / chunks, largest operator) and grows
 * until a plan is found; what is found under a cap is the optimum, because the cap excludes only worse ones.
 *
 * Equal bottlenecks: the smallest sum of what is made again and received, then the smallest first cut, then the second.
 * A second pass over the same runs decides; small first chunks are also what 1f1b likes, whose first device holds most.
 *
 * Cost: O(W (operands + chunks)) for W runs met under the cap, W <= n*n/2 and near n*n/chunks/8 when memory does not
 * bind.  GPT-2 with 125 operators: well below a millisecond.  60,000 operators in balance: seconds.
 *
 * Not handled: devices of different speed, chunks that share a device's memory (each is given all of it, which keeps
 * the price a lower bound; part.c then asks the largest for less), stages that are not contiguous.
 */
#include "span.h"

#define NEVER INT64_MAX         /* no plan from here */

typedef struct {
    Cuts *c;
    Span span;
    Ns *before;                 /* base time of operators 0..i-1 */
    int64_t *best, *next;       /* [chunk * (n+1) + first operator]: smallest price; smallest second price */
    bool bytes;                 /* the price is bytes over the limit */
    int64_t cap;
} Search;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The price of the span as chunk s; NEVER if it does not fit. */
static int64_t price(const Search *x, int s)
{
    const Cuts *c = x->c;
    Bytes over = span_bytes(&x->span, c->flight[s]) - c->limit[s];
    if (x->bytes)
        return over;
    return over > 0 ? NEVER : x->span.time;
}

/* What ranks plans with equal bottleneck: base times add up to the same in all of them. */
static Ns second(const Search *x)
{
    const Span *s = &x->span;
    Ns again = s->time - (x->before[s->last + 1] - x->before[s->first]);
    return again + cost_wire(x->c->p->c, 0, 0, s->received);
}

/* Under the cap no chunk s begins at a. */
static bool hopeless(const Search *x, int s, int a)
{
    const Cuts *c = x->c;
    int left = c->chunks - s;
    if (c->n - a < left || (s == 0) != (a == 0))
        return true;
    return !x->bytes && (x->before[c->n] - x->before[a] > left * x->cap || x->before[a] > s * x->cap);
}

static bool hopeless_all(const Search *x, int a)
{
    for (int s = 0; s < x->c->chunks; s++)
        if (!hopeless(x, s, a))
            return false;
    return true;
}

/* The span is a possible chunk s, the rest is known: is this end better? */
static void consider(Search *x, int s, bool tie)
{
    int a = x->span.first, b = x->span.last, row = x->c->n + 1;
    int64_t rest = x->best[(s + 1) * row + b + 1], own;
    if (hopeless(x, s, a) || rest == NEVER || (own = price(x, s)) == NEVER)
        return;
    int64_t both = larger(own, rest), *best = &x->best[s * row + a], *next = &x->next[s * row + a];
    if (both > x->cap)
        return;
    if (both < *best)
        *best = both;
    int64_t sum = tie ? second(x) + x->next[(s + 1) * row + b + 1] : 0;
    if (tie && sum < *next)
        *next = sum;
}

/* Every run that begins at a, as every chunk it can be. */
static void runs_from(Search *x, int a, bool tie)
{
    const Cuts *c = x->c;
    span_start(&x->span, a);
    for (int b = a; b < c->n; b++) {
        if (!x->bytes && x->before[b + 1] - x->before[a] > x->cap)
            return;
        span_grow(&x->span);
        if (c->cut[b] == CUT_NEVER)
            continue;
        for (int s = 0; s < c->chunks; s++)
            consider(x, s, tie);
        if (c->cut[b] == CUT_MUST)
            return;
    }
}

/* best and, for ties, next of every (chunk, first operator) under the cap. */
static bool solve(Search *x, int64_t cap, bool tie)
{
    const Cuts *c = x->c;
    int row = c->n + 1;
    x->cap = cap;
    for (int i = 0; i < (c->chunks + 1) * row; i++)
        x->best[i] = x->next[i] = NEVER;
    x->best[c->chunks * row + c->n] = x->bytes ? INT64_MIN : 0;
    x->next[c->chunks * row + c->n] = 0;
    for (int a = c->n - 1; a >= 0; a--)
        if ((a == 0 || c->cut[a - 1] != CUT_NEVER) && !hopeless_all(x, a))
            runs_from(x, a, tie);
    return x->best[0] != NEVER;
}

/* After solve(optimum, tie): the smallest first cut that loses nothing, and so on. */
static void trace(Search *x)
{
    const Cuts *c = x->c;
    int row = c->n + 1, a = 0;
    for (int s = 0; s < c->chunks; s++) {
        int64_t want = x->next[s * row + a];
        bool found = false;
        span_start(&x->span, a);
        for (int b = a; b < c->n && !found; b++) {
            span_grow(&x->span);
            int64_t rest = x->next[(s + 1) * row + b + 1], own = price(x, s);
            found = c->cut[b] != CUT_NEVER && rest != NEVER && own <= x->cap && second(x) + rest == want;
            if (!found && (c->cut[b] == CUT_MUST || b == c->n - 1))
                die("exact: the end of chunk %d is lost", s);
        }
        c->last[s] = x->span.last;
        a = x->span.last + 1;
    }
}

static Search begin(Cuts *c, bool bytes)
{
    Search x = {.c = c, .bytes = bytes};
    size_t cells = (size_t)(c->chunks + 1) * (size_t)(c->n + 1);
    span_open(&x.span, c->reads);
    x.before = alloc(sizeof(Ns) * (size_t)(c->n + 1));
    for (int i = 0; i < c->n; i++)
        x.before[i + 1] = x.before[i] + reads_time(c->reads, i);
    x.best = alloc(sizeof(int64_t) * cells);
    x.next = alloc(sizeof(int64_t) * cells);
    return x;
}

bool exact(Cuts *c)
{
    Search x = begin(c, false);
    Ns total = x.before[c->n], least = (total + c->chunks - 1) / c->chunks, room;
    for (int i = 0; i < c->n; i++)
        least = larger(least, reads_time(c->reads, i));
    for (room = least / 64 + 1; !solve(&x, least + room, false); room *= 8)
        if (least + room >= 2 * total)      /* what is made again is at most forward once more */
            return false;
    c->price = x.best[0];
    if (!solve(&x, c->price, true))
        die("exact: %lld ns is lost", (long long)c->price);
    trace(&x);
    return true;
}

bool exact_bytes(Cuts *c)
{
    Search x = begin(c, true);
    if (!solve(&x, NEVER - 1, false))
        return false;
    c->price = x.best[0];
    if (!solve(&x, c->price, true))
        die("exact: %lld bytes are lost", (long long)c->price);
    trace(&x);
    return true;
}
