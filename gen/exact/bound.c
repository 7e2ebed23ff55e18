/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c: how long a step takes at least.
 *
 * Of one plan, whose chunk q takes t a micro-batch, f of it forward: all m of them pass through q, the first after the
 * forwards of what is before, the last before the backwards of what is before:
 *
 *     head(q) + m t(q)                                    head: chunks linked with q on the left, messages included
 *
 * and before the first backward on q, a micro-batch has gone forward to the end and come back, while q did no more than
 * the w(q) forwards that stand before that backward in its list; w(last) of them precede the one that comes back:
 *
 *     head(q) + w(last) f(q) + path(right of q) + m t(q) - w(q) f(q) - early(q)
 *
 * After the last forward on q, c(q) backwards stand in its list, and the same way there and back is due again; if that is
 * after the first backward, what q does in between adds up with both:
 *
 *     head(q) + w(last) f(q) + c(last) b(q) + 2 path(right of q) + (m - w(q)) f(q) + (m - c(q)) b(q) - early(q)
 *
 * In GPipe, w = m, the second is sum f + sum b + (m-1) t(q); in 1F1B with equal stages the third is (m+p-1) t on each.
 * Times of other chunks are base times, for what they make again may overlap with waiting.  Where weight gradients are
 * computations of their own, nothing waits for the last of them: neither head nor path counts them on the way back, and the
 * third form is left out.
 *
 * The first chunk's parameters are updated after all that, and what preview_ends.c knows of its exchanges is due there.
 *
 * Data inputs are loaded before the forward that reads them, and before it waits for what another chunk sends: f includes
 * them, but what q loads for the first micro-batch it may load while it waits, so that all three forms are shorter by that,
 * except of the first chunk, which waits for nobody; and neither head nor path counts what others load on the way.
 *
 * Of all plans: the work of a step spread over all devices, in proportion to what each does at best; and for each
 * operator, wherever it is, the longest way to it, m times itself, the longest way back.
 *
 * Source: of the first form, Fan et al., DAPPLE, 2021 (pivot stage); of the last, Tarnawski et al., Efficient Algorithms
 * for Device Placement of DNN Graph Operators, 2020 (lower bounds).  Integers, rounded down.
 */
#include "facts.h"

static Ns larger(Ns a, Ns b)
{
    return a > b ? a : b;
}

/* ---- of one plan ------------------------------------------------------------------------------------------------- */

Share bound_share(const Facts *x, int chunk, int first, int last)
{
    int class = x->class[chunk];
    Ns all = x->time[class][last + 1] - x->time[class][first], w = x->weight[class][last + 1] - x->weight[class][first];
    Ns load = chunk ? 0 : x->load[last + 1], u = chunk ? 0 : x->update[class][last + 1] + x->close[last];
    return (Share){load + (x->split ? facts_forward(x, chunk, first, last) : all + u), x->split ? all - w : all};
}

Ns bound_transfer(const Facts *x, int chunk, int cut)
{
    return x->transfer[chunk][cut];
}

Ns bound_chunk(const Facts *x, int chunk, int first, int last, Ns time, Ns head, Ns path)
{
    if (!x->step)
        return larger(time, bound_transfer(x, chunk, last));
    int class = x->class[chunk], end = x->chunks - 1;
    Ns load = x->load[last + 1] - x->load[first], early = larger(time - facts_time(x, chunk, first, last), 0);
    Ns forward = facts_forward(x, chunk, first, last) + load, all = time + load;
    Ns base = x->back[class][last + 1] - x->back[class][first];
    Ns once = x->m * all + (x->warm[end] - x->warm[chunk]) * forward + path - early;
    Ns twice = once + path + x->cool[end] * base - x->cool[chunk] * (all - forward);
    if (x->split || x->warm[chunk] >= x->m)
        twice = 0;
    return head + larger(x->m * all, larger(once, twice)) + (chunk ? -load : x->update[class][last + 1] + x->close[last]);
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
        worst = larger(worst, bound_chunk(x, s, first, last[s], price[s]->forward + price[s]->backward, head, right[s]));
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

/* How many times faster than the first device this one is at best, in PARTS, rounded up. */
static int64_t speed(const Facts *x, int device)
{
    const Ns *first = x->time[x->q->p->c->of.at[0]], *own = x->time[x->q->p->c->of.at[device]];
    int64_t most = 1;
    for (int i = 0; own != first && i < x->n; i++) {
        Ns a = first[i + 1] - first[i], b = own[i + 1] - own[i];
        if (a == 0)
            continue;
        if (b == 0 || a / b > INT32_MAX)
            return INT32_MAX;
        most = larger(most, (a * PARTS + b - 1) / b);
    }
    return own == first ? PARTS : most;
}

static Ns bound_work(const Facts *x)
{
    int64_t speeds = 0;
    for (int d = 0; d < x->q->p->devices; d++)
        speeds += speed(x, d);
    Ns all = x->time[x->q->p->c->of.at[0]][x->n] * (x->step ? x->m : 1);
    return all / speeds * PARTS + all % speeds * PARTS / speeds;
}

/* The longest way of forwards to each operator and of backwards from it, each call on the device that is fastest at it. */
typedef struct { Ns *to, *from; } Ways;

static Ways ways_of(const Facts *x)
{
    Ways w = {alloc(sizeof(Ns) * (size_t)x->n), alloc(sizeof(Ns) * (size_t)x->n)};
    for (int i = 0; i < x->n; i++) {
        for (int k = 0; k < x->source[i].n; k++)
            w.to[i] = larger(w.to[i], w.to[x->source[i].at[k].to] + least_of(x, x->forward, x->source[i].at[k].to));
        for (int k = 0; k < x->target[i].n && !x->split; k++)
            w.from[i] = larger(w.from[i], w.from[x->target[i].at[k].to] + least_of(x, x->back, x->target[i].at[k].to));
    }
    return w;
}

static Ns bound_operators(const Facts *x)
{
    Ways w = ways_of(x);
    Ns worst = 0;
    for (int i = 0; i < x->n; i++) {
        Ns own = least_of(x, x->time, i);
        worst = larger(worst, x->step ? w.to[i] + x->m * own + w.from[i] : own);
    }
    return worst;
}

Ns *bound_heads(const Facts *x)
{
    Ways w = ways_of(x);
    for (int i = 0; i < x->n; i++)
        w.to[i] += w.from[i];
    return w.to;
}

/* From each operator to the last one that has a backward, itself included; -1: no way. */
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
            way[to] = larger(way[to], way[i] + least_of(x, sums, to));
        }
    return way;
}

/* Of the ways behind a cut that begin at a reader of one of the last `near` operators before it, the longest; -1: none. */
static Ns *ways_over(const Facts *x, const Hops *hops, Ns *const *sums, int near)
{
    Ns *way = ways_on(x, hops, sums), *over = alloc(sizeof(Ns) * (size_t)x->n);
    for (int b = 0; b < x->n; b++)
        over[b] = -1;
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < hops[i].n; k++)
            for (int b = hops[i].at[k].to; b < i && b < hops[i].at[k].to + near; b++)
                over[b] = larger(over[b], way[i]);
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
    return larger(bound_work(x), bound_operators(x));
}
