/* SPDX-License-Identifier: Apache-2.0
 *
 * comm.c: the actions of a device besides computing.
 *
 * Method: loads, recomputation, messages and the exchanges of the update are inserted into each device's ordered computations.
 * Every message is two actions, begin and wait, on both sides, and its buffer is taken in between.
 *
 *   receive   posted one computation ahead of its first reader, waited for right before that reader; early recomputation
 *             (K_R) stands between, so that it hides the wait
 *   send      begun right after the computation that made it; waited for after one more computation, or a few
 *   skips     a tensor goes straight from its producer to each device that reads it, once a micro-batch
 *   ties      the gradient of a remote use goes home before the update, the new weight comes back after it
 *   replicas  before the update, level by level of the tree over replicas, two devices send each other a half of their part
 *             of every gradient of a chunk and add the received one.  Down the tree they send each other what they have.  Ties
 *             are added in between, so their messages come there, and carry what the row has summed up.  A few
 *             are under way at once, so that little room is needed
 *   norm      every device sends its vector of partial norms to the one that adds them in global order
 *   offload   copies to the host and back come last and wait only for the link: offload.c
 *
 * The slack of one computation on either side keeps a rendezvous from stalling a balanced pipeline.  It costs one boundary
 * buffer.  Lists that hold spare micro-batches to hide slow messages get two (order_slack), and one more buffer a side.
 *
 * With Choice.far a value that skips over stages gets the slack for each stage that it goes: transport_slack().  Even that may
 * not be enough.  The sender of one waits for a receive, and that receive is posted behind a computation that waits for the
 * sender.  Then sends get twice as much, until nobody waits in a circle.  Without any waits for sends there is no circle,
 * because computations depend on each other in none.
 *
 * transport.h has the rules; planner and replay share them.  A device with several chunks may read in another order than the
 * sender makes.  A receive is then posted early, behind those that were sent before it.
 */
#include "transport.h"
#include "sched/sched.h"

typedef struct { int msg, mb; } Sent;
typedef struct { VEC(Sent) sent; int posted; } CommLane; /* what one device sends to another, in order; so many are posted */

enum { PHASES = 1 << PH_U };

typedef struct {
    Plan *p;
    Desk desk;
    int chunks;
    int ahead, times;           /* slack of receives; how often that of sends */
    const char *full;           /* a device has no request number left, so these are no lists; NULL: they are */
    /* of the device at hand */
    int requests;
    bool eval;
    Actions work;               /* its list, in room that all devices use */
    VEC(Ints) first;            /* arrivals() by action of its order, in such room too */
    bool again;                 /* offload or bucket writes the lists once more: what stands here is of no use then */
    Ints near;                  /* messages between stages from its stage or to it */
    CommLane *lane;             /* by sender: what this device receives */
    int update;                 /* of the update: its messages are put */
    bool *got;                  /* [message * micro-batches + mb]: its first reader has been met */
    bool *loaded;               /* by input tensor and micro-batch */
    Ints *loads;                /* [chunk * PHASES + transport_phases()]: inputs that such a computation reads */
    bool *known;                /* ... once one was met */
} Comm;

/* ---- putting actions ------------------------------------------------------------------------------------------- */

static int take_request(Comm *c)
{
    int n = 0;
    while (n < MOST_REQUESTS && c->desk.busy[n])
        n++;
    if (n == MOST_REQUESTS) {
        c->full = c->full ? c->full : strf("schedule %s: stage %d has more than %d messages under way at once; cut where fewer "
                                           "values cross, take fewer stages, or another schedule", c->p->schedule,
                                           c->desk.stage, MOST_REQUESTS);
        return 0;
    }
    c->desk.busy[n] = true;
    if (n + 1 > c->requests)
        c->requests = n + 1;
    return n;
}

static void begin_with(Comm *c, ActionKind kind, int msg, int mb, int peer)
{
    Action a = desk_transfer(&c->desk, kind, msg, 0, mb);
    a.peer = peer >= 0 ? peer : a.peer;
    a.request = take_request(c);
    desk_begin(&c->desk, msg, a);
}

static void begin(Comm *c, ActionKind kind, int msg, int mb)
{
    begin_with(c, kind, msg, mb, -1);
}

/* Posts the receive of (msg, mb) from that device, after those of messages sent before it.  A later message may have posted it
 * already. */
static void post(Comm *c, int src, int msg, int mb)
{
    CommLane *l = &c->lane[src];
    if (desk_posted(&c->desk, msg, mb))
        return;
    for (bool found = false; !found;) {
        if (l->posted == l->sent.n)
            die("device %d: message %d of micro-batch %d is never sent", c->desk.device, msg, mb);
        Sent s = l->sent.at[l->posted++];
        begin(c, K_RECV, s.msg, s.mb);
        found = s.msg == msg && s.mb == mb;
    }
}

/* The device that sends a message of that micro-batch to this one. */
static int source(const Comm *c, int msg, int mb)
{
    return plan_twin(c->p, c->desk.msg.at[msg].src, plan_row_at(c->p, c->desk.device, mb));
}

/* ---- what a computation reads first ------------------------------------------------------------------------------ */

/* The messages that action k is the first to read on this device; marks them. */
static void arrivals(Comm *c, const Action *k, Ints *list)
{
    list->n = 0;
    for (int n = 0; n < c->near.n; n++) {
        const int i = c->near.at[n];
        const Msg *m = &c->desk.msg.at[i];
        if (m->dst != c->desk.stage || m->tensor < 0 || k->mb < 0 || !(m->phases[k->chunk] & transport_phases(k->kind)))
            continue;
        bool *got = &c->got[(int64_t)i * c->p->g->micro + k->mb];
        if (!*got)
            *PUSH(list) = i;
        *got = true;
    }
}

/* Does the computation make this message?  An evaluation sends what forward reads. */
static bool makes(const Comm *c, const Action *k, const Msg *m)
{
    bool wanted = !c->eval;
    for (int chunk = 0; !wanted && m->tensor >= 0 && chunk < c->chunks; chunk++)
        wanted = m->phases[chunk] & 1 << PH_F;
    return wanted && m->tensor >= 0 && m->made == k->chunk && (m->made_in & transport_phases(k->kind));
}

static void put_sends(Comm *c, const Action *k)
{
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < c->near.n; i++) {
            const Msg *m = &c->desk.msg.at[c->near.at[i]];
            if (m->src == c->desk.stage && m->late == late && makes(c, k, m))
                begin(c, K_SEND, c->near.at[i], k->mb);
        }
}

static bool exchanges(const Action *k)
{
    return k->kind == K_MERGE || k->kind == K_SHARE;
}

static bool gets(const Comm *c, int msg)
{
    Extent x = desk_halves(&c->desk, msg).gets;
    return x.until > x.from;
}

static bool gives(const Comm *c, int msg)
{
    Extent x = desk_halves(&c->desk, msg).gives;
    return x.until > x.from;
}

/* Those that device d sends in an exchange with this one. */
static void find_merges(Comm *c, int d, const Action *k)
{
    Ints list = desk_crossing(&c->desk, k);
    for (int i = 0; i < list.n && k->from_device == c->desk.device; i++)
        if (gets(c, list.at[i]))
            *PUSH(&c->lane[d].sent) = (Sent){list.at[i], -1};
}

/* Those of `here` that the computation of a device makes for this one. */
static void find_lane(Comm *c, int src, const Ints *here, const Action *k)
{
    if (plan_twin(c->p, c->desk.stage, plan_row_at(c->p, src, k->mb)) != c->desk.device)
        return;
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < here->n; i++)
            if (c->desk.msg.at[here->at[i]].late == late && makes(c, k, &c->desk.msg.at[here->at[i]]))
                *PUSH(&c->lane[src].sent) = (Sent){here->at[i], k->mb};
}

/* Messages from a stage to this one. */
static Ints coming_from(const Comm *c, int src)
{
    Ints list = {0};
    for (int i = 0; i < c->near.n; i++)
        if (c->desk.msg.at[c->near.at[i]].src == src && c->desk.msg.at[c->near.at[i]].dst == c->desk.stage)
            *PUSH(&list) = c->near.at[i];
    return list;
}

/* ---- the update ---------------------------------------------------------------------------------------------------- */

enum { BATCH = 64 };            /* messages of the update under way at once, of 256 numbers */

static void end_recv(Comm *c, int msg, UpdatePart part)
{
    desk_wait_recv(&c->desk, msg, -1);
    if (part != U_NORM)
        return;
    Action *a = desk_new(&c->desk, K_GATHER, 0, -1);
    a->state = c->desk.msg.at[msg].state;
    a->from_device = plan_twin(c->desk.p, c->desk.msg.at[msg].src, c->desk.replica);
    a->pipeline = plan_ways(c->desk.p) > 1 ? 1 + c->desk.msg.at[msg].pipeline : 0;
}

/* The devices that have a state from this one: each from that of its own row, or of its first. */
static Ints readers(const Comm *c, const Msg *m)
{
    const Plan *p = c->desk.p;
    Ints list = {0};
    for (int d = 0; d < p->devices; d++)
        if (plan_stage(p, d) == m->dst && plan_twin(p, m->src, plan_replica(p, d)) == c->desk.device)
            *PUSH(&list) = d;
    return list;
}

/* Messages in the order of their tags on every device, so that batches cannot wait for each other in a ring. */
static void put_update_messages(Comm *c, UpdatePart part)
{
    Ints got = {0};
    int under_way = 0;
    for (int i = 0; i < c->desk.msg.n; i++) {
        const Msg *m = &c->desk.msg.at[i];
        bool sends = m->src == c->desk.stage;
        if (m->state < 0 || m->level >= 0 || transport_part(c->p->g->state.at[m->state].kind) != part ||
            (!sends && m->dst != c->desk.stage) || desk_transfer(&c->desk, sends ? K_SEND : K_RECV, i, 0, -1).bytes == 0)
            continue;
        const Ints with = sends ? readers(c, m) : (Ints){0};
        for (int k = 0; k < (sends ? with.n : 1); k++)
            begin_with(c, sends ? K_SEND : K_RECV, i, -1, sends ? with.at[k] : -1);
        if (!sends)
            *PUSH(&got) = i;
        if ((under_way += sends ? with.n : 1) < BATCH)
            continue;
        for (int k = 0; k < got.n; k++)
            end_recv(c, got.at[k], part);
        got.n = under_way = 0;
        desk_wait_sends(&c->desk, -1, true);
    }
    for (int k = 0; k < got.n; k++)
        end_recv(c, got.at[k], part);
}

/* ---- replicas ------------------------------------------------------------------------------------------------------ */

/* The gradients of a chunk, a part each way, in batches; up the tree what came is added.  A batch begins before the one before
 * it ends, so that the wire is busy while gradients are added. */
static void put_merge(Comm *c, const Action *k)
{
    Ints list = desk_crossing(&c->desk, k);
    Batch batch = {0};
    for (int i = 0; i < list.n; i++) {
        Bytes bytes = desk_halves(&c->desk, list.at[i]).bytes;
        batch.largest = bytes > batch.largest ? bytes : batch.largest;
    }
    int first = 0, open = 0;            /* the batch before: list[first .. open-1] */
    for (int i = 0; i < list.n; i++) {
        /* Both ways of one gradient begin. */
        int msg = list.at[i];
        bool here = plan_replica(c->p, k->from_device) == c->desk.replica;
        if (gets(c, msg) && here)
            post(c, k->from_device, msg, -1);
        else if (gets(c, msg))
            begin(c, K_RECV, msg, -1);
        if (gives(c, msg))
            begin(c, K_SEND, msg, -1);
        if (!transport_batch(&batch, desk_halves(&c->desk, list.at[i]).bytes) && i + 1 < list.n)
            continue;
        for (; first < open; first++)
            desk_merge(&c->desk, k, list.at[first]);
        open = i + 1;
    }
    for (; first < open; first++)
        desk_merge(&c->desk, k, list.at[first]);
}

/* The row's part of each parameter of a chunk that has a room and no copy: copies are rounded there. */
static void put_rooms(Comm *c, const Action *k)
{
    const Plan *p = c->desk.p;
    for (int s = 0; s < p->g->state.n; s++) {
        const State *x = &p->g->state.at[s];
        if (x->kind != S_PARAM || !plan_room(p, s) || p->chunk.at[x->op] != k->chunk)
            continue;
        Extent part = plan_own(p, c->desk.replica, s);
        if (part.until == part.from)
            continue;
        Action *a = desk_new(&c->desk, K_ROOM, 0, -1);
        a->chunk = k->chunk;
        a->state = s;
        a->at = part.from;
        a->bytes = part.until - part.from;
    }
}

/* An exchange of rows, or what stands in front of one; false: it is something else. */
static bool put_exchange(Comm *c, const Action *k)
{
    if (k->kind == K_ROOM)
        put_rooms(c, k);
    else if (k->kind == K_FOLD || transport_room(k))
        desk_put(&c->desk, *k);
    else if (exchanges(k))
        put_merge(c, k);
    else
        return false;
    return true;
}

/* ---- the lists ------------------------------------------------------------------------------------------------------- */

static void put_compute(Comm *c, const Action *k, const Ints *now, const Backward *back)
{
    c->desk.beat++;
    desk_wait_sends(&c->desk, c->times, true);
    int part = k->kind != K_U ? U_NONE : k->update == U_TIES ? U_GATHER : k->update;
    bool moves = part == U_GATHER || part == U_NORM || part == U_STEP;
    if (moves && part != c->update)     /* once for all chunks of the device */
        put_update_messages(c, c->update = (UpdatePart)part);
    if (k->chunk >= 0 && k->mb >= 0) {
        int at = k->chunk * PHASES + transport_phases(k->kind);
        if (!c->known[at])
            c->loads[at] = transport_loads(c->p, k);
        c->known[at] = true;
        const Ints *list = &c->loads[at];
        for (int i = 0; i < list->n; i++) {
            bool *loaded = &c->loaded[(int64_t)list->at[i] * c->p->g->micro + k->mb];
            if (!*loaded)
                desk_load(&c->desk, list->at[i], 0, k->mb);
            *loaded = true;
        }
    }
    if (back && back->early > 0 && (k->kind == K_B || k->kind == K_I)) {
        Action r = *k;
        r.kind = K_R;
        desk_put(&c->desk, r);
    }
    for (int i = 0; i < now->n; i++)
        desk_wait_recv(&c->desk, now->at[i], k->mb);
    bool first = k->mb >= 0 && k->mb % plan_share_of(c->p, k->chunk) == 0;
    desk_put(&c->desk, *k)->acc = k->kind == K_F ? !first && !c->eval : k->acc;     /* forward adds up the loss of the step */
    if (k->chunk >= 0 && k->mb >= 0)
        put_sends(c, k);
}

/* Posts the receives for computations up to `ahead` behind the one at j.  Takes and returns the number posted so far. */
static int post_ahead(Comm *c, const Actions *order, const Ints *first, int j, int posted)
{
    int end = j + 1;
    for (int n = 0; n < c->ahead && end < order->n; end++)
        n += transport_beat(&order->at[end], false);
    for (; posted < end; posted++)
        for (int i = 0; i < first[posted].n; i++)
            post(c, source(c, first[posted].at[i], order->at[posted].mb), first[posted].at[i], order->at[posted].mb);
    return posted;
}

static void step_list(Comm *c, const Backward *back)
{
    const Actions *order = &c->p->dev.at[c->desk.device].order;
    while (c->first.n < order->n)
        PUSH(&c->first);
    for (int j = 0; j < order->n; j++)
        arrivals(c, &order->at[j], &c->first.at[j]);
    desk_head(&c->desk, 0);
    for (int j = 0, posted = 0; j < order->n; j++) {
        const Action *k = &order->at[j];
        if (!put_exchange(c, k)) {
            posted = post_ahead(c, order, c->first.at, j, posted);
            put_compute(c, k, &c->first.at[j], k->chunk >= 0 ? &back[k->chunk] : NULL);
        }
    }
    put_update_messages(c, U_COPIES);
    desk_wait_sends(&c->desk, -1, true);
    desk_new(&c->desk, K_END, 0, -1);
}

/* One micro-batch forward through every chunk, in chunk order. */
static void eval_list(Comm *c)
{
    desk_head(&c->desk, 0);
    for (int chunk = 0; chunk < c->chunks; chunk++) {
        bool idle = plan_uneven(c->p) && c->desk.device != c->desk.stage;        /* it runs through the first row */
        if (stage_of(c->p, chunk) != c->desk.stage || idle)
            continue;
        Action k = action_new(K_F, 0, 0);
        k.chunk = chunk;
        Actions room = {0};
        if (c->p->m->train.shard == SHARD_PARAMETERS && plan_levels(c->p) > 0)
            sched_room(c->p, c->desk.device, &room, chunk);
        for (int i = 0; i < room.n; i++)
            put_exchange(c, &room.at[i]);
        Ints now = {0};
        arrivals(c, &k, &now);
        for (int i = 0; i < now.n; i++)
            post(c, source(c, now.at[i], 0), now.at[i], 0);
        put_compute(c, &k, &now, NULL);
    }
    desk_wait_sends(&c->desk, -1, true);
    desk_new(&c->desk, K_END, 0, -1);
}

static void start(Comm *c, int device, bool eval)
{
    const Graph *g = c->p->g;
    c->work.n = 0;
    desk_open(&c->desk, device, &c->work);
    c->near.n = 0;
    for (int i = 0; i < c->desk.msg.n; i++)
        if (c->desk.msg.at[i].src == c->desk.stage || c->desk.msg.at[i].dst == c->desk.stage)
            *PUSH(&c->near) = i;
    c->eval = eval;
    c->update = U_NONE;
    c->requests = c->eval ? c->requests : 0;
    memset(c->loaded, 0, (size_t)g->tensor.n * (size_t)g->micro);
    memset(c->got, 0, (size_t)(c->desk.msg.n + 1) * (size_t)g->micro);
    /* The messages from each device to this one, in the order in which put_sends() will write them there. */
    const Plan *p = c->p;
    c->lane = alloc(sizeof *c->lane * (size_t)p->devices);
    for (int d = 0; d < p->devices && !c->eval; d++) {
        const Actions *order = &p->dev.at[d].order;
        int stage = plan_stage(p, d);
        if (stage == c->desk.stage || !(plan_uneven(p) || plan_replica(p, d) == c->desk.replica))
            continue;
        Ints here = coming_from(c, stage);
        for (int i = 0; i < order->n && (here.n > 0 || plan_levels(p) > 0); i++)
            if (exchanges(&order->at[i]))
                find_merges(c, d, &order->at[i]);
            else if (order->at[i].mb >= 0)
                find_lane(c, d, &here, &order->at[i]);
    }
    for (int chunk = 0; chunk < c->chunks && c->eval; chunk++) {
        int src = plan_twin(p, stage_of(p, chunk), c->desk.replica);
        Ints here = coming_from(c, stage_of(p, chunk));
        find_lane(c, src, &here, &(Action){.kind = K_F, .chunk = chunk});
    }
}

enum { MOST_SLACK = 1 << 20 };

/* The list at hand, in the room of those. */
static Actions list_in(const Comm *c, Room *room)
{
    Room *was = mem_in(room);
    Actions list = actions_copied(&c->work);
    mem_in(was);
    return list;
}

static void write_lists(Comm *c, const Backward *back, Room *room)
{
    Plan *p = c->p;
    for (int d = 0; d < p->devices; d++) {
        start(c, d, false);
        step_list(c, back);
        p->dev.at[d].list = list_in(c, room);
        p->dev.at[d].eval = (Actions){0};
        if (p->m->eval.format) {
            start(c, d, true);
            eval_list(c);
            p->dev.at[d].eval = list_in(c, room);
        }
        p->dev.at[d].requests = c->requests;
    }
}

static bool stuck(const Plan *p)
{
    return comm_stuck(p, false) >= 0 || comm_stuck(p, true) >= 0;
}

static bool any_fetched(const Comm *c, const Backward *back)
{
    for (int k = 0; k < c->chunks; k++)
        if (memchr(back[k].fetched, true, (size_t)c->p->g->tensor.n))
            return true;
    return false;
}

/* The lists of synchronous schedules, in `room`; nonzero: there are none. */
static int write_all(Comm *c, const Backward *back, Room *room)
{
    Plan *p = c->p;
    c->again = plan_buckets(p) > 1 || any_fetched(c, back);
    Room *now = c->again ? mem_now() : room, *scratch = mem_in(now);
    void *mark = mem_mark();
    mem_in(scratch);
    size_t micro = (size_t)p->g->micro;
    c->desk = (Desk){.p = p, .msg = transport_messages(p)};
    c->loads = alloc(sizeof *c->loads * PHASES * (size_t)c->chunks);
    c->known = alloc(PHASES * (size_t)c->chunks);
    c->loaded = alloc((size_t)p->g->tensor.n * micro);
    c->got = alloc((size_t)(c->desk.msg.n + 1) * micro);
    c->ahead = order_slack(p);
    c->times = 1;
    for (write_lists(c, back, now); !c->full && stuck(p) && c->times < MOST_SLACK; write_lists(c, back, now)) {
        c->times *= 2;
        if (!c->again) {
            mem_in(now);
            mem_release(mark);
            mem_in(scratch);
        }
    }
    if (c->full)
        return 1;
    for (int d = 0; d < p->devices; d++)
        offload(p, d, back, &p->dev.at[d].list);
    for (int d = 0; d < p->devices; d++)
        if (bucket(p, d, back, &p->dev.at[d].list))
            return 1;
    return 0;
}

/* needs: dev[].order, chunk, home, fate.  fills: dev[].list, dev[].eval, dev[].requests. */
int comm(Plan *p)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    Comm c = {.p = p, .chunks = plan_chunks(p)};
    const Backward *back = backwards_of(p);
    bool async = order_overlap(p) > 0;
    if (async && any_fetched(&c, back))
        fail(EXIT_NOFIT, "schedule %s: offload goes with synchronous schedules alone; --offload none, or another --schedule",
             p->schedule);
    for (int k = 0; k < c.chunks && async && order_apart(p); k++)
        for (int t = 0; t < p->g->tensor.n; t++)
            if (back[k].remade[t])
                fail(EXIT_NOFIT, "schedule %s: backward has no longer the weights that forward read, so nothing is made again "
                     "there; --recompute none, or another --schedule", p->schedule);
    if (async) {
        mem_in(room);
        int none = comm_async(p, back);
        mem_drop(scratch);
        return none;
    }
    int none = write_all(&c, back, room);
    mem_in(room);
    p->shortfall.stuck = c.full ? strf("%s", c.full) : NULL;
    for (int d = 0; d < p->devices && c.again; d++) {
        p->dev.at[d].list = actions_copied(&p->dev.at[d].list);
        p->dev.at[d].eval = actions_copied(&p->dev.at[d].eval);
    }
    mem_drop(scratch);
    return none;
}
