/* SPDX-License-Identifier: Apache-2.0
 *
 * match.c: operators found, and new numbers for those that stay.
 *
 * A rewrite marks in `into` which operator does the work of another one, and match_drop renumbers operators, tensors and states
 * once.  Linear.  Not handled: operators that are put in.
 */
#include "rewrite.h"

bool match_is(const Op *o, const char *name)
{
    return !strcmp(row(o->row)->name, name);
}

int *match_reads(const Graph *g, int *reader)
{
    int *reads = alloc(sizeof *reads * (size_t)g->tensor.n);
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].in.n; k++) {
            int t = g->op.at[i].in.at[k];
            if (t >= 0)
                reads[t]++;
            if (t >= 0 && reader)
                reader[t] = i;
        }
    return reads;
}

static bool names_one(const Strs *patterns, const Op *o, const Op *add)
{
    for (int i = 0; i < patterns->n; i++)
        if (match_block(patterns->at[i], o->name) && !match_block(patterns->at[i], add->name))
            return true;
    return false;
}

bool match_apart(const PlanSpec *p, const Op *o, const Op *add)
{
    const Strs *lists[] = {&p->names, &p->away, &p->keep, &p->cut_after, &p->no_cut};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (names_one(lists[i], o, add))
            return true;
    for (int i = 0; i < p->same_stage.n; i++)
        if (names_one(&p->same_stage.at[i], o, add))
            return true;
    return false;
}

int *match_all(const Graph *g)
{
    int *into = alloc(sizeof *into * (size_t)g->op.n);
    for (int i = 0; i < g->op.n; i++)
        into[i] = i;
    return into;
}

static void keep_operands(Ints *list, const int *tensor)
{
    for (int i = 0; i < list->n; i++)
        list->at[i] = list->at[i] < 0 ? -1 : tensor[list->at[i]];
}

static void keep_operators(Graph *g, const int *into, const int *tensor)
{
    int n = 0, nf = 0, nb = 0;
    for (int i = 0; i < g->op.n; i++) {
        Op o = g->op.at[i];
        nf += i < g->nf && into[i] == i;
        nb += i < g->nb && into[i] == i;
        if (into[i] != i)
            continue;
        for (int k = 0; k < o.arg.n; k++)
            if (o.arg.at[k].kind <= ARG_WRITE && !o.arg.at[k].state)
                o.arg.at[k].index = tensor[o.arg.at[k].index];
        keep_operands(&o.in, tensor);
        keep_operands(&o.out, tensor);
        g->op.at[n++] = o;
    }
    g->op.n = n;
    g->nf = nf;
    g->nb = nb;
}

void match_drop(Graph *g, const int *into)
{
    int *op = alloc(sizeof *op * (size_t)g->op.n), *tensor = alloc(sizeof *tensor * (size_t)g->tensor.n), n = 0, ops = 0;
    for (int i = 0; i < g->op.n; i++) {
        op[i] = ops;
        ops += into[i] == i;
    }
    for (int t = 0; t < g->tensor.n; t++) {
        Tensor x = g->tensor.at[t];
        tensor[t] = n;
        if (x.op >= 0 && into[x.op] != x.op)
            continue;
        x.op = x.op >= 0 ? op[x.op] : x.op;
        g->tensor.at[n++] = x;
    }
    g->tensor.n = n;
    for (int t = 0; t < n; t++)
        if (g->tensor.at[t].kind == T_GRAD)
            g->tensor.at[t].of = tensor[g->tensor.at[t].of];
    keep_operators(g, into, tensor);
    for (int i = 0; i < g->nb; i++) {
        Op *o = &g->op.at[i];
        o->fwd = op[o->fwd];
        o->name = g->op.at[o->fwd].name;
        o->layer = g->op.at[o->fwd].layer;
    }
    for (int s = 0; s < g->state.n; s++)
        g->state.at[s].op = g->state.at[s].op >= 0 ? op[g->state.at[s].op] : g->state.at[s].op;
    for (int i = 0; i < g->count.n; i++)
        g->count.at[i].op = op[g->count.at[i].op];
    g->loss = g->loss < 0 ? -1 : tensor[g->loss];
}
