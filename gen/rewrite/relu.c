/* SPDX-License-Identifier: Apache-2.0
 *
 * relu.c: a Relu takes in the BatchNorm that it reads, and an addition between the two.
 *
 * Problem: networks of images normalise, add a shortcut and pass a Relu.  Three calls write and read memory twice more than
 * one, and backward writes the masked gradient for the norm to read.
 *
 * Method.  BatchNormalize and Relu, or BatchNormalize, Add and Relu, that stand one behind the other and read each other alone
 * become BatchNormRelu or BatchNormAddRelu (ops.def), in the place and under the name of the Relu.  The pass runs before grad,
 * which takes the backward call from the row: it makes the gradient of the shortcut too.  `skip` is the first operand, so that
 * terms of gradients keep their order: the Add would have given its term before the norm.
 *
 *   bits     are those of three calls, in every kernel library: each result is rounded where a call of its own would store it.
 *   plans    only those that cut between them are lost.  Backward reads the Relu's result where there is a shortcut.
 *   names    an operator that a pattern in the section plan names stays separate, as in fuse.c.
 *
 * needs   shapes and bound forward calls.  fills  row, in, out, with, the call.  keeps  every parameter and its order.  cost
 * linear, but for names times the patterns of plan.
 *
 * Not handled: activations other than Relu, norms other than BatchNorm.
 */
#include "rewrite.h"

typedef struct { int norm, add, skip; } ReluRun; /* operators, -1: there is none; and a tensor */

static bool is(const Graph *g, int op, const char *name)
{
    return op >= 0 && match_is(&g->op.at[op], name);
}

/* Does operator `op` make the tensor, for one reader? */
static bool makes(const Graph *g, const int *reads, int op, int tensor)
{
    return reads[tensor] == 1 && tensor != g->loss && g->tensor.at[tensor].op == op;
}

static bool finds(const Graph *g, const int *reads, int relu, ReluRun *r)
{
    int x = g->op.at[relu].in.at[0], before = relu - 1;
    *r = (ReluRun){before, -1, -1};
    if (before < 0 || !makes(g, reads, before, x))
        return false;
    if (is(g, before, "BatchNormalize"))
        return true;
    if (!is(g, before, "Add") || !is(g, before - 1, "BatchNormalize"))
        return false;
    const Ints *of = &g->op.at[before].in;
    int second = makes(g, reads, before - 1, of->at[1]);
    *r = (ReluRun){before - 1, before, of->at[!second]};
    return second || makes(g, reads, before - 1, of->at[0]);
}

static bool apart(const Graph *g, const PlanSpec *p, int relu, const ReluRun *r)
{
    const Op *o = &g->op.at[relu];
    return match_apart(p, &g->op.at[r->norm], o) || (r->add >= 0 && match_apart(p, &g->op.at[r->add], o));
}

static void join(Graph *g, int relu, const ReluRun *r)
{
    const Op *norm = &g->op.at[r->norm], *last = &g->op.at[relu];
    Op both = *norm;
    both.row = row_find(r->skip >= 0 ? "BatchNormAddRelu" : "BatchNormRelu");
    both.name = last->name;
    both.layer = last->layer;
    both.with = norm->name;
    both.fwd = relu;
    both.loc = last->loc;
    both.flop += last->flop + (r->add >= 0 ? g->op.at[r->add].flop : 0);
    both.in = (Ints){0};
    if (r->skip >= 0)
        *PUSH(&both.in) = r->skip;
    for (int i = 0; i < norm->in.n; i++)
        *PUSH(&both.in) = norm->in.at[i];
    both.out = last->out;
    both.arg.at = NULL;
    both.arg.n = both.arg.cap = 0;
    bind_call(g, &both, row(both.row)->call[PH_F], NULL, NULL, NULL);
    g->op.at[relu] = both;
}

bool relu_joined(const Graph *g)
{
    for (int i = 0; i < g->nf; i++)
        if (is(g, i, "BatchNormRelu") || is(g, i, "BatchNormAddRelu"))
            return true;
    return false;
}

void join_relu(Graph *g, const Model *m)
{
    int *reads = match_reads(g, NULL), *into = match_all(g);
    bool joins = m->plan.fuse == FUSE_AUTO || m->plan.fuse == FUSE_MOST;
    ReluRun r;
    for (int i = 0; i < g->op.n && joins; i++)
        if (is(g, i, "Relu") && finds(g, reads, i, &r) && !apart(g, &m->plan, i, &r)) {
            join(g, i, &r);
            into[r.norm] = i;
            if (r.add >= 0)
                into[r.add] = i;
        }
    match_drop(g, into);
}
