/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c: an address in the host's memory for every tensor that waits there.
 *
 * Problem: each device has a second arena, in its host or in a file.  An offloaded tensor of one micro-batch owns bytes of it
 * from the begin of its way out to the end of its way in.  Both are ticks of the device's own line, so this arena follows from
 * the list like the other.
 *
 * Method: micro-batches take the lowest slot that is free.  The slots of a tensor are one block.  Blocks are placed largest
 * first, at the lowest address where no two owners meet in a byte at a tick.
 *
 *   needs   the list after lower     fills   host buffers, host and host_slot of copies, dev[].host, host_bound
 *   fails   never; mem asks whether the host has so much
 *
 * In a file every slot begins at a page, because direct transfers want that.
 *
 * Cost: pairs of blocks times pairs of their slots times the spans of both.  A block of more than HOST_SLOTS is taken
 * whole, alive
 * from its first life to its last.  With so many micro-batches away at once, nothing could share their bytes.
 */
#include "plan.h"
#include "budgets.h"

typedef struct { int first, last, mb; } HostLife;
typedef struct { Bytes from, to; } HostRange;
typedef struct { HostLife *at; int n; } Lives; /* by birth; of one slot, none meet */
typedef struct {
    Plan *p;
    int device, micro;
    Bytes unit;
    HostLife *life;             /* [host buffer * micro + mb]; last < first: never */
    int *slot;                  /* the same */
    Lives **lives;              /* [host buffer][slot] */
    Ints mine;                  /* host buffers of the device, placed so far */
    VEC(HostRange) taken;       /* by them, for the one at hand */
} Host;

static void find_lives(Host *h)
{
    const Actions *list = &h->p->dev.at[h->device].list;
    for (int i = 0; i < h->p->host.n * h->micro; i++)
        h->life[i] = (HostLife){0, -1, i % h->micro};
    for (EACH(const Action, k, *list)) {
        HostLife *l = k->host >= 0 ? &h->life[k->host * h->micro + k->mb] : NULL;
        if (!l)
            continue;
        l->first = l->last < l->first ? k->tick : l->first;
        l->last = k->tick;
    }
}

ORDER(by_birth, HostLife, order_of(x->first, y->first), order_of(x->mb, y->mb))

static void find_slots(Host *h, int b)
{
    HostBuf *x = &h->p->host.at[b];
    HostLife *life = alloc(sizeof *life * (size_t)h->micro);
    int *until = alloc(sizeof(int) * (size_t)h->micro), n = 0;
    for (int mb = 0; mb < h->micro; mb++)
        if (h->life[b * h->micro + mb].last >= h->life[b * h->micro + mb].first)
            life[n++] = h->life[b * h->micro + mb];
    SORT(life, n, by_birth);
    x->count = 0;
    x->stride = (x->bytes + h->unit - 1) / h->unit * h->unit;
    for (int i = 0; i < n; i++) {
        int s = 0;
        while (s < x->count && until[s] >= life[i].first)
            s++;
        x->count += s == x->count;
        until[s] = life[i].last;
        h->slot[b * h->micro + life[i].mb] = s;
        x->first = i == 0 ? life[0].first : x->first;
        x->last = i == 0 || life[i].last > x->last ? life[i].last : x->last;
    }
}

/* Each slot's lives; a block of many slots has one list, and one life in it. */
static void find_parts(Host *h, int b)
{
    HostBuf *x = &h->p->host.at[b];
    HostLife *sorted = alloc(sizeof *sorted * (size_t)h->micro);
    bool whole = x->count > HOST_SLOTS;
    h->lives[b] = alloc(sizeof(Lives) * (size_t)(x->count + 1));
    memcpy(sorted, &h->life[b * h->micro], sizeof *sorted * (size_t)h->micro);
    SORT(sorted, h->micro, by_birth);
    for (int s = 0; s < (whole ? 1 : x->count); s++)
        h->lives[b][s].at = alloc(sizeof(HostLife) * (size_t)(whole ? 1 : h->micro));
    if (whole)
        h->lives[b][0] = (Lives){h->lives[b][0].at, 1};
    if (whole)
        h->lives[b][0].at[0] = (HostLife){x->first, x->last, 0};
    for (int i = 0; i < h->micro && !whole; i++)
        if (sorted[i].last >= sorted[i].first) {
            Lives *l = &h->lives[b][h->slot[b * h->micro + sorted[i].mb]];
            l->at[l->n++] = sorted[i];
        }
}

static bool meet(const Lives *a, const Lives *b)
{
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        if (a->at[i].last < b->at[j].first)
            i++;
        else if (b->at[j].last < a->at[i].first)
            j++;
        else
            return true;
    }
    return false;
}

/* The number of parts of a block; size: the distance from one part to the next. */
static int parts(const HostBuf *x, Bytes *size)
{
    *size = x->count > HOST_SLOTS ? x->stride * x->count : x->stride;
    return x->count > HOST_SLOTS ? 1 : x->count;
}

ORDER(by_from, HostRange, order_of(x->from, y->from), order_of(x->to, y->to))

/* Addresses between these two, without them, are taken.  Parts of one block come in order, and most overlap the one before. */
static void take(Host *h, Bytes from, Bytes to)
{
    HostRange *last = h->taken.n ? &h->taken.at[h->taken.n - 1] : NULL;
    if (last && last->from <= from && from < last->to)
        last->to = to > last->to ? to : last->to;
    else
        *PUSH(&h->taken) = (HostRange){from, to};
}

/* The lowest address for block b.  Addresses where it would meet a block alive at the same time are taken. */
static Bytes lowest(Host *h, int b)
{
    const HostBuf *x = &h->p->host.at[b];
    h->taken.n = 0;
    for (int i = 0; i < h->mine.n; i++) {
        const HostBuf *y = &h->p->host.at[h->mine.at[i]];
        Bytes mine, other;
        int n = parts(x, &mine), m = parts(y, &other);
        for (int s = 0; s < n; s++)
            for (int k = 0; k < m; k++)
                if (meet(&h->lives[b][s], &h->lives[h->mine.at[i]][k])) {
                    Bytes at = y->offset + k * other - s * mine;
                    take(h, at - mine, at + other);
                }
    }
    Bytes at = 0;
    SORT(h->taken.at, h->taken.n, by_from);
    for (int i = 0; i < h->taken.n; i++)
        if (h->taken.at[i].from < at && h->taken.at[i].to > at)
            at = h->taken.at[i].to;
    return at;
}

static int larger(const Plan *p, int a, int b)
{
    const HostBuf *x = &p->host.at[a], *y = &p->host.at[b];
    Bytes m = x->stride * x->count, n = y->stride * y->count;
    return m != n ? m > n : a < b;
}

static void place_all(Host *h)
{
    DevicePlan *d = &h->p->dev.at[h->device];
    Ints todo = {0};
    for (int b = 0; b < h->p->host.n; b++)
        if (h->p->host.at[b].device == h->device) {
            find_slots(h, b);
            find_parts(h, b);
            int i = todo.n;
            (void)PUSH(&todo);
            for (; i > 0 && larger(h->p, b, todo.at[i - 1]); i--)
                todo.at[i] = todo.at[i - 1];
            todo.at[i] = b;
        }
    for (int i = 0; i < todo.n; i++) {
        HostBuf *x = &h->p->host.at[todo.at[i]];
        x->offset = lowest(h, todo.at[i]);
        *PUSH(&h->mine) = todo.at[i];
        Bytes end = x->offset + x->stride * x->count;
        d->host = end > d->host ? end : d->host;
    }
}

static void find_bound(Host *h)
{
    DevicePlan *d = &h->p->dev.at[h->device];
    Bytes *change = alloc(sizeof(Bytes) * (size_t)(d->ticks + 2)), now = 0;
    for (int i = 0; i < h->p->host.n * h->micro; i++) {
        const HostBuf *x = &h->p->host.at[i / h->micro];
        if (x->device != h->device || h->life[i].last < h->life[i].first)
            continue;
        change[h->life[i].first] += x->stride;
        change[h->life[i].last + 1] -= x->stride;
    }
    for (int t = 0; t < d->ticks; t++) {
        now += change[t];
        d->host_bound = now > d->host_bound ? now : d->host_bound;
    }
}

int host_of_device(const Plan *p, int device)
{
    return host_of(p->m, &p->m->devices.at[device]);
}

void host_layout(Plan *p, int device)
{
    enum { MEMORY = 64, PAGE = 4096 };
    Host h = {.p = p, .device = device, .micro = (int)p->g->micro, .unit = p->m->plan.disk ? PAGE : MEMORY};
    p->dev.at[device].host = p->dev.at[device].host_bound = 0;
    if (p->host.n == 0)
        return;
    h.life = alloc(sizeof(HostLife) * (size_t)p->host.n * (size_t)h.micro);
    h.lives = alloc(sizeof *h.lives * (size_t)p->host.n);
    h.slot = alloc(sizeof(int) * (size_t)p->host.n * (size_t)h.micro);
    find_lives(&h);
    place_all(&h);
    find_bound(&h);
    const Actions *list = &p->dev.at[device].list;
    for (int i = 0; i < list->n; i++)
        if (list->at[i].host >= 0)
            list->at[i].host_slot = h.slot[list->at[i].host * h.micro + list->at[i].mb];
}
