/* SPDX-License-Identifier: Apache-2.0
 *
 * prune.c: the graph of plan.mode infer without what no output depends on: losses, heads of training, their targets.
 *
 * needs   shapes, bound calls, no backward   fills   op, tensor, state, count, renumbered   keeps   data inputs, since the
 * model numbers them
 *
 * model.graph of the folder keeps all of it (graph_apart), so that it is what the model file says.  Linear.
 */
#include "rewrite.h"

/* Parameters that an operator has left, with their copies, and the step values. */
static void keep_states(Graph *g)
{
    int *to = alloc(sizeof *to * (size_t)g->state.n), n = 0;
    bool *used = alloc((size_t)g->state.n);
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].par.n; k++)
            if (g->op.at[i].par.at[k] >= 0)
                used[g->op.at[i].par.at[k]] = true;
    for (int s = 0; s < g->state.n; s++) {
        State x = g->state.at[s];
        to[s] = n;
        if (s != g->vals && !(x.param >= 0 && used[x.param]))
            continue;
        x.param = x.param >= 0 ? to[x.param] : -1;
        g->state.at[n++] = x;
    }
    g->state.n = n;
    g->vals = to[g->vals];
    for (EACH(Op, o, g->op)) {
        for (int k = 0; k < o->arg.n; k++)
            if (o->arg.at[k].state)
                o->arg.at[k].index = to[o->arg.at[k].index];
        for (int k = 0; k < o->par.n; k++)
            o->par.at[k] = o->par.at[k] >= 0 ? to[o->par.at[k]] : -1;
    }
}

void prune(Graph *g, const Model *m)
{
    if (!infers(m))
        return;
    bool *op = alloc((size_t)g->op.n + 1), *value = alloc((size_t)g->tensor.n + 1);
    for (int i = g->op.n - 1; i >= 0; i--) {
        const Op *o = &g->op.at[i];
        op[i] = op_is(o, TRAIT_END);
        for (int k = 0; k < o->out.n; k++)
            op[i] |= value[o->out.at[k]];
        for (int k = 0; op[i] && k < o->in.n; k++)
            if (o->in.at[k] >= 0)
                value[o->in.at[k]] = true;
    }
    const bool *need = op;
    int *into = match_all(g), first = 0, counts = 0;
    while (!need[first])
        first++;
    for (int s = 0; s < g->state.n; s++)            /* the first use of a parameter may be what goes */
        for (int i = g->op.n - 1; i >= 0 && g->state.at[s].kind == S_PARAM; i--)
            for (int k = 0; k < g->op.at[i].par.n; k++)
                if (need[i] && g->op.at[i].par.at[k] == s)
                    g->state.at[s].op = i;
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].param >= 0 && g->state.at[s].op >= 0)
            g->state.at[s].op = g->state.at[g->state.at[s].param].op;
    for (int i = 0; i < g->count.n; i++)
        if (need[g->count.at[i].op])
            g->count.at[counts++] = g->count.at[i];
    g->count.n = counts;
    for (int i = 0; i < g->op.n; i++)
        into[i] = need[i] ? i : first;
    match_drop(g, into);
    keep_states(g);
}
