/* SPDX-License-Identifier: Apache-2.0
 *
 * seeds.c: choices of fates that are right somewhere, for the search of fates.c to begin from.
 *
 * Method: two families.
 *
 *   prefixes   operators by price, time over bytes freed, and the fewest of them that fit.  Right where little has to be freed.
 *              A price counts all that is made again or saved besides the operator, so it changes as others are dropped.  It
 *              only has to be refreshed at the head of the queue
 *   patterns   the run is cut in j blocks where few bytes cross.  Those bytes are kept and everything else is made again, block
 *              by block: right where nearly nothing may stay.  With everything dropped, backward begins by making all of it
 *              again at once
 *
 * Source: prefixes rank by memory saved per second, as Capuchin ranks single tensors (Peng et al., Capuchin: Tensor-based GPU
 * Memory Management for Deep Learning, 2020).  The queue is of Minoux, Accelerated greedy algorithms, 1978.  Patterns are of
 * Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016.
 *
 * Cost: prefixes take a few sums for each operator with items, and a replay for each step of a bisection.  Patterns take one
 * replay for each number of blocks; that number grows by a third from one to the next.
 */
#include "hunt.h"

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

static Load sums(Hunt *h)
{
    hunt_pay(h, h->calls / 4);
    return live_sums(h->live, h->first, h->last, h->chunk, h->fate);
}

/* The time that dropping d adds to `now` and the bytes it frees, with its operands and without.  The better way is noted in
 * d; nothing is dropped. */
static void price_drop(Hunt *h, int d, const Load *now)
{
    Drop *x = &h->drop[d];
    if (hunt_spent(h)) {        /* each is priced as if it were alone */
        x->alone = false;
        x->price = x->time;
        x->worth = x->bytes;
        return;
    }
    for (int i = 0; i < x->operands; i++)
        h->was[i] = hunt_dropped(h, h->operand.at[x->operand + i]);
    for (int way = 0; way < 1 + (x->operands > 0); way++) {
        x->alone = way;
        hunt_drop(h, d);
        Load l = sums(h);
        Ns price = l.again - now->again;
        Bytes worth = now->saved - l.saved;
        if (way && !hunt_cheaper(price, worth, x->price, x->worth)) {
            x->alone = false;
        } else {
            x->price = price;
            x->worth = worth;
        }
        hunt_set(h, d, FATE_KEEP);
        for (int i = 0; i < x->operands; i++)
            hunt_set(h, h->operand.at[x->operand + i], h->was[i] ? FATE_RECOMPUTE : FATE_KEEP);
    }
}

/* A heap of drops, cheapest on top; of equals the earlier operator. */
static bool above(const Hunt *h, int a, int b)
{
    const Drop *x = &h->drop[a], *y = &h->drop[b];
    if (hunt_cheaper(x->price, x->worth, y->price, y->worth))
        return true;
    return !hunt_cheaper(y->price, y->worth, x->price, x->worth) && a < b;
}

static void sink(Hunt *h, int n, int i)
{
    int *heap = h->heap;
    for (int child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && above(h, heap[child + 1], heap[child]);
        if (above(h, heap[i], heap[child]))
            return;
        int swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
}

/* Every drop that backward reads, in the order in which greed takes them. */
static void find_order(Hunt *h)
{
    int n = 0;
    hunt_all(h, FATE_KEEP);
    Load now = sums(h);
    for (int d = 0; d < h->drops; d++)
        if (h->drop[d].bytes > 0) {
            price_drop(h, d, &now);
            h->heap[n++] = d;
        }
    for (int i = n / 2; i-- > 0;)
        sink(h, n, i);
    while (n > 0) {
        int top = h->heap[0];
        price_drop(h, top, &now);
        sink(h, n, 0);
        if (h->heap[0] != top)
            continue;           /* it became dearer than the next */
        hunt_drop(h, top);
        now = hunt_spent(h) ? now : sums(h);
        h->ranked[h->ordered++] = top;
        h->heap[0] = h->heap[--n];
        sink(h, n, 0);
    }
}

static bool try_prefix(Hunt *h, int n)
{
    hunt_all(h, FATE_KEEP);
    for (int i = 0; i < n; i++)
        hunt_drop(h, h->ranked[i]);
    Load l = hunt_judge(h);
    hunt_take(h, &l);
    return l.need <= h->limit;
}

/* The fewest that fit, as if fewer never needed less; every step is judged by itself. */
void seed_prefixes(Hunt *h)
{
    find_order(h);
    int low = 0, high = h->ordered;
    if (h->spent && !try_prefix(h, high))
        return;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (try_prefix(h, middle))
            high = middle;
        else
            low = middle;
    }
    try_prefix(h, high);
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* Bytes that cross behind each operator of the run, and those made up to it. */
static void find_width(Hunt *h, const int *made, const int *until, int tensors)
{
    int n = h->last - h->first + 1;
    for (int o = 0; o <= n; o++)
        h->width[o] = h->total[o] = 0;
    for (int i = 0; i < tensors; i++) {
        int at = live_maker(h->live, made[i]) - h->first, to = until[i] - h->first;
        Bytes bytes = live_size(h->live, made[i]);
        h->width[at] += bytes;
        h->width[to] -= bytes;
        h->total[at] += bytes;
    }
    for (int o = 1; o < n; o++) {
        h->width[o] += h->width[o - 1];
        h->total[o] += h->total[o - 1];
    }
}

static Bytes distance(Bytes a, Bytes b)
{
    return a > b ? a - b : b - a;
}

/* The operator after which block i of j ends: narrow, near its share of the bytes. */
static int border(const Hunt *h, int i, int j)
{
    int n = h->last - h->first + 1, from = 0, best;
    Bytes half = h->total[n - 1] / (2 * j), aim = half * 2 * i;
    while (from < n - 1 && h->total[from] < aim - half)
        from++;
    best = from;
    for (int o = from; o < n - 1 && h->total[o] < aim + half; o++) {
        bool nearer = distance(h->total[o], aim) < distance(h->total[best], aim);
        if (h->width[o] < h->width[best] || (h->width[o] == h->width[best] && nearer))
            best = o;
    }
    return best;
}

static void set_pattern(Hunt *h, int blocks)
{
    int tensors;
    const int *made = live_made(h->live, h->first, h->last, &tensors), *until = live_until(h->live, h->first, h->last);
    hunt_all(h, FATE_RECOMPUTE);
    for (int i = 1; i < blocks; i++) {
        int after = h->first + border(h, i, blocks);
        for (int k = 0; k < tensors && live_maker(h->live, made[k]) <= after; k++)
            if (until[k] > after && h->of[made[k]] >= 0)
                h->fate[made[k]] = FATE_KEEP;
    }
}

/* The time added once the room left is used: the dearest are kept again, as if they could be cut in pieces. */
static Ns promise(Hunt *h, const Load *l)
{
    Bytes room = (h->limit - l->need) / (h->others + 1);
    Ns again = l->again;
    for (int i = h->ordered; i-- > 0 && room > 0;) {
        const Drop *d = &h->drop[h->ranked[i]];
        if (!hunt_dropped(h, h->ranked[i]) || d->bytes > room)
            continue;
        again -= d->time;
        room -= d->bytes;
    }
    return again;
}

Load seed_patterns(Hunt *h)
{
    int n = h->last - h->first + 1, tensors, best = 1;
    const int *made = live_made(h->live, h->first, h->last, &tensors);
    Load least = {.need = INT64_MAX};
    find_width(h, made, live_until(h->live, h->first, h->last), tensors);
    for (int j = 1; j <= n / 2 + 1; j += 1 + j / 3) {
        set_pattern(h, j);
        Load l = hunt_judge(h);
        hunt_take(h, &l);
        l.again = l.need <= h->limit ? promise(h, &l) : l.again;
        if (hunt_better(h, &l, &least)) {
            least = l;
            best = j;
        }
    }
    set_pattern(h, best);
    return hunt_judge(h);
}
