/* SPDX-License-Identifier: Apache-2.0
 *
 * piper.c: Piper's planner as a baseline.
 *
 * Problem: an existing system's stages, so that ours can be compared with them.
 *
 * Method: the search is ours (downset/widths.c), which reaches the least value that its table has; what is computed again is
 * chosen by its heuristic, as published: from the fastest choices, the least time a byte first, until the stage fits.  For a
 * graph of another system stages have copies and degrees.  For a model of dpgen a unit is a layer (unit.c), kept or made again
 * whole, a stage is one device, and the published numbers are
 *
 *   time     of the units, forward once more for those made again, and 2 bytes over both borders
 *   memory   saved bytes a micro-batch in flight and states; made again: its input a micro-batch, and what it saves once
 *
 * Source: Tarnawski, Narayanan, Phanishayee, Piper: Multidimensional Planner for DNN Parallelization, NeurIPS 2021.
 *
 * Cost: that of widths.c for a chain.  Not handled: devices that differ (all are taken for the least), cuts that are demanded.
 */
#include "fates/fates.h"
#include "planner.h"
#include "rivals.h"

bool widths_piper(const Widths *w, WidthPlan *plan)
{
    Widths published = *w;
    published.heuristic = true;
    bool found = widths_plan(&published, plan);
    plan->bound = 0;            /* of its choices alone */
    return found;
}

/* At 1 GB/s a byte is a nanosecond: borders are priced by our wires. */
static Widths chain_of(const Question *q, const Units *u)
{
    static const int one = 1;
    size_t n = (size_t)u->n;
    WidthWay *way = alloc(sizeof *way * n);
    WidthEdge *edge = alloc(sizeof *edge * n);
    Ints *from = alloc(sizeof *from * n), *to = alloc(sizeof *to * n);
    Bytes memory = q->share[0];
    for (int c = 1; c < q->chunks; c++)
        memory = q->share[c] < memory ? q->share[c] : memory;
    for (int i = 0; i < u->n; i++) {
        Bytes *wire = alloc(2 * sizeof *wire), in = i ? u->out[i - 1] : 0;
        wire[0] = wire[1] = cost_wire(q->p->c, 0, q->p->devices > 1, 2 * u->out[i]) / 2;
        way[i] = (WidthWay){.choices = choices_of(q->p).recompute ? 2 : 1};
        way[i].choice[0] = (WidthChoice){u->time[i] * 1000, u->saved[i], u->states[i]};
        way[i].choice[1] = (WidthChoice){(u->time[i] + u->forward[i]) * 1000, in, u->states[i] + u->saved[i]};
        edge[i] = (WidthEdge){i, i + 1, wire};
        if (i + 1 < u->n)
            *PUSH(&to[i]) = i + 1;
        if (i > 0)
            *PUSH(&from[i]) = i - 1;
    }
    return (Widths){.n = u->n, .from = from, .to = to, .degrees = 1, .degree = &one, .split = way, .edges = u->n - 1,
                    .edge = edge, .devices = q->chunks, .copies = 1, .micro = q->p->g->micro, .memory = memory,
                    .rate = 1000000000};
}

/* What a unit that is made again reads from others is kept. */
static int *fates_of(const Question *q, const Units *u, const char *again)
{
    const Graph *g = q->p->g;
    Choices c = choices_of(q->p);
    int *fate = alloc(sizeof *fate * (size_t)g->tensor.n), *of = u->of;
    for (int t = 0; t < g->tensor.n; t++) {
        int op = g->tensor.at[t].op;
        fate[t] = op >= 0 && op < g->nf && c.may[t] && again[of[op]] ? FATE_RECOMPUTE : c.base[t];
    }
    for (int o = 0; o < g->nf; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            int op = a->kind == ARG_READ && !a->state ? g->tensor.at[a->index].op : -1;
            if (op >= 0 && of[op] != of[o])
                fate[a->index] = c.base[a->index];
        }
    return fate;
}

bool plan_piper(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    WidthPlan plan;
    int musts = 0;
    for (int i = 0; i + 1 < u.n; i++)
        musts += u.must[i];
    a->note = "not applicable: it takes no cuts that are demanded";
    if (musts)
        return false;
    Widths w = chain_of(q, &u);
    a->note = "by its formula nothing fits";
    if (!widths_piper(&w, &plan))
        return false;
    a->note = strf("it leaves %d of %d devices idle", q->chunks - plan.stage.n, q->chunks);
    if (plan.stage.n != q->chunks)
        return false;
    a->note = NULL;
    a->value = (plan.value + 999) / 1000;
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    for (int s = 0; s < q->chunks; s++)
        a->last[s] = u.last[plan.sequence[plan.stage.at[s].last]];
    a->fate = fates_of(q, &u, plan.choice);
    return true;
}
