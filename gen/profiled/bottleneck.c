/* SPDX-License-Identifier: Apache-2.0
 *
 * bottleneck.c: plan.objective bottleneck, for foreign graphs.
 *
 * Published tables of planners compare the longest stage or transfer.  Its best stages are differences of downward-closed
 * prefixes (downset.c) and need not be runs in the order of the file.  The nodes are therefore put into the order of the
 * chain, which is as good an order of the same graph.  The stages are then runs again, and the rest of the line sees
 * plan.cuts.  A model of our own keeps its order, because gradients are added in it (docs/bits.md).
 *
 * Memory is not in this objective: the line says afterwards whether the plan fits.
 */
#include "bottleneck.h"

static Ints *edges(const Foreign *f, bool to)
{
    Ints *list = alloc(sizeof *list * (size_t)f->node.n);
    for (int i = 0; i < f->node.n; i++)
        list[i] = to ? f->node.at[i].to : f->node.at[i].from;
    return list;
}

void bottleneck(Foreign *f, Model *m, ForeignChain *c)
{
    if (m->plan.stages_min != m->plan.stages_max)
        err(m->plan.loc, "--stages N", "the bottleneck is that of a given number of stages");
    if (m->plan.chunks != 1 || m->plan.map.n)
        err(m->plan.loc, NULL, "objective bottleneck puts one run of nodes on each device");
    if (m->plan.cuts.n)
        err(m->plan.cuts_at, "give one of the two", "objective bottleneck chooses the cuts");
    int n = f->node.n;
    Ns *time = alloc(sizeof *time * (size_t)n);
    Bytes *bytes = alloc(sizeof *bytes * (size_t)n);
    for (int i = 0; i < n; i++) {
        time[i] = f->node.at[i].forward + f->node.at[i].backward;
        bytes[i] = f->node.at[i].output;
    }
    Dag d = {.n = n, .time = time, .bytes = bytes, .from = edges(f, false), .to = edges(f, true),
             .wire = cost(foreign_graph(f, m), m, NULL)};
    if (!downset_chain(&d, m->plan.stages_max, MOST_PREFIXES, c))
        err(m->plan.loc, NULL, "%d stages, and the graph has %d node%s", m->plan.stages_max, n, n > 1 ? "s" : "");
    foreign_pick(f, c->sequence, n);
    m->plan.longest = c->value;
    m->plan.longest_bound = c->bound;
    m->plan.longest_all = c->all;
    for (int j = 0; j + 1 < m->plan.stages_max; j++)
        *PUSH(&m->plan.cuts) = c->last[j];
}

void bottleneck_text(FILE *out, const ForeignChain *c)
{
    fprintf(out, "  bottleneck %.6f ms, stage or transfer of a micro-batch; ", (double)c->value / 1e6);
    if (c->value == c->bound)
        fprintf(out, "the least there is");
    else
        fprintf(out, "none is below %.6f ms", (double)c->bound / 1e6);
    if (c->all)
        fprintf(out, ", over all %d downward-closed prefix%s\n", c->prefixes, c->prefixes > 1 ? "es" : "");
    else
        fprintf(out, ", the best of %d order%s of the nodes\n", c->orders, c->orders > 1 ? "s" : "");
}
