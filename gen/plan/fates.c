/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.c: which tensors of a run are dropped, so that it fits and least time is added.
 *
 * Problem: choose the set of dropped tensors that adds the least time, such that the bytes alive at every call stay under
 * the limit.  A dropped tensor is made again once per backward, with everything it needs that nobody keeps.
 *
 * Method: every choice is judged by live_load, the same replay for all of them.
 *
 *   up to EXACT tensors that matter: all choices, by depth first search.  A tensor matters if backward reads it, or if
 *     something that matters is made from it.  Two things cut the tree, both bounds: what is decided to be dropped and is
 *     read costs at least its operator once; what is decided to be kept and is read is saved by every micro-batch at rest.
 *     Equal times: the lexicographically smallest choice, where keep comes before recompute
 *   above: results are dropped operator by operator, least time per byte first, until it fits; then each operator, the
 *     most expensive first, is kept again if it still fits
 *
 * Keeping nothing is not the least memory: what is made again lives beside gradients.  So where nothing seems to fit, the
 * least that was met is the answer, and up to EXACT tensors it is proven to be the least.
 *
 * Cost: at most 2^EXACT replays of a run that small; above, as many replays as operators.
 */
#include "fates.h"

#include <stdlib.h>
#include <string.h>

enum { EXACT = 12 };

typedef struct { int tensor, op; bool read; Bytes bytes; Ns time; } Item;

typedef struct {
    Choice *c;
    Item *item;
    int n;
    Bytes base;                 /* what is saved whatever is chosen */
    int others;
    int *best;                  /* by item */
    Load load;                  /* of the best */
    bool any, least;            /* least: look for the smallest need */
    int *drops;                 /* by operator of the run: items of it that are dropped and read */
} Hunt;

/* ---- which tensors matter ---------------------------------------------------------------------------------------- */

static void find_items(Hunt *h)
{
    Choice *c = h->c;
    int count;
    const int *made = live_made(c->live, c->first, c->last, &count);
    const Ns *time = live_times(c->live, c->chunk);
    h->item = alloc(sizeof *h->item * (size_t)(count + 1));
    const char *matters = live_matters(c->live, c->first, c->last, c->may);
    for (int i = 0; i < count; i++) {
        int t = made[i], op = live_maker(c->live, t);
        if (matters[t] && c->may[t])
            h->item[h->n++] = (Item){t, op, matters[t] == LIVE_READ, live_size(c->live, t), time[op]};
    }
}

static void set(Hunt *h, int i, int fate)
{
    h->c->fate[h->item[i].tensor] = fate;
}

static Load judge(Hunt *h)
{
    Choice *c = h->c;
    return live_load(c->live, c->first, c->last, c->chunk, c->fate);
}

/* Is what was judged better than what is known? */
static bool take(Hunt *h, const Load *l)
{
    bool fits = l->need <= h->c->limit, had = h->any && h->load.need <= h->c->limit;
    bool better = !h->any || (fits != had ? fits : fits ? l->again < h->load.again : l->need < h->load.need);
    if (!better)
        return false;
    h->any = true;
    h->load = *l;
    for (int i = 0; i < h->n; i++)
        h->best[i] = h->c->fate[h->item[i].tensor];
    return true;
}

static void restore(Hunt *h)
{
    for (int i = 0; i < h->n; i++)
        set(h, i, h->best[i]);
}

/* ---- all choices ------------------------------------------------------------------------------------------------- */

static void every(Hunt *h, int i, Ns again, Bytes saved)
{
    bool known = h->any && h->load.need <= h->c->limit;
    Bytes least = h->load.states + h->others * saved;
    if (known ? again >= h->load.again || least > h->c->limit : h->least && least >= h->load.need)
        return;
    if (i == h->n) {
        Load l = judge(h);
        take(h, &l);
        return;
    }
    const Item *x = &h->item[i];
    int *drops = &h->drops[x->op - h->c->first];
    set(h, i, FATE_KEEP);
    every(h, i + 1, again, saved + (x->read ? x->bytes : 0));
    set(h, i, FATE_RECOMPUTE);
    *drops += x->read;
    every(h, i + 1, again + (x->read && *drops == 1 ? x->time : 0), saved);
    *drops -= x->read;
}

/* ---- many tensors ------------------------------------------------------------------------------------------------ */

typedef struct { int op; Ns time; Bytes bytes; } Drop;

static Ns per_mib(const Drop *x)
{
    return x->bytes > 0 && x->time < INT64_MAX / 1048576 ? x->time * 1048576 / x->bytes : INT64_MAX;
}

static int by_price(const void *a, const void *b)
{
    const Drop *x = a, *y = b;
    Ns left = per_mib(x), right = per_mib(y);
    return left != right ? (left > right) - (left < right) : x->op - y->op;
}

static int by_time(const void *a, const void *b)
{
    const Drop *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time) - (x->time > y->time) : x->op - y->op;
}

static void set_op(Hunt *h, int op, int fate)
{
    for (int i = 0; i < h->n; i++)
        if (h->item[i].op == op)
            set(h, i, fate);
}

static int drops_of(Hunt *h, Drop *drop)
{
    int n = 0;
    for (int i = 0; i < h->n; i++) {
        const Item *x = &h->item[i];
        if (n == 0 || drop[n - 1].op != x->op)
            drop[n++] = (Drop){x->op, x->time, 0};
        drop[n - 1].bytes += x->read ? x->bytes : 0;
    }
    return n;
}

static bool try_first(Hunt *h, const Drop *drop, int n, int dropped)
{
    for (int i = 0; i < n; i++)
        set_op(h, drop[i].op, i < dropped ? FATE_RECOMPUTE : FATE_KEEP);
    Load l = judge(h);
    take(h, &l);
    return l.need <= h->c->limit;
}

static void greedy(Hunt *h)
{
    Drop *drop = alloc(sizeof *drop * (size_t)h->n);
    int n = drops_of(h, drop), low = 0, high = n;
    qsort(drop, (size_t)n, sizeof *drop, by_price);
    if (!try_first(h, drop, n, n))
        return;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (try_first(h, drop, n, middle))
            high = middle;
        else
            low = middle;
    }
    restore(h);
    qsort(drop, (size_t)n, sizeof *drop, by_time);
    for (int i = 0; i < n; i++) {
        set_op(h, drop[i].op, FATE_KEEP);
        Load l = judge(h);
        if (!take(h, &l))
            restore(h);
    }
}

void fates_choose(Choice *c)
{
    Hunt h = {.c = c, .others = live_others(c->live, c->chunk)};
    c->load = live_load(c->live, c->first, c->last, c->chunk, c->fate);
    if (c->load.need <= c->limit)
        return;
    find_items(&h);
    h.best = alloc(sizeof *h.best * (size_t)(h.n + 1));
    h.drops = alloc(sizeof *h.drops * (size_t)(c->last - c->first + 1));
    take(&h, &c->load);
    Bytes always = c->load.saved;
    for (int i = 0; i < h.n; i++)
        always -= h.item[i].read ? h.item[i].bytes : 0;
    if (h.n <= EXACT) {
        every(&h, 0, 0, always);
        h.least = true;
        if (h.load.need > c->limit)
            every(&h, 0, 0, always);
    } else {
        greedy(&h);
    }
    restore(&h);
    c->load = h.load;
}
