/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c: micro-batches through the pipeline, forward alone: plan.mode infer.
 *
 * Method: device i computes micro-batch 0, 1, 2 and so on.  There is no backward, so nothing is kept for one, and no flush: a
 * job runs its list again and again, and the first micro-batch of a list follows the last one of the list before.
 *
 * Source: Hu et al., Pipeline Parallelism for Inference on Heterogeneous Edge Computing, 2021 (PipeEdge).
 *
 * Cost: one micro-batch in each longest stage or message.  In flight: one on each device, and one in each message.
 */
#include "sched.h"

int schedule_stream(Plan *p)
{
    for (int d = 0; d < plan_stages(p); d++)
        for (int k = 0; k < plan_micro(p); k++)
            sched_put(p, d, K_F, d, k);
    return 0;
}
