/* SPDX-License-Identifier: Apache-2.0
 *
 * latency.c: latency and throughput of plan.mode infer, from the times of a list.
 *
 * The pipeline is empty when a list begins, so its first result comes after the latency.  The results behind it come a period
 * apart, which is that of the longest stage or message once the pipeline is full.  A device that repeats its list cannot be
 * faster than it is busy.
 *
 * The times of a list are those with all stages busy.  The first micro-batch meets fewer: while stage j has it, the stages
 * before have its followers, and those behind have nothing.  So its calls there cost what j + 1 stages pay.
 *
 * needs   sim   cost   linear in actions and operators   not handled   several outputs: that of the first in model.outputs
 * counts; a stage that the first micro-batch passes beside its way to that output
 */
#include "plan.h"

static Ns ended(const Plan *p, int op, int mb)
{
    const Actions *list = &p->dev.at[stage_of(p, p->chunk.at[op])].list;
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == K_F && list->at[i].chunk == p->chunk.at[op] && list->at[i].mb == mb)
            return list->at[i].to;
    die("latency: micro-batch %d has no result", mb);
}

/* What the first micro-batch saves, up to that stage. */
static Ns saved(const Plan *p, int last)
{
    Ns sum = 0;
    for (int d = 0; d <= last && p->c->base; d++) {
        const Cost *c = cost_shared(p->c->base, p->m, d + 1);
        for (int o = 0; o < p->g->nf; o++)
            if (stage_of(p, p->chunk.at[o]) == d)
                sum += cost_op(p->c, d, o) - cost_op(c, d, o);
    }
    return sum;
}

StreamTimes stream_times(const Plan *p)
{
    int op = 0, last = (int)p->g->micro - 1;
    if (!infers(p->m))
        return (StreamTimes){0, 0};
    while (!op_is(&p->g->op.at[op], TRAIT_END))
        op++;
    StreamTimes t = {ended(p, op, 0), 0};
    t.period = last > 0 ? (ended(p, op, last) - t.latency) / last : t.latency;
    for (int d = 0; d < p->devices; d++)
        if (p->dev.at[d].busy / (last + 1) > t.period)
            t.period = p->dev.at[d].busy / (last + 1);
    t.latency -= saved(p, stage_of(p, p->chunk.at[op]));
    return t;
}
