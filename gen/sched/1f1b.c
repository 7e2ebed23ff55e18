/* SPDX-License-Identifier: Apache-2.0
 *
 * 1f1b.c: one forward, one backward, with a flush at the end of the step.
 *
 * Source: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021 (PipeDream-Flush); Fan et al.,
 * DAPPLE, 2021, policy A.  Device i runs min(p-1-i, m) forwards, then pairs of forward and backward, then the backwards
 * left.
 *
 * Time with equal stages: (m+p-1)(f+b), as GPipe.  In flight on device i: min(m, p-i).  No spare micro-batch is held,
 * so a message latency c is paid in the steady state: f + b + 2c(p-1)/p per micro-batch.  Any p and m.  Several chunks
 * a device: list.c.
 */
#include "sched.h"

int schedule_1f1b(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    if (p->chunks > 1) {
        sched_list(p, false);
        return 0;
    }
    for (int d = 0; d < stages; d++) {
        int warm = stages - 1 - d < m ? stages - 1 - d : m;
        for (int k = 0; k < warm; k++)
            sched_put(p, d, K_F, d, k);
        for (int k = 0; k < m; k++) {
            if (warm + k < m)
                sched_put(p, d, K_F, d, warm + k);
            sched_put(p, d, K_B, d, k);
        }
    }
    return 0;
}
