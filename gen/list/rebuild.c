/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward of a chunk, written out.
 *
 * Backward runs the gradient operators of a chunk in graph order.  A forward tensor that one of them reads is
 * either saved from forward, or dropped and made again.  The rebuild rule: a dropped tensor is rebuilt at most once
 * per backward, right before its first reader, from what is saved, received or loaded; what that needs in
 * between is rebuilt with it and lives to its own last reader.  A rebuilt call is the identical call of
 * forward, so its bits are the same.
 *
 * One exception buys time at no cost in calls: what the first reader that needs anything rebuilt asks for is hoisted in
 * front of the whole backward, where the gradient of the next stage has not arrived yet, so that recomputation hides
 * behind the wait.  With everything recomputed the step then costs 4m + 3(p-1) units instead of 4(m + p-1).
 *
 * A tensor that was offloaded is there too: comm sees to it that it has come back from the host before its first reader.
 *
 * Cost: linear in operators and operands.
 */
#include "plan.h"

int device_of(const Plan *p, int op)
{
    return p->chunk_device.at[p->chunk.at[op]];
}

bool runs_on(const Plan *p, int op, int device)
{
    return device_of(p, op) == plan_stage(p, device);
}

typedef struct {
    const Plan *p;
    int chunk, variant;
    Backward *back;
    bool *done;                 /* forward operator already made again */
} Rebuild;

/* A forward tensor that this chunk can make again itself. */
static bool own(const Rebuild *r, int t)
{
    int op = r->p->g->tensor.at[t].op;
    return op >= 0 && op < r->p->g->nf && r->p->chunk.at[op] == r->chunk;
}

static bool dropped(const Rebuild *r, int t)
{
    return own(r, t) && r->p->fate.at[t * r->p->variants + r->variant] == FATE_RECOMPUTE;
}

static bool offloaded(const Rebuild *r, int t)
{
    return own(r, t) && r->p->fate.at[t * r->p->variants + r->variant] == FATE_OFFLOAD;
}

static bool is_forward(const Graph *g, int t)
{
    return g->tensor.at[t].kind != T_GRAD;
}

static bool there(const Rebuild *r, int t)
{
    return r->back->saved[t] || r->back->fetched[t];
}

static void remake(Rebuild *r, int op);

/* Make sure that a forward tensor is there when the next call reads it. */
static void want(Rebuild *r, int t)
{
    if (there(r, t) || r->back->remade[t])
        return;
    if (dropped(r, t))
        remake(r, r->p->g->tensor.at[t].op);
    else if (offloaded(r, t))
        r->back->fetched[t] = true;
    else
        r->back->saved[t] = true;
}

static void remake(Rebuild *r, int op)
{
    const Op *o = &r->p->g->op.at[op];
    if (r->done[op])
        return;
    r->done[op] = true;
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_READ && !o->arg.at[i].state)
            want(r, o->arg.at[i].index);
    *PUSH(&r->back->line) = (Line){op, true};
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_WRITE && !o->arg.at[i].state && !there(r, o->arg.at[i].index))
            r->back->remade[o->arg.at[i].index] = true;
}

/* Saved, or fetched, is whatever backward reads directly and nobody dropped; what rebuilding reads joins on the way. */
static void mark_saved(Rebuild *r)
{
    const Graph *g = r->p->g;
    for (int o = g->nf; o < g->nb; o++) {
        if (r->p->chunk.at[o] != r->chunk)
            continue;
        const Op *op = &g->op.at[o];
        for (int i = 0; i < op->arg.n; i++) {
            const Arg *a = &op->arg.at[i];
            if (a->kind == ARG_READ && !a->state && is_forward(g, a->index) && !dropped(r, a->index))
                *(offloaded(r, a->index) ? &r->back->fetched[a->index] : &r->back->saved[a->index]) = true;
        }
    }
}

Backward backward_of(const Plan *p, int chunk, int variant)
{
    const Graph *g = p->g;
    Backward back = {.saved = alloc((size_t)g->tensor.n), .remade = alloc((size_t)g->tensor.n),
                     .fetched = alloc((size_t)g->tensor.n)};
    Rebuild r = {p, chunk, variant, &back, alloc((size_t)g->nf)};
    Lines plain = {0};
    mark_saved(&r);
    for (int o = g->nf; o < g->nb; o++) {
        if (p->chunk.at[o] != chunk)
            continue;
        const Op *op = &g->op.at[o];
        for (int i = 0; i < op->arg.n; i++)
            if (op->arg.at[i].kind == ARG_READ && !op->arg.at[i].state && is_forward(g, op->arg.at[i].index))
                want(&r, op->arg.at[i].index);
        if (back.line.n > 0 && back.early == 0) {       /* the first rebuild goes in front of all before it */
            back.early = back.line.n;
            for (int i = 0; i < plain.n; i++)
                *PUSH(&back.line) = plain.at[i];
        }
        *(back.early ? PUSH(&back.line) : PUSH(&plain)) = (Line){o, false};
    }
    if (back.early == 0)
        for (int i = 0; i < plain.n; i++)
            *PUSH(&back.line) = plain.at[i];
    return back;
}

static bool belongs(ActionKind kind, const Op *o)
{
    return kind == K_B || (kind == K_I && o->phase == PH_I) || (kind == K_W && o->phase == PH_W);
}

/* What is rebuilt after the early part goes with the input gradients. */
Lines calls_of(const Plan *p, const Backward *back, int chunk, ActionKind kind)
{
    Lines line = {0};
    for (int o = 0; kind == K_F && o < p->g->nf; o++)
        if (p->chunk.at[o] == chunk)
            *PUSH(&line) = (Line){o, false};
    for (int i = kind == K_R ? 0 : back->early; kind != K_F && i < (kind == K_R ? back->early : back->line.n); i++) {
        Line l = back->line.at[i];
        if (kind == K_R || (l.again ? kind != K_W : belongs(kind, &p->g->op.at[l.op])))
            *PUSH(&line) = l;
    }
    return line;
}
