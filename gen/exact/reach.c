/* SPDX-License-Identifier: Apache-2.0
 *
 * reach.c: which cuts are possible under a target for the step.
 *
 * Problem: the time and memory of a run are not monotone in its ends, once buffers at cuts, recomputation across them or tied
 * parameters count.  "The longest prefix that fits" then misses plans and calls the feasible infeasible.
 *
 * Method: for a target, all reachable pairs (chunk, first operator) are found, from the last chunk to the first.  A pair is
 * reachable if some run from there meets the target (bound.c) and its successor is reachable.  The bound of a chunk grows with
 * the time before it, so the pair keeps one number: the most that may precede.  The way of a micro-batch through later chunks
 * counts as the least that is possible there.  So no plan is lost; some may be kept in vain.
 *
 * Only sums prune.  frontier.c says where a chunk can begin.  The longest way to a run and back and m times its base time are
 * at most the target.  A run ends where something reachable begins.
 *
 * Source: the recursion over targets is that of Alpa's inter-operator pass (Zheng et al., 2022), without its sampling of
 * targets.  Floors stand in for prices until those are bought: lazy constraint generation.
 *
 * Cost: the runs met: near (n d)^2 per chunk for a target d above balance, n^2/2 in the worst case.
 */
#include "exact.h"

#define NEVER INT64_MAX

/* ---- prices known so far ----------------------------------------------------------------------------------------- */

/* A row grows to both sides.  Valid until the next one is asked for. */
static ExactRun *known_of(const Reach *r, int chunk, int first, int last)
{
    ExactRuns *k = &r->known[chunk * r->width + first];
    const int more = k->from - last, n = k->at.n;
    k->from = n == 0 || more > 0 ? last : k->from;
    while (k->at.n <= last - k->from || (n && k->at.n < n + more))
        *PUSH(&k->at) = (ExactRun){.time = -1};
    for (int i = n; n && more > 0 && i-- > 0; k->at.at[i] = (ExactRun){.time = -1})
        k->at.at[i + more] = k->at.at[i];
    return &k->at.at[last - k->from];
}

bool reach_bought(const Reach *r, int chunk, int first, int last)
{
    return known_of(r, chunk, first, last)->price;
}

const Price *reach_buy(Reach *r, int chunk, int first, int last)
{
    ExactRun *k = known_of(r, chunk, first, last);
    k->price = k->price ? k->price : price_best(r->q->prices, first, last, chunk);
    k->time = k->price->fits ? k->price->forward + k->price->backward : NEVER;
    return k->price;
}

/* Must the chunk that begins in cell `next` follow a run that begins at `first`? */
static bool linked(const Reach *r, int next, int first)
{
    return r->x->step && r->link[next].near >= first;
}

/* The floor under the target, with all the time for copies that it leaves. */
static Ns time_apart(const Reach *r, int chunk, int first, int last)
{
    const Facts *x = r->x;
    int next = (chunk + 1) * r->width + last + 1;
    Passage k = {.window = r->target, .forward = facts_forward(x, chunk, first, last), .m = 1};
    if (x->step) {
        k.window -= r->least[first];
        k.m = x->m;
        k.right = linked(r, next, first) ? r->path[next] + r->link[next].comm : 0;
        k.warm = x->split || x->warm[chunk] != x->cool[chunk] ? 0 : x->warm[chunk];
    }
    return price_within(r->q->prices, first, last, chunk, &k);
}

Ns reach_time(const Reach *r, int chunk, int first, int last)
{
    if (r->apart)
        return time_apart(r, chunk, first, last);
    const ExactRuns *row = &r->known[chunk * r->width + first];
    const int at = last - row->from;
    if (at >= 0 && at < row->at.n && row->at.at[at].time >= 0)
        return row->at.at[at].time;
    return known_of(r, chunk, first, last)->time = price_floor(r->q->prices, first, last, chunk);
}

/* ---- one target -------------------------------------------------------------------------------------------------- */

Reach *reach_open(const Facts *x)
{
    Reach *r = alloc(sizeof *r);
    size_t cells = (size_t)(x->chunks + 1) * (size_t)(x->n + 1);
    *r = (Reach){.x = x, .q = x->q, .width = x->n + 1, .cut = x->q->cut, .share = 1, .most = INT64_MAX};
    r->known = alloc(sizeof *r->known * cells);
    r->head = alloc(sizeof(Ns) * cells);
    r->path = alloc(sizeof(Ns) * cells);
    r->cost = alloc(sizeof(Ns) * cells);
    r->link = alloc(sizeof(Link) * cells);
    r->least = bound_heads(x);
    r->window = alloc(sizeof(ExactWindow) * ((size_t)x->chunks + 1));
    r->must = alloc(sizeof(int) * (size_t)x->n);
    for (int i = x->n - 1; i >= 0; i--)
        r->must[i] = i == x->n - 1 || x->q->cut[i] == CUT_MUST ? i : r->must[i + 1];
    return r;
}

typedef struct { Ns room, path, cost; } ReachRun;

static Ns head_of(const Reach *r, int next, Share share)
{
    return share.head + (r->x->split ? 0 : r->link[next].comm);
}

/* Chunk s as first..last under the target; room -1: impossible. */
static ReachRun run_of(const Reach *r, int s, int first, int last)
{
    const Facts *x = r->x;
    int next = (s + 1) * r->width + last + 1;
    ReachRun k = {.room = -1};
    Ns time = r->head[next] < 0 ? NEVER : reach_time(r, s, first, last), least = x->step ? r->least[first] : 0;
    if (time == NEVER || r->target - (x->step ? x->m : 1) * r->share * time < least)
        return k;               /* the bound below is no less than that */
    Share share = bound_share(x, s, first, last);
    bool follows = linked(r, next, first);
    Ns right = follows ? r->path[next] + r->link[next].comm : 0;
    Ns room = r->target - bound_chunk(x, s, first, last, time * r->share, 0, right);
    if (follows && r->head[next] - head_of(r, next, share) < room)
        room = r->head[next] - head_of(r, next, share);
    if (room < least)
        return k;
    k.room = room;
    k.path = share.path + right;
    k.cost = time - facts_time(x, s, first, last) + x->transfer[s][last] + r->cost[next];
    return k;
}

Ns reach_head(const Reach *r, int chunk, int first, int last, Ns head)
{
    int next = (chunk + 1) * r->width + last + 1;
    return linked(r, next, first) ? head + head_of(r, next, bound_share(r->x, chunk, first, last)) : 0;
}

Ns reach_room(const Reach *r, int chunk, int first, int last)
{
    return run_of(r, chunk, first, last).room;
}

/* No run takes longer than this, if it meets the target. */
static Ns per_chunk(const Reach *r)
{
    return r->x->step ? r->target / r->x->m / r->share : r->target / r->share;
}

/* All runs of chunk s that begin at a.  after: where the next chunk may begin. */
static bool cell(Reach *r, int s, int a, ExactWindow after)
{
    const Facts *x = r->x;
    const Ns *t = x->time[x->class[s]];
    Ns most = x->step ? (r->target - r->least[a]) / x->m / r->share : per_chunk(r);
    int shortest = -1;
    int at = s * r->width + a, end = r->must[a] < after.last - 1 ? r->must[a] : after.last - 1;
    for (int b = a < after.first ? after.first - 1 : a; b <= end && t[b + 1] - t[a] <= most; b++) {
        if (r->cut[b] == CUT_NEVER || ++r->runs > r->most || r->head[(s + 1) * r->width + b + 1] < 0)
            continue;
        ReachRun k = run_of(r, s, a, b);
        bool any = r->head[at] >= 0;
        if (k.room < 0)
            continue;
        shortest = any ? shortest : b;
        r->head[at] = k.room > r->head[at] ? k.room : r->head[at];
        r->path[at] = any && r->path[at] < k.path ? r->path[at] : k.path;
        r->cost[at] = any && r->cost[at] < k.cost ? r->cost[at] : k.cost;
    }
    if (shortest >= 0)
        r->link[at] = facts_link(x, s, a, shortest);
    return r->head[at] >= 0;
}

static bool meets(Reach *r, Ns target)
{
    const Facts *x = r->x;
    Frontier **k = &r->frontier[x->step];
    *k = *k ? *k : frontier_open(x);
    r->target = target;
    if (r->share == 1 ? !frontier(*k, target, r->window) : false)
        return false;
    memset(r->head, -1, sizeof *r->head * (size_t)(x->chunks + 1) * (size_t)r->width);
    r->head[x->chunks * r->width + x->n] = target;
    r->link[x->chunks * r->width + x->n] = (Link){-1, 0, 0};
    ExactWindow after = {x->n, x->n};
    for (int s = x->chunks - 1; s >= 0; s--) {
        ExactWindow ends = {x->n, -1}, in = {s, s ? x->n - (x->chunks - s) : 0};
        in = r->share == 1 ? r->window[s] : in;
        for (int a = in.last; a >= in.first; a--) {
            if ((a > 0 && r->cut[a - 1] == CUT_NEVER) || !cell(r, s, a, after))
                continue;
            ends.first = a;
            ends.last = a > ends.last ? a : ends.last;
        }
        after = ends;
        if (ends.last < 0 || r->runs > r->most)
            return false;
    }
    return r->head[0] >= 0;
}

bool reach(Reach *r, Ns target)
{
    int64_t runs = r->runs;
    bool possible = meets(r, target);
    prices_pay(r->q->prices, 4 * (r->runs - runs));
    return possible;
}

void reach_trace(const Reach *r, int *last)
{
    const Facts *x = r->x;
    Ns head = 0;
    for (int s = 0, a = 0; s < x->chunks; s++) {
        Ns best = NEVER;
        for (int b = a; b <= r->must[a]; b++) {
            int next = (s + 1) * r->width + b + 1;
            ReachRun k = r->cut[b] == CUT_NEVER || r->head[next] < 0 ? (ReachRun){.room = -1} : run_of(r, s, a, b);
            if (k.room >= head && k.cost < best) {
                best = k.cost;
                last[s] = b;
            }
        }
        if (best == NEVER)
            die("reach: chunk %d has lost its end", s);
        head = reach_head(r, s, a, last[s], head);
        a = last[s] + 1;
    }
}
