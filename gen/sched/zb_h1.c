/* SPDX-License-Identifier: Apache-2.0
 *
 * zb_h1.c: one forward, one input gradient, and the weight gradient later, where it fills what would be idle time.
 *
 * Source: Qi, Wan, Huang, Lin, Zero Bubble Pipeline Parallelism, 2024, section 2 (ZB-H1).  Only the input gradient I is on
 * the way of a micro-batch; its weight gradient W may wait.  Device i of p runs p-1-i forwards, then in turns a forward, I of
 * micro-batch k, and W of micro-batch k-i; then the W left over.  The last device, where the drain begins, puts off most.
 *
 * With equal times of F, I and W: 3m + p-1 for m >= p, 2m + 2p-1 below, where 1F1B takes 3(m+p-1).  From F to W min(m, p)
 * micro-batches on every device, which is what 1F1B holds on the first one.  Backward and W are ascending, so the bits are
 * those of any synchronous schedule.
 *
 * Not handled: several chunks a device (zb-v, the interleaved form), more memory for no idle time at all (zb-h2).
 */
#include "sched.h"

int schedule_zb_h1(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    for (int d = 0; d < stages; d++)
        for (int k = d + 1 - stages; k < m + d; k++) {
            if (k + stages - 1 - d < m)
                sched_put(p, d, K_F, d, k + stages - 1 - d);
            if (k >= 0 && k < m)
                sched_put(p, d, K_I, d, k);
            if (k >= d)
                sched_put(p, d, K_W, d, k - d);
        }
    return 0;
}
