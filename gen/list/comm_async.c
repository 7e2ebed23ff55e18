/* SPDX-License-Identifier: Apache-2.0
 *
 * comm_async.c: the actions of a device besides computing, where steps overlap.
 *
 * Problem: comm.c writes one step from drained to drained.  Here a list is cut into pieces (sched/async.c) that a run puts
 * together in any number.  So the messages under way at the end of a piece must be those that the next piece expects, whichever
 * it is.
 *
 * Method: these rules.
 *
 *   at a cut        under way are the sends of the last forward of each row (sched/replica.c), and the receives for the
 *                   backward that comes next in period and epilogue alike; every other send has been waited for
 *   numbers         each message has one request number of its own, or one for each row that the sender is in, the same in all
 *                   pieces, so that begin and wait meet across a cut; so a send is waited for before the next one of the same
 *                   message and row begins, at the latest
 *   receive         posted one forward or backward ahead of its first reader, waited for right before that one
 *   send            begun right after the computation that makes it, waited for one forward or backward later
 *   norm            goes out at the end of a step's backward.  The factor comes back `hold` micro-batches later; its receive
 *                   is posted where stage 0 sends it, counted in the forwards that both have begun, since messages of one
 *                   pair meet in order
 *
 * A device has one chunk, and tied parameters one device, so there are no other messages.  Step values are begun before the
 * first forward of a step and ended after its update.
 *
 * Cost: linear in actions times messages.
 *
 * Not handled: more messages than request numbers, or skips that make stages wait for each other, fail with EXIT_NOFIT.
 */
#include "transport.h"

typedef struct {
    Plan *p;
    Desk desk;
    const Backward *back;       /* by chunk */
    int times;                  /* how often the slack of sends */
    int *request;               /* by message, of the device at hand; of exchanges that of what it gets ... */
    int turns;                  /* of the device at hand: rows that it is in */
    int gives;                  /* ... and of what it gives */
} AsyncComm;

/* ---- putting actions --------------------------------------------------------------------------------------------- */

/* The message of an action's micro-batch, or of its step. */
static Action transfer(const AsyncComm *c, ActionKind kind, int msg, const Action *of)
{
    Action a = desk_transfer(&c->desk, kind, msg, of->step, of->mb);
    a.request = c->request[msg] + (kind == K_SEND && a.mb >= 0 ? plan_turn(c->p, c->desk.stage, a.mb) % c->turns : 0);
    return a;
}

static void begin(AsyncComm *c, ActionKind kind, int msg, const Action *of)
{
    Pendings *list = kind == K_SEND ? &c->desk.sent : &c->desk.posted;
    Action a = transfer(c, kind, msg, of);
    for (int i = list->n - 1; i >= 0; i--)
        if (list->at[i].msg == msg && list->at[i].what.request == a.request)
            desk_end(&c->desk, list, i);
    desk_begin(&c->desk, msg, a);
}

static void begin_as(AsyncComm *c, ActionKind kind, int msg, const Action *of, int request)
{
    Action a = transfer(c, kind, msg, of);
    a.request = request;
    desk_begin(&c->desk, msg, a);
}

/* Does this device take part, as sender or receiver, in the message of such an action? */
static bool mine(const AsyncComm *c, int msg, bool sends, ActionKind kind)
{
    const Msg *m = &c->desk.msg.at[msg];
    return m->tensor >= 0 && (sends ? m->src : m->dst) == c->desk.stage && (m->made_in & transport_phases(kind));
}

static void post(AsyncComm *c, const Action *next)
{
    for (int i = 0; next && i < c->desk.msg.n; i++)
        if (mine(c, i, false, next->kind))
            begin(c, K_RECV, i, next);
}

/* ---- actions of an order ------------------------------------------------------------------------------------------ */

/* A forward or backward; next: the one after it, NULL if there is none. */
static void put_work(AsyncComm *c, const Action *k, const Action *next)
{
    bool first = k->kind == K_F && k->mb == plan_first(c->p, c->desk.device, k->chunk);
    if (first)
        desk_head(&c->desk, k->step);
    c->desk.beat++;
    bool same = next && next->kind == k->kind;      /* its messages are those of k: one number for both */
    if (!same)
        post(c, next);
    desk_wait_sends(&c->desk, c->times, false);      /* partial norms stay under way until the update */
    Ints loads = transport_loads(c->p, k);
    for (int i = 0; i < loads.n; i++)
        desk_load(&c->desk, loads.at[i], k->step, k->mb);
    if (k->kind == K_B && c->back[k->chunk].early > 0)
        desk_put(&c->desk, *k)->kind = K_R;
    for (int i = 0; i < c->desk.msg.n; i++)
        if (mine(c, i, false, k->kind))
            desk_wait_recv(&c->desk, i, -1);
    if (same)
        post(c, next);
    desk_put(&c->desk, *k)->acc = k->kind == K_F ? !first : k->acc;      /* forward only adds up the loss of the step */
    for (int i = 0; i < c->desk.msg.n; i++)
        if (mine(c, i, true, k->kind))
            begin(c, K_SEND, i, k);
}

/* Stage 0 sends the factor of a step between its forwards m+p-2 and m+p-1, counted from that step's first.  On stage i the
 * second of these follows the backward of micro-batch i-1 of the next step. */
static void post_factor(AsyncComm *c, const Action *k)
{
    Action of = *k;
    of.step--;
    for (int i = 0; i < c->desk.msg.n; i++) {
        const Msg *m = &c->desk.msg.at[i];
        if (m->state >= 0 && m->dst == c->desk.stage && c->p->g->state.at[m->state].kind == S_CLIP &&
            c->desk.piece == PIECE_PERIOD && k->kind == K_B && k->mb == c->desk.stage - 1 && k->step > 0)
            begin(c, K_RECV, i, &of);
    }
}

static bool moves(const AsyncComm *c, const Msg *m, int part)
{
    return m->state >= 0 && m->level < 0 && transport_part(c->p->g->state.at[m->state].kind) == (UpdatePart)part;
}

/* U_NORM: norms to the total; U_STEP: the factor from there. */
static void put_update(AsyncComm *c, const Action *k)
{
    if (k->update == U_STEP) {
        for (int i = 0; i < c->desk.sent.n;)
            if (c->desk.msg.at[c->desk.sent.at[i].msg].state >= 0)
                desk_end(&c->desk, &c->desk.sent, i);
            else
                i++;
    }
    for (int i = 0; i < c->desk.msg.n; i++) {
        const Msg *m = &c->desk.msg.at[i];
        if (!moves(c, m, k->update))
            continue;
        if (m->src == c->desk.stage)
            begin(c, K_SEND, i, k);
        else if (m->dst == c->desk.stage && !desk_posted(&c->desk, i, -1))
            begin(c, K_RECV, i, k);
    }
    for (int i = 0; i < c->desk.msg.n; i++) {
        const Msg *m = &c->desk.msg.at[i];
        if (m->dst != c->desk.stage || !moves(c, m, k->update))
            continue;
        desk_wait_recv(&c->desk, i, -1);
        if (k->update != U_NORM)
            continue;
        Action *gather = desk_new(&c->desk, K_GATHER, k->step, k->mb);
        gather->state = m->state;
        gather->from_device = m->src;
    }
    desk_put(&c->desk, *k);
    if (k->update == U_STEP)
        desk_new(&c->desk, K_END, k->step, k->mb);
}

/* What two copies of a stage have summed up crosses, a few messages at a time: nothing is under way behind an exchange. */
static void put_exchange(AsyncComm *c, const Action *k)
{
    Ints list = desk_crossing(&c->desk, k);
    for (int i = 0; i < list.n; i++) {
        int msg = list.at[i];
        Halves x = desk_halves(&c->desk, msg);
        if (x.gets.until > x.gets.from)
            begin_as(c, K_RECV, msg, k, c->request[msg]);
        if (x.gives.until > x.gives.from)
            begin_as(c, K_SEND, msg, k, c->gives);
        desk_merge(&c->desk, k, msg);
    }
}

/* ---- pieces ------------------------------------------------------------------------------------------------------- */

static const Action *find(const Actions *list, Piece piece, ActionKind kind, bool last)
{
    const Action *found = NULL;
    for (int i = 0; i < list->n && (last || !found); i++)
        if (list->at[i].piece == piece && list->at[i].kind == kind)
            found = &list->at[i];
    return found;
}

/* Sets the messages under way at a cut: the state in which period and epilogue begin. */
static void begin_at_cut(AsyncComm *c, const Actions *order)
{
    const Action *f = find(order, PIECE_PROLOGUE, K_F, true), *b = find(order, PIECE_PERIOD, K_B, false);
    for (int i = 0; i < c->desk.msg.n; i++) {
        for (int row = c->turns - 1, beat = c->desk.beat; mine(c, i, true, K_F) && row >= 0; row--) {
            Action of = *f;     /* the last one of each row, a forward and a backward apart */
            of.mb = plan_nth(c->p, c->desk.device, c->desk.stage, plan_turn(c->p, c->desk.stage, f->mb) - row);
            *PUSH(&c->desk.sent) = (Pending){i, beat - 2 * row, transfer(c, K_SEND, i, &of)};
        }
        if (mine(c, i, false, K_B))
            *PUSH(&c->desk.posted) = (Pending){i, c->desk.beat, transfer(c, K_RECV, i, b)};
    }
}

static void put_piece(AsyncComm *c, const Actions *order, Piece piece)
{
    const Action *work = NULL;
    Action after = *find(order, PIECE_PERIOD, K_B, false);
    bool open = piece == PIECE_PROLOGUE || piece == PIECE_PERIOD;       /* ends at a cut */
    after.step += piece == PIECE_PERIOD;
    c->desk.piece = piece;
    c->desk.sent.n = c->desk.posted.n = 0;
    if (piece == PIECE_PERIOD || piece == PIECE_EPILOGUE)
        begin_at_cut(c, order);
    else
        post(c, find(order, piece, K_F, false));
    for (int i = 0; i < order->n; i++) {
        const Action *k = &order->at[i], *next = NULL;
        if (k->piece != piece)
            continue;
        for (int j = i + 1; j < order->n && order->at[j].piece == piece && !next; j++)
            next = transport_beat(&order->at[j], true) ? &order->at[j] : NULL;
        if (transport_beat(k, true)) {
            post_factor(c, k);
            put_work(c, work = k, next ? next : open ? &after : NULL);
        } else if (k->kind == K_MERGE || k->kind == K_SHARE) {
            put_exchange(c, k);
        } else if (k->kind == K_U) {
            put_update(c, k);
        } else {
            desk_put(&c->desk, *k);
        }
    }
    for (int i = 0; open && i < c->desk.sent.n;)
        if (mine(c, c->desk.sent.at[i].msg, true, K_F) && c->desk.sent.at[i].beat + c->desk.more >= c->desk.beat)
            i++;
        else
            desk_end(&c->desk, &c->desk.sent, i);
    if (!open)
        desk_wait_sends(&c->desk, -1, true);
    if (work && !open && c->desk.posted.n)
        die("device %d: a receive is posted for nothing", c->desk.device);
}

/* False: too many messages. */
static bool write_device(AsyncComm *c, int device)
{
    DevicePlan *d = &c->p->dev.at[device];
    const int stage = plan_stage(c->p, device);
    d->list.n = d->eval.n = d->requests = 0;
    c->gives = -1;
    c->turns = plan_turns(c->p, stage);
    c->desk.more = 2 * (c->turns - 1);
    for (int i = 0; i < c->desk.msg.n; i++) {
        const Msg *m = &c->desk.msg.at[i];
        if (m->src != stage && m->dst != stage)
            continue;
        if (m->level >= 0 && c->gives < 0)
            c->gives = (d->requests += 2) - 1;
        c->request[i] = m->level >= 0 ? c->gives - 1 : d->requests;
        d->requests += m->level >= 0 ? 0 : m->src == stage && m->tensor >= 0 ? c->turns : 1;
    }
    if (d->requests > MOST_REQUESTS) {
        c->p->shortfall.stuck = strf("schedule %s: stage %d has %d messages a step, and %d can be told apart; cut where fewer "
                                     "values cross, take fewer stages, or a synchronous schedule", c->p->schedule, device,
                                     d->requests, MOST_REQUESTS);
        return false;
    }
    desk_open(&c->desk, device, &d->list);
    for (Piece piece = PIECE_PROLOGUE; piece < PIECES; piece++)
        if (find(&d->order, piece, K_F, false) || find(&d->order, piece, K_B, false))
            put_piece(c, &d->order, piece);
    desk_open(&c->desk, device, &d->eval);
    c->desk.piece = PIECE_STEP;
    if (c->p->m->eval.format) {
        Action k = action_new(K_F, 0, 0);
        k.chunk = c->desk.stage;
        if (c->desk.device == c->desk.stage) {      /* it runs through the first copies */
            post(c, &k);
            put_work(c, &k, NULL);
        } else {
            desk_head(&c->desk, 0);
        }
        desk_wait_sends(&c->desk, -1, true);
        desk_new(&c->desk, K_END, 0, -1);
    }
    return true;
}

/* needs, fills: as comm. */
int comm_async(Plan *p, const Backward *back)
{
    AsyncComm c = {.p = p, .desk = {.p = p, .msg = transport_messages(p)}, .back = back};
    c.request = alloc(sizeof(int) * (size_t)(c.desk.msg.n + 1));
    for (c.times = 1; c.times <= 4; c.times *= 2) {
        for (int d = 0; d < p->devices; d++)
            if (!write_device(&c, d))
                return 1;
        if (comm_stuck(p, false) < 0)
            return 0;
    }
    p->shortfall.stuck = strf("schedule %s: values that skip over stages make stage %d wait for ever; cut elsewhere, take "
                              "fewer stages, or a synchronous schedule", p->schedule, comm_stuck(p, false));
    p->shortfall.device = -1;
    return 1;
}
