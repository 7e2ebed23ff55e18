/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c: slots of pools, as they are printed.
 *
 * The plan places a slot at a literal times a stride.  Where the placer moved each micro-batch by itself, the stride is an
 * alignment and the literals are large and sparse.  Here a slot is an index into the places that actions use.  Slots that
 * are 0, 1, 2 ... in the plan keep their numbers; others are numbered in the order of their first use.
 *
 * Cost: actions times places.
 */
#include "stage.h"

static void note(Stager *w, int pool, int slot)
{
    Ints *place = &w->slots[pool];
    for (int i = 0; i < place->n; i++)
        if (place->at[i] == slot)
            return;
    *PUSH(place) = slot;
}

static void note_list(Stager *w, const Actions *list)
{
    const Plan *p = w->p;
    for (EACH(const Action, k, *list)) {
        if (k->buf >= 0 && p->buf.at[k->buf].pool >= 0)
            note(w, p->buf.at[k->buf].pool, k->slot);
        for (int j = 0; k->routine >= 0 && j < k->slots.n; j++)
            note(w, p->routine.at[k->routine].pool.at[j], k->slots.at[j]);
    }
}

static bool is_dense(const Ints *place)
{
    int most = -1;
    for (int i = 0; i < place->n; i++)
        most = place->at[i] > most ? place->at[i] : most;
    return most + 1 == place->n;
}

void slots_find(Stager *w)
{
    const Plan *p = w->p;
    w->slots = alloc(sizeof *w->slots * (size_t)(p->pool.n + 1));
    note_list(w, &p->dev.at[w->device].list);
    note_list(w, &p->dev.at[w->device].eval);
    for (int x = 0; x < p->pool.n; x++)
        if (p->pool.at[x].device == w->device &&
            (order_overlap(p) > 0 || p->pool.at[x].birth == AT_ALWAYS || is_dense(&w->slots[x])))
            for (int i = w->slots[x].n = 0; i < p->pool.at[x].count; i++)
                *PUSH(&w->slots[x]) = i;
}

int slots_count(const Stager *w, int pool)
{
    return pool < 0 ? 1 : w->slots[pool].n;
}

bool slots_pooled(const Stager *w, int b)
{
    return slots_count(w, w->p->buf.at[b].pool) > 1;
}

int slots_number(const Stager *w, int pool, int slot)
{
    for (int i = 0; i < w->slots[pool].n; i++)
        if (w->slots[pool].at[i] == slot)
            return i;
    die("pool %s has no slot %d", w->p->pool.at[pool].name, slot);
}

Bytes slots_at(const Stager *w, int pool, int number)
{
    return w->slots[pool].at[number] * w->p->pool.at[pool].stride;
}

/* A pool of one place is none: its buffers are where that is. */
Bytes slots_offset(const Stager *w, int b)
{
    const Buf *x = &w->p->buf.at[b];
    return x->offset + (slots_count(w, x->pool) == 1 && x->pool >= 0 ? slots_at(w, x->pool, 0) : 0);
}
