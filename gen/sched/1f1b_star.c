/* SPDX-License-Identifier: Apache-2.0
 *
 * 1f1b_star.c: 1F1B*, one forward and one backward with as many micro-batches in flight as a target period needs, and no more.
 *
 * Method: given are the load of each stage for one micro-batch, forward and backward, and a target period T.  Stages are
 * gathered into groups from the last one on, as long as the loads of a group add up to no more than T.  The links between
 * stages are stages too, with the time of their messages both ways as load.  A stage of the g-th group from the end holds g
 * micro-batches.
 *
 * With equal loads t, T = t and links that cost nothing it is 1F1B, p-i in flight on stage i.  T = j t needs the j-th part of
 * that, rounded up.  Links of load t at T = t ask for 2(p-1-i)+1: DAPPLE's policy B (1f1b.c).  So one rule trades memory
 * against the period in both directions.
 *
 * In the papers the pattern goes on for ever.  Here a step of m micro-batches ends with a flush, as in 1F1B: warm-up of g
 * forwards, then backward and forward in turns.  The bits are those of any synchronous schedule.
 *
 * The lists need the loads, the loads need cuts, the cuts need memory, and memory needs the lists.  search/candidate.c goes
 * round a fixed number of times, over the periods that tune/star_depths.c finds.
 *
 * Source: Beaumont, Eyraud-Dubois, Shilova, Pipelined Model Parallelism: Complexity Results and Memory Considerations, 2021,
 * and MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model Parallelism, 2022 (1F1B*).
 *
 * Not handled: several chunks a device (MadPipe's special device).
 */
#include "sched.h"

int schedule_star(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    const Ints *depth = p->ask.choice.depth;
    if (p->chunks > 1 || plan_map(p)->n)
        return 1;
    for (int d = 0; d < stages; d++) {
        int warm = depth ? depth->at[d] : stages - d;
        for (int k = -warm; k < m; k++) {
            if (k >= 0)
                sched_put(p, d, K_B, d, k);
            if (k + warm < m)
                sched_put(p, d, K_F, d, k + warm);
        }
    }
    return 0;
}
