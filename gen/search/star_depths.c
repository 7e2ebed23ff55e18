/* SPDX-License-Identifier: Apache-2.0
 *
 * star_depths.c: how many micro-batches each stage of 1F1B* has in flight, from the loads of a finished plan.
 *
 * Source: Beaumont, Eyraud-Dubois, Shilova, 2021 and 2022, as in sched/1f1b_star.c, which makes the lists of these depths.
 */
#include "star_depths.h"

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
                load[2 * d] += action_time(p, d, k);
            for (int a = d; k->kind == K_SEND && k->peer < stages && a != k->peer; a += k->peer > d ? 1 : -1)
                load[2 * (k->peer > d ? a : a - 1) + 1] += cost_wire(p->c, d, k->peer, k->bytes) +
                                                           cost_latency(p->c, d, k->peer);
        }
}
