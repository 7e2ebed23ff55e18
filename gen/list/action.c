/* SPDX-License-Identifier: Apache-2.0
 *
 * action.c: the time of one action by itself, and the parts of the update.  Simulator, previews and reports share them.
 */
#include "list.h"

bool fold_takes(const Graph *g, int fold, int state)
{
    const State *s = &g->state.at[state];
    if (s->kind != S_GRAD || fold == FOLD_ALL)
        return s->kind == S_GRAD;
    return s->begun_by && (g->op.at[s->begun_by].phase == PH_I) == (fold == FOLD_I);
}

bool fold_in(const Graph *g, int first, int until, int state)
{
    const int last = g->state.at[state].ended_by;
    return until == 0 || (last >= first && last < until);
}

static Bytes gradients_of(const Plan *p, const Action *k, int *n)
{
    Bytes sum = 0;
    *n = 0;
    for (int s = 0; s < p->g->state.n; s++) {
        const State *x = &p->g->state.at[s];
        if (x->kind == S_GRAD && p->chunk.at[x->op] == k->chunk && fold_takes(p->g, k->fold, s) &&
            (k->kind != K_FOLD || fold_in(p->g, k->first, k->until, s)))
            sum += x->bytes, ++*n;
    }
    return sum;
}

static Bytes copied_of(const Plan *p, int chunk, int *n)
{
    Bytes sum = 0;
    *n = 0;
    for (int s = 0; s < p->g->state.n; s++)
        if (version_copied(p, s, chunk))
            sum += p->g->state.at[s].bytes, ++*n;
    return sum;
}

Ns action_fixed(const Cost *c, int device, ActionKind kind, int tensors, Bytes bytes)
{
    bool adds = kind == K_MERGE || kind == K_FOLD || kind == K_PREDICT;
    int times = adds ? 3 : kind == K_VERSION || kind == K_ROOM ? 2 : 1;       /* reads and writes of each byte */
    return cost_move(c, device, tensors, times * bytes);
}

/* Floats and bytes are on a GPU before their step, and only move there: transport_landing(). */
Ns action_load(const Plan *p, int tensor)
{
    const Tensor *t = &p->g->tensor.at[tensor];
    bool there = p->c->mover && p->m->devices.at[0].workspace && t->type == F32 && !infers(p->m);
    return cost_move(p->c, there ? 0 : -1, 1, there ? 2 * t->bytes : t->bytes);
}

/* Of a part: to begin takes as long as of all; without a part there is no call. */
Ns call_time(const Plan *p, int device, int op)
{
    Ns all = cost_op(p->c, device, op), least = cost_move(p->c, device, 1, 0);
    int param = plan_cuts_op(p, op);
    if (param < 0)
        return all;
    Extent part = plan_own(p, plan_replica(p, device), param);
    if (part.until == part.from || all <= least)
        return part.until == part.from ? 0 : all;
    Bytes share = ((part.until - part.from) << 20) / p->g->state.at[param].bytes;       /* of 2^20 */
    return least + ((all - least) * share >> 20);
}

/* One kernel does a call and the one in front of it where both are made there for the first time. */
Ns line_time(const Plan *p, const Routine *r, int i)
{
    const Call *c = &r->call.at[i];
    bool behind = i > 0 && c[-1].op == c->op - 1 && !c->again && !c[-1].again;
    return c->op >= p->g->nf || behind ? call_time(p, r->device, c->op) : cost_alone(p->c, r->device, c->op);
}

Ns action_time(const Plan *p, int device, const Action *k)
{
    Ns sum = 0;
    Bytes bytes;
    int tensors;
    switch (k->kind) {
    case K_SEND: case K_RECV: case K_WAIT: case K_OUT: case K_IN:
        return 0;
    case K_BEGIN: case K_COUNT: case K_END:
        return action_fixed(p->c, device, k->kind, 1, 0);
    case K_LOAD:
        return action_load(p, k->tensor);
    case K_MERGE: case K_GATHER: case K_ROOM:
        return action_fixed(p->c, device, k->kind, 1, k->bytes);
    case K_VERSION: case K_FOLD: case K_PREDICT:
        bytes = k->kind == K_FOLD ? gradients_of(p, k, &tensors) : copied_of(p, k->chunk, &tensors);
        return action_fixed(p->c, device, k->kind, tensors, bytes);
    default:
        if (k->routine >= 0)
            for (int i = 0; i < p->routine.at[k->routine].call.n; i++)
                sum += line_time(p, &p->routine.at[k->routine], i);
        return sum;
    }
}

UpdatePart update_part(const Plan *p, int op)
{
    const char *name = row(p->g->op.at[op].row)->name;
    static const struct { const char *op; UpdatePart update; } parts[] = {
        {"TieAdd", U_GATHER}, {"NormPartial", U_GATHER}, {"NormTeam", U_GATHER}, {"NormBlocks", U_GATHER}, {"NormSum", U_SUMS},
        {"NormTotal", U_NORM},
        {"Narrow", U_COPIES},
    };
    if (plan_joins_op(p, op) >= 0)
        return U_TIES;
    if (op_is(&p->g->op.at[op], TRAIT_NARROW) && plan_cuts_op(p, op) >= 0)
        return U_ROOMS;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i].op))
            return parts[i].update;
    return U_STEP;
}

/* Is it the begin or the end of an offload or a fetch? */
bool is_copy(const Action *k)
{
    ActionKind kind = k->kind == K_WAIT ? k->of : k->kind;
    return kind == K_OUT || kind == K_IN;
}
