/* SPDX-License-Identifier: Apache-2.0
 *
 * downset.c: the least bottleneck of a pipeline over all downward-closed prefixes of a graph.
 *
 * Problem: stages, each the difference of two consecutive downward-closed prefixes, on devices that may be unequal, and of
 * which some or any may come next (places.c).  The longest of all stages and of all transfers between them is to be as short
 * as possible.  A transfer takes the bytes leaving a prefix over the rate of its wire: activations there, and where a job
 * trains as many bytes of gradients back.  Each producer counts once, however many readers it has outside.  Compute and
 * transfers overlap, so they are not added.  The states of a stage must have room on its device.
 *
 * Known: J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan, F. Nina Paravecino, Efficient Algorithms for Device Placement
 * of DNN Graph Operators, NeurIPS 2020: dynamic programming over pairs of prefixes ("ideals"), quadratic in their number.
 * PipeDream's own planner (D. Narayanan et al., SOSP 2019) walks antichains in one order and counts bytes at skip connections
 * that nobody outside needs.  PipeEdge's (Y. Hu et al., 2022) has devices of several kinds, and layers in one row.  All take
 * the whole table for one optimum.
 *
 * Here the value is bisected.  For one value T, the first j of k stages hold at most j T of the time and the others at most
 * (k - j) T. Only prefixes that can meet both are paired, so that near the optimum each place has a thin slice.  The answer
 * comes with the largest value that was proven impossible.
 *
 * Prefixes are enumerated breadth first, as bit sets in a hash table, up to a number.  In a graph that has more, orders are
 * searched (orders.c), and the answer says so.
 *
 * Cost: prefixes times nodes to enumerate; per target the pairs of neighbouring slices, times n/64.  A budget of pairs ends
 * the bisection early: then value and bound differ.  Not handled: memory besides states, replicas, stages that are no
 * differences of prefixes.
 */
#include "downset.h"

typedef struct {
    const Dag *d;
    const ForeignPlaces *p;
    const Ns *least;            /* [node]: on the class that is fastest with it */
    int words, **rank;          /* [class]: prefixes by time there */
    Prefixes at;                /* by time on class 0, the empty one first, the whole last */
    int *table, slots;          /* hash of bit sets -> prefix + 1 */
    int64_t looks;
} ForeignSearch;

static bool has(const uint64_t *bits, int i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

/* The slot of a set; empty if it is new. */
static int *slot_of(ForeignSearch *s, const uint64_t *bits)
{
    uint64_t h = 0;
    for (int w = 0; w < s->words; w++) {
        h = (h ^ bits[w]) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }
    uint64_t i = h % (uint64_t)s->slots;
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
    p->time = alloc(sizeof *p->time * (size_t)s->d->classes);
    for (int k = 0; k < s->d->classes; k++)
        p->time[k] = s->at.at[x].time[k] + s->d->time[k][i];
    p->least += s->least[i];
    p->states += s->d->states ? s->d->states[i] : 0;
    *slot = s->at.n;
}

static void empty(ForeignSearch *s, int most)
{
    s->words = (s->d->n + 63) / 64;
    s->slots = 2 * most + 64;
    s->table = alloc(sizeof *s->table * (size_t)s->slots);
    s->at.n = 0;
    *PUSH(&s->at) = (Prefix){.bits = alloc(sizeof(uint64_t) * (size_t)s->words),
                             .time = alloc(sizeof(Ns) * (size_t)s->d->classes)};
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

bool downset_prefixes(const Dag *d, int most, Prefixes *all)
{
    ForeignSearch s = {.d = d, .least = places_least(d)};
    bool found = enumerate(&s, most);
    *all = s.at;
    return found;
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

ORDER(by_time, Prefix, order_of(x->time[0], y->time[0]), order_of(x->size, y->size), memcmp(x->bits, y->bits, sizeof *x->bits))

/* ---- one target -------------------------------------------------------------------------------------------------- */

/* [place * prefixes + prefix]: where its stage begins, -1: it cannot end there; and in which place that was. */
typedef struct { int *from, *came, *near; int64_t left; } ForeignReach;

static bool within(const ForeignSearch *s, const Prefix *a, const Prefix *b)
{
    if (a->size >= b->size)
        return false;
    for (int w = 0; w < s->words; w++)
        if (a->bits[w] & ~b->bits[w])
            return false;
    return true;
}

/* Prefixes with enough nodes on both sides, and not too much time on either. */
static bool may_end(const ForeignSearch *s, const ForeignPlace *at, int x, Ns target)
{
    const Prefix *p = &s->at.at[x], *all = &s->at.at[s->at.n - 1];
    int few = s->p->least - at->used, most = s->p->most - at->used;
    if (x == s->at.n - 1)
        return few <= 0;
    return most > 0 && p->size >= at->used && all->size - p->size >= few && ceil_div(p->least, at->used) <= target
        && ceil_div(all->least - p->least, most) <= target;
}

/* The prefixes, by time on that class, at which a stage of this place may begin if it follows that one. */
static int begins(const ForeignSearch *s, ForeignReach *r, int place, int before, Ns target)
{
    const ForeignPlace *a = &s->p->at.at[before], *b = &s->p->at.at[place];
    int n = 0;
    for (int i = 0; i < s->at.n; i++) {
        int y = s->rank[b->class][i];
        if (r->from[before * s->at.n + y] >= 0 && (!before || places_sent(s->d, a, b, s->at.at[y].leaves) <= target))
            r->near[n++] = y;
    }
    return n;
}

/* Can the stage end with x?  Remembers where it then begins; near: the n places for that. */
static void reach(ForeignSearch *s, ForeignReach *r, int place, int before, int n, int x, Ns target)
{
    const Prefix *p = &s->at.at[x];
    const ForeignPlace *at = &s->p->at.at[place];
    int low = 0, high = n;                      /* the first that is not too far back */
    while (low < high) {
        int mid = (low + high) / 2;
        bool far = p->time[at->class] - s->at.at[r->near[mid]].time[at->class] > target;
        low = far ? mid + 1 : low;
        high = far ? high : mid;
    }
    for (int i = low; i < n; i++) {
        const Prefix *q = &s->at.at[r->near[i]];
        if (q->time[at->class] > p->time[at->class])
            break;
        r->left--;
        if (within(s, q, p) && p->states - q->states <= at->room) {
            r->from[place * s->at.n + x] = r->near[i];
            r->came[place * s->at.n + x] = before;
            break;
        }
    }
}

/* The place in which the target can be reached, r says how; 0: there is none; -1: the budget ended. */
static int possible(ForeignSearch *s, ForeignReach *r, Ns target)
{
    int n = s->at.n;
    for (int i = 0; i < s->p->at.n * n; i++)
        r->from[i] = i ? -1 : 0;
    for (int place = 1; place < s->p->at.n; place++) {
        const ForeignPlace *at = &s->p->at.at[place];
        for (int k = 0; k < at->before.n; k++) {
            int starts = begins(s, r, place, at->before.at[k], target);
            for (int x = 1; x < n && starts; x++)
                if (r->from[place * n + x] < 0 && may_end(s, at, x, target))
                    reach(s, r, place, at->before.at[k], starts, x, target);
            if (r->left <= 0)
                return -1;
        }
        if (r->from[place * n + n - 1] >= 0)
            return place;
    }
    return 0;
}

/* The value of the chain that was found last. */
static Ns take(const ForeignSearch *s, const ForeignReach *r, int place, ForeignChain *c, int *end)
{
    Ns value = 0;
    int x = s->at.n - 1;
    c->stages = s->p->at.at[place].used;
    for (int j = c->stages; j > 0; j--) {
        const ForeignPlace *at = &s->p->at.at[place];
        int was = r->came[place * s->at.n + x], y = r->from[place * s->at.n + x];
        const Prefix *p = &s->at.at[x], *q = &s->at.at[y];
        Ns time = p->time[at->class] - q->time[at->class];
        Ns sent = j > 1 ? places_sent(s->d, &s->p->at.at[was], at, q->leaves) : 0;
        value = time > value ? time : value;
        value = sent > value ? sent : value;
        end[j] = x;
        c->device[j - 1] = at->device;
        x = y;
        place = was;
    }
    end[0] = 0;
    return value;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void bisect(ForeignSearch *s, ForeignChain *c, int *end)
{
    size_t ends = (size_t)s->p->at.n * (size_t)s->at.n;
    ForeignReach r = {.from = alloc(sizeof(int) * ends), .came = alloc(sizeof(int) * ends),
                      .near = alloc(sizeof(int) * (size_t)s->at.n), .left = MOST_LOOKS};
    Ns low = ceil_div(s->at.at[s->at.n - 1].least, s->p->most), high = INT64_MAX / 4, target = low, step;
    for (int i = 0; i < s->d->n; i++)
        low = target = s->least[i] > low ? s->least[i] : low;
    step = low / 64 + 1;
    while (low < high) {
        int can = possible(s, &r, target);
        if (can > 0) {
            high = take(s, &r, can, c, end);
        } else if (can == 0) {
            low = target + 1;
        } else if (c->stages) {
            break;
        } else {                        /* not even one plan: without a budget then, once */
            r.left = INT64_MAX;
            target = high;
            continue;
        }
        step *= 2;
        target = c->stages ? low + (high - low) / 2 : low + step < high ? low + step : high;
        target = c->stages && target >= high ? high - 1 : target;
    }
    c->value = high;
    c->bound = low < high ? low : high;
}

static void lay_out(const ForeignSearch *s, ForeignChain *c, const int *end)
{
    int n = 0;
    c->sequence = alloc(sizeof *c->sequence * (size_t)(s->d->n + 1));
    c->last = alloc(sizeof *c->last * (size_t)(c->stages + 1));
    for (int j = 1; j <= c->stages; j++) {
        const uint64_t *with = s->at.at[end[j]].bits, *without = s->at.at[end[j - 1]].bits;
        for (int i = 0; i < s->d->n; i++)
            if (has(with, i) && !has(without, i))
                c->sequence[n++] = i;
        c->last[j - 1] = n - 1;
    }
}

typedef struct { Ns time; int prefix; } Ranked;

ORDER(by_rank, Ranked, order_of(x->time, y->time), order_of(x->prefix, y->prefix))

/* Prefixes by time on each class; without nodes they come first. */
static void rank(ForeignSearch *s)
{
    Ranked *list = alloc(sizeof *list * (size_t)s->at.n);
    s->rank = alloc(sizeof *s->rank * (size_t)s->d->classes);
    for (int k = 0; k < s->d->classes; k++) {
        s->rank[k] = alloc(sizeof **s->rank * (size_t)s->at.n);
        for (int x = 0; x < s->at.n; x++)
            list[x] = (Ranked){s->at.at[x].time[k], x};
        SORT(list, s->at.n, by_rank);
        for (int x = 0; x < s->at.n; x++)
            s->rank[k][x] = list[x].prefix;
    }
}

bool downset_chain(const Dag *d, const ForeignPlaces *p, int most, ForeignChain *c)
{
    ForeignSearch s = {.d = d, .p = p, .least = places_least(d)};
    if (d->n < p->least || p->at.n < 2)
        return false;
    most = most < MOST_PREFIXES ? most : MOST_PREFIXES;
    most = most < MOST_ENDS / p->at.n ? most : MOST_ENDS / p->at.n;
    *c = (ForeignChain){.all = enumerate(&s, most)};
    if (!c->all)
        return orders_chain(d, p, MOST_LOOKS, c);
    for (int x = 0; x < s.at.n; x++)
        s.at.at[x].leaves = leaves(d, s.at.at[x].bits);
    SORT(s.at.at, s.at.n, by_time);
    rank(&s);
    c->prefixes = s.at.n;
    c->device = alloc(sizeof *c->device * (size_t)(p->most + 1));
    int *end = alloc(sizeof *end * (size_t)(p->most + 1));
    bisect(&s, c, end);
    if (c->stages)
        lay_out(&s, c, end);
    return c->stages > 0;
}
