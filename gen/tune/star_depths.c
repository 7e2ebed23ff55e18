/* SPDX-License-Identifier: Apache-2.0
 *
 * star_depths.c: how many micro-batches each stage of 1F1B* has in flight.
 *
 * Method: from the loads of a finished plan, the first few periods that make a difference, shortest first.  Where memory is
 * short, the loads of a plan say little of those that another depth allows.  So the depths of equal loads are tried as well:
 * groups of two or three stages, the one at the end smaller or not.
 *
 * Source: Beaumont, Eyraud-Dubois, Shilova, 2021 and 2022, as in sched/1f1b_star.c, which makes the lists of these depths.
 */
#include "tune.h"
#include "budgets.h"

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

ORDER(by_time, Ns, order_of(*x, *y))

/* Groups change where the period passes the sum of neighbours; none can be shorter than the longest load. */
static int periods(const Ns *load, int stages, Ns *period)
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
    SORT(period, count, by_time);
    for (int i = 0; i < count; i++)
        if (kept == 0 || period[i] != period[kept - 1])
            period[kept++] = period[i];
    return kept;
}

/* Stage 0, the link behind it, stage 1, ...: of one micro-batch. */
static void loads_of(const Plan *p, Ns *load)
{
    int stages = plan_stages(p);
    for (int i = 0; i < 2 * stages - 1; i++)
        load[i] = 0;
    for (int d = 0; d < stages; d++)
        for (EACH(const Action, k, p->dev.at[d].list)) {
            if (k->mb != 0)
                continue;
            if (k->routine >= 0)
                load[2 * d] += action_time(p, d, k);
            for (int a = d; k->kind == K_SEND && k->peer < stages && a != k->peer; a += k->peer > d ? 1 : -1)
                load[2 * (k->peer > d ? a : a - 1) + 1] += cost_wire(p->c, d, k->peer, k->bytes) +
                                                           cost_latency(p->c, d, k->peer);
        }
}

/* Those of the plan are known. */
static bool is_known(const Depths *all, const Plan *p, const int *depth)
{
    const Ints *asked = p->ask.choice.depth;
    int stages = plan_stages(p), equal = 0;
    for (int d = 0; d < stages; d++)
        equal += depth[d] == (asked ? asked->at[d] : stages - d);
    bool known = equal == stages;
    for (int i = 0; i < all->n; i++)
        known |= !memcmp(all->at[i]->at, depth, sizeof *depth * (size_t)stages);
    return known;
}

static bool add(Depths *all, const Plan *p, int *depth)
{
    int stages = plan_stages(p);
    if (is_known(all, p, depth))
        return false;
    Ints *one = alloc(sizeof *one);
    *one = (Ints){depth, stages, stages};
    *PUSH(all) = one;
    return true;
}

Depths star_tries(const Plan *p, bool shallow)
{
    int stages = plan_stages(p);
    size_t bytes = sizeof(int) * (size_t)stages;
    Depths all = {0};
    Ns *load = alloc(sizeof *load * (size_t)(2 * stages)), *period = alloc(sizeof *period * (size_t)(2 * stages * stages + 1));
    for (int size = 2; shallow && size <= ROUNDS && size <= stages; size++)
        for (int spare = 0; spare < size; spare++) {
            int *depth = alloc(bytes);
            /* Equal loads; the group at the end is smaller by `spare`. */
            for (int d = 0; d < stages; d++)
                depth[d] = (stages - d + spare + size - 1) / size;
            add(&all, p, depth);
        }
    loads_of(p, load);
    for (int i = 0, n = periods(load, stages, period), tried = 0; i < n && tried < TRIES; i++) {
        int *depth = alloc(bytes);
        star_depths(load, stages, period[i], depth);
        tried += add(&all, p, depth);
    }
    return all;
}
