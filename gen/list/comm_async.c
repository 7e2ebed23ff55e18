/* SPDX-License-Identifier: Apache-2.0
 *
 * comm_async.c: what a device does besides computing, where steps overlap.
 *
 * comm.c writes one step from drained to drained; here a list is cut into pieces (sched/async.c) that a run puts together
 * in any number, so what is under way where one ends must be what the next one expects, whichever it is:
 *
 *   at a cut        under way are the sends of the last forward, and the receives for the backward that comes next in period
 *                   and epilogue alike; every other send has been waited for
 *   numbers         each message has one request number of its own, the same in all pieces, so that begin and wait meet across
 *                   a cut; a send is therefore waited for before the next one of the same message begins, at the latest
 *   receive         posted one forward or backward ahead of its first reader, waited for right before that one
 *   send            begun right after what makes it, waited for one forward or backward later
 *   norm            goes out at the end of a step's backward.  The factor comes back `hold` micro-batches later; its receive
 *                   is posted where stage 0 sends it, counted in the forwards that both have begun, since messages of one
 *                   pair meet in order
 *
 * A device has one chunk, and tied parameters one device, so that there are no other messages.  Step values are begun before
 * the first forward of a step and ended after its update.
 *
 * Cost: linear in actions times messages.  fails: EXIT_NOFIT for more messages than request numbers, or skips that make
 * stages wait for each other.
 */
#include "plan.h"

enum { REQUESTS = 256 };

typedef struct { int tensor, state, src, dst; ActionKind kind; } Msg;   /* K_F, K_B: of what makes and what reads it; K_U */
typedef struct { int msg, age; Action what; } Pending;
typedef VEC(Pending) Pendings;

typedef struct {
    Plan *p;
    const Backward *back;       /* by chunk */
    VEC(Msg) msg;
    int slack;                  /* forwards and backwards until a send is waited for */
    /* of the device at hand */
    int device;
    int *request;               /* by message */
    Actions *out;
    Piece piece;
    Pendings sent, posted;
} Comm;

/* ---- which messages there are ------------------------------------------------------------------------------------ */

static bool reads(const Op *o, bool state, int index)
{
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if ((a->kind == ARG_READ || (state && a->kind != ARG_NONE)) && a->state == state && a->index == index)
            return true;
    }
    return false;
}

static void find_tensors(Comm *c)
{
    const Graph *g = c->p->g;
    for (int t = 0; t < g->tensor.n; t++) {
        int made = g->tensor.at[t].op;
        ActionKind kind = made < g->nf ? K_F : K_B;
        for (int d = 0; made >= 0 && d < c->p->devices; d++) {
            bool read = false;
            for (int o = 0; o < g->nb; o++)
                read |= device_of(c->p, o) == d && reads(&g->op.at[o], false, t);
            if (read && d != device_of(c->p, made))
                *PUSH(&c->msg) = (Msg){t, -1, device_of(c->p, made), d, kind};
        }
    }
}

/* Partial norms go to the device of the total, the factor comes from there. */
static void find_norms(Comm *c)
{
    const Graph *g = c->p->g;
    for (int s = 0; s < g->state.n; s++) {
        StateKind kind = g->state.at[s].kind;
        int home = -1;
        for (int o = g->nb; o < g->op.n; o++)
            if (update_part(&g->op.at[o]) == 1 && reads(&g->op.at[o], true, s))
                home = device_of(c->p, o);
        for (int d = 0; d < c->p->devices && (kind == S_NORM || kind == S_CLIP) && home >= 0; d++) {
            bool used = false;
            for (int o = g->nb; o < g->op.n; o++)
                used |= device_of(c->p, o) == d && reads(&g->op.at[o], true, s);
            if (used && d != home)
                *PUSH(&c->msg) = (Msg){-1, s, kind == S_NORM ? d : home, kind == S_NORM ? home : d, K_U};
        }
    }
}

/* ---- putting actions --------------------------------------------------------------------------------------------- */

static Action *put(Comm *c, Action a)
{
    Action *k = PUSH(c->out);
    *k = a;
    k->piece = c->piece;
    return k;
}

static Action blank(ActionKind kind, const Action *of)
{
    Action a = {.kind = kind, .chunk = -1, .mb = of->mb, .step = of->step, .version = of->step, .tensor = -1, .state = -1,
                .from_device = -1, .routine = -1, .buf = -1, .host = -1, .peer = -1, .tag = -1, .request = -1, .input = -1};
    return a;
}

/* The message of an action's micro-batch, or of its step. */
static Action transfer(const Comm *c, ActionKind kind, int msg, const Action *of)
{
    const Msg *m = &c->msg.at[msg];
    Action a = blank(kind, of);
    a.tensor = m->tensor;
    a.state = m->state;
    if (m->state >= 0)
        a.mb = -1;
    a.peer = kind == K_SEND ? m->dst : m->src;
    a.tag = msg;
    a.request = c->request[msg];
    a.bytes = m->tensor >= 0 ? c->p->g->tensor.at[m->tensor].bytes : c->p->g->state.at[m->state].bytes;
    return a;
}

static void end(Comm *c, Pendings *list, int i)
{
    Action a = list->at[i].what;
    a.of = a.kind;
    a.kind = K_WAIT;
    put(c, a);
    for (list->n--; i < list->n; i++)
        list->at[i] = list->at[i + 1];
}

static void begin(Comm *c, ActionKind kind, int msg, const Action *of)
{
    Pendings *list = kind == K_SEND ? &c->sent : &c->posted;
    for (int i = list->n - 1; i >= 0; i--)
        if (list->at[i].msg == msg)
            end(c, list, i);
    Action a = transfer(c, kind, msg, of);
    put(c, a);
    *PUSH(list) = (Pending){msg, 0, a};
}

static bool posted(const Comm *c, int msg)
{
    for (int i = 0; i < c->posted.n; i++)
        if (c->posted.at[i].msg == msg)
            return true;
    return false;
}

static void wait_recv(Comm *c, int msg)
{
    for (int i = 0; i < c->posted.n; i++)
        if (c->posted.at[i].msg == msg) {
            end(c, &c->posted, i);
            return;
        }
    die("device %d: message %d was never posted", c->device, msg);
}

/* Sends end after so many forwards and backwards; the partial norms stay under way until the update. */
static void wait_sends(Comm *c, int age, bool norms)
{
    for (int i = 0; i < c->sent.n;)
        if (c->sent.at[i].age >= age && (norms || c->msg.at[c->sent.at[i].msg].state < 0))
            end(c, &c->sent, i);
        else
            i++;
}

/* Does this device take part, as sender or receiver, in the message of such an action? */
static bool mine(const Comm *c, int msg, bool sends, ActionKind kind)
{
    const Msg *m = &c->msg.at[msg];
    return m->tensor >= 0 && (sends ? m->src : m->dst) == c->device && m->kind == kind;
}

static void post(Comm *c, const Action *next)
{
    for (int i = 0; next && i < c->msg.n; i++)
        if (mine(c, i, false, next->kind))
            begin(c, K_RECV, i, next);
}

/* ---- actions of an order ------------------------------------------------------------------------------------------ */

static void put_head(Comm *c, const Action *k)
{
    const Graph *g = c->p->g;
    Action of = *k;
    of.mb = -1;
    put(c, blank(K_BEGIN, &of));
    for (int i = 0; i < g->count.n; i++)
        if (device_of(c->p, g->count.at[i].op) == c->device)
            put(c, blank(K_COUNT, &of))->input = i;
}

/* Data inputs that this computation is the first to read. */
static void put_loads(Comm *c, const Action *k)
{
    const Graph *g = c->p->g;
    for (int t = 0; t < g->tensor.n; t++) {
        ActionKind first = K_U;
        if (g->tensor.at[t].kind != T_INPUT)
            continue;
        for (int o = g->nb - 1; o >= 0; o--)
            if (c->p->chunk.at[o] == k->chunk && reads(&g->op.at[o], false, t))
                first = o < g->nf ? K_F : K_B;
        if (first != k->kind)
            continue;
        Action *load = put(c, blank(K_LOAD, k));
        load->tensor = t;
        load->input = g->tensor.at[t].of;
        load->bytes = g->tensor.at[t].bytes;
    }
}

/* A forward or backward; next: the one after it, NULL if there is none. */
static void put_work(Comm *c, const Action *k, const Action *next)
{
    if (k->kind == K_F && k->mb == 0)
        put_head(c, k);
    bool same = next && next->kind == k->kind;      /* its messages are those of k: one number for both */
    if (!same)
        post(c, next);
    wait_sends(c, c->slack, false);
    for (int i = 0; i < c->sent.n; i++)
        c->sent.at[i].age++;
    put_loads(c, k);
    if (k->kind == K_B && c->back[k->chunk].early > 0)
        put(c, *k)->kind = K_R;
    for (int i = 0; i < c->msg.n; i++)
        if (mine(c, i, false, k->kind))
            wait_recv(c, i);
    if (same)
        post(c, next);
    put(c, *k)->acc = k->kind == K_F ? k->mb > 0 : k->acc;      /* forward only adds up the loss of the step */
    for (int i = 0; i < c->msg.n; i++)
        if (mine(c, i, true, k->kind))
            begin(c, K_SEND, i, k);
}

/* Stage 0 sends the factor of a step between its forwards number m+p-2 and m+p-1 of that step on; on stage i the second one
 * follows the backward of micro-batch i-1 of the next step. */
static void post_factor(Comm *c, const Action *k)
{
    Action of = *k;
    of.step--;
    for (int i = 0; i < c->msg.n; i++) {
        const Msg *m = &c->msg.at[i];
        if (m->state >= 0 && m->dst == c->device && c->p->g->state.at[m->state].kind == S_CLIP && c->piece == PIECE_PERIOD &&
            k->kind == K_B && k->mb == c->device - 1 && k->step > 0)
            begin(c, K_RECV, i, &of);
    }
}

static void wait_norms(Comm *c)
{
    for (int i = 0; i < c->sent.n;)
        if (c->msg.at[c->sent.at[i].msg].state >= 0)
            end(c, &c->sent, i);
        else
            i++;
}

/* part 1: norms to the total; part 2: the factor from there. */
static void put_update(Comm *c, const Action *k)
{
    StateKind kind = k->part == 1 ? S_NORM : k->part == 2 ? S_CLIP : S_VALUES;
    if (k->part == 2)
        wait_norms(c);
    for (int i = 0; i < c->msg.n; i++) {
        const Msg *m = &c->msg.at[i];
        if (m->state < 0 || c->p->g->state.at[m->state].kind != kind)
            continue;
        if (m->src == c->device)
            begin(c, K_SEND, i, k);
        else if (m->dst == c->device && !posted(c, i))
            begin(c, K_RECV, i, k);
    }
    for (int i = 0; i < c->msg.n; i++) {
        const Msg *m = &c->msg.at[i];
        if (m->state < 0 || m->dst != c->device || c->p->g->state.at[m->state].kind != kind)
            continue;
        wait_recv(c, i);
        if (kind == S_CLIP)
            continue;
        Action *gather = put(c, blank(K_GATHER, k));
        gather->state = m->state;
        gather->from_device = m->src;
    }
    put(c, *k);
    if (k->part == 2)
        put(c, blank(K_END, k));
}

/* ---- pieces ------------------------------------------------------------------------------------------------------- */

static bool works(const Action *k)
{
    return k->kind == K_F || k->kind == K_B;
}

static const Action *find(const Actions *list, Piece piece, ActionKind kind, bool last)
{
    const Action *found = NULL;
    for (int i = 0; i < list->n && (last || !found); i++)
        if (list->at[i].piece == piece && list->at[i].kind == kind)
            found = &list->at[i];
    return found;
}

/* What is under way at a cut: the state in which period and epilogue begin. */
static void begin_at_cut(Comm *c, const Actions *order)
{
    const Action *f = find(order, PIECE_PROLOGUE, K_F, true), *b = find(order, PIECE_PERIOD, K_B, false);
    for (int i = 0; i < c->msg.n; i++) {
        if (mine(c, i, true, K_F))
            *PUSH(&c->sent) = (Pending){i, 0, transfer(c, K_SEND, i, f)};
        if (mine(c, i, false, K_B))
            *PUSH(&c->posted) = (Pending){i, 0, transfer(c, K_RECV, i, b)};
    }
}

/* All sends but those of the last forward. */
static void end_at_cut(Comm *c)
{
    for (int i = 0; i < c->sent.n;)
        if (c->msg.at[c->sent.at[i].msg].kind == K_F && c->sent.at[i].age == 0)
            i++;
        else
            end(c, &c->sent, i);
}

static void put_piece(Comm *c, const Actions *order, Piece piece)
{
    const Action *work = NULL;
    Action after = *find(order, PIECE_PERIOD, K_B, false);
    bool open = piece == PIECE_PROLOGUE || piece == PIECE_PERIOD;       /* ends at a cut */
    after.step += piece == PIECE_PERIOD;
    c->piece = piece;
    c->sent.n = c->posted.n = 0;
    if (piece == PIECE_PERIOD || piece == PIECE_EPILOGUE)
        begin_at_cut(c, order);
    else
        post(c, find(order, piece, K_F, false));
    for (int i = 0; i < order->n; i++) {
        const Action *k = &order->at[i], *next = NULL;
        if (k->piece != piece)
            continue;
        for (int j = i + 1; j < order->n && order->at[j].piece == piece && !next; j++)
            next = works(&order->at[j]) ? &order->at[j] : NULL;
        if (works(k)) {
            post_factor(c, k);
            put_work(c, work = k, next ? next : open ? &after : NULL);
        } else if (k->kind == K_U) {
            put_update(c, k);
        } else {
            put(c, *k);
        }
    }
    if (open)
        end_at_cut(c);
    else
        wait_sends(c, 0, true);
    if (work && !open && c->posted.n)
        die("device %d: a receive is posted for nothing", c->device);
}

static void put_eval(Comm *c)
{
    Action k = blank(K_F, &(Action){.mb = 0});
    k.chunk = c->device;
    c->piece = PIECE_STEP;
    c->sent.n = c->posted.n = 0;
    post(c, &k);
    put_work(c, &k, NULL);
    wait_sends(c, 0, true);
    put(c, blank(K_END, &(Action){.mb = -1}));
}

static void write_device(Comm *c, int device)
{
    DevicePlan *d = &c->p->dev.at[device];
    c->device = device;
    d->list.n = d->eval.n = d->requests = 0;
    for (int i = 0; i < c->msg.n; i++)
        if (c->msg.at[i].src == device || c->msg.at[i].dst == device)
            c->request[i] = d->requests++;
    if (d->requests > REQUESTS)
        fail(EXIT_NOFIT, "device %d has %d messages a step, and %d can be told apart; take fewer stages, or a synchronous "
             "schedule", device, d->requests, REQUESTS);
    c->out = &d->list;
    for (Piece piece = PIECE_PROLOGUE; piece < PIECES; piece++)
        if (find(&d->order, piece, K_F, false) || find(&d->order, piece, K_B, false))
            put_piece(c, &d->order, piece);
    c->out = &d->eval;
    if (c->p->m->eval.format)
        put_eval(c);
}

/* needs, fills: as comm. */
int comm_async(Plan *p, const Backward *back)
{
    Comm c = {.p = p, .back = back};
    find_tensors(&c);
    find_norms(&c);
    c.request = alloc(sizeof(int) * (size_t)(c.msg.n + 1));
    for (c.slack = 1; c.slack <= 4; c.slack *= 2) {
        for (int d = 0; d < p->devices; d++)
            write_device(&c, d);
        if (comm_stuck(p, false) < 0)
            return 0;
    }
    p->lack.stuck = strf("schedule %s: values that skip over stages make stage %d wait for ever; cut elsewhere, take fewer "
                         "stages, or a synchronous schedule", p->schedule, comm_stuck(p, false));
    p->lack.device = -1;
    return 1;
}
