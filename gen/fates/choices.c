/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.c: the tensors with fates that a planner may choose.
 *
 * plan.recompute: auto lets a planner recompute; plan.offload: auto lets it offload.  Names in {keep: ...} are neither.  Where
 * plan.recompute is full, or either is a list of names, the user has chosen, and a planner takes that as it stands.
 *
 * A tensor that no backward call reads costs nothing to drop.  So it is dropped wherever anything may be.
 *
 * Cost: linear in the operands of the graph.
 */
#include "fates.h"

/* The fates under this value of plan.recompute. */
static int *fates_under(const Plan *p, Recompute recompute, bool cheap)
{
    Plan with = *p;
    Model m = *p->m;
    m.plan.recompute = recompute;
    m.plan.offload = OFFLOAD_NONE;
    with.m = &m;
    return keep_fates(&with, cheap);
}

Choices choices_of(const Plan *p)
{
    Recompute asked = p->m->plan.recompute;
    Choices x = {.base = keep_fates(p, false), .recompute = asked == RECOMPUTE_AUTO,
             .offload = p->m->plan.offload == OFFLOAD_AUTO && !p->ask.choice.no_offload};
    const int *all = fates_under(p, RECOMPUTE_AUTO, true), *unread = fates_under(p, RECOMPUTE_AUTO, false);
    x.may = alloc((size_t)p->g->tensor.n);
    for (int t = 0; (x.recompute || x.offload) && t < p->g->tensor.n; t++)
        x.may[t] = all[t] == FATE_RECOMPUTE && unread[t] == FATE_KEEP && x.base[t] == FATE_KEEP;
    return x;
}
