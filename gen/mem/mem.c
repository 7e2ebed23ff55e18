/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.c: an address for every byte of every device.
 *
 * Method: each device's straight line is replayed in program order.  Noted for each buffer and micro-batch are the ticks
 * (calls) from its first touch to its last; a transfer touches from begin to wait.  Predicted times never enter, so the arena
 * is the same for any profile.
 *
 *   slots    the micro-batches of a pool take the lowest slot that is free; the highest number used is the count.  A buffer
 *            without a pool gets one of its own if its micro-batches overlap, such as one on its way to the host.  Placing may
 *            choose other slots
 *   items    pools as blocks, their buffers one by one, and all other buffers: layout.c gives them addresses
 *
 * Cost: that of layout.c.  Not handled: sharing one buffer between an operator's operand and result.
 */
#include "mem.h"
#include "list/transport.h"
#include "list/list.h"

/* ---- slots ------------------------------------------------------------------------------------------------------- */

typedef struct { Span span; int mb; } MemLife;

ORDER(by_birth, MemLife, order_of(x->span.first, y->span.first), order_of(x->mb, y->mb))

/* Where steps overlap, micro-batch q takes slot q mod count.  They are born and die in order, so the least count does. */
static int rotate(Mem *m, int pool, const MemLife *life, int n, int count)
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

/* Micro-batches by birth; each takes the lowest slot with a dead last owner. */
static void color(Mem *m, int pool, MemLife *life, int n)
{
    int *until = alloc(sizeof(int) * (size_t)(n + 1)), count = 0;
    SORT(life, n, by_birth);
    for (int i = 0; i < n; i++) {
        int s = 0;
        while (s < count && until[s] >= life[i].span.first)
            s++;
        if (s == count)
            count++;
        until[s] = life[i].span.last;
        m->slot[pool * m->micro + life[i].mb] = s;
    }
    /* Micro-batches by birth take slots in turn, where that wants no more slots: they end in that order too. */
    int *ring = &m->ring[pool * m->micro];
    bool good = true;
    for (int i = 0; i < n; i++) {
        ring[life[i].mb] = i % count;
        good &= i < count || life[i - count].span.last < life[i].span.first;
    }
    if (!good)
        memcpy(ring, &m->slot[pool * m->micro], sizeof *ring * (size_t)m->micro);
    m->p->pool.at[pool].count = m->overlap ? rotate(m, pool, life, n, count) : count;
}

ORDER(span_order, Span, order_of(x->first, y->first))

static bool overlaps_itself(const Mem *m, int b)
{
    Span *span = alloc(sizeof *span * (size_t)m->micro);
    int n = 0;
    for (int mb = 0; mb < m->micro; mb++)
        if (mem_live(m, b, mb)->last >= mem_live(m, b, mb)->first)
            span[n++] = *mem_live(m, b, mb);
    SORT(span, n, span_order);
    for (int i = 1; i < n; i++)
        if (span[i].first <= span[i - 1].last)
            return true;
    return false;
}

static void find_own_pools(Mem *m)
{
    Plan *p = m->p;
    Room *scratch = mem_in(m->room);
    m->single = p->pool.n;
    for (int b = m->from; b < m->until; b++) {
        Buf *x = &p->buf.at[b];
        if (x->device != m->device || x->pool >= 0 || x->tensor < 0 || mem_always(x) || !overlaps_itself(m, b))
            continue;
        x->pool = p->pool.n;
        *PUSH(&p->pool) = (Pool){.device = x->device, .chunk = x->chunk, .eval = x->eval, .birth = x->birth, .death = x->death,
                                 .name = strf("o%d", x->pool - m->single)};
    }
    /* Pools that placing may open, for one buffer each or for those that move alike; those left over are taken away again. */
    m->extra = m->p->pool.n;
    m->extras = m->overlap ? 0 : EXTRA_POOLS;
    for (int i = 0; i < m->extras; i++)
        *PUSH(&m->p->pool) = (Pool){.device = m->device, .chunk = -1, .name = strf("o%d", m->extra + i - m->single)};
    mem_in(scratch);
    m->slot = alloc(sizeof(int) * (size_t)(p->pool.n + 1) * (size_t)m->micro);
    m->ring = alloc(sizeof(int) * (size_t)(p->pool.n + 1) * (size_t)m->micro);
}

/* The life of a pool by micro-batch: from the first touch of its buffers to the last.  Returns the number of micro-batches. */
static int find_life(const Mem *m, int pool, MemLife *life)
{
    int n = 0;
    for (int mb = 0; mb < m->micro; mb++)
        life[mb] = (MemLife){{INT32_MAX, -1}, mb};
    for (int b = m->from; b < m->until; b++)
        for (int mb = 0; m->p->buf.at[b].pool == pool && mb < m->micro; mb++) {
            const Span *s = mem_live(m, b, mb);
            Span *l = &life[mb].span;
            if (s->last < s->first)
                continue;
            l->first = s->first < l->first ? s->first : l->first;
            l->last = s->last > l->last ? s->last : l->last;
        }
    for (int mb = 0; mb < m->micro; mb++)
        if (life[mb].span.last >= life[mb].span.first)
            life[n++] = life[mb];
    return n;
}

static void find_slots(Mem *m)
{
    Plan *p = m->p;
    find_own_pools(m);
    for (int x = 0; x < m->extra; x++) {
        if (p->pool.at[x].device != m->device)
            continue;
        if (p->pool.at[x].birth == AT_ALWAYS) {
            p->pool.at[x].count = version_slots(p, &p->pool.at[x]);
            continue;
        }
        MemLife *life = alloc(sizeof *life * (size_t)m->micro);
        int n = find_life(m, x, life);
        color(m, x, life, n);
    }
}

/* Steps until all slots of tensors repeat; 0: too many to look at. */
static int phases_of(const Mem *m)
{
    const Plan *p = m->p;
    int64_t most = 4000000 / ((int64_t)m->micro * (p->buf.n + 1)), phases = 1;
    for (int x = 0; x < p->pool.n; x++) {
        int n = p->pool.at[x].count;
        if (p->pool.at[x].device != m->device || p->pool.at[x].birth == AT_ALWAYS || n < 2)
            continue;
        n /= (int)number_common(n, m->each % n);
        phases = phases / (int)number_common(phases, n) * n;
        if (phases > most)
            return 0;
    }
    return (int)phases;
}

/* Where steps overlap, the slots of a step depend on its number.  After some phases all slots repeat.  Each phase is laid out
 * behind the one before, as if it were another run.  With too many phases, slots and buffers without slots are kept apart. */
static void unroll(Mem *m)
{
    const Plan *p = m->p;
    int64_t step = m->each;
    int phases = phases_of(m), ticks = p->dev.at[m->device].ticks, micro = m->micro;
    m->apart = phases == 0;
    if (m->apart)
        return;
    size_t wide = (size_t)micro * (size_t)phases;
    Span *live = alloc(sizeof *live * (size_t)m->rows * wide);
    int *slot = alloc(sizeof *slot * (size_t)(p->pool.n + 1) * wide);
    for (int r = 0; r < m->rows; r++)
        for (int k = 0; k < phases; k++)
            for (int mb = 0; mb < micro; mb++) {
                Span s = m->live[(size_t)r * (size_t)micro + (size_t)mb];
                if (s.last >= s.first)
                    s = (Span){s.first + k * ticks, s.last + k * ticks};
                live[(size_t)r * wide + (size_t)(k * micro + mb)] = s;
            }
    for (int x = 0; x < p->pool.n; x++)
        for (int k = 0; k < phases && p->pool.at[x].count > 0; k++)
            for (int mb = 0; mb < micro; mb++)
                slot[(size_t)x * wide + (size_t)(k * micro + mb)] = (int)((mb + k * step) % p->pool.at[x].count);
    m->live = live;
    m->slot = slot;
    m->micro = (int)wide;
    m->ticks = phases * ticks;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

typedef struct { int buf, first; } Born;

ORDER(by_first, Born, order_of(x->first, y->first), order_of(x->buf, y->buf))

/* Tensors of a slot by birth: backward frees them from the top down. */
static void lay_out_slot(Mem *m, int pool)
{
    Plan *p = m->p;
    VEC(Born) order = {0};
    for (int b = m->from; b < m->until; b++)
        if (p->buf.at[b].pool == pool)
            *PUSH(&order) = (Born){b, p->buf.at[b].first};
    SORT(order.at, order.n, by_first);
    Bytes at = 0;
    for (int i = 0; i < order.n; i++) {
        p->buf.at[order.at[i].buf].offset = at;
        at += aligned(p->buf.at[order.at[i].buf].bytes);
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
            for (int b = m->from; b < m->until; b++)
                p->buf.at[b].offset += p->buf.at[b].pool == x ? pool->offset : 0;
        }
    }
    for (int b = m->from; b < m->until; b++) {
        Buf *x = &p->buf.at[b];
        if (x->device != m->device || !mem_always(x) || x->pool >= 0)
            continue;
        x->offset = m->top;
        m->top += aligned(x->bytes);
    }
    p->dev.at[m->device].state = m->top;
}

static bool is_member(const Mem *m, const Buf *b)
{
    return b->device == m->device && !mem_always(b) && b->pool >= 0 && b->pool < m->single;
}

static void add_piece(const Mem *m, Item *item, int b, Bytes in)
{
    *PUSH(&item->piece) = (Tile){in, aligned(m->p->buf.at[b].bytes), mem_live(m, b, 0), m->local[b]};
    for (int mb = 0; mb < m->micro; mb++)
        item->ticks += mem_live(m, b, mb)->last - mem_live(m, b, mb)->first + 1;
}

static int way_of(const Mem *m, const Item *x)
{
    int ways = plan_ways(m->p), found = -1;
    for (int mb = 0; mb < m->micro && ways > 1; mb++)
        for (int i = 0; i < x->piece.n; i++) {
            int way = mb / plan_micro(m->p) % ways;
            if (x->piece.at[i].life[mb].first <= x->piece.at[i].life[mb].last)
                found = found < 0 || found == way ? way : ways;
        }
    return found < 0 ? 0 : found;
}

static void add_pool(Mem *m, int pool)
{
    const Plan *p = m->p;
    Item item = {.buf = -1, .pool = pool, .first = INT32_MAX, .size = p->pool.at[pool].stride};
    for (int b = m->from; b < m->until; b++)
        if (p->buf.at[b].pool == pool) {
            add_piece(m, &item, b, p->buf.at[b].offset);
            item.first = p->buf.at[b].first < item.first ? p->buf.at[b].first : item.first;
        }
    item.pipeline = way_of(m, &item);
    *PUSH(&m->item) = item;
}

static void add_buffer(Mem *m, int b)
{
    const Buf *x = &m->p->buf.at[b];
    Item item = {.buf = b, .pool = x->pool, .first = x->first, .size = aligned(x->bytes)};
    add_piece(m, &item, b, 0);
    item.moves = x->chunk >= 0 && !x->eval && x->state < 0;
    item.pipeline = way_of(m, &item);
    for (int i = 0; i < m->pools && item.moves; i++)
        if (m->item.at[i].pool != x->pool && !m->p->pool.at[m->item.at[i].pool].eval && m->item.at[i].pipeline == item.pipeline)
            *PUSH(&item.other) = m->item.at[i].pool;
    *PUSH(&m->item) = item;
}

static void find_items(Mem *m)
{
    const Plan *p = m->p;
    for (int x = 0; x < m->single; x++)
        if (p->pool.at[x].device == m->device && p->pool.at[x].birth != AT_ALWAYS)
            add_pool(m, x);
    m->pools = m->item.n;
    for (int b = m->from; b < m->until; b++)
        if (is_member(m, &p->buf.at[b]))
            add_buffer(m, b);
    m->members = m->item.n;
    for (int b = m->from; b < m->until; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device == m->device && !mem_always(x) && !is_member(m, x) && x->last >= x->first)
            add_buffer(m, b);
    }
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Describes an extra pool by its first buffer, for the reader. */
static void begin_extra(Pool *pool, const Buf *b)
{
    if (pool->chunk < 0)
        *pool = (Pool){pool->device, b->chunk, b->eval, pool->name, b->birth, b->death, pool->count, pool->stride, 0};
}

/* Do the slots of two pools lie a fixed distance apart, the same for all micro-batches? */
static bool parallel(const Mem *m, int a, int b)
{
    const Pool *x = &m->p->pool.at[a], *y = &m->p->pool.at[b];
    const int *s = &m->slot[a * m->micro], *t = &m->slot[b * m->micro];
    for (int mb = 1; mb < m->micro; mb++)
        if ((s[mb] - s[0]) * x->stride != (t[mb] - t[0]) * y->stride)
            return false;
    return true;
}

/* A pool of one buffer that moves as another pool does is that pool: one argument less for routines that use both. */
static void merge_pools(Mem *m)
{
    Plan *p = m->p;
    for (int a = m->single; a < p->pool.n && !m->overlap; a++)
        for (int b = 0; b < a; b++) {
            const Pool *x = &p->pool.at[a], *y = &p->pool.at[b];
            if (y->device != m->device || y->birth == AT_ALWAYS || y->eval != x->eval || y->count < 2 || !parallel(m, a, b))
                continue;
            Bytes apart = m->slot[a * m->micro] * x->stride - m->slot[b * m->micro] * y->stride;
            for (int i = m->from; i < m->until; i++)
                if (p->buf.at[i].pool == a) {
                    p->buf.at[i].pool = b;
                    p->buf.at[i].offset += apart;
                }
            break;
        }
}

/* A buffer that moves with the slots of a pool joins that pool.  Pools come first, so that their own buffers are told from
 * those that join. */
static void take_places(Mem *m, const Place *place)
{
    Plan *p = m->p;
    for (int i = 0; i < m->pools; i++)
        for (int b = m->from; place[i].is && b < m->until; b++)
            p->buf.at[b].offset += p->buf.at[b].pool == m->item.at[i].pool ? place[i].at : 0;
    for (int i = m->pools; i < m->item.n; i++) {
        const Item *x = &m->item.at[i];
        if (!place[i].is)
            continue;
        p->buf.at[x->buf].offset = place[i].at;
        p->buf.at[x->buf].pool = place[i].pool;
        if (place[i].pool >= m->extra)
            begin_extra(&p->pool.at[place[i].pool], &p->buf.at[x->buf]);
    }
    merge_pools(m);
    for (int b = m->until - 1; b >= m->from; b--) {         /* where the first of its buffers is, for the reader */
        const Buf *x = &p->buf.at[b];
        Pool *pool = x->device == m->device && !mem_always(x) && x->pool >= 0 ? &p->pool.at[x->pool] : NULL;
        if (pool && (pool->offset == 0 || x->offset < pool->offset))
            pool->offset = x->offset;
    }
    lower_pools(p, m->device);
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

static void set_slots(Mem *m, const Actions *list)
{
    for (EACH(Action, k, *list)) {
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

static Mem measure(Plan *p, int device, Room *room)
{
    Mem m = mem_new(p, device);
    m.room = room;
    find_slots(&m);
    place_states(&m);
    mem_bound(&m);
    return m;
}

void mem_unplaced(Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        measure(p, d, mem_now());
}

/* most: no arena need be lower. */
static void mem_device(Plan *p, int device, Bytes most)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    Mem m = measure(p, device, room);
    if (m.overlap)
        unroll(&m);
    find_items(&m);
    Place *place = alloc(sizeof *place * (size_t)(m.item.n + 1));
    p->dev.at[device].arena = mem_place(&m, most, place);
    mem_in(room);
    take_places(&m, place);
    set_slots(&m, &p->dev.at[device].list);
    set_slots(&m, &p->dev.at[device].eval);
    host_layout(p, device);
    mem_drop(scratch);
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
            p->shortfall.host = h + 1;
            p->shortfall.need = sum;
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
    double part = 1;            /* of its memory that the fullest arena takes so far, where it may be larger */
    for (int d = 0; d < p->devices; d++) {
        const Bytes memory = p->m->devices.at[d].memory;
        mem_device(p, d, (Bytes)((double)memory * part));
        if (p->ask.effort.any_arena && (double)p->dev.at[d].arena > (double)memory * part)
            part = (double)p->dev.at[d].arena / (double)memory;
        p->dev.at[d].limit = transport_limit(p, d);
        if (p->dev.at[d].arena > p->dev.at[d].limit && !over && !p->ask.effort.any_arena) {
            over = 1;
            p->shortfall.device = d;
            p->shortfall.need = p->dev.at[d].arena;
        }
    }
    return over || host_over(p);
}
