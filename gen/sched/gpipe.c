/* SPDX-License-Identifier: Apache-2.0
 *
 * gpipe.c: every forward of the step, then every backward.
 *
 * Method: the paper leaves the backward order open.  Here it is ascending, because the gradient chain is.
 *
 * Source: Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019, section 2.2.
 *
 * Cost, with f and b those of a stage: sum f + sum b + (m-1)(max f + max b); with equal stages (m+p-1)(f+b).  In flight: m
 * micro-batches on every device.  Any p and m.
 * Not handled: several chunks a device: slots.c.
 */
#include "sched.h"

int schedule_gpipe(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    if (p->chunks > 1 || plan_map(p)->n) {
        sched_any_map(p, true);
        return 0;
    }
    for (int d = 0; d < stages; d++) {
        for (int k = 0; k < m; k++)
            sched_put(p, d, K_F, d, k);
        for (int k = 0; k < m; k++)
            sched_put(p, d, K_B, d, k);
    }
    return 0;
}
