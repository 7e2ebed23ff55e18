/* SPDX-License-Identifier: Apache-2.0
 *
 * preview_ends.c: the actions of a device before its first and after its last computation, as far as they depend on cuts.
 *
 * Problem: with replicas the exchange of gradients may take longer than all computations.  It lasts as long as the largest
 * stage has parameters, so the best cuts with it are others than without it.  Gradients and weights of tied parameters cross
 * at the end of the step, where nothing hides them, and norms are waited for.
 *
 * Method: the rules of transport.h and list.h over whole states.  Level by level of the tree over replicas, parts of gradients
 * go both ways, a few under way at once, and are added.  Then they go down the tree.  The other replica is assumed to be as
 * far.  Then come the parts of the update and the new weights.  A message begins when both sides are at its part.  All
 * receives of a part are waited for before its calls.  Sends are waited for order_slack() parts behind the next one, and at
 * the end.
 *
 *   finish_least    lower bounds for the first chunk, where all backwards end.  It merges its gradients, receives one gradient
 *                   of a tie and one norm if any are made behind it, updates, and sends a tied weight
 *
 * Not handled: more than 64 messages of a part at once, replicas of different speed.
 *
 * Cost: linear in gradients, states that several chunks use, and messages.
 */
#include "exact.h"
#include "list/transport.h"
#include "list/list.h"

typedef struct { int at; bool made, wanted; } User;     /* at: forward operator of the chunk */
typedef struct { Bytes bytes; UpdatePart update; VEC(User) user; } Shared;
typedef VEC(Shared) Shareds;
typedef struct { int at, state, down; } Given; /* down: with which K_SHARE it goes down the tree, Action.group; -1: with none */
typedef struct { Bytes bytes; int n; } GradientSum;

struct Finish {
    const Facts *x;
    const Plan *p;
    int slack;                  /* parts until a send is waited for, behind the next one */
    Shareds shared;             /* states that more than one chunk may use, in their order */
    VEC(Given) gradient, given; /* in the order of the states; parameters that are shared once they are updated */
    GradientSum *sum[2];        /* [0..n]: of the gradients of the operators before; of those that I adds to */
    Ints *state, *back[4];      /* by chunk, with replicas: its gradients; [Action.group] of them and of parameters, what goes
                                   down the tree */
    const bool *joined;         /* plan_joined() */
    const UpdatePart *parts;    /* of the update, in their order, new weights behind them; U_NONE behind the last */
    VEC(Action) *down;          /* by device: where ties stand in front of a way down, that way */
    Ns **update;                /* [class * U_PARTS + part][i]: of operators 0..i-1 */
    Ns *begin, *wire, *sent;    /* by device; [from * devices + to]; [part * devices + device] */
    Halves **halves;            /* [(row * levels + level) * 2 + down]: by state; NULL: nobody has asked yet */
    Ints made, wanted;          /* devices, of the state at hand */
    bool *seen;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Notes the place of an operator that makes the state, or wants it. */
static void add_user(const Facts *x, Shared *all, const Op *o, const Arg *a)
{
    StateKind kind = x->q->p->g->state.at[a->index].kind;
    User u = {facts_home(x->q->p->g, o), transport_makes(kind, o->phase == PH_U, a->kind),
              transport_wants(kind, o->phase == PH_U, a->kind)};
    if (u.made || u.wanted)
        *PUSH(&all[a->index].user) = u;
}

static Shareds shared_of(const Facts *x)
{
    const Graph *g = x->q->p->g;
    Shared *all = alloc(sizeof *all * ((size_t)g->state.n + 1));
    Shareds some = {0};
    for (int o = 0; o < g->op.n; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++)
            if (g->op.at[o].arg.at[i].state)
                add_user(x, all, &g->op.at[o], &g->op.at[o].arg.at[i]);
    for (int s = 0; s < g->state.n; s++) {
        bool apart = false;
        for (int i = 1; i < all[s].user.n; i++)
            apart |= all[s].user.at[i].at != all[s].user.at[0].at;
        /* Bytes of a message between stages: of a use elsewhere, what is whole there. */
        const Plan *p = x->q->p;
        Extent part = p->g->state.at[s].kind == S_GRAD ? plan_summed(p, 0, s) : (Extent){0, p->g->state.at[s].bytes};
        all[s].bytes = part.until - part.from;
        all[s].update = transport_part(g->state.at[s].kind);
        if (apart && all[s].update != U_NONE)
            *PUSH(&some) = all[s];
    }
    return some;
}

static int goes_down(const Finish *f, int s)
{
    const State *x = &f->p->g->state.at[s];
    return f->joined[s] ? (x->use > 0 ? -1 : 2) : plan_sharded(f->p, x->param) ? -1 : 0;
}

static void find_gradients(Finish *f)
{
    const Graph *g = f->p->g;
    for (int k = 0; k < 2; k++)
        f->sum[k] = alloc(sizeof *f->sum[k] * ((size_t)f->x->n + 1));
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (plan_room(f->p, s) || (x->kind == S_PARAM && plan_sharded(f->p, s) && !plan_parted(f->p, s)))
            *PUSH(&f->given) = (Given){x->op, s, plan_room(f->p, s) ? 3 : 1};
        else if (x->kind == S_GRAD)
            *PUSH(&f->gradient) = (Given){x->op, s, goes_down(f, s)};
        for (int k = 0; x->kind == S_GRAD && k <= fold_takes(g, FOLD_I, s); k++) {
            f->sum[k][x->op + 1].bytes += x->bytes;
            f->sum[k][x->op + 1].n++;
        }
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < f->x->n; i++) {
            f->sum[k][i + 1].bytes += f->sum[k][i].bytes;
            f->sum[k][i + 1].n += f->sum[k][i].n;
        }
}

static void find_updates(Finish *f)
{
    const Plan *p = f->p;
    for (int d = 0; d < p->devices; d++) {
        Ns **update = &f->update[p->c->of.at[d] * U_PARTS];
        if (update[0])
            continue;
        for (int part = 0; part < U_PARTS; part++)
            update[part] = alloc(sizeof(Ns) * ((size_t)f->x->n + 1));
        for (int o = p->g->nb; o < p->g->op.n; o++)
            update[update_part(p, o)][facts_home(p->g, &p->g->op.at[o]) + 1] += call_time(p, d, o);
        for (int part = 0; part < U_PARTS; part++)
            for (int i = 0; i < f->x->n; i++)
                update[part][i + 1] += update[part][i];
    }
}

static void find_ways_down(Finish *f)
{
    static const UpdatePart plain[] = {U_GATHER, U_NORM, U_STEP, U_COPIES, U_NONE},
                            tied[] = {U_TIES, U_GATHER, U_NORM, U_STEP, U_COPIES, U_NONE};
    f->down = alloc(sizeof *f->down * (size_t)f->p->devices);
    f->parts = plain;
    for (int d = 0; d < f->p->devices; d++)
        for (EACH(const Action, k, f->p->dev.at[d].order)) {
            if (k->kind == K_SHARE && k->group == 2) {
                *PUSH(&f->down[d]) = *k;
                f->parts = tied;
            }
        }
}

/* For what a preview fills as it needs it. */
static void make_room(Finish *f)
{
    f->state = alloc(sizeof(Ints) * (size_t)f->x->chunks);
    for (int what = 0; what < 4; what++)
        f->back[what] = alloc(sizeof(Ints) * (size_t)f->x->chunks);
    f->halves = alloc(sizeof(Halves *) * 2 * (size_t)(plan_levels(f->p) << plan_levels(f->p)));
    f->made = f->wanted = (Ints){0};
}

Finish *finish_open(const Facts *x)
{
    Finish *f = alloc(sizeof *f);
    size_t devices = (size_t)x->q->p->devices;
    *f = (Finish){.x = x, .p = x->q->p, .slack = x->ahead, .shared = shared_of(x)};
    f->joined = plan_joined(f->p);
    f->update = alloc(sizeof(Ns *) * U_PARTS * (size_t)f->p->c->classes);
    f->begin = alloc(sizeof(Ns) * devices);
    f->wire = alloc(sizeof(Ns) * devices * devices);
    f->sent = alloc(sizeof(Ns) * U_PARTS * devices);
    f->seen = alloc(devices);
    make_room(f);
    find_gradients(f);
    find_updates(f);
    find_ways_down(f);
    return f;
}

Finish *finish_again(const Finish *f, const Facts *x)
{
    Finish *with = alloc(sizeof *with);
    *with = *f;
    with->x = x;
    with->p = x->q->p;
    make_room(with);
    with->slack = x->ahead;
    find_ways_down(with);
    return with;
}

/* ---- before and between computations ------------------------------------------------------------------------------- */

void finish_begin(Finish *f, const int *chunk, Ns *now)
{
    const Graph *g = f->p->g;
    for (int d = 0; d < f->p->devices; d++)
        now[d] = action_fixed(f->p->c, d, K_BEGIN, 1, 0);
    for (int i = 0; i < g->count.n; i++) {
        int home = stage_of(f->p, chunk[g->count.at[i].op]);
        now[home] += action_fixed(f->p->c, home, K_COUNT, 1, 0);
    }
    if (plan_levels(f->p) == 0)
        return;
    for (int c = 0; c < f->x->chunks; c++)
        f->state[c].n = f->back[0][c].n = f->back[1][c].n = f->back[2][c].n = f->back[3][c].n = 0;
    for (EACH(const Given, x, f->gradient)) {
        *PUSH(&f->state[chunk[x->at]]) = x->state;
        if (x->down >= 0)
            *PUSH(&f->back[x->down][chunk[x->at]]) = x->state;
    }
    for (int i = 0; i < f->given.n; i++)
        *PUSH(&f->back[f->given.at[i].down][chunk[f->given.at[i].at]]) = f->given.at[i].state;
}

static GradientSum sum_of(const Finish *f, int kind, int first, int last)
{
    const GradientSum *sum = f->sum[kind];
    return (GradientSum){sum[last + 1].bytes - sum[first].bytes, sum[last + 1].n - sum[first].n};
}

Ns finish_fold(const Finish *f, int chunk, int first, int last, int fold)
{
    GradientSum x = sum_of(f, fold == FOLD_I, first, last);
    if (fold != FOLD_ALL && fold != FOLD_I) {
        GradientSum with = sum_of(f, 1, first, last);
        x = (GradientSum){x.bytes - with.bytes, x.n - with.n};
    }
    return x.bytes ? action_fixed(f->p->c, stage_of(f->p, chunk), K_FOLD, x.n, x.bytes) : 0;
}

/* ---- replicas ---------------------------------------------------------------------------------------------------- */

typedef struct { Ns got, gave, adds; } Crossing;        /* when both messages have ended; what is added then */
typedef struct { Crossing at[MERGES]; int n; } Crossings;

/* Both messages of a gradient begin now.  A half duplex link takes both in turn. */
static Crossing cross(const Finish *f, int device, const Action *k, const Halves *x, Ns *in, Ns *out, Ns now)
{
    const Cost *c = f->p->c;
    Bytes gets = x->gets.until - x->gets.from, gives = x->gives.until - x->gives.from;
    Ns latency = cost_latency(c, device, k->from_device), *back = cost_half(c, device, k->from_device) ? in : out;
    Crossing end = {0, 0, 0};
    if (gets) {
        wire_take(in, now, cost_wire(c, k->from_device, device, gets));
        end.got = *in + latency;
        end.adds = k->kind == K_MERGE ? action_fixed(c, device, K_MERGE, 1, gets) : 0;
    }
    if (gives) {
        wire_take(back, now, cost_wire(c, device, k->from_device, gives));
        end.gave = *back + latency;
    }
    return end;
}

static Ns batch_ends(Crossings *x, Ns now)
{
    for (int i = 0; i < x->n; i++)
        now = max_of(now, max_of(x->at[i].got, x->at[i].gave)) + x->at[i].adds;
    x->n = 0;
    return now;
}

/* One level of the tree for a chunk, up or down; returns the time of its end. */
Ns finish_merge(const Finish *f, int device, const Action *k, Ns now)
{
    const Ints one = {(int[]){k->state}, 1, 1};
    const Ints *state = k->state >= 0 ? &one : k->kind == K_MERGE ? &f->state[k->chunk]
                        : &f->back[k->group][k->chunk];
    Batch batch = {0};
    Crossings batches[2] = {{.n = 0}, {.n = 0}};
    Ns in = now, out = now;
    /* What two rows exchange of each gradient and parameter at one level: asked of every plan, and the same in all. */
    int row = plan_row_of(f->p, device, k->chunk);
    bool down = k->kind == K_SHARE;
    Halves **all = &f->halves[(row * plan_levels(f->p) + k->tree_level) * 2 + down];
    if (!*all) {
        *all = alloc(sizeof(Halves) * (size_t)f->p->g->state.n);
        for (int i = 0; i < f->gradient.n; i++)
            (*all)[f->gradient.at[i].state] = transport_halves(f->p, row, f->gradient.at[i].state, k->tree_level, down);
        for (int i = 0; i < f->given.n; i++)
            (*all)[f->given.at[i].state] = transport_halves(f->p, row, f->given.at[i].state, k->tree_level, down);
    }
    if (k->state >= 0)          /* blocks of norms */
        (*all)[k->state] = transport_halves(f->p, row, k->state, k->tree_level, down);
    const Halves *halves = *all;
    int at = 0;
    for (int i = 0; i < state->n; i++)
        batch.largest = max_of(batch.largest, halves[state->at[i]].bytes);
    for (int i = 0; i < state->n; i++) {
        const Halves *x = &halves[state->at[i]];
        batches[at].at[batches[at].n++] = cross(f, device, k, x, &in, &out, now);
        if (!transport_batch(&batch, x->bytes) && i + 1 < state->n)
            continue;
        at ^= 1;
        now = batch_ends(&batches[at], now);
    }
    return batch_ends(&batches[at ^ 1], now);
}

/* ---- the update -------------------------------------------------------------------------------------------------- */

static void devices_of(Finish *f, const Shared *s, const int *chunk, bool made, Ints *list)
{
    memset(f->seen, 0, (size_t)f->p->devices);
    for (int i = 0; i < s->user.n; i++)
        if (made ? s->user.at[i].made : s->user.at[i].wanted)
            f->seen[stage_of(f->p, chunk[s->user.at[i].at])] = true;
    list->n = 0;
    for (int d = 0; d < f->p->devices; d++)
        if (f->seen[d])
            *PUSH(list) = d;
}

/* One state from one device to another, with the part of that place; was: when each began it. */
static void transfer(Finish *f, const Shared *s, int place, int from, int to, const Ns *was, Ns *now)
{
    const Cost *c = f->p->c;
    int n = f->p->devices;
    Ns *wire = &f->wire[wire_of(c, n, from, to)], *sent = &f->sent[place * n + from];
    wire_take(wire, max_of(was[from], was[to]), cost_wire(c, from, to, s->bytes));
    Ns end = *wire + cost_latency(c, from, to);
    *sent = max_of(*sent, end);
    now[to] = max_of(now[to], end) + (s->update == U_NORM ? action_fixed(c, to, K_GATHER, 1, 0) : 0);
}

static void exchange(Finish *f, int place, UpdatePart part, const int *chunk, Ns *now)
{
    Ns *was = f->begin;
    memcpy(was, now, sizeof *now * (size_t)f->p->devices);
    for (EACH(const Shared, s, f->shared)) {
        if (s->update != part)
            continue;
        devices_of(f, s, chunk, true, &f->made);
        devices_of(f, s, chunk, false, &f->wanted);
        for (int k = 0; k < f->made.n; k++)
            for (int j = 0; j < f->wanted.n; j++)
                if (f->made.at[k] != f->wanted.at[j])
                    transfer(f, s, place, f->made.at[k], f->wanted.at[j], was, now);
    }
}

static void wait_sends(const Finish *f, int place, Ns *now)
{
    for (int d = 0; d < f->p->devices && place >= 0; d++)
        now[d] = max_of(now[d], f->sent[place * f->p->devices + d]);
}

/* The sums of ties go down the tree. */
static void go_down(const Finish *f, Ns *now)
{
    for (int d = 0; d < f->p->devices; d++)
        for (int i = 0; i < f->down[d].n; i++)
            now[d] = finish_merge(f, d, &f->down[d].at[i], now[d]);
}

Ns finish(Finish *f, const int *chunk, const int *last, Ns *now)
{
    size_t devices = (size_t)f->p->devices;
    Ns end = 0;
    memset(f->wire, 0, sizeof(Ns) * devices * devices);
    memset(f->sent, 0, sizeof(Ns) * U_PARTS * devices);
    int n = 0;
    for (; f->parts[n] != U_NONE; n++) {
        UpdatePart part = f->parts[n];
        UpdatePart moves = n == 0 ? U_GATHER : part == U_GATHER ? U_NONE : part;        /* gradients go home with the first */
        wait_sends(f, n - 1 - f->slack, now);
        exchange(f, n, moves, chunk, now);
        for (int c = 0, first = 0; c < f->x->chunks; first = last[c++] + 1) {
            const Ns *u = f->update[f->x->class[c] * U_PARTS + part];
            now[stage_of(f->p, c)] += u[last[c] + 1] - u[first];
        }
        if (part == U_TIES)
            go_down(f, now);
    }
    for (int place = 0; place < n; place++)
        wait_sends(f, place, now);
    for (int d = 0; d < f->p->devices; d++)
        end = max_of(end, now[d] + action_fixed(f->p->c, d, K_END, 1, 0));
    return end;
}

/* ---- at least ---------------------------------------------------------------------------------------------------- */

typedef struct { int made, until, wanted, from; } PreviewSpan; /* operators: first that makes it, last; wanted the same */

static PreviewSpan span_of(const Shared *s)
{
    PreviewSpan k = {INT32_MAX, -1, INT32_MAX, -1};
    for (EACH(const User, u, s->user)) {
        k.made = u->made && u->at < k.made ? u->at : k.made;
        k.until = u->made && u->at > k.until ? u->at : k.until;
        k.wanted = u->wanted && u->at < k.wanted ? u->at : k.wanted;
        k.from = u->wanted && u->at > k.from ? u->at : k.from;
    }
    return k;
}

/* The quickest message from the first device to another one, or back. */
static Ns quickest(const Plan *p, Bytes bytes, bool back)
{
    Ns best = INT64_MAX;
    int total = stage_of(p, 0);
    for (int d = 0; d < p->devices; d++) {
        int from = back ? d : total, to = back ? total : d;
        Ns ns = d == total ? INT64_MAX : cost_wire(p->c, from, to, bytes) + cost_latency(p->c, from, to);
        best = ns < best ? ns : best;
    }
    return best;
}

/* most[i]: the longest message of the part that a first chunk 0..i receives; in the last part, that it sends. */
static void add_messages(const Finish *f, UpdatePart part, Ns *least)
{
    Ns *most = alloc(sizeof *most * (size_t)f->x->n);
    for (EACH(const Shared, k, f->shared)) {
        PreviewSpan at = span_of(k);
        int low = part == U_COPIES ? at.made : at.wanted, high = part == U_COPIES ? at.from : at.until;
        Ns ns = k->update == part ? quickest(f->p, k->bytes, part != U_COPIES) : 0;
        for (int i = low; k->update == part && i < high && i < f->x->n; i++)
            most[i] = max_of(most[i], ns);
    }
    for (int i = 0; i < f->x->n; i++)
        least[i] += most[i];
}

static bool alone(const Plan *p)
{
    for (int c = 1; c < plan_chunks(p); c++)
        if (stage_of(p, c) == stage_of(p, 0))
            return false;
    return plan_chunks(p) > 1;
}

/* By operator: the merge of a first chunk that ends there.  Its gradients are sent or added one after another: the longer.
 * Down the tree nothing is added. */
static void add_merge(const Finish *f, const Action *k, Ns *least)
{
    const Plan *p = f->p;
    if (k->state >= 0 || (p->m->train.shard && k->kind == K_SHARE))        /* blocks of norms, parameters: left out */
        return;
    int row = plan_row_of(p, stage_of(p, 0), 0);
    Ns *wire = alloc(sizeof *wire * (size_t)f->x->n), *adding = alloc(sizeof *adding * (size_t)f->x->n);
    for (EACH(const Given, g, f->gradient)) {
        if (k->kind == K_SHARE && g->down != k->group)
            continue;
        Extent gets = transport_halves(p, row, g->state, k->tree_level, k->kind == K_SHARE).gets;
        Bytes bytes = gets.until - gets.from;
        wire[g->at] += bytes ? cost_wire(p->c, k->from_device, stage_of(p, 0), bytes) : 0;
        adding[g->at] += bytes && k->kind == K_MERGE ? action_fixed(p->c, stage_of(p, 0), K_MERGE, 1, bytes) : 0;
    }
    for (int i = 0; i < f->x->n; i++) {
        wire[i] += i ? wire[i - 1] : 0;
        adding[i] += i ? adding[i - 1] : 0;
        least[i] += max_of(wire[i], adding[i]);
    }
}

Ns *finish_least(const Facts *x)
{
    const Finish *f = x->finish;
    const Actions *order = &f->p->dev.at[stage_of(f->p, 0)].order;
    Ns *least = alloc(sizeof *least * (size_t)x->n);
    int home = stage_of(f->p, 0);
    for (int i = 0; i < x->n; i++)
        least[i] = action_fixed(f->p->c, home, K_BEGIN, 1, 0) + action_fixed(f->p->c, home, K_END, 1, 0);
    for (int i = 0; i < order->n; i++)
        if ((order->at[i].kind == K_MERGE || order->at[i].kind == K_SHARE) && order->at[i].chunk == 0)
            add_merge(f, &order->at[i], least);
    if (alone(f->p)) {
        add_messages(f, U_GATHER, least);
        add_messages(f, U_NORM, least);
        add_messages(f, U_COPIES, least);
    }
    return least;
}
