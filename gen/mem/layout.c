/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: the lowest layout that a budget finds.
 *
 * Problem: place.c puts pieces where they fit, one after the other, so the order decides everything.
 *
 * Method: these are tried.
 *
 *   1. sizes, lengths of life and births, in each style
 *   2. sizes with noise, or the best order with less of it, each once; or some times over, and each time the piece that came to
 *      lie too high is placed earlier
 *   3. the layout that exact_layout.c makes of an exact packing
 *
 * In some orders of 2, micro-batches take the slots of a pool in turn, once three per cent are hard to reach.  They end in the
 * order in which they begin, so those alive lie together, and so do the free bytes.  Large buffers of short life need them:
 * in a V, two that are as large as the logits.
 *
 * The search goes on until the top is within one per cent of the live-bytes bound or a first budget is spent.  Then it goes on
 * until the top is within three per cent or a second budget is spent.  Then comes 3, then 2 again: to the end of the budget,
 * unless it is far from fitting, or once a layout fits, as long as it finds lower ones.  Where a question only asks whether a
 * plan fits, a layout that fits is low enough.  All layouts of one question share a budget; once it is spent, only the first
 * two steps are left.  Most devices end within the first few orders.  Noise is a hash, and budgets count the looks of place.c,
 * not seconds: the layout is the same on any machine.
 *
 * Compilers of the field plan one iteration as rectangles (XLA, TVM, MiniMalloc: gen/pack/).  There every tensor of every
 * micro-batch has an address of its own, and nobody can tell how far above the least an arena is.  Here the text of a routine
 * is the same for all micro-batches, and the price of that is printed (unpooled.c).
 *
 * Source: lengths of life after Y. Pisarchyk and J. Lee, Efficient Memory Management for Deep Neural Net Inference, 2020,
 * section 5.  Noise is of T. Feo and M. Resende, Greedy Randomized Adaptive Search Procedures, 1995.  Promotion is of D. Joslin
 * and D. Clements, Squeaky Wheel Optimization, 1999.
 *
 * Cost: the budgets.
 *
 * Not handled: slots that turn by any other rule than the number of a micro-batch.  Asynchronous schedules on four devices
 * and more stay up to 24 % above the bound, although their buffers, each by itself, pack within 2 %.
 */
#include "mem.h"
#include "budgets.h"

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x < y ? -1 : x > y;
}

static int by_start(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

static int by_length(const void *a, const void *b)
{
    int64_t x = (*(Item *const *)a)->ticks, y = (*(Item *const *)b)->ticks;
    return x != y ? (x > y ? -1 : 1) : by_size(a, b);
}

static int by_key(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->key != y->key ? (x->key > y->key ? -1 : 1) : by_size(a, b);
}

static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_start};
enum { SORTS = sizeof orders / sizeof *orders };

static uint64_t luck(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* The order and style of the best layout that shake() has found; the order as keys. */
typedef struct { int64_t *key; Style style; bool still, ring; bool is; } Good;

/* That order, each piece moved by up to 2, 8 or 32 places. */
static void near_keys(Placer *w, const Good *good)
{
    uint64_t far = 2 << 2 * (luck(&w->luck) % 3);
    for (int i = 0; i < w->m->item.n; i++)
        w->m->item.at[i].key = good->key[i] * 16 + (int64_t)(luck(&w->luck) % (far * 16));
    w->style = good->style;
    w->still = good->still;
    w->ring = good->ring;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static const Style styles[] = {{BLOCKS, false, false}, {LOOSE, false, false}, {BUFFERS, false, false}, {LOOSE, true, false},
                               {BUFFERS, true, false}, {LOOSE, true, true}, {BUFFERS, true, true}};
enum { STYLES = sizeof styles / sizeof *styles, FIXED = 3 };        /* the first few leave the slots as they are */

static void try_styles(Placer *w, Layout *best, Bytes bound, Bytes enough)
{
    int n = w->m->apart ? 1 : w->m->overlap ? FIXED : STYLES;
    for (int s = 0; s < n && best->top > enough && (s == 0 || w->left > LAYOUT_STEPS - SOON_STEPS); s++)
        for (int k = 0; k < 2 * SORTS && best->top > bound && (s + k == 0 || w->left > LAYOUT_STEPS - SOON_STEPS); k++) {
            w->style = styles[s];
            w->still = k >= SORTS;
            place_order(w, orders[k % SORTS]);
            if (place_all(w, best->top))
                place_copy(w->m, best, &w->now);
        }
}

static void any_keys(Placer *w)
{
    static const Style some[] = {{LOOSE, true, false}, {LOOSE, true, true}, {BUFFERS, true, true}, {BUFFERS, false, false}};
    /* Keys by size, now and then by size and life, made larger at random by up to a quarter, a half, or as much again. */
    int64_t noise = 16 << luck(&w->luck) % 3;
    bool area = luck(&w->luck) % 4 == 0;
    for (EACH(Item, x, w->m->item)) {
        int64_t units = x->size / ALIGN, key = area ? units * (x->ticks / x->piece.n) : units;
        x->key = key * (64 + (int64_t)(luck(&w->luck) % (uint64_t)noise));
    }
    w->style = some[luck(&w->luck) % 4];
    w->style.close &= !w->m->overlap;
    w->style.open &= !w->m->overlap;
    uint64_t draw = luck(&w->luck);
    w->still = draw % 2;
    w->ring = w->rings && draw / 2 % 8 == 0;
}

static void shake(Placer *w, Layout *best, Good *good, Bytes enough, int64_t until)
{
    while (best->top > enough && w->left > until && !w->m->apart) {
        if (good->is && luck(&w->luck) % 2)
            near_keys(w, good);
        else
            any_keys(w);
        place_order(w, by_key);
        int tries = luck(&w->luck) % 2 ? PROMOTED_ORDERS : 1, same = 0;
        for (int k = 0; k < tries && best->top > enough && w->left > until; k++) {
            if (place_again(w, best->top, same)) {
                place_copy(w->m, best, &w->now);
                for (int i = 0; i < w->n; i++)
                    good->key[w->sorted[i] - w->m->item.at] = w->n - i;
                good->style = w->style;
                good->still = w->still;
                good->ring = w->ring;
                good->is = true;
                k = same = 0;
            } else if (w->done > 0) {
                /* The piece that came to lie too high is placed earlier next time: where. */
                int from = w->done - 1, to = from > 0 ? (int)(luck(&w->luck) % (uint64_t)from) : 0;
                Item *x = w->sorted[from];
                memmove(&w->sorted[to + 1], &w->sorted[to], sizeof *w->sorted * (size_t)(from - to));
                w->sorted[to] = x;
                same = to;
            }
        }
    }
}

/* Far too high, and late? */
static bool is_far(const Placer *w, const Layout *best, Bytes most)
{
    if (w->left >= LAYOUT_STEPS - IDLE_STEPS)
        return false;
    return best->top > most && best->top - most > most / PACKED_PART;
}

/* All that is left of the budget, unless it is far from fitting; once a layout fits, only as long as lower ones are found. */
static void shake_on(Placer *w, Layout *best, Good *good, Bytes enough, Bytes most)
{
    for (Bytes was = INT64_MAX; best->top > enough && w->left > 0 && (best->top < was || best->top > most);) {
        if (is_far(w, best, most))
            return;
        const int64_t steps = best->top > most ? IDLE_STEPS : LONG_STEPS;
        was = best->top;
        shake(w, best, good, enough, w->left > steps ? w->left - steps : 0);
    }
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* Slots are multiples of alignments.  They become multiples of the largest stride that divides them all. */
static void take_slots(Mem *m, const Layout *l, int x)
{
    Pool *pool = &m->p->pool.at[x];
    int *slot = &m->slot[x * m->micro], most = 0, step = 0;
    memcpy(slot, &l->slot[x * m->micro], sizeof *slot * (size_t)m->micro);
    for (int mb = 0; mb < m->micro; mb++)
        step = (int)number_common(slot[mb], step);
    for (int mb = 0; mb < m->micro; mb++) {
        slot[mb] /= step > 0 ? step : 1;
        most = slot[mb] > most ? slot[mb] : most;
    }
    pool->stride = l->stride[x] * (step > 0 ? step : 1);
    pool->count = most + 1;
}

Purse *trials_of(const Ask *ask)
{
    return ask->trials ? ask->trials : purse_new(NULL, SEARCH_STEPS);
}

Bytes mem_place(Mem *m, Bytes most, Place *place)
{
    Layout best = place_layout(m);
    if (!seen_layout(m, &best)) {
        /* Scratch of the search takes a hundred times the room of the layout. */
        Bytes bound = m->p->dev.at[m->device].bound, least = bound, low = bound + bound / 100, enough = bound + bound / 100 * 3;
        const bool trial = m->p->ask.trials;
        Purse *steps = trial ? m->p->ask.trials : m->p->ask.layouts;
        bool spent = purse_left(steps) < LAYOUT_STEPS;
        if (trial && most > enough)
            least = low = enough = most;
        void *mark = mem_mark();
        Placer w = place_new(m, LAYOUT_STEPS);
        Good good = {.key = alloc(sizeof *good.key * (size_t)(m->item.n + 1))};
        try_styles(&w, &best, least, low);
        shake(&w, &best, &good, low, LAYOUT_STEPS - SOON_STEPS);
        w.rings = !m->overlap;
        shake(&w, &best, &good, enough, LAYOUT_STEPS - LONG_STEPS);
        bool hopeless = bound > most;
        bool alone = best.top > enough && !m->overlap && !hopeless && !spent;
        if (alone && !place_alone(m, &best))
            shake_on(&w, &best, &good, enough, most);
        purse_spend(steps, LAYOUT_STEPS - w.left + (alone ? ALONE_STEPS : 0));
        mem_release(mark);
        seen_keep_layout(m, &best);
    }
    memcpy(place, best.spot, sizeof *place * (size_t)m->item.n);
    m->p->pool.n -= m->extras - best.opened;
    for (int x = 0; x < m->p->pool.n && !m->overlap; x++)
        if (best.stride[x] > 0)
            take_slots(m, &best, x);
    return best.top;
}
