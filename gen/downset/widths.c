/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.c: the least bottleneck of a pipeline over all cuts, copies, degrees and choices of a graph.
 *
 * Problem: widths.h.  Cut a graph into differences of downward-closed prefixes; give each stage d copies, where d divides the
 * micro-batches, of t devices; choose for each node what it does.  At most so many devices; copies of all stages at most the
 * micro-batches; no device over its memory.  The longest stage is to be as short as possible.
 *
 * Known: Piper fills a table of prefixes, devices and copies with the least bottleneck, and asks a heuristic what to compute
 * again.  Its time grows with the square of the devices.
 *
 * Here the value is bisected.  For one value the stages are laid from the end of the graph to its beginning, because a stage
 * holds what the stages behind it have under way.  A prefix then keeps pairs of devices used and copies behind it.  A pair
 * with more of both is dropped: whatever completes it completes the other.  The nodes in front need at least the sum of their
 * t times time over the value in devices.  So near the optimum a prefix keeps few pairs, whatever the number of devices.
 *
 * What is computed again is a knapsack: free so many bytes in the least time.  Branch and bound with Dantzig's bound solves it
 * (G. Dantzig, Discrete-Variable Extremum Problems, 1957), once for each stage and number of micro-batches under way.  Equal
 * nodes are taken in one order.
 *
 * Every term is rounded to picoseconds, and a stage up; a bound is that of these numbers.
 * Cost: prefixes squared times divisors times pairs for each value.  A graph of too many prefixes keeps those of its own order,
 * and the bound is then that of devices alone.  A knapsack that is not finished ends the proof, not the search.
 */
#include "widths.h"

#define NEVER (INT64_MAX / 4)
typedef struct { int devices, copies, prefix, pair, degree, d; } WidthPair;      /* prefix, pair: of the stage behind */
typedef struct { WidthPair *at; int n, cap; } WidthPairs;
typedef struct { Ps time, exchange; Bytes each, fixed; int absent; } WidthSum;   /* exchange: with one other copy, twice */
typedef struct { int a, b, x, y; Ps least, most; } WidthExtra;   /* time of what is computed again */
typedef struct { Ps extra; Bytes saves; int node; } WidthItem;
typedef struct {
    const Widths *w;
    Prefixes all;               /* by the least of devices times time */
    WidthSum *sum;              /* [prefix * degrees + x], of the fastest choices */
    Ps *toll;                   /* [2 (edge * degrees + x)]: both ways over it, for the reader's stage; then for the source's */
    uint64_t **edges;           /* by prefix: those that begin in it, then those that end in it */
    WidthPairs *pairs;
    WidthExtra *extra;          /* a hash table */
    int extras, slots;
    int *divisor, divisors, copies;
    bool unsure;                /* a knapsack was not finished: what was refused is not proven */
} WidthSearch;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* a b / c, rounded down; b <= c < 2^62 */
static int64_t scaled(int64_t a, int64_t b, int64_t c)
{
    int64_t q = 0, r = 0;
    for (int bit = 62; bit >= 0; bit--) {
        q *= 2, r *= 2;
        q += r >= c, r -= r >= c ? c : 0;
        r += a >> bit & 1 ? b : 0;
        q += r >= c, r -= r >= c ? c : 0;
    }
    return q;
}

Ps widths_ps(Bytes bytes, int64_t rate)
{
    const Ps second = 1000000000000;
    return bytes / rate * second + scaled(second, bytes % rate, rate);
}

/* Is a / b less than c / d?  By their continued fractions; b and d are not 0. */
static int compare(int64_t a, int64_t b, int64_t c, int64_t d)
{
    for (int sign = 1;; sign = -sign) {
        int64_t p = a / b, q = c / d, r, s;
        if (p != q)
            return p < q ? -sign : sign;
        a %= b, c %= d;
        if (!a || !c)
            return a == c ? 0 : a ? sign : -sign;
        r = a, s = c, a = b, c = d, b = r, d = s;
    }
}

/* ---- one stage: nodes of prefix b that are not in prefix a ------------------------------------------------------- */

static const WidthWay *way(const WidthSearch *s, int node, int x)
{
    return &s->w->split[node * s->w->degrees + x];
}

static int fastest(const WidthWay *y)
{
    return y->choices > 1 && y->choice[1].time < y->choice[0].time;
}

static bool holds(const WidthSearch *s, int prefix, int node)
{
    return s->all.at[prefix].bits[node / 64] >> node % 64 & 1;
}

static Ps border_of(const WidthSearch *s, int a, int b, int x)
{
    const Widths *w = s->w;
    const uint64_t *in = s->edges[a], *out = s->edges[b];
    int words = (w->edges + 63) / 64;
    Ps sum = 0;
    for (int i = 0; i < words; i++) {           /* set i of a prefix: edges that begin there, set words + i: that end there */
        uint64_t enter = in[i] & out[words + i] & ~in[words + i], leave = out[i] & ~in[i] & ~out[words + i];
        for (int k = 0; k < 64 && (enter | leave) >> k; k++)
            sum += (enter >> k & 1 ? s->toll[2 * ((64 * i + k) * w->degrees + x)] : 0)
                + (leave >> k & 1 ? s->toll[2 * ((64 * i + k) * w->degrees + x) + 1] : 0);
    }
    return sum;
}

static Bytes need(const WidthChoice *c, int y)
{
    return c->each * y + c->fixed;
}

ORDER(by_ratio, WidthItem, compare(x->extra, x->saves, y->extra, y->saves), order_of(y->saves, x->saves),
      order_of(x->node, y->node))

/* Nodes whose slower choice takes less, the least time a byte first; over: bytes that are to be freed. */
static int items_of(const WidthSearch *s, int a, int b, int x, int y, WidthItem *item, Bytes *over)
{
    int n = 0;
    *over = -s->w->memory;
    for (int i = 0; i < s->w->n; i++) {
        if (!holds(s, b, i) || holds(s, a, i))
            continue;
        const WidthWay *v = way(s, i, x);
        int fast = fastest(v);
        *over += need(&v->choice[fast], y);
        Bytes saves = v->choices > 1 ? need(&v->choice[fast], y) - need(&v->choice[!fast], y) : 0;
        if (saves > 0)
            item[n++] = (WidthItem){v->choice[!fast].time - v->choice[fast].time, saves, i};
    }
    SORT(item, n, by_ratio);
    return n;
}

/* The least time that frees `over` bytes with items i.., were the last one divided: Dantzig's bound. */
static Ps divided(const WidthItem *item, int n, int i, Bytes over)
{
    Ps sum = 0;
    for (; over > 0 && i < n; over -= item[i++].saves)
        sum += over < item[i].saves ? scaled(item[i].extra, over, item[i].saves) : item[i].extra;
    return over > 0 ? NEVER : sum;
}

/* What an item takes for so many bytes, rounded down. */
static Ps at_rate(const WidthItem *i, Bytes bytes)
{
    return bytes / i->saves * i->extra + scaled(i->extra, bytes % i->saves, i->saves);
}

typedef struct { Bytes open; Ps spent; int made; } WidthState;      /* open: bytes still to free, below 0 where too many are */
typedef struct { int item, from; } WidthMade;   /* an item that was taken, or one of the first that was not */
typedef struct {
    const WidthItem *item;
    int n, low, high;           /* items low .. high - 1 are decided */
    Ps most;
    WidthState *state;          /* by open, falling; spent rises */
    int states;
    VEC(WidthMade) made;
} WidthKnapsack;

/* Can it still end within `most`?  Undecided items at their best rate: those behind free more, those in front take back. */
static bool hopeful(const WidthKnapsack *k, const WidthState *t)
{
    if (t->open > 0)
        return k->high < k->n && t->spent + at_rate(&k->item[k->high], t->open) <= k->most;
    return t->spent <= k->most || (k->low > 0 && t->spent - at_rate(&k->item[k->low - 1], -t->open) - 1 <= k->most);
}

/* Each state once as it is and once with the item changed, dominated and hopeless ones dropped. */
static void decide(WidthKnapsack *k, int item, int sign)
{
    WidthState *next = alloc(sizeof *next * 2 * (size_t)k->states);
    int n = 0;
    Bytes saves = sign * k->item[item].saves;
    Ps extra = sign * k->item[item].extra;
    for (int i = 0, j = 0; i < k->states || j < k->states;) {          /* the changed ones are behind or in front of them */
        bool changed = i == k->states || (j < k->states && k->state[j].open - saves > k->state[i].open);
        WidthState t = k->state[changed ? j++ : i++];
        t.open -= changed ? saves : 0;
        t.spent += changed ? extra : 0;
        while (n > 0 && next[n - 1].spent >= t.spent)
            n--;                /* it frees more in no more time */
        if (!hopeful(k, &t) || (n > 0 && next[n - 1].open == t.open))
            continue;
        if (changed) {
            *PUSH(&k->made) = (WidthMade){item, t.made};
            t.made = k->made.n - 1;
        }
        next[n++] = t;
    }
    k->state = next;
    k->states = n;
}

/* D. Pisinger, A Minimal Algorithm for the 0-1 Knapsack Problem, 1997: from the greedy choice outwards, one item at a time. */
static Ps core(WidthSearch *s, const WidthItem *item, int n, Bytes over, Ps most, char *kept)
{
    WidthKnapsack k = {.item = item, .n = n, .most = most};
    WidthState first = {over, 0, -1};
    while (k.low < n && first.open > item[k.low].saves) {
        first.open -= item[k.low].saves;
        first.spent += item[k.low++].extra;
    }
    k.high = k.low;
    int greedy = k.low;
    k.state = &first;
    k.states = 1;
    for (int64_t left = MOST_STATES; k.states > 0; left -= k.states) {
        for (int i = 0; i < k.states; i++)
            if (k.state[i].open <= 0 && k.state[i].spent <= most) {
                memset(kept, 0, (size_t)n);
                memset(kept, 1, (size_t)greedy);
                for (int m = k.state[i].made; m >= 0; m = k.made.at[m].from)
                    kept[k.made.at[m].item] ^= 1;
                return k.state[i].spent;
            }
        if ((k.low == 0 && k.high == n) || left < 0)
            break;
        if (k.high < n)
            decide(&k, ++k.high - 1, 1);
        if (k.low > 0)
            decide(&k, --k.low, -1);
    }
    s->unsure |= k.states > 0 && (k.low > 0 || k.high < n);
    return NEVER;
}

/* As published: from the least time a byte, until it fits. */
static Ps greedy(const WidthItem *item, int n, Bytes over, char *kept)
{
    Ps sum = 0;
    for (int i = 0; over > 0 && i < n; over -= item[i++].saves) {
        sum += item[i].extra;
        kept[i] = 1;
    }
    return sum;
}

static WidthExtra *extra_of(WidthSearch *s, int a, int b, int x, int y)
{
    if (2 * s->extras >= s->slots) {
        WidthExtra *old = s->extra;
        int slots = s->slots;
        s->slots = slots ? 4 * slots : 1024;
        s->extra = alloc(sizeof *s->extra * (size_t)s->slots);
        s->extras = 0;
        for (int i = 0; i < slots; i++)
            if (old[i].y)
                *extra_of(s, old[i].a, old[i].b, old[i].x, old[i].y) = old[i];
    }
    uint64_t h = ((uint64_t)a << 40 ^ (uint64_t)b << 20 ^ (uint64_t)y << 4 ^ (uint64_t)x) * 0x9e3779b97f4a7c15;
    int i = (int)(h >> 20 & (uint64_t)(s->slots - 1));
    for (; s->extra[i].y; i = (i + 1) & (s->slots - 1))
        if (s->extra[i].a == a && s->extra[i].b == b && s->extra[i].x == x && s->extra[i].y == y)
            return &s->extra[i];
    s->extras++;
    s->extra[i] = (WidthExtra){a, b, x, y, -1, NEVER};
    return &s->extra[i];
}

/* Time beside that of the fastest choices with y micro-batches under way, at most `left`; NEVER: it does not fit. */
static Ps extra(WidthSearch *s, int a, int b, int x, int y, Ps left)
{
    const WidthSum *front = &s->sum[a * s->w->degrees + x], *back = &s->sum[b * s->w->degrees + x];
    if ((back->each - front->each) * y + back->fixed - front->fixed <= s->w->memory)
        return 0;
    WidthExtra *e = extra_of(s, a, b, x, y);
    if (e->least >= 0 && (left < e->least || e->most <= left))
        return e->most <= left ? e->most : NEVER;
    void *mark = mem_mark();
    WidthItem *item = alloc(sizeof *item * (size_t)s->w->n);
    Bytes over;
    int n = items_of(s, a, b, x, y, item, &over);
    char *kept = alloc((size_t)n + 1);
    if (e->least < 0) {
        Ps bound = divided(item, n, 0, over);
        e->most = bound < NEVER ? greedy(item, n, over, kept) : NEVER;
        e->least = s->w->heuristic ? e->most : bound;
    }
    if (e->least <= left && left < e->most) {
        Ps found = core(s, item, n, over, left, kept);
        e->most = found <= left ? found : e->most;
        e->least = found <= left ? e->least : left + 1;         /* or it was too dear to find out: not again, then */
    }
    mem_release(mark);
    return e->most <= left ? e->most : NEVER;
}

/* Time and borders of one copy. */
static Ps once(const WidthSearch *s, int a, int b, int x)
{
    const WidthSum *front = &s->sum[a * s->w->degrees + x], *back = &s->sum[b * s->w->degrees + x];
    return back->time - front->time + border_of(s, a, b, x);
}

static Ps exchange(const WidthSearch *s, int a, int b, int x)
{
    const WidthSum *front = &s->sum[a * s->w->degrees + x], *back = &s->sum[b * s->w->degrees + x];
    return back->exchange - front->exchange;
}

/* ---- one target -------------------------------------------------------------------------------------------------- */

/* By devices, and then copies: each pair has fewer copies than those before. */
static void put(WidthPairs *p, WidthPair with)
{
    int low = 0, high = p->n;
    while (low < high) {
        int mid = (low + high) / 2;
        bool before = p->at[mid].devices < with.devices;
        low = before ? mid + 1 : low;
        high = before ? high : mid;
    }
    if ((low > 0 && p->at[low - 1].copies <= with.copies)
        || (low < p->n && p->at[low].devices == with.devices && p->at[low].copies <= with.copies))
        return;
    int end = low;
    while (end < p->n && p->at[end].copies >= with.copies)
        end++;
    if (end == low) {
        PUSH(p);
        memmove(&p->at[low + 1], &p->at[low], sizeof *p->at * (size_t)(p->n - 1 - low));
    } else {
        memmove(&p->at[low + 1], &p->at[end], sizeof *p->at * (size_t)(p->n - end));
        p->n -= end - low - 1;
    }
    p->at[low] = with;
}

static bool within(const WidthSearch *s, int a, int b)
{
    const Prefix *p = &s->all.at[a], *q = &s->all.at[b];
    int words = (s->w->n + 63) / 64;
    for (int i = 0; i < words; i++)
        if (p->bits[i] & ~q->bits[i])
            return false;
    return p->size < q->size;
}

/* A stage between the prefixes, of d copies, in front of every pair. */
static void lay(WidthSearch *s, int a, int b, int x, int d, Ps target)
{
    const WidthPairs *behind = &s->pairs[b];
    int used = s->w->degree[x] * d, most = s->w->devices - used - (int)ceil_div(s->all.at[a].least, target);
    Ps left = target * d - once(s, a, b, x) - (d - 1) * exchange(s, a, b, x);
    for (int j = 0; left >= 0 && j < behind->n && behind->at[j].devices <= most; j++) {
        int copies = behind->at[j].copies + d;
        if (copies <= s->copies && extra(s, a, b, x, (copies + d - 1) / d, left) < NEVER)
            put(&s->pairs[a], (WidthPair){behind->at[j].devices + used, copies, b, j, x, d});
    }
}

/* The first prefix of at least that time. */
static int first_of(const WidthSearch *s, Ps time)
{
    int low = 0, high = s->all.n;
    while (low < high) {
        int mid = (low + high) / 2;
        bool before = s->all.at[mid].least < time;
        low = before ? mid + 1 : low;
        high = before ? high : mid;
    }
    return low;
}

static bool possible(WidthSearch *s, Ps target)
{
    const Widths *w = s->w;
    const int full = s->all.n - 1;
    for (int i = 0; i <= full; i++)
        s->pairs[i].n = 0;
    *PUSH(&s->pairs[full]) = (WidthPair){.prefix = -1};
    for (int b = full; b > 0; b--)
        for (int i = 0; i < s->divisors * w->degrees && s->pairs[b].n; i++) {
            int x = i % w->degrees, d = s->divisor[i / w->degrees], used = w->degree[x] * d;
            int left = w->devices - s->pairs[b].at[0].devices - used;
            for (int a = first_of(s, s->all.at[b].least - target * used); left >= 0 && a < b; a++) {
                if (s->all.at[a].least > left * target)
                    break;
                if (within(s, a, b) && s->sum[a * w->degrees + x].absent == s->sum[b * w->degrees + x].absent)
                    lay(s, a, b, x, d, target);
            }
        }
    return s->pairs[0].n > 0;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

void widths_judge(const Widths *w, WidthPlan *plan)
{
    int *of = alloc(sizeof *of * (size_t)w->n), copies = 0;
    for (int g = 0, i = 0; g < plan->stage.n; g++)
        for (; i <= plan->stage.at[g].last; i++)
            of[plan->sequence[i]] = g;
    plan->value = 0;
    for (int g = plan->stage.n - 1; g >= 0; g--) {
        WidthStage *stage = &plan->stage.at[g];
        Ps time = 0;
        int x = 0, d = stage->copies, y = (copies += d, (copies + d - 1) / d);
        while (w->degree[x] != stage->degree)
            x++;
        stage->again = 0;
        stage->memory = 0;
        for (int i = 0; i < w->n; i++) {
            const WidthWay *v = &w->split[i * w->degrees + x];
            const WidthChoice *c = &v->choice[(int)plan->choice[i]];
            if (of[i] != g)
                continue;
            time += c->time + (d - 1) * widths_ps(4 * v->params, w->micro * w->rate);
            stage->memory += need(c, y);
            stage->again += plan->choice[i];
        }
        for (int i = 0; i < w->edges; i++) {
            const WidthEdge *e = &w->edge[i];
            if ((of[e->from] == g) != (of[e->to] == g))
                time += widths_ps(2 * e->bytes[2 * x + (of[e->from] == g)], w->rate);
        }
        stage->time = ceil_div(time, d);
        plan->value = stage->time > plan->value ? stage->time : plan->value;
    }
}

/* What possible() found. */
static void take(WidthSearch *s, WidthPlan *plan, Ps target)
{
    const Widths *w = s->w;
    int n = 0;
    WidthItem *item = alloc(sizeof *item * (size_t)w->n);
    char *kept = alloc((size_t)w->n);
    plan->stage.n = 0;
    for (int a = 0, j = 0; a != s->all.n - 1;) {
        WidthPair p = s->pairs[a].at[j];
        Ps left = target * p.d - once(s, a, p.prefix, p.degree) - (p.d - 1) * exchange(s, a, p.prefix, p.degree);
        Bytes over;
        int items = items_of(s, a, p.prefix, p.degree, (p.copies + p.d - 1) / p.d, item, &over);
        memset(kept, 0, (size_t)w->n);
        if (over > 0 && greedy(item, items, over, kept) > left && !w->heuristic)
            core(s, item, items, over, left, kept);
        for (int i = 0; i < w->n; i++)
            if (holds(s, p.prefix, i) && !holds(s, a, i)) {
                plan->sequence[n++] = i;
                plan->choice[i] = (char)fastest(way(s, i, p.degree));
            }
        for (int i = 0; i < items; i++)
            plan->choice[item[i].node] ^= kept[i];
        *PUSH(&plan->stage) = (WidthStage){.last = n - 1, .copies = p.d, .degree = w->degree[p.degree]};
        a = p.prefix;
        j = p.pair;
    }
    widths_judge(w, plan);
    plan->claim = plan->value;
}

static void sum_up(WidthSearch *s)
{
    const Widths *w = s->w;
    int words = (w->edges + 63) / 64;
    Ps *exchange_of = alloc(sizeof *exchange_of * (size_t)(w->n * w->degrees));
    for (int i = 0; i < w->n * w->degrees; i++)
        exchange_of[i] = widths_ps(4 * w->split[i].params, w->micro * w->rate);
    s->toll = alloc(2 * sizeof *s->toll * (size_t)(w->edges * w->degrees + 1));
    for (int i = 0; i < w->edges; i++)
        for (int x = 0; x < 2 * w->degrees; x++)
            s->toll[2 * i * w->degrees + x] = widths_ps(2 * w->edge[i].bytes[x], w->rate);
    for (int p = 0; p < s->all.n; p++) {
        s->edges[p] = alloc(sizeof(uint64_t) * 2 * (size_t)(words + 1));
        for (int i = 0; i < w->edges; i++) {
            s->edges[p][i / 64] |= (uint64_t)holds(s, p, w->edge[i].from) << i % 64;
            s->edges[p][words + i / 64] |= (uint64_t)holds(s, p, w->edge[i].to) << i % 64;
        }
        for (int i = 0; i < w->n; i++) {
            for (int x = 0; holds(s, p, i) && x < w->degrees; x++) {
                const WidthWay *v = way(s, i, x);
                const WidthChoice *c = &v->choice[fastest(v)];
                WidthSum *sum = &s->sum[p * w->degrees + x];
                sum->absent += v->choices == 0;
                sum->time += c->time;
                sum->each += c->each;
                sum->fixed += c->fixed;
                sum->exchange += exchange_of[i * w->degrees + x];
            }
        }
    }
}

/* Devices times time, the least of all degrees. */
static Ps least_of(const WidthSearch *s, int node)
{
    Ps least = NEVER;
    for (int x = 0; x < s->w->degrees; x++) {
        const WidthWay *v = way(s, node, x);
        Ps time = v->choices ? v->choice[fastest(v)].time * s->w->degree[x] : NEVER;
        least = time < least ? time : least;
    }
    return least < NEVER ? least : 0;
}

ORDER(by_time, Prefix, order_of(x->least, y->least), order_of(x->size, y->size))

/* All prefixes, or those of the order where they are too many. */
static bool prefixes(WidthSearch *s)
{
    const Widths *w = s->w;
    Ps *time = alloc(sizeof *time * (size_t)w->n);
    for (int i = 0; i < w->n; i++)
        time[i] = least_of(s, i);
    const Ns *const one = time;
    Dag d = {.n = w->n, .classes = 1, .time = &one, .from = w->from, .to = w->to};
    if (downset_prefixes(&d, MOST_PREFIXES, &s->all)) {
        SORT(s->all.at, s->all.n, by_time);
        return true;
    }
    s->all.n = 0;
    for (int p = 0; p <= w->n; p++) {
        Prefix *next = PUSH(&s->all);
        next->bits = alloc(sizeof(uint64_t) * (size_t)((w->n + 63) / 64));
        for (int i = 0; i < p; i++)
            next->bits[i / 64] |= (uint64_t)1 << i % 64;
        next->size = p;
        next->least = p ? next[-1].least + time[p - 1] : 0;
    }
    return false;
}

static void divisors_of(WidthSearch *s)
{
    const Widths *w = s->w;
    s->copies = w->micro < w->devices ? (int)w->micro : w->devices;
    int most = w->copies && w->copies < s->copies ? w->copies : s->copies;
    s->divisor = alloc(sizeof *s->divisor * (size_t)most);
    for (int d = 1; d <= most; d++)
        if (w->micro % d == 0)
            s->divisor[s->divisors++] = d;
}

/* No stage takes more: all nodes with all borders, and every other device exchanges with it. */
static Ps longest(const WidthSearch *s)
{
    const Widths *w = s->w;
    Ps most = 0;
    for (int x = 0; x < w->degrees; x++) {
        Ps all = exchange(s, 0, s->all.n - 1, x) * w->devices;
        for (int i = 0; i < w->n; i++)
            for (int c = 0; c < way(s, i, x)->choices; c++)
                all += way(s, i, x)->choice[c].time;
        for (int i = 0; i < w->edges; i++)
            all += s->toll[2 * (i * w->degrees + x)] + s->toll[2 * (i * w->degrees + x) + 1];
        most = all > most ? all : most;
    }
    return most;
}

bool widths_plan(const Widths *w, WidthPlan *plan)
{
    WidthSearch s = {.w = w};
    *plan = (WidthPlan){.all = prefixes(&s), .value = NEVER};
    plan->prefixes = s.all.n;
    divisors_of(&s);
    s.sum = alloc(sizeof *s.sum * (size_t)s.all.n * (size_t)w->degrees);
    s.edges = alloc(sizeof *s.edges * (size_t)s.all.n);
    s.pairs = alloc(sizeof *s.pairs * (size_t)s.all.n);
    plan->sequence = alloc(sizeof *plan->sequence * (size_t)w->n);
    plan->choice = alloc((size_t)w->n);
    sum_up(&s);
    Ps first = (s.all.at[s.all.n - 1].least + w->devices - 1) / w->devices, low = first > 0 ? first : 1, most = longest(&s);
    Ps step = low / 64 + 1, target = low;
    bool proven = true;
    plan->bound = low;
    while (low < plan->value) {
        s.unsure = false;
        if (possible(&s, target)) {
            take(&s, plan, target);
        } else {
            proven &= !s.unsure;
            low = target + 1;
            plan->bound = proven ? low : plan->bound;
            if (plan->value == NEVER && target >= most)
                return false;
        }
        step *= 2;
        target = plan->value < NEVER ? low + (plan->value - low) / 2 : low + step;
    }
    plan->bound = proven && plan->all ? plan->value : plan->all ? plan->bound : first;
    return true;
}
