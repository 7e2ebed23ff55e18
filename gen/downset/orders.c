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
 * Cost: an order takes edges + n log n + n times pairs of places; `looks` of these in all.  Luck is a hash: the answer is the
 * same on any machine.  Not handled: a bound of its own; the share of a stage and the longest node are the only ones.
 */
#include "downset.h"

typedef struct {
    const Dag *d;
    const ForeignPlaces *p;
    uint64_t luck;
    int *sequence;              /* [position] */
    int64_t *priority;          /* [node] */
    int *missing, *unread;      /* [node]: operands that are not made; readers to come */
    int *heap;
    Ns **time;                  /* [class][position]: of all before it */
    Bytes *leaves, *states;     /* [position]: over a cut before it; of all before it */
    int *before;                /* [place (n + 1) + position]: where the stage before ends; -1: this cannot be an end */
    int *came;                  /* the same: its place */
    int *best, *end, *on;       /* the best sequence; [stage]: its ends and places */
    int stages;                 /* of it */
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
        for (int k = 0; k < d->classes; k++)
            s->time[k][x + 1] = s->time[k][x] + d->time[k][node];
        s->states[x + 1] = s->states[x] + (d->states ? d->states[node] : 0);
        s->leaves[x + 1] = s->leaves[x] + (d->to[node].n ? d->bytes[node] : 0);
        for (int k = 0; k < d->from[node].n; k++)
            if (--s->unread[d->from[node].at[k]] == 0)
                s->leaves[x + 1] -= d->bytes[d->from[node].at[k]];
    }
}

/* ---- its stages -------------------------------------------------------------------------------------------------- */

/* Ends of the stage of one place that follows another.  Of two ends of the stage before, the later leaves less to do. */
static bool follow(Orders *s, int place, int was, Ns target)
{
    const ForeignPlace *a = &s->p->at.at[was], *b = &s->p->at.at[place];
    int n = s->d->n, *from = &s->before[was * (n + 1)], *now = &s->before[place * (n + 1)], late = -1;
    const Ns *time = s->time[b->class];
    bool any = false;
    for (int x = 1; x <= n; x++) {
        if (from[x - 1] >= 0 && (!was || places_sent(s->d, a, b, s->leaves[x - 1]) <= target))
            late = x - 1;
        bool may = late >= 0 && now[x] < 0 && time[x] - time[late] <= target && s->states[x] - s->states[late] <= b->room;
        if (!may || (x == n ? b->used < s->p->least : b->used == s->p->most || n - x < s->p->least - b->used))
            continue;
        now[x] = late;
        s->came[place * (n + 1) + x] = was;
        any = true;
    }
    s->looks += n;
    return any;
}

/* The place in which this order has stages of at most so long; 0: it has none. */
static int possible(Orders *s, Ns target)
{
    int n = s->d->n, done = 0;          /* devices of the last place with an end */
    bool row = s->p->at.n == s->p->most + 1;    /* of which no other place goes on */
    for (int i = 0; i < s->p->at.n * (n + 1); i++)
        s->before[i] = i ? -1 : 0;
    for (int place = 1; place < s->p->at.n; place++) {
        const ForeignPlace *at = &s->p->at.at[place];
        bool any = false;
        for (int k = 0; k < at->before.n; k++)
            any |= follow(s, place, at->before.at[k], target);
        done = any ? at->used : done;
        if (s->before[place * (n + 1) + n] >= 0)
            return place;
        if (row && done < at->used)
            return 0;
    }
    return 0;
}

/* What possible() found: its ends, and how long the longest is. */
static Ns take(Orders *s, int place)
{
    Ns value = 0;
    int n = s->d->n;
    s->stages = s->p->at.at[place].used;
    s->end[s->stages] = n;
    for (int j = s->stages; j > 0; j--) {
        int x = s->end[j], y = s->before[place * (n + 1) + x], was = s->came[place * (n + 1) + x];
        const ForeignPlace *at = &s->p->at.at[place];
        Ns time = s->time[at->class][x] - s->time[at->class][y];
        Ns sent = j > 1 ? places_sent(s->d, &s->p->at.at[was], at, s->leaves[y]) : 0;
        value = time > value ? time : value;
        value = sent > value ? sent : value;
        s->on[j] = place;
        s->end[j - 1] = y;
        place = was;
    }
    memcpy(s->best, s->sequence, sizeof *s->best * (size_t)n);
    return value;
}

/* The least of this order, if it is at most `high`; else `high`. */
static Ns improve(Orders *s, Ns low, Ns high)
{
    add_up(s);
    int place = possible(s, high);
    if (!place)
        return high;
    high = take(s, place);
    while (low < high) {
        Ns target = low + (high - low) / 2;
        place = possible(s, target);
        if (place)
            high = take(s, place);
        else
            low = target + 1;
    }
    return high;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static Ns length(const Orders *s, int j)
{
    const Ns *time = s->time[s->p->at.at[s->on[j]].class];
    return time[s->end[j]] - time[s->end[j - 1]];
}

/* Positions of the best order, shaken by up to `far`: of all nodes, or of those around an end of its longest stage. */
static void shake(Orders *s)
{
    int n = s->d->n, most = 1, at = 0, longest = 1;
    add_up(s);                  /* times of the best order: it was set last */
    for (int j = 2; j <= s->stages; j++)
        longest = length(s, j) > length(s, longest) ? j : longest;
    while (most < n)
        most *= 2;
    int far = most >> draw(s) % 8, around = most >> draw(s) % 6;
    far = far > 1 ? far : 2;
    at = draw(s) % 2 ? s->end[longest] : s->end[longest - 1];
    at = draw(s) % 4 ? at : s->end[1 + draw(s) % (uint64_t)s->stages];
    for (int x = 0; x < n; x++) {
        bool near = x > at - around && x < at + around;
        s->priority[s->sequence[x]] = (int64_t)x * 1024 + (near ? (int64_t)(draw(s) % (uint64_t)(far * 1024)) : 0);
    }
}

static Orders open_orders(const Dag *d, const ForeignPlaces *p)
{
    size_t n = (size_t)d->n + 1, stages = (size_t)p->most + 1, ends = n * (size_t)p->at.n;
    Orders s = {.d = d, .p = p};
    s.sequence = alloc(sizeof(int) * n), s.best = alloc(sizeof(int) * n), s.heap = alloc(sizeof(int) * n);
    s.missing = alloc(sizeof(int) * n), s.unread = alloc(sizeof(int) * n), s.priority = alloc(sizeof(int64_t) * n);
    s.end = alloc(sizeof(int) * stages), s.on = alloc(sizeof(int) * stages);
    s.leaves = alloc(sizeof(Bytes) * n), s.states = alloc(sizeof(Bytes) * n);
    s.before = alloc(sizeof(int) * ends), s.came = alloc(sizeof(int) * ends);
    s.time = alloc(sizeof *s.time * (size_t)d->classes);
    for (int k = 0; k < d->classes; k++)
        s.time[k] = alloc(sizeof(Ns) * n);
    for (int i = 0; i < d->n; i++)
        s.sequence[i] = i;
    return s;
}

bool orders_chain(const Dag *d, const ForeignPlaces *p, int64_t looks, ForeignChain *c)
{
    Orders s = open_orders(d, p);
    const Ns *least = places_least(d);
    Ns low = 0, high = INT64_MAX / 4;
    for (int i = 0; i < d->n; i++)
        low += least[i];
    low = (low + p->most - 1) / p->most;        /* the share of a stage, or the longest node */
    for (int i = 0; i < d->n; i++)
        low = least[i] > low ? least[i] : low;
    high = improve(&s, low, high);
    int64_t drawn = looks / 4;
    for (c->orders = 1; high > low && s.looks < looks && !busy_stopped(); c->orders++) {
        bool anew = s.looks < drawn || !s.stages;
        memcpy(s.sequence, s.best, sizeof *s.sequence * (size_t)d->n);
        if (anew)
            for (int i = 0; i < d->n; i++)
                s.priority[i] = (int64_t)(draw(&s) >> 33);
        else
            shake(&s);
        set_order(&s, anew && c->orders % 2);
        high = improve(&s, low, high);
    }
    *c = (ForeignChain){.sequence = s.best, .last = alloc(sizeof(int) * ((size_t)s.stages + 1)), .value = high, .bound = low,
                        .prefixes = d->n + 1, .orders = c->orders, .stages = s.stages,
                        .device = alloc(sizeof(int) * ((size_t)s.stages + 1))};
    for (int j = 1; j <= s.stages; j++) {
        c->last[j - 1] = s.end[j] - 1;
        c->device[j - 1] = p->at.at[s.on[j]].device;
    }
    return s.stages > 0;
}
