/* SPDX-License-Identifier: Apache-2.0
 *
 * downset.c: the least bottleneck of a pipeline over all downward-closed prefixes of a graph.
 *
 * Problem: k stages, each the difference of two consecutive downward-closed prefixes.  The longest of all stages and of all
 * transfers between them is to be as short as possible.  A transfer takes twice the bytes leaving a prefix over the rate of
 * its wire: activations there, gradients back.  Each producer counts once, however many readers it has outside.  Compute and
 * transfers overlap, so they are not added.
 *
 * Known: J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino, Efficient Algorithms for Device Placement
 * of DNN Graph Operators, NeurIPS 2020: dynamic programming over pairs of prefixes ("ideals"), quadratic in their number.
 * PipeDream's own planner (D. Narayanan et al., SOSP 2019) walks antichains in one order and counts bytes at skip connections
 * that nobody outside needs.  Both take the whole table for one optimum.
 *
 * Here the value is bisected.  For one value T, the first j stages hold at most j T of the time and the others at most (k -
 * j) T. Only prefixes that can meet both are paired, so that near the optimum each layer is a thin slice.  The answer comes
 * with the largest value that was proven impossible.
 *
 * Prefixes are enumerated breadth first, as bit sets in a hash table, up to a number.  In a graph that has more, orders are
 * searched (orders.c), and the answer says so.
 *
 * Cost: prefixes times nodes to enumerate; per target the pairs of neighbouring slices, times n/64.  A budget of pairs ends
 * the bisection early: then value and bound differ.  Not handled: memory, replicas, stages that are no differences of
 * prefixes.
 */
#include "downset.h"
#include <stdlib.h>
#include <string.h>

typedef struct { Ns time, wire; int size; uint64_t *bits; Bytes leaves; } Prefix;
typedef struct {
    const Dag *d;
    int k, words;
    VEC(Prefix) at;             /* by time, the empty one first, the whole last */
    int *table, slots;          /* hash of bit sets -> prefix + 1 */
    int64_t looks;
} ForeignSearch;

static bool has(const uint64_t *bits, int i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const ForeignSearch *s, const uint64_t *bits)
{
    uint64_t h = 0;
    for (int w = 0; w < s->words; w++) {
        h = (h ^ bits[w]) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    return h;
}

/* The slot of a set; empty if it is new. */
static int *slot_of(ForeignSearch *s, const uint64_t *bits)
{
    uint64_t i = hash_of(s, bits) % (uint64_t)s->slots;
    while (s->table[i] && memcmp(s->at.at[s->table[i] - 1].bits, bits, sizeof *bits * (size_t)s->words))
        i = (i + 1) % (uint64_t)s->slots;
    return &s->table[i];
}

static bool ready(const Dag *d, const uint64_t *bits, int i)
{
    for (int k = 0; k < d->from[i].n; k++)
        if (!has(bits, d->from[i].at[k]))
            return false;
    return true;
}

/* Prefix x and node i. */
static void extend(ForeignSearch *s, int x, int i)
{
    uint64_t *bits = alloc(sizeof *bits * (size_t)s->words);
    memcpy(bits, s->at.at[x].bits, sizeof *bits * (size_t)s->words);
    bits[i / 64] |= (uint64_t)1 << i % 64;
    int *slot = slot_of(s, bits);
    if (*slot)
        return;
    Prefix *p = PUSH(&s->at);
    *p = s->at.at[x];
    p->bits = bits;
    p->size++;
    p->time += s->d->time[i];
    *slot = s->at.n;
}

static void empty(ForeignSearch *s, int most)
{
    s->words = (s->d->n + 63) / 64;
    s->slots = 2 * most + 64;
    s->table = alloc(sizeof *s->table * (size_t)s->slots);
    s->at.n = 0;
    PUSH(&s->at)->bits = alloc(sizeof(uint64_t) * (size_t)s->words);
    *slot_of(s, s->at.at[0].bits) = 1;
}

/* All of them; false: there are more. */
static bool enumerate(ForeignSearch *s, int most)
{
    empty(s, most + s->d->n);
    for (int x = 0; x < s->at.n; x++)
        for (int i = 0; i < s->d->n; i++) {
            if (has(s->at.at[x].bits, i) || !ready(s->d, s->at.at[x].bits, i))
                continue;
            extend(s, x, i);
            s->looks += s->d->n;
            if (s->at.n > most || s->looks > MOST_LOOKS)
                return false;
        }
    return true;
}

static Bytes leaves(const Dag *d, const uint64_t *bits)
{
    Bytes sum = 0;
    for (int i = 0; i < d->n; i++) {
        bool out = false;
        for (int k = 0; has(bits, i) && k < d->to[i].n && !out; k++)
            out = !has(bits, d->to[i].at[k]);
        sum += out ? d->bytes[i] : 0;
    }
    return sum;
}

static int by_time(const void *a, const void *b)
{
    const Prefix *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->size != y->size ? x->size - y->size : memcmp(x->bits, y->bits, sizeof *x->bits);
}

/* ---- one target -------------------------------------------------------------------------------------------------- */

typedef struct { Ints *layer; int *before; int64_t left; } ForeignReach; /* before[j * n + x]: the prefix of layer j - 1 */

static Ns transfer(const ForeignSearch *s, int j, const Prefix *p)
{
    return s->d->wire ? cost_wire(s->d->wire, j - 1, j, 2 * p->leaves) : 0;
}

static bool within(const ForeignSearch *s, const Prefix *a, const Prefix *b)
{
    if (a->size >= b->size)
        return false;
    for (int w = 0; w < s->words; w++)
        if (a->bits[w] & ~b->bits[w])
            return false;
    return true;
}

static Ns share(Ns time, int stages)            /* what the longest of so many takes at least */
{
    return (time + stages - 1) / stages;
}

/* Prefixes with enough nodes on both sides, and not too much time on either. */
static bool may_end(const ForeignSearch *s, int j, int x, Ns target)
{
    const Prefix *p = &s->at.at[x], *all = &s->at.at[s->at.n - 1];
    int left = s->k - j;
    if (left == 0)
        return x == s->at.n - 1;
    return p->size >= j && all->size - p->size >= left && share(p->time, j) <= target
        && share(all->time - p->time, left) <= target && transfer(s, j, p) <= target;
}

/* Can stage j end with x?  Remembers where it then begins. */
static bool reach(ForeignSearch *s, ForeignReach *r, int j, int x, Ns target)
{
    const Prefix *p = &s->at.at[x];
    const Ints *from = &r->layer[j - 1];
    int low = 0, high = from->n;                /* the first that is not too far back */
    while (low < high) {
        int mid = (low + high) / 2;
        bool far = p->time - s->at.at[from->at[mid]].time > target;
        low = far ? mid + 1 : low;
        high = far ? high : mid;
    }
    for (int i = low; i < from->n; i++) {
        int y = from->at[i];
        if (s->at.at[y].time > p->time)
            break;
        r->left--;
        if (within(s, &s->at.at[y], p)) {
            r->before[j * s->at.n + x] = y;
            return true;
        }
    }
    return false;
}

/* 1: the target can be reached, layers and before say how; 0: it cannot; -1: the budget ended. */
static int possible(ForeignSearch *s, ForeignReach *r, Ns target)
{
    for (int j = 0; j <= s->k; j++)
        r->layer[j].n = 0;
    *PUSH(&r->layer[0]) = 0;
    for (int j = 1; j <= s->k; j++)
        for (int x = 1; x < s->at.n; x++) {
            if (may_end(s, j, x, target) && reach(s, r, j, x, target))
                *PUSH(&r->layer[j]) = x;
            if (r->left <= 0)
                return -1;
        }
    return r->layer[s->k].n > 0;
}

/* The value of the chain that was found last. */
static Ns take(const ForeignSearch *s, const ForeignReach *r, int *end)
{
    Ns value = 0;
    end[s->k] = s->at.n - 1;
    for (int j = s->k; j > 0; j--) {
        end[j - 1] = r->before[j * s->at.n + end[j]];
        Ns time = s->at.at[end[j]].time - s->at.at[end[j - 1]].time, wire = j < s->k ? transfer(s, j, &s->at.at[end[j]]) : 0;
        value = time > value ? time : value;
        value = wire > value ? wire : value;
    }
    return value;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void bisect(ForeignSearch *s, ForeignChain *c, int *end)
{
    ForeignReach r = {.layer = alloc(sizeof *r.layer * (size_t)(s->k + 1)), .left = MOST_LOOKS};
    r.before = alloc(sizeof *r.before * (size_t)(s->k + 1) * (size_t)s->at.n);
    Ns low = share(s->at.at[s->at.n - 1].time, s->k), high = INT64_MAX / 4, target = low, step = low / 64 + 1;
    for (int i = 0; i < s->d->n; i++)
        low = target = s->d->time[i] > low ? s->d->time[i] : low;
    int found = 0;
    while (low < high) {
        int can = possible(s, &r, target);
        if (can > 0) {
            found = 1;
            high = take(s, &r, end);
        } else if (can == 0) {
            low = target + 1;
        } else if (found) {
            break;
        } else {                        /* not even one plan: without a budget then, once */
            r.left = INT64_MAX;
            target = high;
            continue;
        }
        step *= 2;
        target = found ? low + (high - low) / 2 : low + step < high ? low + step : high;
        target = target < high ? target : high - 1;
    }
    c->value = high;
    c->bound = low < high ? low : high;
}

static void lay_out(const ForeignSearch *s, ForeignChain *c, const int *end)
{
    int n = 0;
    c->sequence = alloc(sizeof *c->sequence * (size_t)(s->d->n + 1));
    c->last = alloc(sizeof *c->last * (size_t)(s->k + 1));
    for (int j = 1; j <= s->k; j++) {
        const uint64_t *with = s->at.at[end[j]].bits, *without = s->at.at[end[j - 1]].bits;
        for (int i = 0; i < s->d->n; i++)
            if (has(with, i) && !has(without, i))
                c->sequence[n++] = i;
        c->last[j - 1] = n - 1;
    }
}

bool downset_chain(const Dag *d, int k, int most, ForeignChain *c)
{
    ForeignSearch s = {.d = d, .k = k};
    if (k < 1 || d->n < k)
        return false;
    *c = (ForeignChain){.all = enumerate(&s, most < MOST_PREFIXES ? most : MOST_PREFIXES)};
    if (!c->all) {
        orders_chain(d, k, ORDER_LOOKS, c);
        return true;
    }
    for (int x = 0; x < s.at.n; x++)
        s.at.at[x].leaves = leaves(d, s.at.at[x].bits);
    if (s.at.n > 1)
        qsort(s.at.at, (size_t)s.at.n, sizeof *s.at.at, by_time);
    c->prefixes = s.at.n;
    int *end = alloc(sizeof *end * (size_t)(k + 1));
    bisect(&s, c, end);
    lay_out(&s, c, end);
    return true;
}
