/* SPDX-License-Identifier: Apache-2.0
 *
 * slack.c: how many computations later a send is waited for.
 *
 * Problem: a message is a rendezvous.  A receive is posted order_slack() computations ahead of its reader.  A sender that waits
 * earlier than that stands still.  Lists of several chunks a device make some messages long before they are read: the last
 * device hands chunk 0 of a group to the first one while that still runs forwards.
 *
 * Method: the ordered lists are replayed in units, forward, I and W one each and messages free.  For each message the replay
 * tells when its receive is posted, and how many computations its sender has done by then.  The largest number over the
 * micro-batches is the slack of all messages from one chunk to its neighbour, forward or backward.  Such a message keeps its
 * buffer so long; the replay of memory counts that.
 *
 * Cost: linear in the actions, times the passes that the replay needs.
 * Lists for any map (slots.c) keep one message under way, and need no more slack than a list of one chunk a device.
 *
 * Messages that skip stages may get a multiple: transport_slack().  With several chunks a device they have the slack of their
 * maker's neighbour.  Lists where steps overlap have one.
 */
#include "sched.h"

typedef struct { int *end, n; } SlackClock;     /* of a device: end of each computation that slack counts */
typedef struct { int beat, end; } SlackMade;    /* its number on its device; -1: not yet */

typedef struct {
    const Plan *p;
    int m, chunks;
    SlackMade *made;            /* [(2 * chunk + back) * m + micro-batch] */
    SlackClock *clock;          /* by device */
    int *next;                  /* by device: actions that are done */
} SlackReplay;

static bool counts(const Action *k)
{
    bool room = k->kind == K_ROOM || (k->kind == K_U && k->update == U_ROOMS);
    return k->kind != K_FOLD && k->kind != K_MERGE && k->kind != K_SHARE && !room;
}

static SlackMade *made_at(const SlackReplay *x, int chunk, bool back, int mb)
{
    return &x->made[(2 * chunk + back) * x->m + mb];
}

/* The end of what a computation reads; -1: not yet. */
static int ready(const SlackReplay *x, const Action *k)
{
    bool back = k->kind != K_F;
    int from = k->chunk + (back ? 1 : -1);
    return k->kind == K_W || from < 0 || from >= x->chunks ? 0 : made_at(x, from, back, k->mb)->end;
}

static bool run(SlackReplay *x, int d)
{
    const Actions *list = &x->p->dev.at[d].order;
    SlackClock *t = &x->clock[d];
    int first = x->next[d];
    for (; x->next[d] < list->n; x->next[d]++) {
        const Action *k = &list->at[x->next[d]];
        bool computes = k->mb >= 0 && counts(k);
        int now = t->n ? t->end[t->n - 1] : 0, begin = computes ? ready(x, k) : 0;
        if (begin < 0)
            break;
        begin = begin > now ? begin : now;
        if (!counts(k))
            continue;
        t->end[t->n++] = begin + (computes ? 1 + (k->kind == K_B) : 0);
        if (computes && k->kind != K_W)
            *made_at(x, k->chunk, k->kind != K_F, k->mb) = (SlackMade){t->n - 1, t->end[t->n - 1]};
    }
    return x->next[d] > first;
}

/* Raises the slack of a message that is made as `m` on device d to the moment at which device e has done n computations. */
static void raise_for(const SlackReplay *x, SlackMade m, int d, int e, int n, int *slack)
{
    const SlackClock *t = &x->clock[d];
    int posted = n > 0 ? x->clock[e].end[n - 1] : 0;
    while (m.beat + *slack < t->n && t->end[m.beat + *slack] < posted)
        ++*slack;
}

static void raise_all(const SlackReplay *x, int d, int ahead, Ints *slack)
{
    const Actions *list = &x->p->dev.at[d].order;
    for (int i = 0, n = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        bool back = k->kind != K_F;
        int from = k->chunk + (back ? 1 : -1);
        bool reads = k->mb >= 0 && counts(k) && k->kind != K_W && from >= 0 && from < x->chunks;
        int e = reads ? plan_home(x->p, k->mb / plan_micro(x->p), from) : d;
        if (e != d)
            raise_for(x, *made_at(x, from, back, k->mb), e, d, n - ahead, &slack->at[2 * from + back]);
        n += counts(k);
    }
}

void sched_slack(Plan *p)
{
    SlackReplay x = {.p = p, .m = plan_micro(p) * plan_ways(p), .chunks = plan_chunks(p)};
    int stages = plan_stages(p), ahead = order_slack(p);
    p->slack.n = 0;
    for (int i = 0; i < 2 * x.chunks; i++)
        *PUSH(&p->slack) = ahead;
    const Choice *is = &p->ask.choice;
    if (order_overlap(p) || schedule_of(is->seed && !is->lists ? is->seed->name : p->schedule)->any_map)
        return;
    x.made = alloc(sizeof *x.made * 2 * (size_t)x.chunks * (size_t)x.m);
    for (int i = 0; i < 2 * x.chunks * x.m; i++)
        x.made[i].end = -1;
    x.clock = alloc(sizeof *x.clock * (size_t)stages);
    x.next = alloc(sizeof *x.next * (size_t)stages);
    for (int d = 0; d < stages; d++)
        x.clock[d].end = alloc(sizeof(int) * (size_t)(p->dev.at[d].order.n + 1));
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < stages; d++)
            moved |= run(&x, d);
    }
    for (int d = 0; d < stages; d++)
        if (x.next[d] < p->dev.at[d].order.n)
            die("slack: device %d waits for ever at action %d of its list", d, x.next[d]);
    for (int d = 0; d < stages; d++)
        raise_all(&x, d, ahead, &p->slack);
}
