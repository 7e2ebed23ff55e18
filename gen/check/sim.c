/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.c: do the predicted times satisfy their own equations?
 *
 * Problem: sim walks the lists forward and lets events happen; its times need a check that simulates nothing.
 *
 * Method: an action begins when the one before it ends, and takes its time.  A wait lasts until its transfer has arrived.  A
 * transfer starts when both ends have begun and the wire is free of everything sent before.  The lists halt (check_comm), so
 * each time follows from earlier ones.  The equations then have one solution, and times that satisfy all of them are it.
 *
 * A copy to the host or back starts when it is begun and the copies before it in its direction have ended.  A copy's wait lasts
 * until its own end.  Where both directions of a link share a wire, the prediction is the time at which each message has it
 * (Action.wire_from).  Checked then are three points: no two overlap, none waits while the wire is free, and they have it in
 * the order in which they were ready.  Messages are matched by tag and occurrence, not by counting begins.
 *
 * Cost: linear in actions, times the distinct messages.
 */
#include "plan.h"

typedef struct { Bytes bytes; const Action *send, *post; Ns end; } SimEdge;
typedef struct { int from, to, tag, sent, posted; VEC(SimEdge) edge; } SimLane; /* transfers of one tag, in order */
typedef struct { int lane, edge; } End;
typedef struct {
    const Plan *p;
    const Actions *list;        /* by device */
    VEC(SimLane) lane;
    Ints *of;                   /* [from * devices + to]: its lanes */
    Ns *wire;                   /* the same: busy until */
} SimTimes;

static const Actions *list_of(const SimTimes *x, int device)
{
    return &x->list[device];
}

static int lane_of(SimTimes *x, int from, int to, int tag)
{
    Ints *of = &x->of[from * x->p->devices + to];
    for (int i = 0; i < of->n; i++)
        if (x->lane.at[of->at[i]].tag == tag)
            return of->at[i];
    *PUSH(of) = x->lane.n;
    *PUSH(&x->lane) = (SimLane){.from = from, .to = to, .tag = tag};
    return x->lane.n - 1;
}

/* The transfer that this action begins one end of.  The n-th send of a tag meets its n-th receive. */
static End end_of(SimTimes *x, const Action *k, int device)
{
    bool send = k->kind == K_SEND;
    int i = send ? lane_of(x, device, k->peer, k->tag) : lane_of(x, k->peer, device, k->tag);
    SimLane *l = &x->lane.at[i];
    int n = send ? l->sent++ : l->posted++;
    if (n == l->edge.n)
        PUSH(&l->edge)->bytes = k->bytes;
    SimEdge *e = &l->edge.at[n];
    *(send ? &e->send : &e->post) = k;
    if (e->bytes != k->bytes)
        die("check_sim: message %d from device %d to %d has %lld and %lld bytes", l->tag, l->from, l->to,
            (long long)e->bytes, (long long)k->bytes);
    return (End){i, n};
}

/* The transfer of every begin and wait of a device, by action. */
static End *ends_of(SimTimes *x, int device)
{
    const Actions *list = list_of(x, device);
    End *end = alloc(sizeof *end * (size_t)(list->n + 1)), none = {-1, 0};
    VEC(End) open = {0};        /* by request: the transfer under way */
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        while (open.n <= k->request)
            *PUSH(&open) = none;
        if (k->kind == K_SEND || k->kind == K_RECV)
            open.at[k->request] = end_of(x, k, device);
        if (k->kind == K_SEND || k->kind == K_RECV || (k->kind == K_WAIT && (k->of == K_SEND || k->of == K_RECV)))
            end[i] = open.at[k->request];
        if (k->kind == K_WAIT && k->of != K_OUT && k->of != K_IN && end[i].lane < 0)
            die("check_sim: action %d of device %d waits for a request that nothing began", i, device);
    }
    return end;
}

typedef struct { Ns ready, from, to; int source; } SimUse;  /* of a shared wire */

ORDER(by_from, SimUse, order_of(x->from, y->from), order_of(x->to, y->to))

/* Checks messages between two devices over one wire.  In one direction none is ready sooner than the one before. */
static void check_shared(const SimTimes *x, End **end, int a, int b)
{
    VEC(SimUse) use = {0};
    for (int k = 0; k < 2; k++) {
        int from = k ? b : a, to = k ? a : b;
        Ns ready = 0;
        for (int i = 0; i < list_of(x, from)->n; i++) {
            const Action *s = &list_of(x, from)->at[i];
            if (s->kind != K_SEND || s->peer != to)
                continue;
            const SimEdge *e = &x->lane.at[end[from][i].lane].edge.at[end[from][i].edge];
            ready = max_of(ready, max_of(e->send->from, e->post->from));
            *PUSH(&use) = (SimUse){ready, s->wire_from, s->wire_to, from};
            if (s->wire_to - s->wire_from != cost_wire(x->p->c, from, to, s->bytes))
                die("check_sim: message %d from device %d to %d has the wire for %lld ns", s->tag, from, to,
                    (long long)(s->wire_to - s->wire_from));
        }
    }
    SORT(use.at, use.n, by_from);
    for (int i = 0; i < use.n; i++) {
        const SimUse *u = &use.at[i], *before = i ? &use.at[i - 1] : NULL;
        if (u->from != max_of(u->ready, before ? before->to : 0) || (before && u->ready < before->ready))
            die("check_sim: between devices %d and %d a message of device %d that is ready at %lld has the wire at %lld", a, b,
                u->source, (long long)u->ready, (long long)u->from);
    }
}

/* The begin of the copy that this wait ends: the last one of its request in the list before it. */
static const Action *begin_of(const Actions *list, int wait)
{
    const Action *w = &list->at[wait];
    for (int i = wait - 1; i >= 0; i--)
        if ((list->at[i].kind == K_OUT || list->at[i].kind == K_IN) && list->at[i].request == w->request)
            return &list->at[i];
    die("check_sim: action %d waits for a copy that nothing began", wait);
}

static void check_copies(const Plan *p, int device, const Actions *list)
{
    Ns free[2] = {0, 0};
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        Ns *link = &free[k->kind == K_IN && !cost_host_half(p->c, device)];
        if (k->kind != K_OUT && k->kind != K_IN)
            continue;
        Ns from = max_of(*link, k->from);
        *link = from + cost_host(p->c, device, k->bytes);
        if (k->wire_from != from || k->wire_to != *link)
            die("check_sim: the copy of action %d of device %d is predicted at %lld..%lld and follows to be at %lld..%lld", i,
                device, (long long)k->wire_from, (long long)k->wire_to, (long long)from, (long long)*link);
    }
}

static Ns check_list(const Plan *p, bool eval, int steps)
{
    const size_t pairs = (size_t)(p->devices * p->devices);
    SimTimes x = {.p = p, .list = order_lists(p, eval, steps), .of = alloc(sizeof *x.of * pairs),
                  .wire = alloc(sizeof(Ns) * pairs)};
    End **end = alloc(sizeof *end * (size_t)p->devices);
    Ns last = 0;
    for (int d = 0; d < p->devices; d++)
        end[d] = ends_of(&x, d);
    /* Transfers of one pair share a wire, in the order in which they are sent. */
    for (int i = 0; i < x.lane.n; i++)
        if (x.lane.at[i].sent != x.lane.at[i].posted)
            die("check_sim: message %d from device %d to %d is sent %d times and received %d times", x.lane.at[i].tag,
                x.lane.at[i].from, x.lane.at[i].to, x.lane.at[i].sent, x.lane.at[i].posted);
    for (int d = 0; d < x.p->devices; d++)
        for (int i = 0; i < list_of(&x, d)->n; i++) {
            if (list_of(&x, d)->at[i].kind != K_SEND)
                continue;
            const SimLane *l = &x.lane.at[end[d][i].lane];
            SimEdge *e = &l->edge.at[end[d][i].edge];
            if (cost_half(x.p->c, l->from, l->to)) {
                e->end = e->send->wire_to + cost_latency(x.p->c, l->from, l->to);
                continue;
            }
            Ns *busy = &x.wire[l->from * x.p->devices + l->to];
            *busy = max_of(*busy, max_of(e->send->from, e->post->from)) + cost_wire(x.p->c, l->from, l->to, e->bytes);
            e->end = *busy + cost_latency(x.p->c, l->from, l->to);
        }
    for (int a = 0; a < p->devices; a++)
        for (int b = a + 1; b < p->devices; b++)
            if (cost_half(p->c, a, b))
                check_shared(&x, end, a, b);
    for (int d = 0; d < p->devices; d++) {
        Ns now = 0;
        check_copies(p, d, list_of(&x, d));
        for (int i = 0; i < list_of(&x, d)->n; i++) {
            const Action *k = &list_of(&x, d)->at[i];
            Ns to = now + action_time(p, d, k);
            if (k->kind == K_WAIT && (k->of == K_OUT || k->of == K_IN))
                to = max_of(to, begin_of(list_of(&x, d), i)->wire_to);
            else if (k->kind == K_WAIT)
                to = max_of(to, x.lane.at[end[d][i].lane].edge.at[end[d][i].edge].end);
            if (k->from != now || k->to != to)
                die("check_sim: action %d of device %d is predicted at %lld..%lld and follows to be at %lld..%lld", i, d,
                    (long long)k->from, (long long)k->to, (long long)now, (long long)to);
            now = to;
        }
        last = max_of(last, now);
    }
    return last;
}

void check_sim(const Plan *p)
{
    int overlap = order_overlap(p);
    check_list(p, true, 1);
    Ns step = check_list(p, false, overlap + 1);
    if (overlap == 0 && p->ask.more == 0 && p->step != step)
        die("check_sim: the step is predicted to take %lld ns, the last action ends at %lld", (long long)p->step,
            (long long)step);
    Ns bound = plan_proof(p).bound;
    if (bound > step && p->ask.more == 0)
        die("check_sim: no step was to be shorter than %lld ns, and this one takes %lld", (long long)bound, (long long)step);
    for (int d = 0; d < p->devices; d++) {
        Ns busy = 0;
        for (int i = 0; i < p->dev.at[d].list.n; i++)
            if (overlap == 0 || p->dev.at[d].list.at[i].piece == PIECE_PERIOD)
                busy += action_time(p, d, &p->dev.at[d].list.at[i]);
        if (busy > p->step)
            die("check_sim: device %d works %lld ns in a step of %lld", d, (long long)busy, (long long)p->step);
        if (p->ask.more == 0 && busy != p->dev.at[d].busy)
            die("check_sim: device %d is busy for %lld ns, not %lld", d, (long long)busy, (long long)p->dev.at[d].busy);
    }
}
