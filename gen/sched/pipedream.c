/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream.c: one forward, one backward without a flush, an update after each micro-batch.
 *
 * Method: two rules.
 *
 * Weight stashing: stage i of p has p-i micro-batches in flight.  Micro-batch t reads the newest weights that are there when
 * its forward runs, version max(0, t - (p-1-i)).  Its backward reads the same, and its gradient makes version t+1 of version t.
 * p-i copies.  The delay depends on the stage, so the bits depend on the cuts.
 *
 * Vertical sync: every stage reads the version that stage 0 reads, max(0, t - (p-1)).  So a micro-batch has one consistent set
 * of weights, at the price of p copies on every stage.  The bits then depend on p alone.
 *
 * An update for each micro-batch: m = 1.  Clipping by global norm would make each update wait for all stages, and is refused;
 * by parameter it is as usual.  Period with equal stages: f+b.
 *
 * Source: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, 2019, sections 3.2 and 3.3.
 */
#include "sched.h"

static int make(Plan *p, bool vertical)
{
    if (p->chunks != 1 || p->g->micro != 1)
        return 1;
    for (int d = 0; d < p->devices; d++)
        sched_async(p, d, (Pace){.warm = p->devices - d, .delay = p->devices - 1 - (vertical ? 0 : d),
                                 .overlap = p->devices});
    return 0;
}

int schedule_pipedream(Plan *p)
{
    return make(p, false);
}

int schedule_vertical(Plan *p)
{
    return make(p, true);
}
