/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.c: the predicted time of every action.
 *
 *   needs   dev[].list and dev[].eval with routines and messages; Cost
 *   fills   from and to of every action, dev[].busy, step
 *   keeps   the plan: no prediction moves a byte of memory or changes an order
 *   fails   never; lists that wait for each other are a bug, and check_comm finds it before
 *
 * Method: each device runs its list in order.  A computation takes the sum of its calls.  To begin a message takes nothing.  A
 * wait lasts until the transfer ends.  A transfer starts when both sides have begun it and the wire from one device to the
 * other is free.  It occupies the wire for bytes over rate, and ends a latency later.  Both directions carry at once, except on
 * half duplex links.  There whoever is ready first has the wire; at the same time the lower device acts first.  Copies to the
 * host and back have a link of the device, one after another in each direction, or in both where it is half duplex.  Messages
 * of one pair of devices are begun in the same order on both sides, so the k-th begin of a send meets the k-th begin of a
 * receive.
 *
 * Cost: linear in actions and calls.
 *
 * Not handled: devices that disturb each other.  Stages that share cores or memory bandwidth are slower than predicted here.
 */
#include "list/list.h"

typedef struct { Ns sent, posted, end; int tag_sent, tag_posted; Bytes bytes; bool ended; Action *send; } Transfer;
typedef struct { VEC(Transfer) at; int sends, posts, ended; Ns wire; } SimChannel;

typedef struct {
    Plan *p;
    const Actions *list;        /* by device */
    SimChannel *channel;        /* [from * devices + to] */
    int *next;                  /* by device: action at hand */
    Ns *now;                    /* by device */
    bool *tried;                /* by device: run_earliest() */
    struct { int channel, number; } *request;   /* [device * most + request] */
    Ns (*host)[2];              /* by device and direction, out and in: the link is taken until then */
    Ns *copied;                 /* [device * copies + request]: when the copy ends */
    int copies;
    int most;
} Sim;

static void end_transfers(Sim *s, int channel)
{
    SimChannel *c = &s->channel[channel];
    for (; c->ended < c->at.n; c->ended++) {
        Transfer *t = &c->at.at[c->ended];
        if (t->sent < 0 || t->posted < 0)
            return;
        if (t->tag_sent != t->tag_posted)
            die("sim: message %d between devices %d and %d is %d on one side, %d on the other", c->ended,
                channel / s->p->devices, channel % s->p->devices, t->tag_sent, t->tag_posted);
        int from = channel / s->p->devices, to = channel % s->p->devices;
        bool half = cost_half(s->p->c, from, to);
        Ns *wire = &s->channel[wire_of(s->p->c, s->p->devices, from, to)].wire;
        Ns start = wire_take(wire, max_of(t->sent, t->posted), cost_wire(s->p->c, from, to, t->bytes));
        t->end = *wire + cost_latency(s->p->c, from, to);
        t->ended = true;
        t->send->wire_from = half ? start : 0;
        t->send->wire_to = half ? *wire : 0;
    }
}

/* Run device d as far as it gets, at most so many actions; false if it could not do anything. */
static bool run_device(Sim *s, int d, int most)
{
    const Actions *list = &s->list[d];
    int first = s->next[d];
    for (; s->next[d] < list->n && s->next[d] - first < most; s->next[d]++) {
        Action *k = &list->at[s->next[d]];
        Ns end = s->now[d] + action_time(s->p, d, k);
        if (k->kind == K_SEND || k->kind == K_RECV) {
            /* One side of the next message between two devices begins. */
            bool send = k->kind == K_SEND;
            int from = send ? d : k->peer, to = send ? k->peer : d, at = from * s->p->devices + to;
            SimChannel *c = &s->channel[at];
            int number = send ? c->sends++ : c->posts++;
            while (c->at.n <= number)
                *PUSH(&c->at) = (Transfer){.sent = -1, .posted = -1};
            Transfer *t = &c->at.at[number];
            *(send ? &t->sent : &t->posted) = s->now[d];
            *(send ? &t->tag_sent : &t->tag_posted) = k->tag;
            t->bytes = k->bytes;
            t->send = send ? k : t->send;
            s->request[d * s->most + k->request].channel = at;
            s->request[d * s->most + k->request].number = number;
            end_transfers(s, s->request[d * s->most + k->request].channel);
        }
        if (k->kind == K_OUT || k->kind == K_IN) {
            Ns *link = &s->host[d][k->kind == K_IN && !cost_host_half(s->p->c, d)];
            k->wire_from = wire_take(link, s->now[d], cost_host(s->p->c, d, k->bytes));
            s->copied[d * s->copies + k->request] = k->wire_to = *link;
        }
        if (k->kind == K_WAIT && is_copy(k)) {
            end = max_of(end, s->copied[d * s->copies + k->request]);
        } else if (k->kind == K_WAIT) {
            int at = d * s->most + k->request;
            const Transfer *t = &s->channel[s->request[at].channel].at.at[s->request[at].number];
            if (!t->ended)
                break;
            end = max_of(end, t->end);
        }
        k->from = s->now[d];
        k->to = s->now[d] = end;
    }
    return s->next[d] > first;
}

/* Runs one action of the device that is least far in time.  On a wire shared by two directions it matters who begins first. */
static bool run_earliest(Sim *s)
{
    memset(s->tried, 0, sizeof *s->tried * (size_t)s->p->devices);
    for (int round = 0; round < s->p->devices; round++) {
        int least = -1;
        for (int d = 0; d < s->p->devices; d++)
            if (!s->tried[d] && (least < 0 || s->now[d] < s->now[least]))
                least = d;
        if (run_device(s, least, 1))
            return true;
        s->tried[least] = true;
    }
    return false;
}

/* The end of the last device.  Fills the times of the lists. */
static Ns run(Plan *p, const Actions *list)
{
    size_t n = (size_t)p->devices;
    Sim s = {.p = p, .list = list, .most = 1};
    for (int d = 0; d < p->devices; d++)
        for (int i = 0; i < list[d].n; i++)
            if (list[d].at[i].request >= s.most)
                s.most = list[d].at[i].request + 1;
    s.channel = alloc(sizeof *s.channel * n * n);
    s.next = alloc(sizeof *s.next * n);
    s.now = alloc(sizeof *s.now * n);
    s.tried = alloc(sizeof *s.tried * n);
    s.request = alloc(sizeof *s.request * n * (size_t)s.most);
    for (int d = 0; d < p->devices; d++)
        s.copies = p->dev.at[d].copies > s.copies ? p->dev.at[d].copies : s.copies;
    s.copied = alloc(sizeof *s.copied * n * (size_t)(s.copies + 1));
    s.host = alloc(sizeof *s.host * n);

    bool half = false;
    for (int i = 0; i < p->devices * p->devices; i++)
        half |= cost_half(p->c, i / p->devices, i % p->devices);
    for (bool moved = true; moved;) {
        moved = half && run_earliest(&s);
        for (int d = 0; d < p->devices && !half; d++)
            moved |= run_device(&s, d, INT32_MAX);
    }
    Ns end = 0;
    for (int d = 0; d < p->devices; d++) {
        if (s.next[d] < list[d].n)
            die("sim: device %d waits for ever at action %d of %d", d, s.next[d], list[d].n);
        end = max_of(end, s.now[d]);
    }
    return end;
}

/* The times of a list in pieces: of a run of one period, and behind it of a step alone. */
static void run_pieces(Plan *p)
{
    int overlap = order_overlap(p);
    const Actions *once = order_lists(p, false, overlap + 1), *alone = order_lists(p, false, 1);
    Ns end = run(p, once);
    if (overlap > 1)
        run(p, alone);
    for (int d = 0; d < p->devices; d++) {
        const Actions *list = &p->dev.at[d].list;
        for (int i = 0; i < list->n; i++) {
            bool last = i >= once[d].n;
            const Action *k = last ? &alone[d].at[i - once[d].n] : &once[d].at[i];
            list->at[i].from = k->from + (last ? end : 0);
            list->at[i].to = k->to + (last ? end : 0);
            if (k->piece == PIECE_PERIOD)
                p->dev.at[d].busy += k->kind == K_WAIT ? 0 : k->to - k->from;
        }
    }
}

/* The time of one more step in the steady state.  The pattern of 1F1B repeats after as many micro-batches as there are devices.
 * So the mean over as many steps is that of the pattern. */
static Ns period(Plan *p)
{
    int settled = order_overlap(p) + 1 + (int)((16 * p->devices + p->g->micro - 1) / p->g->micro);
    Ns few = run(p, order_lists(p, false, settled));
    Ns more = run(p, order_lists(p, false, settled + p->devices));
    return (more - few) / p->devices;
}

int sim(Plan *p)
{
    bool pieces = order_overlap(p) > 0;
    run(p, order_lists(p, true, 1));
    p->step = pieces ? period(p) : run(p, order_lists(p, false, 1));
    for (int d = 0; d < p->devices; d++)
        p->dev.at[d].busy = 0;
    for (int d = 0; d < p->devices && !pieces; d++)
        for (EACH(const Action, k, p->dev.at[d].list))
            p->dev.at[d].busy += k->kind == K_WAIT ? 0 : k->to - k->from;
    if (pieces)
        run_pieces(p);
    for (int d = 0; d < p->devices && pieces; d++)      /* not shorter than the work of a step, wherever the mean was taken */
        p->step = max_of(p->step, p->dev.at[d].busy);
    Ns longest = 0;             /* beat of the full pipeline, for micro-batches that the lists leave out */
    for (int d = 0; d < p->devices && p->ask.more > 0; d++) {
        /* What a device computes for one micro-batch. */
        Ns sum = 0;
        int first = -1;             /* micro-batch there */
        for (EACH(const Action, k, p->dev.at[d].list)) {
            first = first < 0 ? k->mb : first;
            sum += k->mb >= 0 && k->mb == first && (k->routine >= 0 || k->kind == K_LOAD) ? action_time(p, d, k) : 0;
        }
        Ns beat = sum;
        p->dev.at[d].busy += p->ask.more * beat;
        longest = max_of(longest, beat);
    }
    p->step += p->ask.more * longest;
    return 0;
}
