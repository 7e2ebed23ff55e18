/* SPDX-License-Identifier: Apache-2.0
 *
 * star.c: 1F1B*, one forward and one backward with as many micro-batches in flight as a target period needs, and no more.
 *
 * Source: Beaumont, Eyraud-Dubois, Shilova, Pipelined Model Parallelism: Complexity Results and Memory Considerations, 2021,
 * and MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model Parallelism, 2022 (1F1B*).  Given the load of
 * each stage for one micro-batch, forward and backward, and a target period T, stages are gathered into groups from the last
 * one on, as long as the loads of a group add up to no more than T; the links between stages are stages too, with the time of
 * their messages both ways as load.  A stage of the g-th group from the end holds g micro-batches.
 *
 * With equal loads t, T = t and links that cost nothing it is 1F1B, p-i in flight on stage i; T = j t needs the j-th part of
 * that, rounded up; links of load t at T = t ask for 2(p-1-i)+1, which is DAPPLE's policy B (1f1b.c).  So one rule trades
 * memory against the period in both directions.
 *
 * The papers let the pattern go on for ever; here a step of m micro-batches ends with a flush, as in 1F1B: warm-up of g
 * forwards, then backward and forward in turns.  The bits are those of any synchronous schedule.
 *
 * The lists need the loads, which need cuts, which need memory, which needs the lists: candidate.c goes round, over the periods
 * that make a difference, a fixed number of times.  Not handled: several chunks a device (MadPipe's special device).
 */
#include "sched.h"
#include "star.h"

#include <stdlib.h>

void star_depths(const Ns *load, int stages, Ns period, int *depth)
{
    Ns sum = 0;
    int group = 0;
    for (int i = 2 * stages - 2; i >= 0; i--) {
        if (group == 0 || sum + load[i] > period) {
            group++;
            sum = 0;
        }
        sum += load[i];
        if (i % 2 == 0)
            depth[i / 2] = group;
    }
}

static int by_time(const void *a, const void *b)
{
    const Ns *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Groups change where the period passes the sum of neighbours; none can be shorter than the longest load. */
int star_periods(const Ns *load, int stages, Ns *period)
{
    int n = 2 * stages - 1, count = 0, kept = 0;
    Ns most = 0;
    for (int i = 0; i < n; i++)
        most = load[i] > most ? load[i] : most;
    for (int i = 0; i < n; i++) {
        Ns sum = 0;
        for (int j = i; j < n; j++)
            if ((sum += load[j]) >= most)
                period[count++] = sum;
    }
    qsort(period, (size_t)count, sizeof *period, by_time);
    for (int i = 0; i < count; i++)
        if (kept == 0 || period[i] != period[kept - 1])
            period[kept++] = period[i];
    return kept;
}

/* Stage 0, the link behind it, stage 1, ...: of one micro-batch. */
void star_loads(const Plan *p, Ns *load)
{
    int stages = plan_stages(p);
    for (int i = 0; i < 2 * stages - 1; i++)
        load[i] = 0;
    for (int d = 0; d < stages; d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++) {
            const Action *k = &p->dev.at[d].list.at[i];
            if (k->mb != 0)
                continue;
            if (k->routine >= 0)
                load[2 * d] += sim_action(p, d, k);
            for (int a = d; k->kind == K_SEND && k->peer < stages && a != k->peer; a += k->peer > d ? 1 : -1)
                load[2 * (k->peer > d ? a : a - 1) + 1] += cost_wire(p->c, d, k->peer, k->bytes) +
                                                           cost_latency(p->c, d, k->peer);
        }
}

int schedule_star(Plan *p)
{
    int m = plan_micro(p), stages = plan_stages(p);
    const Ints *depth = &p->m->plan.depth;
    if (p->chunks > 1 || p->m->plan.map.n)
        return 1;
    for (int d = 0; d < stages; d++) {
        int warm = depth->n ? depth->at[d] : stages - d;
        for (int k = -warm; k < m; k++) {
            if (k >= 0)
                sched_put(p, d, K_B, d, k);
            if (k + warm < m)
                sched_put(p, d, K_F, d, k + warm);
        }
    }
    return 0;
}
