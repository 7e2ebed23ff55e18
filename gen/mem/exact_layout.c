/* SPDX-License-Identifier: Apache-2.0
 *
 * exact_layout.c: a layout by gen/pack, where first fit stays high.
 *
 * Problem: slots are literals, so a pool may move its buffers to any address from one micro-batch to the next.  If every buffer
 * had a pool of its own, nothing would tie its micro-batches together.  They would be the plain rectangles that gen/pack/
 * searches exactly.
 *
 * Method: those rectangles are packed.  Then buffers that move alike share a pool: their own, another one, or one of a few new
 * ones.  It fails only if the new pools run out, or if the search finds nothing lower and cannot prove that nothing is.
 *
 * Cost: that of the search; buffers times pools times micro-batches.  Not handled: steps that overlap, because their slots
 * turn.
 */
#include "mem.h"
#include "budgets.h"

enum { FREE = INT32_MIN };      /* a micro-batch that no buffer of a pool has yet */

typedef struct {
    Mem *m;
    Layout *l;
    int *at;                    /* [buf * micro + mb]: in alignments above the states; FREE: never alive */
    int opened;
} Alone;

static const int *row_of(const Alone *a, const Item *x)
{
    return &a->at[(size_t)x->buf * (size_t)a->m->micro];
}

/* Does a buffer move as a pool does, as far as that is known?  by: the distance between them. */
static bool moves_alike(const Alone *a, const int *slot, const int *row, int *by)
{
    bool known = false;
    for (int mb = 0; mb < a->m->micro; mb++) {
        if (slot[mb] == FREE || row[mb] == FREE)
            continue;
        if (known && row[mb] - slot[mb] != *by)
            return false;
        *by = row[mb] - slot[mb];
        known = true;
    }
    for (int mb = 0; mb < a->m->micro && !known; mb++)
        if (row[mb] != FREE) {
            *by = row[mb];
            return true;
        }
    return known;
}

static bool join(Alone *a, int item, int pool)
{
    const Mem *m = a->m;
    const int *row = row_of(a, &m->item.at[item]);
    int *slot = &a->l->slot[pool * m->micro], by = 0;
    if (!moves_alike(a, slot, row, &by))
        return false;
    for (int mb = 0; mb < m->micro; mb++)
        if (row[mb] != FREE)
            slot[mb] = row[mb] - by;
    a->l->stride[pool] = ALIGN;
    a->l->spot[item] = (Place){(Bytes)by * ALIGN, pool, true};
    return true;
}

static bool stands_still(const Alone *a, int item)
{
    const int *row = row_of(a, &a->m->item.at[item]);
    int at = FREE;
    for (int mb = 0; mb < a->m->micro; mb++) {
        if (row[mb] != FREE && at != FREE && row[mb] != at)
            return false;
        at = row[mb] != FREE ? row[mb] : at;
    }
    a->l->spot[item] = (Place){(Bytes)at * ALIGN, -1, true};
    return true;
}

/* Places a buffer: by its own pool, standing still, by another pool already in use, or by a new one. */
static bool settle(Alone *a, int item)
{
    const Mem *m = a->m;
    const Item *x = &m->item.at[item];
    if ((x->pool >= 0 && join(a, item, x->pool)) || stands_still(a, item))
        return true;
    for (int k = 0; k < x->other.n; k++)
        if (a->l->stride[x->other.at[k]] > 0 && join(a, item, x->other.at[k]))
            return true;
    int k = place_extra(m, x, 0);
    for (; k < a->opened && x->moves; k = place_extra(m, x, k + 1))
        if (join(a, item, m->extra + k))
            return true;
    if (!x->moves || k >= m->extras)
        return false;
    a->opened = k + 1;
    return join(a, item, m->extra + k);
}

/* Shifts the slots of a pool, so that the lowest is 0. */
static void level(Alone *a, int pool)
{
    const Mem *m = a->m;
    int *slot = &a->l->slot[pool * m->micro], least = INT32_MAX;
    for (int mb = 0; mb < m->micro; mb++)
        least = slot[mb] != FREE && slot[mb] < least ? slot[mb] : least;
    for (int mb = 0; mb < m->micro; mb++)
        slot[mb] = slot[mb] != FREE ? slot[mb] - least : 0;
    for (int i = m->pools; i < m->item.n; i++)
        if (a->l->spot[i].is && a->l->spot[i].pool == pool)
            a->l->spot[i].at += (Bytes)least * ALIGN;
}

/* UNKNOWN, with a height above all: there are too many rectangles, or their addresses are too high for a number. */
static Packing pack(Alone *a)
{
    const Packing none = {.answer = PACK_UNKNOWN, .height = INT64_MAX};
    const Mem *m = a->m;
    int n, k = 0;
    Block *block = mem_blocks(m, &n);
    if (4 * (int64_t)n * n > ALONE_STEPS)
        return none;
    Packing r = pack_fit(block, n, 0, ALONE_STEPS);
    if (r.height / ALIGN >= INT32_MAX)
        return none;
    for (int b = m->from; b < m->until; b++)
        for (int mb = 0; mb < m->micro; mb++)
            a->at[b * m->micro + mb] = mem_alive(m, b, mb) ? (int)(block[k++].offset / ALIGN) : FREE;
    return r;
}

bool place_alone(Mem *m, Layout *best)
{
    Layout l = place_layout(m);
    Alone a = {m, &l, alloc(sizeof *a.at * (size_t)m->p->buf.n * (size_t)m->micro), 0};
    Packing r = pack(&a);
    if (r.height >= best->top - m->top)
        return r.bound >= best->top - m->top;
    for (int i = 0; i < m->p->pool.n * m->micro; i++)
        l.slot[i] = FREE;
    for (int i = m->pools; i < m->item.n; i++)
        if (!settle(&a, i))
            return false;
    for (int x = 0; x < m->p->pool.n; x++)
        if (l.stride[x] > 0)
            level(&a, x);
    for (int i = 0; i < m->item.n; i++)
        l.spot[i].at += m->top;
    l.opened = a.opened;
    l.top = m->top + r.height;
    place_copy(m, best, &l);
    return true;
}
