/* SPDX-License-Identifier: Apache-2.0
 *
 * comm: what a device does besides computing.
 *
 * Takes each device's ordered computations and inserts loads, recomputation, messages and the exchanges of the
 * update.  Every message is two actions, begin and wait, on both sides, and its buffer is taken in between.
 *
 *   receive   posted one computation ahead of the one that reads it first, waited for right before that one; what is
 *             recomputed first (K_R) stands between, so that it hides the wait
 *   send      begun right after the computation that made it; waited for after one more computation, or a few
 *   skips     a tensor goes straight from its producer to each device that reads it, once a micro-batch
 *   ties      the gradient of a remote use goes home before the update, the new weight comes back after it
 *   replicas  before the update, level by level of the tree over replicas, two devices send each other every gradient of a
 *             chunk and add what came; a few are under way at once, so that little room is needed
 *   norm      every device sends its vector of partial norms to the one that adds them in global order
 *   offload   copies to the host and back, last, where only the link is waited for: offload.c
 *
 * A fold of gradient groups is no computation here: some devices have one between two micro-batches where others have
 * none, and slack that is shorter on one side lets 1F1B, with a skip over all stages, wait in a circle.
 *
 * The slack of one computation on either side is what keeps a rendezvous from stalling a balanced pipeline; it
 * costs one boundary buffer.  Lists that hold spare micro-batches to hide slow messages get two (order_slack), and one more
 * buffer a side.  With values that skip over several stages of a deep pipeline it may not be enough: the
 * sender of one waits for a receive that is posted behind a computation that waits for the sender.  Then sends get twice as
 * much, until nobody waits in a circle; without any waits for sends there is none, for computations depend on each other in
 * no circle.  More slack for speed is a planning decision that a schedule would have to price.
 *
 * Messages between two devices are begun in the same order on both: that in which the sender makes them.  Where a device
 * holds several chunks, and so reads in another order, a receive is posted early, behind those that were sent before it.
 * What one chunk hands to another on its own device is no message.
 */
#include "plan.h"

typedef struct {                /* between stages: a message of every replica */
    int tensor, state, src, dst, tag;
    int level;                  /* between two replicas, of the same stage: level of their tree; else -1 */
    int *phases;                /* by chunk: bits of the phases that read it on dst */
    int made, made_in;          /* chunk and phase that produce it */
    bool *got;                  /* by micro-batch: its first reader has been met */
} Msg;
typedef VEC(Msg) Msgs;

typedef struct { int msg, request, age; Action what; } Pending;
typedef struct { int msg, mb; } Sent;
typedef struct { VEC(Sent) sent; int posted; } Lane;    /* what one device sends to another, in order; so many are posted */

typedef struct {
    Plan *p;
    Msgs msg;                   /* tensors; then states of the update */
    int chunks;
    Ints *users;                /* by state: operators that name it */
    /* of the device at hand */
    int device, stage, base;    /* base: stage 0 of its replica */
    Actions *out;
    bool busy[256];             /* request numbers */
    int requests;
    int ahead;                  /* computations that a receive is posted before its reader */
    int slack;                  /* computations until a send is waited for */
    bool eval;
    Lane *lane;                 /* by sender: what this device receives */
    int part;                   /* of the update: its messages are put */
    VEC(Pending) sent, posted;
    bool *loaded;               /* by input tensor and micro-batch */
} Comm;

static int phases_of(ActionKind kind)
{
    switch (kind) {
    case K_F: return 1 << PH_F;
    case K_B: return 1 << PH_I | 1 << PH_W;
    case K_I: return 1 << PH_I;
    case K_W: return 1 << PH_W;
    default:  return 0;
    }
}

/* ---- which messages there are -------------------------------------------------------------------------------- */

static Msg *add_message(Comm *c, int tensor, int state, int src, int dst)
{
    Msg *m = PUSH(&c->msg);
    *m = (Msg){.tensor = tensor, .state = state, .src = src, .dst = dst, .tag = c->msg.n - 1, .level = -1};
    m->phases = alloc(sizeof(int) * (size_t)c->chunks);
    m->got = alloc((size_t)c->p->g->micro);
    return m;
}

/* phases[t * chunks + chunk]: bits of the phases that read tensor t there */
static int *readers(const Comm *c)
{
    const Graph *g = c->p->g;
    int *phases = alloc(sizeof(int) * (size_t)g->tensor.n * (size_t)c->chunks);
    for (int o = 0; o < g->nb; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind == ARG_READ && !a->state)
                phases[a->index * c->chunks + c->p->chunk.at[o]] |= 1 << g->op.at[o].phase;
        }
    return phases;
}

static void find_messages(Comm *c)
{
    const Graph *g = c->p->g;
    int *phases = readers(c);
    for (int t = 0; t < g->tensor.n; t++) {
        int op = g->tensor.at[t].op;
        if (op < 0)
            continue;
        for (int d = 0; d < plan_stages(c->p); d++) {
            bool read = false;
            for (int k = 0; k < c->chunks; k++)
                read |= c->p->chunk_device.at[k] == d && phases[t * c->chunks + k];
            if (!read || d == device_of(c->p, op))
                continue;
            Msg *m = add_message(c, t, -1, device_of(c->p, op), d);
            m->made = c->p->chunk.at[op];
            m->made_in = 1 << g->op.at[op].phase;
            for (int k = 0; k < c->chunks; k++)
                if (c->p->chunk_device.at[k] == d)
                    m->phases[k] = phases[t * c->chunks + k];
        }
    }
}

/* ---- putting actions ------------------------------------------------------------------------------------------- */

static Action *put(Comm *c, Action a)
{
    Action *k = PUSH(c->out);
    *k = a;
    return k;
}

static Action blank(ActionKind kind)
{
    return (Action){.kind = kind, .chunk = -1, .mb = -1, .tensor = -1, .state = -1, .from_device = -1, .routine = -1,
                    .buf = -1, .host = -1, .peer = -1, .tag = -1, .request = -1, .input = -1};
}

static int take_request(Comm *c)
{
    int n = 0;
    while (n < 256 && c->busy[n])
        n++;
    if (n == 256)
        fail(EXIT_NOFIT, "device %d has more than 256 transfers under way at once", c->device);
    c->busy[n] = true;
    if (n + 1 > c->requests)
        c->requests = n + 1;
    return n;
}

static Action transfer(Comm *c, ActionKind kind, int msg, int mb)
{
    const Msg *m = &c->msg.at[msg];
    Action a = blank(kind);
    a.tensor = m->tensor;
    a.state = m->state;
    a.mb = mb;
    a.peer = m->level >= 0 ? plan_partner(c->p, c->device, m->level) : c->base + (kind == K_SEND ? m->dst : m->src);
    a.part = m->level >= 0 ? m->level : 0;
    a.tag = m->tag;
    a.bytes = m->tensor >= 0 ? c->p->g->tensor.at[m->tensor].bytes : c->p->g->state.at[m->state].bytes;
    a.request = take_request(c);
    return a;
}

static void put_send(Comm *c, int msg, int mb)
{
    Action a = transfer(c, K_SEND, msg, mb);
    put(c, a);
    *PUSH(&c->sent) = (Pending){msg, a.request, 0, a};
}

static void put_recv(Comm *c, int msg, int mb)
{
    Action a = transfer(c, K_RECV, msg, mb);
    put(c, a);
    *PUSH(&c->posted) = (Pending){msg, a.request, 0, a};
}

/* Post the receive of (msg, mb), after those that are sent before it; it may have been posted for such a reason. */
static void post(Comm *c, int msg, int mb)
{
    Lane *l = &c->lane[c->msg.at[msg].src];
    for (int i = 0; i < c->posted.n; i++)
        if (c->posted.at[i].msg == msg && c->posted.at[i].what.mb == mb)
            return;
    for (bool found = false; !found;) {
        if (l->posted == l->sent.n)
            die("device %d: message %d of micro-batch %d is never sent", c->device, msg, mb);
        Sent s = l->sent.at[l->posted++];
        put_recv(c, s.msg, s.mb);
        found = s.msg == msg && s.mb == mb;
    }
}

static void put_wait(Comm *c, const Pending *w)
{
    Action a = w->what;
    a.of = a.kind;
    a.kind = K_WAIT;
    put(c, a);
    c->busy[w->request] = false;
}

/* Wait for the receive of (msg, mb) posted before. */
static void wait_recv(Comm *c, int msg, int mb)
{
    for (int i = 0; i < c->posted.n; i++)
        if (c->posted.at[i].msg == msg && c->posted.at[i].what.mb == mb) {
            put_wait(c, &c->posted.at[i]);
            c->posted.at[i] = c->posted.at[--c->posted.n];
            return;
        }
    die("device %d: message %d of micro-batch %d was never posted", c->device, msg, mb);
}

/* Wait for the send of (msg, mb) begun before. */
static void wait_send(Comm *c, int msg)
{
    int kept = 0;
    for (int i = 0; i < c->sent.n; i++)
        if (c->sent.at[i].msg == msg)
            put_wait(c, &c->sent.at[i]);
        else
            c->sent.at[kept++] = c->sent.at[i];
    c->sent.n = kept;
}

/* Sends end after `age` computations. */
static void wait_sends(Comm *c, int age)
{
    int kept = 0;
    for (int i = 0; i < c->sent.n; i++) {
        if (c->sent.at[i].age >= age)
            put_wait(c, &c->sent.at[i]);
        else
            c->sent.at[kept++] = c->sent.at[i];
    }
    c->sent.n = kept;
}

/* ---- what a computation reads first ------------------------------------------------------------------------------ */

/* Messages whose first reader on this device is action k; marks them. */
static Ints arrivals(Comm *c, const Action *k)
{
    Ints list = {0};
    for (int i = 0; i < c->msg.n; i++) {
        Msg *m = &c->msg.at[i];
        if (m->dst != c->stage || m->tensor < 0 || k->mb < 0 || m->got[k->mb])
            continue;
        if (m->phases[k->chunk] & phases_of(k->kind)) {
            m->got[k->mb] = true;
            *PUSH(&list) = i;
        }
    }
    return list;
}

static void put_loads(Comm *c, const Action *k)
{
    const Graph *g = c->p->g;
    for (int o = 0; o < g->nb; o++) {
        if (c->p->chunk.at[o] != k->chunk || !(phases_of(k->kind) & 1 << g->op.at[o].phase))
            continue;
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind != ARG_READ || a->state || g->tensor.at[a->index].kind != T_INPUT)
                continue;
            bool *loaded = &c->loaded[(size_t)a->index * (size_t)g->micro + (size_t)k->mb];
            if (*loaded)
                continue;
            *loaded = true;
            Action load = blank(K_LOAD);
            load.tensor = a->index;
            load.mb = k->mb;
            load.input = g->tensor.at[a->index].of;
            load.bytes = g->tensor.at[a->index].bytes;
            put(c, load);
        }
    }
}

/* Does the computation make this message?  An evaluation sends what forward reads. */
static bool makes(const Comm *c, const Action *k, const Msg *m)
{
    bool wanted = !c->eval;
    for (int chunk = 0; !wanted && m->tensor >= 0 && chunk < c->chunks; chunk++)
        wanted = m->phases[chunk] & 1 << PH_F;
    return wanted && m->tensor >= 0 && m->made == k->chunk && (m->made_in & phases_of(k->kind));
}

static void put_sends(Comm *c, const Action *k)
{
    for (int i = 0; i < c->msg.n; i++)
        if (c->msg.at[i].src == c->stage && makes(c, k, &c->msg.at[i]))
            put_send(c, i, k->mb);
}

static void find_lane(Comm *c, const Action *k)
{
    for (int i = 0; i < c->msg.n; i++)
        if (c->msg.at[i].dst == c->stage && makes(c, k, &c->msg.at[i]))
            *PUSH(&c->lane[c->msg.at[i].src].sent) = (Sent){i, k->mb};
}

/* What each device sends to this one, in the order in which put_sends() will write it there. */
static void find_lanes(Comm *c)
{
    const Plan *p = c->p;
    c->lane = alloc(sizeof *c->lane * (size_t)plan_stages(p));
    for (int d = 0; d < plan_stages(p) && !c->eval; d++) {
        const Actions *order = &p->dev.at[c->base + d].order;
        for (int i = 0; i < order->n; i++)
            if (d != c->stage && order->at[i].mb >= 0)
                find_lane(c, &order->at[i]);
    }
    for (int chunk = 0; chunk < c->chunks && c->eval; chunk++)
        find_lane(c, &(Action){.kind = K_F, .chunk = chunk});
}

/* ---- the update ---------------------------------------------------------------------------------------------------- */

static bool touches(const Op *o, int state, bool read)
{
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        bool changes = a->kind == ARG_ADD || a->kind == ARG_UPDATE || a->kind == ARG_WRITE;
        if (a->state && a->index == state && (read ? a->kind == ARG_READ : changes))
            return true;
    }
    return false;
}

/* Does an operator on device d, of the update or before it, read the state, or change it? */
static bool used_on(const Comm *c, int state, int d, bool update, bool read)
{
    const Graph *g = c->p->g;
    for (int i = 0; i < c->users[state].n; i++) {
        int o = c->users[state].at[i];
        if ((o >= g->nb) == update && device_of(c->p, o) == d && touches(&g->op.at[o], state, read))
            return true;
    }
    return false;
}

static void find_users(Comm *c)
{
    const Graph *g = c->p->g;
    c->users = alloc(sizeof(Ints) * (size_t)g->state.n);
    for (int o = 0; o < g->op.n; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->state)
                *PUSH(&c->users[a->index]) = o;
        }
}

/* A state made on one device and wanted on another during the update:
 *   gradients of remote uses, before part 0; partial norms, before part 1; the clip factor, before part 2;
 *   new weights, after part 2. */
static int part_of(const State *s)
{
    return s->kind == S_GRAD ? 0 : s->kind == S_NORM ? 1 : s->kind == S_CLIP ? 2 : 3;
}

static void find_update_messages(Comm *c)
{
    const Graph *g = c->p->g;
    find_users(c);
    for (int s = 0; s < g->state.n; s++) {
        StateKind kind = g->state.at[s].kind;
        if (kind == S_VALUES || kind == S_MOMENT1 || kind == S_MOMENT2)
            continue;
        bool late = kind == S_PARAM || kind == S_COPY;      /* made by the update, read by the next step */
        for (int src = 0; src < plan_stages(c->p); src++)
            for (int dst = 0; dst < plan_stages(c->p); dst++) {
                if (src == dst || !used_on(c, s, src, kind != S_GRAD, false))
                    continue;
                bool wanted = kind == S_GRAD
                    ? used_on(c, s, dst, true, false) || used_on(c, s, dst, true, true)
                    : used_on(c, s, dst, !late, true);
                if (wanted)
                    add_message(c, -1, s, src, dst);
            }
    }
}

enum { BATCH = 64 };            /* messages of the update under way at once, of 256 numbers */

static void end_recv(Comm *c, int msg, int part)
{
    wait_recv(c, msg, -1);
    if (part != 1)
        return;
    Action a = blank(K_GATHER);
    a.state = c->msg.at[msg].state;
    a.from_device = c->base + c->msg.at[msg].src;
    put(c, a);
}

/* Messages in the order of their tags on every device, so that batches cannot wait for each other in a ring. */
static void put_update_messages(Comm *c, int part)
{
    const Graph *g = c->p->g;
    Ints got = {0};
    int under_way = 0;
    for (int i = 0; i < c->msg.n; i++) {
        const Msg *m = &c->msg.at[i];
        if (m->state < 0 || m->level >= 0 || part_of(&g->state.at[m->state]) != part ||
            (m->src != c->stage && m->dst != c->stage))
            continue;
        if (m->src == c->stage)
            put_send(c, i, -1);
        else {
            put_recv(c, i, -1);
            *PUSH(&got) = i;
        }
        if (++under_way % BATCH)
            continue;
        for (int k = 0; k < got.n; k++)
            end_recv(c, got.at[k], part);
        got.n = 0;
        wait_sends(c, 0);
    }
    for (int k = 0; k < got.n; k++)
        end_recv(c, got.at[k], part);
}

/* ---- replicas ------------------------------------------------------------------------------------------------------ */

static void find_merges(Comm *c)
{
    const Graph *g = c->p->g;
    for (int level = 0; level < plan_levels(c->p); level++)
        for (int s = 0; s < g->state.n; s++)
            if (g->state.at[s].kind == S_GRAD) {
                int stage = device_of(c->p, g->state.at[s].op);
                add_message(c, -1, s, stage, stage)->level = level;
            }
}

static void end_merge(Comm *c, const Action *k, int msg)
{
    Action a = blank(K_MERGE);
    wait_recv(c, msg, -1);
    wait_send(c, msg);
    a.chunk = k->chunk;
    a.part = k->part;
    a.from_device = k->from_device;
    a.state = c->msg.at[msg].state;
    a.bytes = c->p->g->state.at[a.state].bytes;
    put(c, a);
}

/* The gradients of a chunk, both ways and then added, in the order of the states: the same on both sides. */
static void put_merge(Comm *c, const Action *k)
{
    const Graph *g = c->p->g;
    Ints list = {0};
    Bytes largest = 0, way = 0;
    for (int i = 0; i < c->msg.n; i++)
        if (c->msg.at[i].level == k->part && c->p->chunk.at[g->state.at[c->msg.at[i].state].op] == k->chunk) {
            Bytes bytes = g->state.at[c->msg.at[i].state].bytes;
            *PUSH(&list) = i;
            largest = bytes > largest ? bytes : largest;
        }
    for (int i = 0, first = 0; i < list.n; i++) {
        put_recv(c, list.at[i], -1);
        put_send(c, list.at[i], -1);
        way += g->state.at[c->msg.at[list.at[i]].state].bytes;
        if (i + 1 < list.n && i + 1 - first < MERGES && way < largest)
            continue;
        for (way = 0; first <= i; first++)
            end_merge(c, k, list.at[first]);
    }
}

/* ---- the lists ------------------------------------------------------------------------------------------------------- */

static void put_head(Comm *c)
{
    const Graph *g = c->p->g;
    put(c, blank(K_BEGIN));
    for (int i = 0; i < g->count.n; i++) {
        if (device_of(c->p, g->count.at[i].op) != c->stage)
            continue;
        Action a = blank(K_COUNT);
        a.input = i;
        put(c, a);
    }
}

static void put_compute(Comm *c, const Action *k, const Ints *now, const Backward *back)
{
    wait_sends(c, c->slack);
    for (int i = 0; i < c->sent.n; i++)
        c->sent.at[i].age++;
    if (k->kind == K_U && k->part != c->part)       /* once for all chunks of the device */
        put_update_messages(c, c->part = k->part);
    if (k->chunk >= 0 && k->mb >= 0)
        put_loads(c, k);
    if (back && back->early > 0 && (k->kind == K_B || k->kind == K_I)) {
        Action r = *k;
        r.kind = K_R;
        put(c, r);
    }
    for (int i = 0; i < now->n; i++)
        wait_recv(c, now->at[i], k->mb);
    bool first = k->mb == plan_first(c->p, c->device);
    put(c, *k)->acc = k->kind == K_F ? !first && !c->eval : k->acc;     /* forward only adds up the loss of the step */
    if (k->chunk >= 0 && k->mb >= 0)
        put_sends(c, k);
}

/* The receives of all that comes up to `ahead` computations behind the one at j; so many are posted, and then. */
static int post_ahead(Comm *c, const Actions *order, const Ints *first, int j, int posted)
{
    int end = j + 1;
    for (int n = 0; n < c->ahead && end < order->n; end++)
        n += order->at[end].kind != K_FOLD;
    for (; posted < end; posted++)
        for (int i = 0; i < first[posted].n; i++)
            post(c, first[posted].at[i], order->at[posted].mb);
    return posted;
}

static void step_list(Comm *c, const Backward *back)
{
    const Actions *order = &c->p->dev.at[c->device].order;
    VEC(Ints) first = {0};
    for (int j = 0; j < order->n; j++)
        *PUSH(&first) = arrivals(c, &order->at[j]);
    put_head(c);
    for (int j = 0, posted = 0; j < order->n; j++) {
        const Action *k = &order->at[j];
        if (k->kind == K_FOLD) {
            put(c, *k);
        } else if (k->kind == K_MERGE) {
            put_merge(c, k);
        } else {
            posted = post_ahead(c, order, first.at, j, posted);
            put_compute(c, k, &first.at[j], k->chunk >= 0 ? &back[k->chunk] : NULL);
        }
    }
    put_update_messages(c, 3);
    wait_sends(c, 0);
    put(c, blank(K_END));
}

/* One micro-batch forward through every chunk, in chunk order. */
static void eval_list(Comm *c)
{
    put_head(c);
    for (int chunk = 0; chunk < c->chunks; chunk++) {
        if (c->p->chunk_device.at[chunk] != c->stage)
            continue;
        Action k = blank(K_F);
        k.chunk = chunk;
        k.mb = 0;
        Ints now = arrivals(c, &k);
        for (int i = 0; i < now.n; i++)
            post(c, now.at[i], 0);
        put_compute(c, &k, &now, NULL);
    }
    wait_sends(c, 0);
    put(c, blank(K_END));
}

static void start(Comm *c, int device, Actions *out)
{
    const Graph *g = c->p->g;
    c->device = device;
    c->stage = plan_stage(c->p, device);
    c->base = device - c->stage;
    c->out = out;
    c->eval = out == &c->p->dev.at[device].eval;
    c->part = -1;
    c->sent.n = c->posted.n = 0;
    c->requests = c->eval ? c->requests : 0;
    c->loaded = alloc((size_t)g->tensor.n * (size_t)g->micro);
    for (int i = 0; i < 256; i++)
        c->busy[i] = false;
    for (int i = 0; i < c->msg.n; i++)
        for (int mb = 0; mb < g->micro; mb++)
            c->msg.at[i].got[mb] = false;
    find_lanes(c);
}

enum { MOST_SLACK = 1 << 20 };

static void write_lists(Comm *c, const Backward *back)
{
    Plan *p = c->p;
    for (int d = 0; d < p->devices; d++) {
        p->dev.at[d].list.n = p->dev.at[d].eval.n = 0;
        start(c, d, &p->dev.at[d].list);
        step_list(c, back);
        if (p->m->eval.format) {
            start(c, d, &p->dev.at[d].eval);
            eval_list(c);
        }
        p->dev.at[d].requests = c->requests;
    }
}

static bool stuck(const Plan *p)
{
    return comm_stuck(p, false) >= 0 || comm_stuck(p, true) >= 0;
}

/* needs: dev[].order, chunk, chunk_device, fate.  fills: dev[].list, dev[].eval, dev[].requests. */
int comm(Plan *p)
{
    Comm c = {.p = p, .chunks = p->chunk_device.n};
    Backward *back = alloc(sizeof *back * (size_t)c.chunks);
    for (int k = 0; k < c.chunks; k++)
        back[k] = backward_of(p, k, 0);
    bool async = order_overlap(p) > 0;
    for (int k = 0; k < c.chunks && async; k++)
        for (int t = 0; t < p->g->tensor.n; t++)
            if (back[k].fetched[t])
                fail(EXIT_NOFIT, "schedule %s: offload goes with synchronous schedules alone; --offload none, or another "
                     "--schedule", p->schedule);
    if (async)
        return comm_async(p, back);
    find_messages(&c);
    find_update_messages(&c);
    find_merges(&c);
    c.ahead = c.slack = order_slack(p);
    for (write_lists(&c, back); stuck(p) && c.slack < MOST_SLACK; write_lists(&c, back))
        c.slack *= 2;
    for (int d = 0; d < p->devices; d++)
        offload(p, d, back, &p->dev.at[d].list);
    return 0;
}
