/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_cache.c: layouts and plans that a search has met already.
 *
 * Problem: a plan under a limit is found by trials.  They differ in the cuts or the fates of few devices, and often in nothing.
 *
 * Method: the passes after keep depend on order, cuts, fates and hurry alone.  A layout depends on the items of a device and on
 * the end of its states.  So both are kept, and found again by two sums of 64 bits over all of that.  Nobody will see two
 * trials share both sums.  Plans are told apart by cuts and fates alone: all trials of one Seen have one order and one hurry.
 * Pools and routines are numbered through all devices; here each device counts its own.
 *
 * Cost: one look at each life of each item; a look at all that was met.
 */
#include "mem.h"

typedef struct { uint64_t a, b; } CacheKey;
typedef struct { CacheKey key; Layout layout; } OldLayout;
typedef struct { CacheKey key; Plan *plan; Verdict why; } OldPlan;
struct Seen { Room *room; VEC(OldLayout) layout; VEC(OldPlan) plan; };

Seen *seen_new(void)
{
    Seen *seen = alloc(sizeof *seen);
    seen->room = mem_now();
    return seen;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void add(CacheKey *k, int64_t x)
{
    k->a = (k->a ^ (uint64_t)x) * 0x9e3779b97f4a7c15u;
    k->b = (k->b + (uint64_t)x) * 0xd1342543de82ef95u;
    k->a ^= k->a >> 29;
    k->b ^= k->b >> 31;
}

static bool same(const CacheKey *x, const CacheKey *y)
{
    return x->a == y->a && x->b == y->b;
}

static void add_list(CacheKey *k, const Ints *list)
{
    add(k, list->n);
    for (int i = 0; i < list->n; i++)
        add(k, list->at[i]);
}

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* The pools that a layout moves: those of items, then those of one buffer each. */
static int pools_of(const Mem *m)
{
    return m->pools + m->p->pool.n - m->single;
}

static int pool_at(const Mem *m, int i)
{
    return i < m->pools ? m->item.at[i].pool : m->single + i - m->pools;
}

static int index_of(const Mem *m, int pool)
{
    for (int i = 0; i < pools_of(m); i++)
        if (pool_at(m, i) == pool)
            return i;
    return -1;
}

static void add_tile(CacheKey *k, const Mem *m, const Tile *x, int routine)
{
    const MemLocal *h = &x->local;
    add(k, x->in);
    add(k, x->size);
    add(k, h->routine < 0 ? -1 : h->routine - routine);
    add(k, h->routine < 0 ? 0 : (int64_t)h->call.first << 32 | h->call.last);
    for (int mb = 0; mb < m->micro; mb++)
        add(k, (int64_t)x->life[mb].first << 32 ^ x->life[mb].last);
}

static void add_item(CacheKey *k, const Mem *m, const Item *x, int routine)
{
    add(k, x->buf < 0);
    add(k, index_of(m, x->pool));
    add(k, x->first);
    add(k, x->size);
    add(k, x->piece.n);
    for (int i = 0; i < x->piece.n; i++)
        add_tile(k, m, &x->piece.at[i], routine);
    add(k, x->moves);
    add(k, x->pipeline);
    add(k, x->other.n);
    for (int i = 0; i < x->other.n; i++)
        add(k, index_of(m, x->other.at[i]));
}

static int first_routine(const Mem *m)
{
    int first = INT32_MAX;
    for (int i = 0; i < m->item.n; i++)
        for (int j = 0; j < m->item.at[i].piece.n; j++) {
            int r = m->item.at[i].piece.at[j].local.routine;
            first = r >= 0 && r < first ? r : first;
        }
    return first;
}

static CacheKey layout_key(const Mem *m)
{
    CacheKey k = {1, 1};
    int routine = first_routine(m);
    const int64_t all[] = {m->top, m->p->dev.at[m->device].bound, m->micro, m->overlap, m->apart, m->extras, m->pools,
                           m->members, m->item.n, pools_of(m)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        add(&k, all[i]);
    for (int i = 0; i < pools_of(m); i++) {
        add(&k, m->p->pool.at[pool_at(m, i)].stride);
        add(&k, m->p->pool.at[pool_at(m, i)].count);
        for (int mb = 0; mb < m->micro; mb++)
            add(&k, m->slot[pool_at(m, i) * m->micro + mb]);
    }
    for (int i = 0; i < m->item.n; i++)
        add_item(&k, m, &m->item.at[i], routine);
    return k;
}

/* From one numbering of pools to the other: their strides and slots. */
static void copy_pool(const Mem *m, Layout *to, int i, const Layout *from, int k)
{
    to->stride[i] = from->stride[k];
    memcpy(&to->slot[i * m->micro], &from->slot[k * m->micro], sizeof *to->slot * (size_t)m->micro);
}

bool seen_layout(Mem *m, Layout *layout)
{
    const Seen *seen = m->p->seen;
    CacheKey k = seen ? layout_key(m) : (CacheKey){0, 0};
    for (int i = 0; seen && i < seen->layout.n; i++) {
        const Layout *old = &seen->layout.at[i].layout;
        if (!same(&seen->layout.at[i].key, &k))
            continue;
        for (int x = 0; x < pools_of(m); x++)
            copy_pool(m, layout, pool_at(m, x), old, x);
        for (int x = 0; x < m->item.n; x++) {
            layout->spot[x] = old->spot[x];
            layout->spot[x].pool = old->spot[x].pool >= 0 ? pool_at(m, old->spot[x].pool) : -1;
        }
        layout->top = old->top;
        layout->opened = old->opened;
        return true;
    }
    return false;
}

void seen_keep_layout(const Mem *m, const Layout *layout)
{
    size_t pools = (size_t)pools_of(m) + 1;
    if (!m->p->seen)
        return;
    Room *scratch = mem_in(m->p->seen->room);
    Layout l = {.top = layout->top, .opened = layout->opened};
    l.stride = alloc(sizeof *l.stride * pools);
    l.slot = alloc(sizeof *l.slot * pools * (size_t)m->micro);
    l.spot = alloc(sizeof *l.spot * (size_t)(m->item.n + 1));
    for (int x = 0; x < pools_of(m); x++)
        copy_pool(m, &l, x, layout, pool_at(m, x));
    for (int x = 0; x < m->item.n; x++) {
        l.spot[x] = layout->spot[x];
        l.spot[x].pool = index_of(m, layout->spot[x].pool);
    }
    *PUSH(&m->p->seen->layout) = (OldLayout){layout_key(m), l};
    mem_in(scratch);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static CacheKey plan_key(const Plan *p)
{
    CacheKey k = {1, 1};
    add_list(&k, &p->chunk);
    add_list(&k, &p->fate);
    return k;
}

Plan *seen_plan(const Plan *p, Verdict *why)
{
    CacheKey k = p->seen ? plan_key(p) : (CacheKey){0, 0};
    for (int i = 0; p->seen && i < p->seen->plan.n; i++)
        if (same(&p->seen->plan.at[i].key, &k) && p->seen->plan.at[i].plan->room) {
            *why = p->seen->plan.at[i].why;
            return p->seen->plan.at[i].plan;
        }
    return NULL;
}

void seen_keep_plan(Plan *p, Verdict why)
{
    if (p->seen)
        *PUSH(&p->seen->plan) = (OldPlan){plan_key(p), p, why};
}

const Plan *seen_ordered(const Plan *p)
{
    return p->seen && p->seen->plan.n ? p->seen->plan.at[0].plan : NULL;
}
