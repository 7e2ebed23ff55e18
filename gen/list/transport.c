/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.c: the messages of a plan, and the list of a device as it is written.
 *
 * Between stages messages are the same in every replica, so they are found once, for the first one, a pipeline at a time.  A
 * tensor that one chunk of a device sends to another of the same pipeline and device is no message.
 *
 * Cost: linear in operands, and in tensors times devices and chunks.
 */
#include "transport.h"

/* ---- which messages there are -------------------------------------------------------------------------------- */

int transport_phases(ActionKind kind)
{
    switch (kind) {
    case K_F: return 1 << PH_F;
    case K_B: return 1 << PH_I | 1 << PH_W;
    case K_I: return 1 << PH_I;
    case K_W: return 1 << PH_W;
    default:  return 0;
    }
}

/* phases[t * chunks + chunk]: bits of the phases that read tensor t there */
static int *readers(const Plan *p)
{
    const Graph *g = p->g;
    int chunks = plan_chunks(p), *phases = alloc(sizeof(int) * (size_t)g->tensor.n * (size_t)chunks);
    for (int o = 0; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->kind == ARG_READ && !a->state)
                phases[a->index * chunks + p->chunk.at[o]] |= 1 << g->op.at[o].phase;
    return phases;
}

static void add_tensors(const Plan *p, Msgs *list, int way)
{
    int chunks = plan_chunks(p), *phases = readers(p), *bits = alloc(sizeof *bits * (size_t)plan_stages(p));
    bool split = order_split(p);
    for (int t = 0; t < p->g->tensor.n; t++) {
        int op = p->g->tensor.at[t].op;
        memset(bits, 0, sizeof *bits * (size_t)plan_stages(p));
        for (int k = 0; k < chunks; k++)
            bits[plan_home(p, way, k)] |= phases[t * chunks + k];
        for (int d = 0; op >= 0 && d < plan_stages(p); d++) {
            if (!bits[d] || d == device_of(p, way, op))
                continue;
            Msg *m = PUSH(list);
            *m = (Msg){.tensor = t, .state = -1, .pipeline = way, .src = device_of(p, way, op), .dst = d, .level = -1};
            m->made = p->chunk.at[op];
            m->made_in = 1 << p->g->op.at[op].phase;
            m->slack = transport_slack(p, p->slack.at[2 * m->made + (m->made_in != 1 << PH_F)], m->src, m->dst);
            m->phases = alloc(sizeof(int) * (size_t)chunks);
            for (int k = 0; k < chunks; k++)
                m->phases[k] = plan_home(p, way, k) == d ? phases[t * chunks + k] : 0;
            m->late = bits[d] == 1 << PH_W && split;
        }
    }
}

static void add_states(const Plan *p, Msgs *list, int way)
{
    const Graph *g = p->g;
    size_t stages = (size_t)plan_stages(p), n = (size_t)g->state.n * stages;
    const int slack = order_slack(p);
    bool *made = alloc(n + 1), *wanted = alloc(n + 1);
    for (int o = 0; o < g->op.n; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (!a->state)
                continue;
            size_t at = (size_t)a->index * stages + (size_t)device_of(p, way, o);
            made[at] |= transport_makes(g->state.at[a->index].kind, o >= g->nb, a->kind);
            wanted[at] |= transport_wants(g->state.at[a->index].kind, o >= g->nb, a->kind);
        }
    for (int s = 0; s < g->state.n; s++)
        for (size_t src = 0; transport_part(g->state.at[s].kind) != U_NONE && src < stages; src++)
            for (size_t dst = 0; dst < stages; dst++)
                if (src != dst && made[(size_t)s * stages + src] && wanted[(size_t)s * stages + dst])
                    *PUSH(list) = (Msg){.tensor = -1, .state = s, .pipeline = way, .src = (int)src, .dst = (int)dst,
                                        .level = -1, .slack = slack};
}

/* Gradients cross up the tree.  Down the tree cross those of parameters that each row updates, of tied ones the sum in the
 * first use, or the parameters that rows have updated in parts. */
static bool crosses(const Plan *p, const bool *joined, int s, bool back)
{
    const State *x = &p->g->state.at[s];
    bool sharded = x->param >= 0 && plan_sharded(p, x->param), later = joined[s] && x->use > 0;
    return x->kind == S_BLOCKS ? !back : x->kind == S_GRAD ? !back || ((!sharded || joined[s]) && !later)
         : back && (plan_room(p, s) || (x->kind == S_PARAM && sharded && !plan_parted(p, s)));
}

static int depth_of(const Plan *p, int state)
{
    int op = p->g->state.at[state].op;
    return plan_depth(p, op < 0 ? -1 : p->chunk.at[op]);
}

static void add_merges(const Plan *p, Msgs *list)
{
    int levels = plan_levels(p), slack = order_slack(p);
    const bool *joined = plan_joined(p);
    for (int i = 0; i < 2 * levels; i++)
        for (int s = 0; s < p->g->state.n; s++)
            if (crosses(p, joined, s, i >= levels) && i % levels < depth_of(p, s)) {
                int stage = p->g->state.at[s].op < 0 ? -1 : device_of(p, 0, p->g->state.at[s].op);
                *PUSH(list) = (Msg){.tensor = -1, .state = s, .src = stage, .dst = stage, .level = i % levels,
                                    .back = i >= levels, .joined = joined[s], .room = plan_room(p, s), .slack = slack};
            }
}

Msgs transport_messages(const Plan *p)
{
    Msgs list = {0};
    for (int way = 0; way < plan_ways(p); way++)
        add_tensors(p, &list, way);
    for (int way = 0; way < plan_ways(p); way++)
        add_states(p, &list, way);
    add_merges(p, &list);
    return list;
}

Ints transport_loads(const Plan *p, const Action *k)
{
    const Graph *g = p->g;
    Ints list = {0}, met = {0};
    for (int o = 0; o < g->nb; o++) {
        bool now = transport_phases(k->kind) & 1 << g->op.at[o].phase;
        if (p->chunk.at[o] != k->chunk || !(now || o < g->nf))
            continue;
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            bool input = a->kind == ARG_READ && !a->state && g->tensor.at[a->index].kind == T_INPUT;
            for (int j = 0; input && j < met.n; j++)
                input &= met.at[j] != a->index;
            if (input && now)
                *PUSH(&list) = a->index;
            if (input)
                *PUSH(&met) = a->index;
        }
    }
    return list;
}

/* ---- the list of a device ---------------------------------------------------------------------------------------- */

void desk_open(Desk *d, int device, Actions *out)
{
    d->device = device;
    d->stage = plan_stage(d->p, device);
    d->replica = plan_replica(d->p, device);
    d->out = out;
    d->sent.n = d->posted.n = d->beat = 0;
    for (int i = 0; i < MOST_REQUESTS; i++)
        d->busy[i] = false;
}

Action *desk_put(Desk *d, Action a)
{
    Action *k = PUSH(d->out);
    *k = a;
    k->piece = d->piece;
    return k;
}

Action *desk_new(Desk *d, ActionKind kind, int step, int mb)
{
    return desk_put(d, action_new(kind, step, mb));
}

void desk_head(Desk *d, int step)
{
    const Graph *g = d->p->g;
    desk_new(d, K_BEGIN, step, -1);
    for (int i = 0; i < g->count.n; i++)
        if (runs_on(d->p, g->count.at[i].op, d->device))
            desk_new(d, K_COUNT, step, -1)->input = i;
}

void desk_load(Desk *d, int tensor, int step, int mb)
{
    Action *load = desk_new(d, K_LOAD, step, mb);
    load->tensor = tensor;
    load->input = d->p->g->tensor.at[tensor].of;
    load->bytes = d->p->g->tensor.at[tensor].bytes;
}

static int chunk_of(const Desk *d, const Msg *m)
{
    return d->p->chunk.at[d->p->g->state.at[m->state].op];
}

Halves desk_halves(const Desk *d, int msg)
{
    const Msg *m = &d->msg.at[msg];
    const int row = d->p->g->state.at[m->state].op < 0 ? d->replica : plan_copy(d->p, d->device, chunk_of(d, m));
    return transport_halves(d->p, row, m->state, m->level, m->back);
}

/* Between rows, what crosses of a gradient: into a buffer of its own on the way up. */
static void take_half(const Desk *d, int msg, Action *a)
{
    const Msg *m = &d->msg.at[msg];
    Halves x = desk_halves(d, msg);
    Extent it = a->kind == K_SEND ? x.gives : x.gets;
    a->peer = m->src < 0 ? plan_twin(d->p, d->device, d->replica ^ 1 << m->level)
                         : plan_partner(d->p, d->device, chunk_of(d, m), m->level);
    a->tree_level = m->level;
    a->back = m->back;
    a->bytes = it.until - it.from;
    a->at = a->kind == K_SEND || m->back ? it.from : 0;
}

Action desk_transfer(const Desk *d, ActionKind kind, int msg, int step, int mb)
{
    const Msg *m = &d->msg.at[msg];
    Action a = action_new(kind, step, m->tensor < 0 ? -1 : mb);
    a.tensor = m->tensor;
    a.state = m->state;
    a.pipeline = m->state >= 0 && m->level < 0 && plan_ways(d->p) > 1 ? 1 + m->pipeline : 0;
    a.tag = msg;
    if (m->level >= 0) {
        take_half(d, msg, &a);
        return a;
    }
    a.peer = plan_twin(d->p, kind == K_SEND ? m->dst : m->src, plan_row_at(d->p, d->device, a.mb));
    a.bytes = m->tensor >= 0 ? d->p->g->tensor.at[m->tensor].bytes : d->p->g->state.at[m->state].bytes;
    if (m->tensor < 0 && d->p->g->state.at[m->state].kind == S_GRAD) {      /* of a use elsewhere: what is whole here */
        Extent part = plan_summed(d->p, d->replica, m->state);
        a.at = plan_drops(d->p, m->state) ? 0 : part.from;
        a.bytes = part.until - part.from;
    }
    return a;
}

/* Some operator of the update changes that state on this device. */
static bool changes(const Desk *d, int state)
{
    const Graph *g = d->p->g;
    for (int o = g->nb; o < g->op.n; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->state && a->index == state && a->kind == ARG_UPDATE && runs_on(d->p, o, d->device))
                return true;
    return false;
}

/* The gradients of a chunk that cross at that level; or the blocks of norms, where there are any. */
Ints desk_crossing(const Desk *d, const Action *k)
{
    const Graph *g = d->p->g;
    Ints list = {0};
    for (int i = 0; i < d->msg.n; i++) {
        const Msg *m = &d->msg.at[i];
        bool here = m->level == k->tree_level && m->back == (k->kind == K_SHARE);
        const State *s = here ? &g->state.at[m->state] : NULL;
        bool whole = here && k->state >= 0, some = here && k->state < 0 && m->room == (k->group == 3) &&
            (m->room || s->kind == (k->group == 1 ? S_PARAM : S_GRAD));
        some &= k->kind == K_MERGE || m->joined == (k->group == 2);
        if (whole ? m->state == k->state && changes(d, k->state) : some && d->p->chunk.at[s->op] == k->chunk)
            *PUSH(&list) = i;
    }
    return list;
}

void desk_merge(Desk *d, const Action *k, int msg)
{
    Extent mine = desk_halves(d, msg).gets;
    bool gets = mine.until > mine.from;
    if (gets)
        desk_wait_recv(d, msg, -1);
    for (int i = d->sent.n - 1; i >= 0; i--)
        if (d->sent.at[i].msg == msg)
            desk_end(d, &d->sent, i);
    if (!gets || k->kind != K_MERGE)
        return;
    Action *a = desk_new(d, K_MERGE, k->step, -1);
    a->chunk = k->chunk;
    a->tree_level = k->tree_level;
    a->from_device = k->from_device;
    a->state = d->msg.at[msg].state;
    a->at = mine.from;
    a->bytes = mine.until - mine.from;
}

void desk_begin(Desk *d, int msg, Action transfer)
{
    desk_put(d, transfer);
    *PUSH(transfer.kind == K_SEND ? &d->sent : &d->posted) = (Pending){msg, d->beat, transfer};
}

void desk_end(Desk *d, Pendings *list, int i)
{
    Action a = list->at[i].what;
    a.of = a.kind;
    a.kind = K_WAIT;
    desk_put(d, a);
    d->busy[a.request] = false;
    for (list->n--; i < list->n; i++)
        list->at[i] = list->at[i + 1];
}

static int find_posted(const Desk *d, int msg, int mb)
{
    int i = 0;
    while (i < d->posted.n && (d->posted.at[i].msg != msg || (mb >= 0 && d->posted.at[i].what.mb != mb)))
        i++;
    return i;
}

bool desk_posted(const Desk *d, int msg, int mb)
{
    return find_posted(d, msg, mb) < d->posted.n;
}

void desk_wait_recv(Desk *d, int msg, int mb)
{
    int i = find_posted(d, msg, mb);
    if (i == d->posted.n)
        die("device %d: message %d of micro-batch %d was never posted", d->device, msg, mb);
    desk_end(d, &d->posted, i);
}

void desk_wait_sends(Desk *d, int times, bool states)
{
    for (int i = 0; i < d->sent.n;) {
        const Msg *m = &d->msg.at[d->sent.at[i].msg];
        int slack = times * m->slack + (times > 0 ? d->more : 0);
        if (transport_due(d->sent.at[i].beat, d->beat, slack) && (states || m->tensor >= 0))
            desk_end(d, &d->sent, i);
        else
            i++;
    }
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void see(const Plan *p, Pairs *all, int *of, int device, const Actions *list)
{
    for (EACH(const Action, k, *list)) {
        if (k->kind != K_SEND)
            continue;
        if (!of[k->peer]) {
            *PUSH(all) = (ListPair){device, k->peer, true};
            of[k->peer] = all->n;
        }
        StateKind kind = k->state >= 0 ? p->g->state.at[k->state].kind : S_PARAM;
        all->at[of[k->peer] - 1].talk &= kind == S_NORM || kind == S_CLIP;
    }
}

Pairs transport_pairs(const Plan *p)
{
    Pairs all = {0};
    for (int d = 0; d < p->devices; d++) {
        int *of = alloc(sizeof *of * (size_t)p->devices);
        see(p, &all, of, d, &p->dev.at[d].list);
        see(p, &all, of, d, &p->dev.at[d].eval);
    }
    return all;
}

Bytes transport_load(const Plan *p, int device, bool floats)
{
    const DevicePlan *d = &p->dev.at[device];
    Bytes most = 0;
    for (int i = 0; i < d->list.n + d->eval.n; i++) {
        const Action *k = i < d->list.n ? &d->list.at[i] : &d->eval.at[i - d->list.n];
        const Input *x = k->kind == K_LOAD ? &p->m->inputs.at[k->input] : NULL;
        if (x && (x->type == F32 || !floats))
            most = max_of(most, x->bytes ? k->bytes / type_bytes(F32) : k->bytes);
    }
    return most;
}

Bytes transport_landing(const Plan *p, int device)
{
    return p->m->devices.at[device].workspace && !infers(p->m) && order_overlap(p) == 0 ? transport_load(p, device, true) : 0;
}

Bytes transport_limit(const Plan *p, int device)
{
    Bytes limit = p->m->devices.at[device].memory - transport_landing(p, device), pair = transport_of(p->m)->pair;
    if (!pair)
        return limit;
    const Pairs all = transport_pairs(p);
    for (int i = 0; i < all.n; i++)
        if (!all.at[i].talk && (all.at[i].from == device || all.at[i].to == device))
            limit -= pair;
    return limit - (p->g->team ? 2 * (p->g->team - 1) * pair : 0);
}
