/* SPDX-License-Identifier: Apache-2.0
 *
 * orders.c: a short bottleneck of a pipeline where a graph has more prefixes than can be looked at.
 *
 * Problem: that of downset.c.  An order in which readers come later has n + 1 prefixes, and the best stages of one order are
 * found at once.  So the orders are searched.
 *
 * Known: J. Tarnawski et al., NeurIPS 2020, take one order of a depth-first walk there.  On graphs with parallel branches
 * the best of some hundred random orders is up to a third better than one order.
 *
 * Here orders come from priorities: of the nodes that are ready, the one of least priority is next.  The first rounds draw
 * them for the whole graph: at random, or as a depth-first walk that follows branches at random.  Later rounds take the best
 * order so far and shake its places, some far and some near, all of them or only those around an end of its longest stage.
 * An order is asked one thing: has it stages shorter than the best so far, or as short?  Only then its own best is bisected.
 * An order that is as good replaces the best one, so that the search wanders along ties.
 *
 * Cost: an order takes edges + n log n + n times stages; `looks` of these in all.  Luck is a hash: the answer is the same
 * on any machine.  Not handled: a bound of its own; the share of a stage and the longest node are the only ones.
 */
#include "downset.h"
#include <string.h>

typedef struct {
    const Dag *d;
    int k;
    uint64_t luck;
    int *sequence;              /* [place] */
    int64_t *priority;          /* [node] */
    int *missing, *unread;      /* [node]: operands that are not made; readers to come */
    int *heap;
    Ns *time;                   /* [place]: of all before it */
    Bytes *leaves;              /* [place]: over a cut before it */
    int *before;                /* [stage (n + 1) + place]: where the stage before ends; -1: this cannot be an end */
    int *best, *end;            /* the best sequence; [stage]: its ends */
    int64_t looks;
} Orders;

static uint64_t draw(Orders *s)         /* splitmix64 */
{
    uint64_t z = s->luck += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- an order ---------------------------------------------------------------------------------------------------- */

static bool first(const Orders *s, int a, int b)
{
    return s->priority[a] != s->priority[b] ? s->priority[a] < s->priority[b] : a < b;
}

static void push(Orders *s, int n, int node)
{
    for (; n > 0 && first(s, node, s->heap[(n - 1) / 2]); n = (n - 1) / 2)
        s->heap[n] = s->heap[(n - 1) / 2];
    s->heap[n] = node;
}

/* The first of n; the others stay a heap. */
static int pop(Orders *s, int n)
{
    int node = s->heap[0], last = s->heap[--n], i = 0;
    for (int child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && first(s, s->heap[child + 1], s->heap[child]);
        if (first(s, last, s->heap[child]))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return node;
}

/* By priority; deep: readers of the newest node come before all that were ready earlier. */
static void set_order(Orders *s, bool deep)
{
    const Dag *d = s->d;
    int ready = 0;
    for (int i = 0; i < d->n; i++) {
        s->missing[i] = d->from[i].n;
        if (d->from[i].n == 0)
            push(s, ready++, i);
    }
    for (int x = 0; x < d->n; x++) {
        int node = s->sequence[x] = pop(s, ready--);
        for (int k = 0; k < d->to[node].n; k++) {
            int reader = d->to[node].at[k];
            if (--s->missing[reader] > 0)
                continue;
            s->priority[reader] -= deep ? (int64_t)(x + 1) << 32 : 0;
            push(s, ready++, reader);
        }
        s->looks += 4 + 2 * d->to[node].n;
    }
}

static void add_up(Orders *s)
{
    const Dag *d = s->d;
    for (int i = 0; i < d->n; i++)
        s->unread[i] = d->to[i].n;
    for (int x = 0; x < d->n; x++) {
        int node = s->sequence[x];
        s->time[x + 1] = s->time[x] + d->time[node];
        s->leaves[x + 1] = s->leaves[x] + (d->to[node].n ? d->bytes[node] : 0);
        for (int k = 0; k < d->from[node].n; k++)
            if (--s->unread[d->from[node].at[k]] == 0)
                s->leaves[x + 1] -= d->bytes[d->from[node].at[k]];
    }
}

/* ---- its stages -------------------------------------------------------------------------------------------------- */

static Ns sent(const Orders *s, int j, int x)
{
    return s->d->wire && j < s->k ? cost_wire(s->d->wire, j - 1, j, 2 * s->leaves[x]) : 0;
}

/* Has this order k stages of at most so long?  Of two ends of the stage before, the later leaves less to do. */
static bool possible(Orders *s, Ns target)
{
    int n = s->d->n;
    for (int x = 0; x <= n; x++)
        s->before[x] = x ? -1 : 0;
    for (int j = 1; j <= s->k; j++) {
        const int *was = &s->before[(j - 1) * (n + 1)];
        int *now = &s->before[j * (n + 1)], late = -1;
        bool any = false;
        now[0] = -1;
        for (int x = 1; x <= n; x++) {
            late = was[x - 1] >= 0 ? x - 1 : late;
            bool may = late >= 0 && n - x >= s->k - j && s->time[x] - s->time[late] <= target && (j < s->k || x == n);
            now[x] = may && sent(s, j, x) <= target ? late : -1;
            any |= now[x] >= 0;
        }
        s->looks += n;
        if (!any)
            return false;
    }
    return true;
}

/* What possible() found: its ends, and how long the longest is. */
static Ns take(Orders *s)
{
    Ns value = 0;
    s->end[s->k] = s->d->n;
    for (int j = s->k; j > 0; j--) {
        int x = s->end[j], y = s->end[j - 1] = s->before[j * (s->d->n + 1) + x];
        Ns time = s->time[x] - s->time[y], wire = sent(s, j, x);
        value = time > value ? time : value;
        value = wire > value ? wire : value;
    }
    memcpy(s->best, s->sequence, sizeof *s->best * (size_t)s->d->n);
    return value;
}

/* The least of this order, if it is at most `high`; else `high`. */
static Ns improve(Orders *s, Ns low, Ns high)
{
    add_up(s);
    if (!possible(s, high))
        return high;
    high = take(s);
    while (low < high) {
        Ns target = low + (high - low) / 2;
        if (possible(s, target))
            high = take(s);
        else
            low = target + 1;
    }
    return high;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Places of the best order, shaken by up to `far`: of all nodes, or of those around an end of its longest stage. */
static void shake(Orders *s)
{
    int n = s->d->n, most = 1, at = 0, longest = 1;
    add_up(s);                  /* times of the best order: it was set last */
    for (int j = 2; j <= s->k; j++)
        longest = s->time[s->end[j]] - s->time[s->end[j - 1]] > s->time[s->end[longest]] - s->time[s->end[longest - 1]]
            ? j : longest;
    while (most < n)
        most *= 2;
    int far = most >> draw(s) % 8, around = most >> draw(s) % 6;
    far = far > 1 ? far : 2;
    at = draw(s) % 2 ? s->end[longest] : s->end[longest - 1];
    at = draw(s) % 4 ? at : s->end[1 + draw(s) % (uint64_t)s->k];
    for (int x = 0; x < n; x++) {
        bool near = x > at - around && x < at + around;
        s->priority[s->sequence[x]] = (int64_t)x * 1024 + (near ? (int64_t)(draw(s) % (uint64_t)(far * 1024)) : 0);
    }
}

void orders_chain(const Dag *d, int k, int64_t looks, ForeignChain *c)
{
    size_t n = (size_t)d->n + 1;
    Orders s = {.d = d, .k = k};
    s.sequence = alloc(sizeof(int) * n), s.best = alloc(sizeof(int) * n), s.heap = alloc(sizeof(int) * n);
    s.missing = alloc(sizeof(int) * n), s.unread = alloc(sizeof(int) * n), s.end = alloc(sizeof(int) * ((size_t)k + 1));
    s.priority = alloc(sizeof(int64_t) * n), s.time = alloc(sizeof(Ns) * n), s.leaves = alloc(sizeof(Bytes) * n);
    s.before = alloc(sizeof(int) * n * ((size_t)k + 1));
    Ns low = 0, high = INT64_MAX / 4;
    for (int i = 0; i < d->n; i++)
        low += d->time[i];
    low = (low + k - 1) / k;            /* the share of a stage, or the longest node */
    for (int i = 0; i < d->n; i++) {
        low = d->time[i] > low ? d->time[i] : low;
        s.sequence[i] = i;
    }
    high = improve(&s, low, high);
    int64_t drawn = looks / 4;
    for (c->orders = 1; high > low && s.looks < looks && !busy_stopped(); c->orders++) {
        bool anew = s.looks < drawn;
        memcpy(s.sequence, s.best, sizeof *s.sequence * (size_t)d->n);
        if (anew)
            for (int i = 0; i < d->n; i++)
                s.priority[i] = (int64_t)(draw(&s) >> 33);
        else
            shake(&s);
        set_order(&s, anew && c->orders % 2);
        high = improve(&s, low, high);
    }
    *c = (ForeignChain){.sequence = s.best, .last = alloc(sizeof(int) * n), .value = high, .bound = low, .prefixes = d->n + 1,
                        .orders = c->orders};
    for (int j = 1; j <= k; j++)
        c->last[j - 1] = s.end[j] - 1;
}
