/* SPDX-License-Identifier: Apache-2.0
 *
 * span.c: the price of a run of forward operators, one operator after another.
 *
 * Time is what a device spends on one micro-batch: forward, input and weight gradients, and the calls that backward
 * makes again because their results were dropped.  Memory is a lower bound of what any arena of this run must hold,
 * never an estimate: a planner prunes by it, and a plan pruned wrongly is lost.
 *
 *   states   parameters, compute copies and moments of those that live here, a copy of those whose home is elsewhere,
 *            and one gradient accumulator a use and level of the group tree
 *   saved    what backward reads of forward, kept once a micro-batch in flight: kept tensors, and received ones and
 *            data inputs, which this chunk cannot make itself
 *   most     operands, results and scratch of the largest single call
 *
 * With k micro-batches in flight, k-1 are complete while the k-th runs its largest call, and all k are when it is done:
 * states + max(k saved, (k-1) saved + most).  Left out, because it depends on what `lower` and `mem` do: rebuilt
 * tensors beside each other, message buffers, gradients beside one call, packing.
 *
 * What is dropped is made again at most once per backward, with everything it needs that nobody keeps.  A kept tensor
 * that a rebuild reads costs nothing more.
 *
 * Cost: reads_of linear in the graph; growing a span from a to b linear in the operands of a..b, as each tensor and
 * call is met once.  Marks carry the number of the span, so that starting anew is free.
 */
#include "span.h"

typedef struct {                /* of one forward operator */
    Ns forward, time;           /* alone; with its backward */
    Bytes most;
    Ints in;                    /* forward tensors that forward reads */
    Ints back;                  /* forward tensors that its backward reads */
    Ints state;                 /* S_PARAM states, one a use: its gradient is state grad[i] */
    Ints grad;
} Use;

struct Reads {
    const Graph *g;
    const int *fate;            /* by tensor */
    Use *use;
    bool *read;                 /* by tensor: some backward call reads it */
    Bytes *home, *away;         /* by S_PARAM: on its home device, on another that uses it; without gradients */
    int levels;                 /* gradient accumulators a use */
};

static bool listed(const Ints *list, int value)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i] == value)
            return true;
    return false;
}

static Bytes working_set(const Graph *g, const Op *o)
{
    Ints seen = {0};
    Bytes sum = o->tmp;
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if ((a->kind != ARG_READ && a->kind != ARG_WRITE) || a->state || listed(&seen, a->index))
            continue;
        *PUSH(&seen) = a->index;
        sum += g->tensor.at[a->index].bytes;
    }
    return sum;
}

static void add_call(Reads *r, const Cost *c, int op)
{
    const Op *o = &r->g->op.at[op];
    if (o->fwd < 0 || o->fwd >= r->g->nf)
        die("operator %s belongs to no forward operator", o->name);
    Use *u = &r->use[o->fwd];
    Bytes most = working_set(r->g, o);
    u->time += cost_op(c, 0, op);
    if (o->phase == PH_F)
        u->forward += cost_op(c, 0, op);
    if (most > u->most)
        u->most = most;
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        Ints *list = o->phase == PH_F ? &u->in : &u->back;
        if (a->kind != ARG_READ || a->state || r->g->tensor.at[a->index].kind == T_GRAD || listed(list, a->index))
            continue;
        *PUSH(list) = a->index;
        if (o->phase != PH_F)
            r->read[a->index] = true;
    }
}

static void add_state(Reads *r, int state)
{
    const State *s = &r->g->state.at[state];
    switch (s->kind) {
    case S_PARAM:
        r->home[state] += s->bytes;
        if (r->away[state] == 0)
            r->away[state] = s->bytes;
        break;
    case S_COPY:                /* in bf16 a foreign use reads the copy alone, unless its row wants f32 */
        r->home[s->param] += s->bytes;
        r->away[s->param] = s->bytes;
        break;
    case S_MOMENT1:
    case S_MOMENT2:
        r->home[s->param] += s->bytes;
        break;
    case S_GRAD:
        *PUSH(&r->use[s->op].state) = s->param;
        *PUSH(&r->use[s->op].grad) = state;
        break;
    default:
        break;
    }
}

const Reads *reads_of(const Plan *p, const int *fate)
{
    const Graph *g = p->g;
    const Cost *c = p->c;
    Reads *r = alloc(sizeof *r);
    *r = (Reads){.g = g, .fate = fate, .levels = order_accumulators(p)};
    r->use = alloc(sizeof *r->use * (size_t)g->nf);
    r->read = alloc((size_t)g->tensor.n);
    r->home = alloc(sizeof *r->home * (size_t)g->state.n);
    r->away = alloc(sizeof *r->away * (size_t)g->state.n);
    for (int o = 0; o < g->nb; o++)
        add_call(r, c, o);
    for (int s = 0; s < g->state.n; s++)
        add_state(r, s);
    return r;
}

Ns reads_time(const Reads *r, int op)
{
    return r->use[op].time;
}

void span_open(Span *s, const Reads *reads)
{
    const Graph *g = reads->g;
    *s = (Span){.reads = reads};
    s->held = alloc(sizeof(int) * (size_t)g->tensor.n);
    s->come = alloc(sizeof(int) * (size_t)g->tensor.n);
    s->again = alloc(sizeof(int) * (size_t)g->nf);
    s->owned = alloc(sizeof(int) * (size_t)g->state.n);
}

void span_start(Span *s, int first)
{
    s->first = first;
    s->last = first - 1;
    s->time = s->states = s->saved = s->most = s->received = 0;
    s->round++;
}

static bool meet(Span *s, int *marks, int i)
{
    bool met = marks[i] == s->round;
    marks[i] = s->round;
    return !met;
}

/* Backward needs a forward tensor: because it reads it (direct), or because it makes something of it again. */
static void need(Span *s, int t, bool direct)
{
    const Reads *r = s->reads;
    const Tensor *x = &r->g->tensor.at[t];
    bool own = x->op >= s->first;
    if (own && r->fate[t] == FATE_RECOMPUTE) {
        if (meet(s, s->again, x->op)) {
            s->time += r->use[x->op].forward;
            *PUSH(&s->todo) = x->op;
        }
    } else if (own && r->fate[t] == FATE_OFFLOAD) {
        return;                 /* in the host's memory; its way there and back takes room, which a bound leaves out */
    } else if ((!own || direct) && meet(s, s->held, t)) {
        s->saved += x->bytes;
    }
}

static void take_states(Span *s, const Use *u)
{
    const Reads *r = s->reads;
    for (int i = 0; i < u->state.n; i++) {
        int param = u->state.at[i];
        s->states += r->levels * r->g->state.at[u->grad.at[i]].bytes;
        if (meet(s, s->owned, param))
            s->states += r->g->state.at[param].op >= s->first ? r->home[param] : r->away[param];
    }
}

void span_grow(Span *s)
{
    const Reads *r = s->reads;
    const Use *u = &r->use[++s->last];
    s->time += u->time;
    if (u->most > s->most)
        s->most = u->most;
    for (int i = 0; i < u->in.n; i++) {
        const Tensor *x = &r->g->tensor.at[u->in.at[i]];
        if (x->op >= 0 && x->op < s->first && meet(s, s->come, u->in.at[i]))
            s->received += x->bytes;
    }
    for (int i = 0; i < u->back.n; i++)
        need(s, u->back.at[i], true);
    while (s->todo.n) {
        const Use *again = &r->use[s->todo.at[--s->todo.n]];
        for (int i = 0; i < again->in.n; i++)
            need(s, again->in.at[i], false);
    }
    take_states(s, u);
}

Bytes span_bytes(const Span *s, int flight)
{
    Bytes all = flight * s->saved, running = (flight - 1) * s->saved + s->most;
    return s->states + (flight > 0 && all < running ? running : all);
}
