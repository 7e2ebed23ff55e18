/* SPDX-License-Identifier: Apache-2.0
 *
 * arrange.c: orders of unequal devices.
 *
 * Problem: n devices of several kinds (speed, memory, links) and s <= n stages: which device does which stage.  There are
 * n! / (n - s)! orders, but exchanging two devices of a kind changes nothing, so n1 of one kind and n2 of another have
 * (n1 + n2 choose n1).  Two devices are of a kind if calls take the same time on them, they hold the same, and exchanging
 * them leaves every link as it was: that is an equivalence, for exchanges generate the permutations that leave links alone.
 *
 * Method: where orders are few they are written down, each is bounded from below, and device_order.c plans them from the lowest
 * bound on, until the next bound is above the best step: what is left out is proven slower.  Where they are many, a dynamic
 * program over the multiset of devices used,
 *
 *     far(c) = max over kinds k in c of  the last operator that k reaches from far(c - k) within T and its memory
 *
 * for the least T with far(c) = all operators for some c of s devices: base times and states of a run only grow with the
 * run, so reaching further is never worse, and m T bounds the step of every order from below.  The order that gave T and
 * those near it are planned.
 *
 * Source: device types as multisets, Hu et al., PipeEdge, 2022 (states by cut, kinds used and last device; here the target
 * takes the cut's place, so 10,000 operators cost no more than 100); Luo et al., SPP, 2022, orders devices by recursion.
 * What users of these ask for and do not get: how far from the best order they are.  Here a bound over all orders is printed.
 *
 * Cost: the program 2^16 sets of devices at most, times kinds, log n and the bits of T.  Not handled: several chunks a device,
 * replicas (refused by config/devices.c); links and what must precede a stage are not in T, only in the bound of one order.
 */
#include "search.h"
#include "budgets.h"
#include "exact/exact.h"

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static bool same_wire(const Wire *a, const Wire *b)
{
    return a->rate == b->rate && a->latency == b->latency && a->half == b->half && a->curve == b->curve;
}

static bool alike(const Model *m, const Cost *c, int a, int b)
{
    const Device *x = &m->devices.at[a], *y = &m->devices.at[b];
    int n = m->devices.n;
    int host = host_of(m, x), other = host_of(m, y);
    if (c->of.at[a] != c->of.at[b] || x->memory != y->memory || x->threads != y->threads || host != other)
        return false;
    if (c->host_wire && !same_wire(&c->host_wire[a], &c->host_wire[b]))
        return false;
    if (c->wire && !same_wire(&c->wire[a * n + b], &c->wire[b * n + a]))
        return false;
    for (int d = 0; c->wire && d < n; d++)
        if (d != a && d != b
            && (!same_wire(&c->wire[a * n + d], &c->wire[b * n + d]) || !same_wire(&c->wire[d * n + a], &c->wire[d * n + b])))
            return false;
    return true;
}

Kinds kinds_of(const Model *m, const Cost *c)
{
    size_t n = (size_t)m->devices.n;
    Kinds k = {.devices = m->devices.n, .of = alloc(sizeof(int) * n), .count = alloc(sizeof(int) * n),
               .first = alloc(sizeof(int) * n)};
    for (int d = 0; d < k.devices; d++) {
        int kind = 0;
        while (kind < k.n && !alike(m, c, k.first[kind], d))
            kind++;
        if (kind == k.n)
            k.first[k.n++] = d;
        k.of[d] = kind;
        k.count[kind]++;
    }
    return k;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* Kinds by stage as devices: those of a kind in the order of the list. */
static int *devices_of(const Kinds *k, int stages, const int *kind)
{
    int *device = alloc(sizeof *device * (size_t)stages), *next = alloc(sizeof *next * (size_t)k->n);
    for (int s = 0; s < stages; s++) {
        int d = next[kind[s]];
        while (k->of[d] != kind[s])
            d++;
        device[s] = d;
        next[kind[s]] = d + 1;
    }
    return device;
}

static void add_order(const Kinds *k, int stages, const int *kind, Orders *all)
{
    for (int i = 0; i < all->n; i++) {
        int s = 0;
        while (s < stages && k->of[all->at[i].device[s]] == kind[s])
            s++;
        if (s == stages)
            return;
    }
    *PUSH(all) = (DeviceOrder){devices_of(k, stages, kind), 0};
}

static int *kinds_by_stage(const Kinds *k, int stages, const int *device)
{
    int *kind = alloc(sizeof *kind * (size_t)stages);
    for (int s = 0; s < stages; s++)
        kind[s] = k->of[device ? device[s] : s];
    return kind;
}

typedef struct { const Kinds *k; int stages, most; int *kind, *left; Orders *all; } ArrangeWriter;

static bool write_from(ArrangeWriter *w, int stage)
{
    if (stage == w->stages) {
        if (w->all->n > w->most)
            return false;
        *PUSH(w->all) = (DeviceOrder){devices_of(w->k, w->stages, w->kind), 0};
        return true;
    }
    for (int kind = 0; kind < w->k->n; kind++) {
        if (w->left[kind] == 0)
            continue;
        w->left[kind]--;
        w->kind[stage] = kind;
        bool goes_on = write_from(w, stage + 1);
        w->left[kind]++;
        if (!goes_on)
            return false;
    }
    return true;
}

bool orders_all(const Kinds *k, int stages, int most, Orders *all)
{
    const int *given = kinds_by_stage(k, stages, NULL);
    Orders list = {0};
    ArrangeWriter w = {k, stages, most, alloc(sizeof(int) * (size_t)stages), alloc(sizeof(int) * (size_t)k->n), &list};
    memcpy(w.left, k->count, sizeof(int) * (size_t)k->n);
    bool whole = write_from(&w, 0) && list.n <= most;
    add_order(k, stages, given, all);
    for (int i = 0; i < list.n && i < most; i++) {
        const int *kind = kinds_by_stage(k, stages, list.at[i].device);
        if (memcmp(kind, given, sizeof *kind * (size_t)stages))
            *PUSH(all) = list.at[i];
    }
    return whole;
}

void orders_near(const Kinds *k, int stages, const int *order, Orders *all)
{
    int *kind = kinds_by_stage(k, stages, order), *left = alloc(sizeof *left * (size_t)k->n);
    memcpy(left, k->count, sizeof *left * (size_t)k->n);
    for (int s = 0; s < stages; s++)
        left[kind[s]]--;
    add_order(k, stages, kind, all);
    for (int a = 0; a < stages; a++) {
        int was = kind[a];
        for (int b = a + 1; b < stages; b++) {
            kind[a] = kind[b];
            kind[b] = was;
            add_order(k, stages, kind, all);
            kind[b] = kind[a];
            kind[a] = was;
        }
        for (kind[a] = 0; kind[a] < k->n; kind[a]++)
            if (left[kind[a]] > 0)
                add_order(k, stages, kind, all);
        kind[a] = was;
    }
}

/* ---- the dynamic program ----------------------------------------------------------------------------------------- */

typedef struct {
    const Kinds *k;
    int n, stages, sets;
    Ns **time;                  /* [kind][i]: of operators 0 .. i-1 */
    Bytes *states;              /* [i] */
    Bytes *memory;              /* by kind */
    int *cut;                   /* [i]: operators before the last possible cut at or before i; n is one */
    int *step;                  /* by kind: what one device more adds to the number of a set */
    int *far, *by, *used;       /* by set: operators done; the kind of its last stage, devices */
} Program;

static void sum_times(Program *x, const Plan *p)
{
    size_t bytes = sizeof(Ns) * ((size_t)x->n + 1);
    x->time = alloc(sizeof *x->time * (size_t)x->k->n);
    x->states = alloc(bytes);
    for (int kind = 0; kind < x->k->n; kind++) {
        Ns *t = x->time[kind] = alloc(bytes);
        for (int o = 0; o < p->g->nb; o++)
            t[p->g->op.at[o].fwd + 1] += cost_op(p->c, x->k->first[kind], o);
        for (int i = 0; i < x->n; i++)
            t[i + 1] += t[i];
    }
    for (int s = 0; s < p->g->state.n; s++) {
        const State *k = &p->g->state.at[s];
        if (k->param >= 0)
            x->states[(k->kind == S_GRAD ? k->op : p->g->state.at[k->param].op) + 1] += k->bytes;
    }
    for (int i = 0; i < x->n; i++)
        x->states[i + 1] += x->states[i];
}

static Program open_program(const Kinds *k, const Plan *p, const char *cut)
{
    Program x = {.k = k, .n = p->g->nf, .stages = p->devices, .sets = 1};
    x.memory = alloc(sizeof *x.memory * (size_t)k->n);
    x.step = alloc(sizeof *x.step * (size_t)k->n);
    x.cut = alloc(sizeof *x.cut * ((size_t)x.n + 1));
    for (int i = 1; i <= x.n; i++)
        x.cut[i] = i == x.n || cut[i - 1] != CUT_NEVER ? i : x.cut[i - 1];
    for (int kind = 0; kind < k->n && x.sets <= MOST_STATES; kind++) {
        x.memory[kind] = p->m->devices.at[k->first[kind]].memory;
        x.step[kind] = x.sets;
        x.sets *= k->count[kind] + 1;
    }
    if (x.sets > MOST_STATES)
        return x;
    sum_times(&x, p);
    x.far = alloc(sizeof(int) * (size_t)x.sets);
    x.by = alloc(sizeof(int) * (size_t)x.sets);
    x.used = alloc(sizeof(int) * (size_t)x.sets);
    return x;
}

/* The most operators i, from `from` on, with sums[i] - sums[from] within `most`. */
static int within(const int64_t *sums, int from, int n, int64_t most)
{
    int low = from, high = n;
    while (low < high) {
        int mid = low + (high - low + 1) / 2;
        if (sums[mid] - sums[from] <= most)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* The set that does all within the target; -1: none does. */
static int reaches(Program *x, Ns target)
{
    for (int set = 1; set < x->sets; set++) {
        x->far[set] = -1;
        for (int kind = 0, rest = set; kind < x->k->n; kind++) {
            int have = rest % (x->k->count[kind] + 1), before = set - x->step[kind];
            rest /= x->k->count[kind] + 1;
            if (have == 0)
                continue;
            int time = within(x->time[kind], x->far[before], x->n, target);
            int room = within(x->states, x->far[before], x->n, x->memory[kind]);
            int to = x->cut[time < room ? time : room];
            x->used[set] = x->used[before] + 1;
            if (to > x->far[set]) {
                x->far[set] = to;
                x->by[set] = kind;
            }
        }
        if (x->used[set] == x->stages && x->far[set] == x->n)
            return set;
    }
    return -1;
}

Ns orders_longest(const Kinds *k, const Plan *p, const char *cut, int *order)
{
    Program x = open_program(k, p, cut);
    int *kind = kinds_by_stage(k, x.stages, NULL);
    Ns low = 0, high = 0;       /* impossible below low; possible at high */
    memcpy(order, devices_of(k, x.stages, kind), sizeof *order * (size_t)x.stages);
    if (x.sets > MOST_STATES)
        return 0;
    for (int i = 0; i < k->n; i++)
        high = x.time[i][x.n] > high ? x.time[i][x.n] : high;
    if (reaches(&x, high) < 0)
        return INT64_MAX;
    while (low < high) {
        Ns mid = low + (high - low) / 2;
        if (reaches(&x, mid) >= 0)
            high = mid;
        else
            low = mid + 1;
    }
    for (int set = reaches(&x, high), s = x.stages - 1; s >= 0; s--) {
        kind[s] = x.by[set];
        set -= x.step[kind[s]];
    }
    memcpy(order, devices_of(k, x.stages, kind), sizeof *order * (size_t)x.stages);
    return high;
}

Ns order_least(const Question *q, bool contiguous)
{
    const Facts *x = facts_of(q);
    Ns closed = x->step ? bound_closed(x) : 0;
    return x->step && contiguous ? frontier_bound(frontier_open(x), closed - 1) + 1 : closed;
}
