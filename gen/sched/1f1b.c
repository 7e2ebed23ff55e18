/* SPDX-License-Identifier: Apache-2.0
 *
 * 1f1b.c: one forward, one backward, with a flush at the end of the step.
 *
 * Method: device i runs some forwards, then pairs of forward and backward, then the backwards left.  The plan chooses how many
 * forwards go first (plan.warmup), because that number trades memory against messages:
 *
 *   A   p-1-i: in flight min(m, p-i), the least that keeps equal stages busy.  No spare micro-batch is held, so a message of
 *       time c is paid in the steady state: f + b + 2c(p-1)/p a micro-batch
 *   B   2(p-1-i): in flight min(m, 2(p-i)-1).  A message has the time of half a pair: f + b a micro-batch while 2c <= f + b
 *
 * DAPPLE takes B where "communication is comparable to computation".  Megatron-LM and DeepSpeed know A alone, and their users
 * on slow networks are told to take fewer stages.  Here plan.warmup: auto lays out and simulates both, and prices their bytes
 * from the list as any other.  B needs receives that are posted early enough: order_slack().
 *
 * Backward is ascending, so the bits are those of any synchronous schedule.
 *
 * Source: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, 2021 (PipeDream-Flush); Fan et al., DAPPLE: A
 * Pipelined Data Parallel Approach for Training Large Models, 2021, section 3.3, warm-up policies A and B.
 *
 * Cost: with equal stages and no messages a step takes (m+p-1)(f+b), as GPipe, under both.  Any p and m.
 * Not handled: several chunks a device: slots.c, which knows A alone.
 */
#include "sched.h"

int schedule_1f1b(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    if (p->chunks > 1 || plan_map(p)->n) {
        sched_any_map(p, false);
        return 0;
    }
    for (int d = 0; d < stages; d++) {
        int warm = (int)min_of(m, (plan_warmup(p) == WARMUP_B ? 2 : 1) * (stages - 1 - d));
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
