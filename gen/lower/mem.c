/* SPDX-License-Identifier: Apache-2.0
 *
 * mem: an address for every byte of every device.
 *
 * Replays each device's straight line in program order and notes, for each buffer and micro-batch, the ticks (calls) from
 * its first touch to its last; a transfer touches from begin to wait.  Predicted times never enter, so the arena is the same
 * for any profile.
 *
 *   slots    the micro-batches of a pool take the lowest slot that is free; the highest number used is the count.  A buffer
 *            without a pool whose micro-batches overlap, such as one on its way to the host, gets one of its own
 *   packing  states first, then the pools as rigid blocks, then local buffers where no byte is shared at any tick: in
 *            the slot of the micro-batch at hand, among tensors that are not born yet or dead already, so that the address
 *            moves with the slot; else at the lowest address that is free for every micro-batch.
 *            A pool of one buffer is placed like a local, its slots as one block.  Several orders are tried, the lowest
 *            top wins, the first of equals (after TFLite's greedy by size: Pisarchyk and Lee, Efficient Memory
 *            Management for Deep Neural Net Inference, 2020, section 5)
 *
 * Cost: buffers times placed parts times the micro-batches of both, a few times.  Not handled: sharing one buffer between
 * an operator's operand and result; moving a tensor after it is placed.
 */
#include "mem.h"
#include "version.h"
#include <stdlib.h>
#include <string.h>

/* ---- slots ------------------------------------------------------------------------------------------------------- */

typedef struct { Span span; int mb; } Life;

static int by_birth(const void *a, const void *b)
{
    const Life *x = a, *y = b;
    return x->span.first != y->span.first ? (x->span.first < y->span.first ? -1 : 1) : x->mb - y->mb;
}

/* Steps overlap: micro-batch q in slot q mod count.  They are born and die in order, so that the least count will do. */
static int rotate(Mem *m, int pool, const Life *life, int n, int count)
{
    bool shared = true;
    for (; shared && count < n; count += shared) {
        shared = false;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++)
                shared |= (life[i].mb - life[j].mb) % count == 0 && life[i].span.first <= life[j].span.last;
    }
    for (int i = 0; i < n; i++)
        m->slot[pool * m->micro + life[i].mb] = life[i].mb % count;
    return count;
}

/* Micro-batches by birth, each to the lowest slot whose last owner is dead. */
static void color(Mem *m, int pool, Life *life, int n)
{
    int *until = alloc(sizeof(int) * (size_t)(n + 1)), count = 0;
    qsort(life, (size_t)n, sizeof *life, by_birth);
    for (int i = 0; i < n; i++) {
        int s = 0;
        while (s < count && until[s] >= life[i].span.first)
            s++;
        if (s == count)
            count++;
        until[s] = life[i].span.last;
        m->slot[pool * m->micro + life[i].mb] = s;
    }
    m->p->pool.at[pool].count = m->overlap ? rotate(m, pool, life, n, count) : count;
}

static int span_order(const void *a, const void *b)
{
    const Span *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool overlaps_itself(const Mem *m, int b)
{
    Span *span = alloc(sizeof *span * (size_t)m->micro);
    int n = 0;
    for (int mb = 0; mb < m->micro; mb++)
        if (mem_live(m, b, mb)->last >= mem_live(m, b, mb)->first)
            span[n++] = *mem_live(m, b, mb);
    qsort(span, (size_t)n, sizeof *span, span_order);
    for (int i = 1; i < n; i++)
        if (span[i].first <= span[i - 1].last)
            return true;
    return false;
}

static void find_own_pools(Mem *m)
{
    Plan *p = m->p;
    m->own = p->pool.n;
    for (int b = 0; b < p->buf.n; b++) {
        Buf *x = &p->buf.at[b];
        if (x->device != m->device || x->pool >= 0 || x->tensor < 0 || mem_always(x) || !overlaps_itself(m, b))
            continue;
        x->pool = p->pool.n;
        *PUSH(&p->pool) = (Pool){.device = x->device, .chunk = x->chunk, .eval = x->eval, .birth = x->birth, .death = x->death,
                                 .name = strf("o%d", p->pool.n - m->own)};
    }
    m->slot = alloc(sizeof(int) * (size_t)(p->pool.n + 1) * (size_t)m->micro);
}

static void find_slots(Mem *m)
{
    Plan *p = m->p;
    find_own_pools(m);
    for (int x = 0; x < p->pool.n; x++) {
        if (p->pool.at[x].device != m->device)
            continue;
        if (p->pool.at[x].birth == AT_ALWAYS) {
            p->pool.at[x].count = version_slots(p, &p->pool.at[x]);
            continue;
        }
        Life *life = alloc(sizeof *life * (size_t)m->micro);
        int n = 0;
        for (int mb = 0; mb < m->micro; mb++) {
            Life l = {{0, -1}, mb};
            for (int b = 0; b < p->buf.n; b++) {
                const Span *s = mem_live(m, b, mb);
                if (p->buf.at[b].pool != x || s->last < s->first)
                    continue;
                if (l.span.last < l.span.first)
                    l.span = *s;
                l.span.first = s->first < l.span.first ? s->first : l.span.first;
                l.span.last = s->last > l.span.last ? s->last : l.span.last;
            }
            if (l.span.last >= l.span.first)
                life[n++] = l;
        }
        color(m, x, life, n);
    }
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

typedef struct { int buf, first; } Born;

static int by_first(const void *a, const void *b)
{
    const Born *x = a, *y = b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->buf - y->buf;
}

/* The ticks at which buffer b is alive, for the micro-batches that own slot s of a pool (pool < 0: for all). */
static Part spans_of(const Mem *m, int b, int pool, int s)
{
    Part part = {0, mem_align(m->p->buf.at[b].bytes), NULL, 0, m->home[b]};
    int n = 0;
    for (int mb = 0; mb < m->micro; mb++)
        n += pool < 0 || m->slot[pool * m->micro + mb] == s;
    part.span = alloc(sizeof(Span) * (size_t)n);
    for (int mb = 0; mb < m->micro; mb++) {
        const Span *x = mem_live(m, b, mb);
        if (x->last >= x->first && (pool < 0 || m->slot[pool * m->micro + mb] == s))
            part.span[part.n++] = *x;
    }
    qsort(part.span, (size_t)part.n, sizeof(Span), span_order);
    return part;
}

/* Tensors of a slot by birth: backward frees them from the top down. */
static void lay_out_slot(Mem *m, int pool)
{
    Plan *p = m->p;
    VEC(Born) order = {0};
    for (int b = 0; b < p->buf.n; b++)
        if (p->buf.at[b].pool == pool)
            *PUSH(&order) = (Born){b, p->buf.at[b].first};
    qsort(order.at, (size_t)order.n, sizeof(Born), by_first);
    Bytes at = 0;
    for (int i = 0; i < order.n; i++) {
        p->buf.at[order.at[i].buf].offset = at;
        at += mem_align(p->buf.at[order.at[i].buf].bytes);
    }
    p->pool.at[pool].stride = at;
}

static void place_states(Mem *m)
{
    Plan *p = m->p;
    for (int x = 0; x < p->pool.n; x++) {
        Pool *pool = &p->pool.at[x];
        if (pool->device != m->device)
            continue;
        lay_out_slot(m, x);
        if (pool->birth == AT_ALWAYS) {
            pool->offset = m->top;
            m->top += pool->stride * pool->count;
            for (int b = 0; b < p->buf.n; b++)
                p->buf.at[b].offset += p->buf.at[b].pool == x ? pool->offset : 0;
        }
    }
    for (int b = 0; b < p->buf.n; b++) {
        Buf *x = &p->buf.at[b];
        if (x->device != m->device || !mem_always(x) || x->pool >= 0)
            continue;
        x->offset = m->top;
        m->top += mem_align(x->bytes);
    }
    p->dev.at[m->device].state = m->top;
}

/* The widest pool of several slots that belongs to the chunk of a local buffer: what the chunk saves for backward. */
static int host_of(const Mem *m, const Buf *b)
{
    int best = -1;
    for (int i = 0; i < m->pools; i++) {
        const Pool *x = &m->p->pool.at[m->item.at[i].pool];
        if (x->chunk != b->chunk || x->count < 2 || b->chunk < 0 || b->eval || b->state >= 0)
            continue;
        if (best < 0 || x->stride > m->p->pool.at[m->item.at[best].pool].stride)
            best = i;
    }
    return best;
}

enum { APART = 16 };            /* slots of one buffer that are told apart; more are one block, alive while one of them is */

static Part whole(const Mem *m, int b, Bytes size)
{
    Part all = spans_of(m, b, -1, 0);
    int n = 0;
    for (int i = 0; i < all.n; i++)
        if (n > 0 && all.span[i].first <= all.span[n - 1].last)
            all.span[n - 1].last = all.span[i].last > all.span[n - 1].last ? all.span[i].last : all.span[n - 1].last;
        else
            all.span[n++] = all.span[i];
    all.n = n;
    all.size = size;
    return all;
}

/* A buffer with slots of its own. */
static void add_own(const Mem *m, Item *item, int b)
{
    const Buf *x = &m->p->buf.at[b];
    const Pool *pool = &m->p->pool.at[x->pool];
    *item = (Item){.buf = b, .pool = x->pool, .size = pool->stride * pool->count, .first = x->first, .host = -1};
    if (pool->count > APART)
        *PUSH(&item->part) = whole(m, b, item->size);
    for (int s = 0; s < pool->count && pool->count <= APART; s++) {
        Part part = spans_of(m, b, x->pool, s);
        part.at = s * pool->stride;
        *PUSH(&item->part) = part;
    }
}

static void find_items(Mem *m)
{
    Plan *p = m->p;
    for (int x = 0; x < p->pool.n; x++) {
        const Pool *pool = &p->pool.at[x];
        if (pool->device != m->device || pool->birth == AT_ALWAYS || x >= m->own)
            continue;
        Item *item = PUSH(&m->item);
        *item = (Item){.buf = -1, .pool = x, .size = pool->stride * pool->count};
        for (int b = 0; b < p->buf.n; b++)
            for (int s = 0; p->buf.at[b].pool == x && s < pool->count; s++) {
                Part part = spans_of(m, b, x, s);
                part.at = p->buf.at[b].offset + s * pool->stride;
                *PUSH(&item->part) = part;
            }
    }
    m->pools = m->item.n;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device != m->device || mem_always(x) || (x->pool >= 0 && x->pool < m->own) || x->last < x->first)
            continue;
        Item *item = PUSH(&m->item);
        if (x->pool >= 0) {
            add_own(m, item, b);
            continue;
        }
        *item = (Item){.buf = b, .pool = -1, .size = mem_align(x->bytes), .first = x->first, .host = host_of(m, x)};
        *PUSH(&item->part) = spans_of(m, b, -1, 0);
        for (int s = 0; item->host >= 0 && s < p->pool.at[m->item.at[item->host].pool].count; s++)
            *PUSH(&item->in_slot) = spans_of(m, b, m->item.at[item->host].pool, s);
    }
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static bool meet(const Part *a, const Part *b)
{
    if (a->n == 0 || b->n == 0 || a->span[0].first > b->span[b->n - 1].last || b->span[0].first > a->span[a->n - 1].last)
        return false;
    if (a->home.routine >= 0 && b->home.routine >= 0 && (a->home.routine != b->home.routine
        || a->home.call.first > b->home.call.last || b->home.call.first > a->home.call.last))
        return false;           /* routines run one after the other */
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        if (a->span[i].last < b->span[j].first)
            i++;
        else if (b->span[j].last < a->span[i].first)
            j++;
        else
            return true;
    }
    return false;
}

typedef struct { Bytes from, to; } Taken;

static int by_from(const void *a, const void *b)
{
    const Taken *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to < y->to ? -1 : x->to > y->to);
}

/* The lowest place within a slot that is free in every slot while the slot's micro-batch needs it; -1: there is none. */
static Bytes lowest_in_slot(const Item *x, const Parts *placed, Bytes base, const Pool *pool, Taken *taken)
{
    int n = 0;
    for (int i = 0; i < placed->n; i++) {
        const Part *near = &placed->at[i];
        Bytes from = near->at - base, to = from + near->size;
        if (to <= 0 || from >= pool->count * pool->stride)
            continue;
        for (Bytes s = from > 0 ? from / pool->stride : 0; s < pool->count && s * pool->stride < to; s++) {
            Taken this = {from - s * pool->stride, to - s * pool->stride};
            bool known = n > 0 && taken[n - 1].from == this.from && taken[n - 1].to == this.to;     /* in another slot */
            if (!known && meet(&x->in_slot.at[s], near))
                taken[n++] = this;
        }
    }
    qsort(taken, (size_t)n, sizeof *taken, by_from);
    Bytes at = 0;
    for (int i = 0; i < n && taken[i].from < at + x->size; i++)
        at = taken[i].to > at ? taken[i].to : at;
    return at + x->size <= pool->stride ? at : -1;
}

/* The lowest address from `base` on where no part of the item shares a byte with a placed part alive at the same time. */
static Bytes lowest(const Item *x, const Parts *placed, Bytes base, Taken *taken)
{
    int n = 0;
    for (int i = 0; i < placed->n; i++)
        for (int j = 0; j < x->part.n; j++) {
            const Part *want = &x->part.at[j], *near = &placed->at[i];
            if (meet(want, near))       /* no base from here to there */
                taken[n++] = (Taken){near->at - want->at - want->size, near->at + near->size - want->at};
        }
    qsort(taken, (size_t)n, sizeof *taken, by_from);
    Bytes at = base;
    for (int i = 0; i < n; i++)
        if (taken[i].from < at && taken[i].to > at)
            at = taken[i].to;
    return at;
}

static int by_size(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x->buf - y->buf;
}

static int by_start(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

static Bytes area(const Item *x)
{
    Bytes ticks = 0;
    for (int i = 0; i < x->part.at[0].n; i++)
        ticks += x->part.at[0].span[i].last - x->part.at[0].span[i].first + 1;
    return ticks;
}

static int by_length(const void *a, const void *b)
{
    Bytes x = area(*(Item *const *)a), y = area(*(Item *const *)b);
    return x != y ? (x > y ? -1 : 1) : by_size(a, b);
}

static void place_pools(const Mem *m, Parts *placed, Place *place, Bytes *top)
{
    for (int i = 0; i < m->pools; i++) {
        const Item *x = &m->item.at[i];
        place[i].at = *top;
        for (int j = 0; j < x->part.n; j++) {
            Part part = x->part.at[j];
            part.at += *top;
            *PUSH(placed) = part;
        }
        *top += x->size;
    }
}

/* Try the slots of the local's host; what is placed there takes every slot. */
static bool place_hosted(const Mem *m, const Item *x, Parts *placed, Place *place, Taken *taken)
{
    if (x->host < 0)
        return false;
    const Pool *pool = &m->p->pool.at[m->item.at[x->host].pool];
    Bytes base = place[x->host].at, in = lowest_in_slot(x, placed, base, pool, taken);
    if (in < 0)
        return false;
    for (int s = 0; s < pool->count; s++) {
        Part part = x->in_slot.at[s];
        part.at = base + s * pool->stride + in;
        *PUSH(placed) = part;
    }
    place[x - m->item.at] = (Place){base + in, true};
    return true;
}

/* Place everything, locals in the given order; the top, and where each item went.  Gives up above `most`. */
static Bytes pack(const Mem *m, Item **order, bool host, Bytes most, Place *place)
{
    Parts placed = {0};
    Bytes top = m->top;
    size_t parts = 1, slots = 1;
    place_pools(m, &placed, place, &top);
    Bytes base = m->overlap ? top : m->top;     /* where slots turn with the steps, no place in one is free for good */
    for (int i = 0; i < m->item.n; i++) {
        size_t n = (size_t)m->item.at[i].in_slot.n, own = i < m->pools ? 0 : (size_t)m->item.at[i].part.n;
        parts += (size_t)m->item.at[i].part.n + n;
        slots = n > slots ? n : own > slots ? own : slots;
    }
    Taken *taken = alloc(sizeof *taken * parts * slots);
    for (int i = 0; i < m->item.n - m->pools && top < most; i++) {
        if (host && place_hosted(m, order[i], &placed, place, taken))
            continue;
        Bytes at = lowest(order[i], &placed, base, taken);
        place[order[i] - m->item.at] = (Place){at, false};
        for (int j = 0; j < order[i]->part.n; j++) {
            Part part = order[i]->part.at[j];
            part.at += at;
            *PUSH(&placed) = part;
        }
        top = at + order[i]->size > top ? at + order[i]->size : top;
    }
    return top;
}

/* A local in a slot is from now on a buffer of that pool. */
static void take_places(Mem *m, const Place *place)
{
    for (int i = 0; i < m->item.n; i++) {
        const Item *x = &m->item.at[i];
        if (x->pool < 0)
            continue;
        m->p->pool.at[x->pool].offset = place[i].at;
        for (int b = 0; b < m->p->buf.n; b++)
            if (m->p->buf.at[b].pool == x->pool)
                m->p->buf.at[b].offset += place[i].at;
    }
    for (int i = m->pools; i < m->item.n; i++) {
        Buf *x = &m->p->buf.at[m->item.at[i].buf];
        if (m->item.at[i].pool >= 0)
            continue;                           /* as above */
        x->offset = place[i].at;
        x->pool = place[i].hosted ? m->item.at[m->item.at[i].host].pool : -1;
    }
    lower_pools(m->p, m->device);
}

enum { NEAR = 200 };            /* half a per cent above the bound is good enough to stop */

static void best_packing(Mem *m)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_start};
    enum { ORDERS = sizeof orders / sizeof *orders };
    size_t locals = (size_t)(m->item.n - m->pools);
    Item **order = alloc(sizeof *order * (locals + 1));
    Place *best = NULL;
    Bytes top = INT64_MAX, bound = m->p->dev.at[m->device].bound;
    for (int k = 0; k < 2 * ORDERS && (!best || top - bound > bound / NEAR); k++) {
        for (size_t i = 0; i < locals; i++)
            order[i] = &m->item.at[(size_t)m->pools + i];
        qsort(order, locals, sizeof *order, orders[k % ORDERS]);
        Place *place = alloc(sizeof *place * (size_t)(m->item.n + 1));
        Bytes height = pack(m, order, k < ORDERS, top, place);
        if (height < top) {
            best = place;
            top = height;
        }
    }
    take_places(m, best);
    m->p->dev.at[m->device].arena = top;
}

/* ---- literals ------------------------------------------------------------------------------------------ */

static int slot_of(const Mem *m, int pool, const Action *k)
{
    if (pool < 0)
        return 0;
    if (m->overlap || m->p->pool.at[pool].birth == AT_ALWAYS)
        return version_slot(m->p, &m->p->pool.at[pool], k);
    return m->slot[pool * m->micro + (k->mb < 0 ? 0 : k->mb)];
}

static void set_slots(Mem *m, Actions *list)
{
    for (int i = 0; i < list->n; i++) {
        Action *k = &list->at[i];
        if (k->buf >= 0)
            k->slot = m->p->buf.at[k->buf].state >= 0 ? 0 : slot_of(m, m->p->buf.at[k->buf].pool, k);
        if (k->routine < 0)
            continue;
        k->slots.n = 0;
        const Routine *r = &m->p->routine.at[k->routine];
        for (int j = 0; j < r->pool.n; j++)
            *PUSH(&k->slots) = slot_of(m, r->pool.at[j], k);
    }
}

static void mem_device(Plan *p, int device)
{
    Mem m = mem_new(p, device);
    find_slots(&m);
    place_states(&m);
    find_items(&m);
    mem_bound(&m);
    best_packing(&m);
    set_slots(&m, &p->dev.at[device].list);
    set_slots(&m, &p->dev.at[device].eval);
    host_layout(p, device);
}

/* Devices are spread over the hosts in order, evenly; a file needs no memory of theirs. */
static bool host_over(Plan *p)
{
    const Model *m = p->m;
    for (int h = 0; h < m->hosts && m->host_memory > 0 && !m->plan.disk; h++) {
        Bytes sum = 0;
        for (int d = 0; d < p->devices; d++)
            sum += host_of_device(p, d) == h ? p->dev.at[d].host : 0;
        if (sum > m->host_memory) {
            p->nofit_host = h + 1;
            p->nofit_need = sum;
            return true;
        }
    }
    return false;
}

/* needs: what lower filled.  fills: offsets, owner intervals, slot counts, literal slots; arena, bound, state, peak.
 * fails: a device's arena is over its limit, nofit_device and nofit_need say which and how much; or a host, nofit_host. */
int mem(Plan *p)
{
    int over = 0;
    for (int d = 0; d < p->devices; d++) {
        mem_device(p, d);
        p->dev.at[d].limit = p->m->devices.at[d].memory;
        if (p->dev.at[d].arena > p->dev.at[d].limit && !over) {
            over = 1;
            p->nofit_device = d;
            p->nofit_need = p->dev.at[d].arena;
        }
    }
    return over || host_over(p);
}
