/* SPDX-License-Identifier: Apache-2.0
 *
 * interval.c: DawnPiper's planner.  dawnpiper_dp.c cuts the operator graph in two again and again; capuchin.c optimises each
 * stage.
 *
 * Those two files hold problem, method, source and doubts.  Settled here are:
 *
 *   objective    the slowest stage of one micro-batch: forward, backward and the time that its memory plan adds
 *   demand       parameters and their states, where a parameter is first used; saved tensors, where they are made
 *   messages     a cut is passed over if all that crosses it, both ways, takes longer than the mean stage: the paper wants
 *                transfers hidden behind compute.  Its own rule is not known
 *   guard        interval: no cut outside of [i_m, i_c].  interval:guard: one more on either side, our simulation's
 *                remedy for most of the interval's losses
 *
 * Not handled: it may find no plan where there is one (dawnpiper_dp.c).  Devices that differ do not count in the balance of
 * halves; their own speeds and limits count in the price of each stage.
 */
#include "rivals.h"

typedef struct { Capuchin *c; int *fate; } IntervalAsked;

static bool price_stage(void *ctx, int first, int last, int stage, Ns *time)
{
    IntervalAsked *x = ctx;
    Price p = capuchin(x->c, first, last, stage, x->fate);
    *time = p.forward + p.backward;
    return p.fits;
}

/* Prefix sums. */
static int64_t *summed(int64_t *of, int n)
{
    for (int i = 0; i < n; i++)
        of[i + 1] += of[i];
    return of;
}

static Ns *times(const Question *q)
{
    const Graph *g = q->p->g;
    Ns *sum = alloc(sizeof *sum * (size_t)(g->nf + 1));
    for (int o = 0; o < g->nb; o++)
        sum[g->op.at[o].fwd + 1] += cost_op(q->p->c, 0, o);
    return summed(sum, g->nf);
}

static Bytes *states(const Plan *p)
{
    const Graph *g = p->g;
    Bytes *sum = alloc(sizeof *sum * (size_t)(g->nf + 1));
    for (EACH(const State, x, g->state)) {
        if (x->param < 0)
            continue;
        bool grad = x->kind == S_GRAD;
        sum[(grad ? x->op : g->state.at[x->param].op) + 1] += x->bytes * (grad ? order_accumulators(p, -1) : 1);
    }
    return summed(sum, g->nf);
}

/* Bytes that backward reads, by the operator that makes them. */
static Bytes *saved(const Graph *g)
{
    Bytes *sum = alloc(sizeof *sum * (size_t)(g->nf + 1));
    bool *met = alloc((size_t)g->tensor.n);
    for (int o = g->nf; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            int maker = a->kind == ARG_READ && !a->state ? g->tensor.at[a->index].op : -1;
            if (maker < 0 || maker >= g->nf || met[a->index])
                continue;
            met[a->index] = true;
            sum[maker + 1] += g->tensor.at[a->index].bytes;
        }
    return summed(sum, g->nf);
}

/* By operator: do the messages over a cut behind it, there and back, hide behind the mean stage? */
static bool *hidden(const Question *q, Ns total)
{
    const Graph *g = q->p->g;
    Bytes *cross = alloc(sizeof *cross * (size_t)(g->nf + 1));
    int *until = alloc(sizeof *until * (size_t)g->tensor.n);
    bool *hides = alloc((size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++)
            if (g->op.at[o].arg.at[i].kind == ARG_READ && !g->op.at[o].arg.at[i].state)
                until[g->op.at[o].arg.at[i].index] = o;
    for (int t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].op >= 0 && g->tensor.at[t].op < until[t]) {
            cross[g->tensor.at[t].op] += g->tensor.at[t].bytes;
            cross[until[t]] -= g->tensor.at[t].bytes;
        }
    for (int o = 0, next = q->p->devices > 1; o < g->nf; o++) {
        cross[o] += o ? cross[o - 1] : 0;
        hides[o] = cost_wire(q->p->c, 0, next, 2 * cross[o]) <= total / q->chunks;
    }
    return hides;
}

static bool plan(const Question *q, Answer *a, int guard)
{
    const Graph *g = q->p->g;
    Ns *time = times(q);
    IntervalAsked x = {capuchin_open(q, time[g->nf] / q->chunks), choices_of(q->p).base};
    DawnpiperHalves h = {.n = q->n, .stages = q->chunks, .cut = q->cut, .time = time, .fixed = states(q->p), .saved = saved(g),
                .flight = q->flight, .hidden = hidden(q, time[g->nf]), .guard = guard, .price = price_stage, .ctx = &x};
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    if (!halves(&h, a->last, &a->value))
        return false;
    for (int s = 0; s < q->chunks; s++)
        capuchin(x.c, s ? a->last[s - 1] + 1 : 0, a->last[s], s, x.fate);
    a->fate = x.fate;
    return true;
}

bool plan_interval(const Question *q, Answer *a)
{
    return plan(q, a, 0);
}

bool plan_interval_guard(const Question *q, Answer *a)
{
    return plan(q, a, 1);
}
