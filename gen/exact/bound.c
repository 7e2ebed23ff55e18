/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c: lower bounds on the time of a step.
 *
 * Three bounds hold for one plan and each of its chunks.  Chunk q takes t for a micro-batch, f of it forward and b backward.
 * All m micro-batches pass through q.  The first arrives after the forwards before q.  The last is followed by the backwards
 * before q:
 *
 *     head(q) + m t(q)                                    head: chunks linked with q on the left, messages included
 *
 * Before the first backward on q, a micro-batch goes forward to the end and comes back.  Meanwhile q does at most w(q)
 * forwards: those that stand before that backward in its list.  On the last chunk w(last) forwards precede the micro-batch
 * that comes back:
 *
 *     head(q) + w(last) f(q) + path(right of q) + m t(q) - w(q) f(q) - early(q)
 *
 * After the last forward on q, c(q) backwards stand in its list, and a micro-batch goes there and back again.  If q has begun
 * its backwards by then, both waits add up with the work of q between them:
 *
 *     head(q) + w(last) f(q) + c(last) b(q) + 2 path(right of q) + (m - w(q)) f(q) + (m - c(q)) b(q) - early(q)
 *
 * At most k(q) micro-batches are between their forward and their backward on q, so every k-th forward waits for a whole round
 * to the last chunk and back.  With j = floor((m-1) / k(q)) rounds behind it, the last of them finds m - j k(q) micro-batches
 * left:
 *
 *     head(q) + j round(q) + max(round(q), (m - j k(q)) t(q)),  round(q) = f(q) + path(right of q) + b(q) - early(q)
 *
 * In GPipe w = m, and the second bound is sum f + sum b + (m-1) t(q).  In 1F1B with equal stages the third is (m+p-1) t on
 * each.  Other chunks count with base times, because recomputation there may overlap with waiting; early(q) is the same
 * allowance for q.  A split backward makes weight gradients computations of their own, and nothing waits for the last of them.
 * Head and path then leave them out on the way back, and the third bound is not used.
 *
 * The first chunk updates its parameters after all that.  preview_ends.c gives a lower bound of its exchanges there.
 *
 * Data inputs are loaded before the forward that reads them, and before that forward waits for other chunks.  So f includes
 * them.  But q may load those of the first micro-batch while it waits, and all three bounds are shorter by that time.  The
 * first chunk waits for nobody and keeps it.  Head and path never count the loads of other chunks.
 *
 * Two bounds hold for all plans.  The first spreads the work of a step over all devices, in proportion to the best speed of
 * each.  The second takes each operator, wherever it is: the longest way to it, m times itself, the longest way back.
 *
 * Source: the first bound of a plan is the pivot stage of Fan et al., DAPPLE, 2021.  The bounds of all plans are after
 * Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph Operators, 2020 (lower bounds).  Integers, rounded
 * down.
 */
#include "exact.h"

/* ---- of one plan ------------------------------------------------------------------------------------------------- */

Share bound_share(const Facts *x, int chunk, int first, int last)
{
    int class = x->class[chunk];
    Ns all = facts_time(x, chunk, first, last), w = x->weight[class][last + 1] - x->weight[class][first];
    Ns load = chunk ? 0 : x->load[last + 1], u = chunk ? 0 : x->update[class][last + 1] + x->close[last];
    return (Share){load + (x->split ? facts_forward(x, chunk, first, last) : all + u), x->split ? all - w : all};
}

/* Every k-th forward waits for a round, and the rest of them take `all` a micro-batch. */
static Ns all_rounds(const Facts *x, int chunk, Ns all, Ns round)
{
    int64_t k = x->flight[chunk], rounds = k > 0 ? (x->m - 1) / k : 0;
    return rounds * round + max_of(round, (x->m - rounds * k) * all);
}

Ns bound_chunk(const Facts *x, int chunk, int first, int last, Ns time, Ns head, Ns path)
{
    if (!x->step)
        return max_of(time, x->transfer[chunk][last]);
    int class = x->class[chunk], end = x->chunks - 1;
    Ns load = x->load[last + 1] - x->load[first], early = max_of(time - facts_time(x, chunk, first, last), 0);
    Ns forward = facts_forward(x, chunk, first, last) + load, all = time + load;
    Ns base = x->back[class][last + 1] - x->back[class][first];
    Ns once = x->m * all + (x->warm[end] - x->warm[chunk]) * forward + path - early;
    Ns twice = once + path + x->cool[end] * base - x->cool[chunk] * (all - forward);
    if (x->split || x->warm[chunk] >= x->m)
        twice = 0;
    Ns rounds = all_rounds(x, chunk, all, bound_share(x, chunk, first, last).path + path);
    Ns most = max_of(max_of(x->m * all, rounds), max_of(once, twice));
    return head + most + (chunk ? -load : x->update[class][last + 1] + x->close[last]);
}

Ns bound_plan(const Facts *x, const int *last, const Price *const *price)
{
    Ns worst = 0, head = 0, *right = alloc(sizeof(Ns) * ((size_t)x->chunks + 1));
    for (int s = x->chunks - 1; s > 0; s--) {       /* right[s]: what follows chunk s, if it must */
        int first = last[s - 1] + 1;
        Link k = facts_link(x, s, first, last[s]);
        bool linked = k.near >= (s > 1 ? last[s - 2] + 1 : 0);
        right[s - 1] = linked ? k.comm + bound_share(x, s, first, last[s]).path + right[s] : 0;
    }
    for (int s = 0; s < x->chunks; s++) {
        int first = s ? last[s - 1] + 1 : 0, before = s > 1 ? last[s - 2] + 1 : 0;
        Link k = facts_link(x, s, first, last[s]);
        if (s)
            head = k.near >= before ? head + bound_share(x, s - 1, before, first - 1).head + (x->split ? 0 : k.comm) : 0;
        worst = max_of(worst, bound_chunk(x, s, first, last[s], price[s]->forward + price[s]->backward, head, right[s]));
    }
    return worst;
}

/* ---- of all plans ------------------------------------------------------------------------------------------------ */

enum { PARTS = 1024 };          /* of a speed */

static Ns least_of(const Facts *x, Ns *const *sums, int i)
{
    if (x->q->p->c->classes == 1)
        return sums[0][i + 1] - sums[0][i];
    Ns least = INT64_MAX;
    for (int d = 0; d < x->q->p->devices; d++) {
        const Ns *t = sums[x->q->p->c->of.at[d]];
        least = t[i + 1] - t[i] < least ? t[i + 1] - t[i] : least;
    }
    return least;
}

/* The best speed of this device against the first one over single operators, in PARTS, rounded up. */
static int64_t speed(const Facts *x, int device)
{
    const Ns *first = x->time[x->q->p->c->of.at[0]], *there = x->time[x->q->p->c->of.at[device]];
    int64_t most = 1;
    for (int i = 0; there != first && i < x->n; i++) {
        Ns a = first[i + 1] - first[i], b = there[i + 1] - there[i];
        if (a == 0)
            continue;
        if (b == 0 || a / b > INT32_MAX)
            return INT32_MAX;
        most = max_of(most, (a * PARTS + b - 1) / b);
    }
    return there == first ? PARTS : most;
}

static Ns bound_work(const Facts *x)
{
    int64_t speeds = 0;
    for (int d = 0; d < x->q->p->devices; d++)
        speeds += speed(x, d);
    Ns all = x->time[x->q->p->c->of.at[0]][x->n] * (x->step ? x->m : 1);
    return all / speeds * PARTS + all % speeds * PARTS / speeds;
}

/* By operator: the longest way of forwards to it and of backwards from it, also of those that end at the first operator; -1:
 * none does.  Each call is on the device fastest at it. */
typedef struct { Ns *to, *from, *until_home; } Ways;

static Ways ways_of(const Facts *x)
{
    Ways w = {alloc(sizeof(Ns) * (size_t)x->n), alloc(sizeof(Ns) * (size_t)x->n), alloc(sizeof(Ns) * (size_t)x->n)};
    for (int i = 0; i < x->n; i++) {
        w.until_home[i] = i ? -1 : 0;
        for (int k = 0; k < x->source[i].n; k++)
            w.to[i] = max_of(w.to[i], w.to[x->source[i].at[k].to] + least_of(x, x->forward, x->source[i].at[k].to));
        for (int k = 0; k < x->target[i].n && !x->split; k++) {
            int to = x->target[i].at[k].to;
            Ns least = least_of(x, x->back, to);
            w.from[i] = max_of(w.from[i], w.from[to] + least);
            w.until_home[i] = w.until_home[to] < 0 ? w.until_home[i] : max_of(w.until_home[i], w.until_home[to] + least);
        }
    }
    return w;
}

static Ns bound_operators(const Facts *x)
{
    Ways w = ways_of(x);
    Ns worst = 0;
    for (int i = 0; i < x->n; i++) {
        Ns least = least_of(x, x->time, i);
        worst = max_of(worst, x->step ? w.to[i] + x->m * least + w.from[i] : least);
    }
    return worst;
}

Ns *bound_heads(const Facts *x)
{
    Ways w = ways_of(x);
    Ns end = INT64_MAX;         /* the least that a first chunk before operator i does behind its last backward */
    for (int i = 0; i < x->n; i++) {
        Ns least = x->update[x->class[0]][i + 1] + x->close[i];
        w.to[i] += i == 0 || w.until_home[i] < 0 ? w.from[i] : max_of(w.from[i], w.until_home[i] + end);
        end = least < end ? least : end;
    }
    return w.to;
}

/* By operator: the longest way to the last operator with a backward, both included.  -1: no way. */
static Ns *ways_on(const Facts *x, const Hops *hops, Ns *const *sums)
{
    Ns *way = alloc(sizeof(Ns) * (size_t)x->n);
    int end = x->n - 1;
    while (end > 0 && x->target[end].n == 0)
        end--;
    for (int i = 0; i < x->n; i++)
        way[i] = i == end ? least_of(x, sums, i) : -1;
    for (int i = end; i > 0; i--)
        for (int k = 0; k < hops[i].n && way[i] >= 0; k++) {
            int to = hops[i].at[k].to;
            way[to] = max_of(way[to], way[i] + least_of(x, sums, to));
        }
    return way;
}

/* By cut: the longest way behind it.  The way begins at a reader of one of the last `near` operators before.  -1: none. */
static Ns *ways_over(const Facts *x, const Hops *hops, Ns *const *sums, int near)
{
    Ns *way = ways_on(x, hops, sums), *over = alloc(sizeof(Ns) * (size_t)x->n);
    for (int b = 0; b < x->n; b++)
        over[b] = -1;
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < hops[i].n; k++)
            for (int b = hops[i].at[k].to; b < i && b < hops[i].at[k].to + near; b++)
                over[b] = max_of(over[b], way[i]);
    return over;
}

Ns *bound_paths(const Facts *x, int near)
{
    Ns *forth = ways_over(x, x->source, x->forward, near), *back = ways_over(x, x->target, x->back, near);
    for (int b = 0; b < x->n; b++)
        forth[b] = forth[b] < 0 || back[b] < 0 ? 0 : forth[b] + back[b];
    return forth;
}

Ns bound_closed(const Facts *x)
{
    return max_of(bound_work(x), bound_operators(x));
}
