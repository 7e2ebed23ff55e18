/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.c: plan.widths, stages that several devices have a copy of, not all stages as many.
 *
 * Problem: a stage that takes twice as long as its neighbours wants twice as many devices.  PipeDream, DAPPLE and SPP plan such
 * stages: each device has a copy, and takes its share of the micro-batches.
 *
 * Method: the widest stage says how many copies of the model there are, plan.replicas.  A narrower one has fewer devices, each
 * for as many neighbouring copies: sched/replica.c.  Widths that are equal are plan.replicas, and nothing else.
 *
 * Cost: linear in the stages.
 */
#include "schema.h"

void read_widths(const Spot *s)
{
    const Field one = {NULL, NULL, 0, s->field->lo, s->field->hi, NULL};
    Ints *widths = s->to;
    s->m->plan.widths_at = s->value->loc;
    if (!want(s, LIST, "a list of devices, one number for each stage"))
        return;
    for (int i = 0; i < s->value->n; i++) {
        int n = 1;
        Spot item = spot_item(s, i, &one, &n);
        read_count(&item);
        if (n & (n - 1)) {
            int below = n;
            while (below & (below - 1))
                below &= below - 1;
            bad(item.value->loc, strf("%d", 3 * below < 2 * n ? 2 * below : below), "%s: %d is no power of two: sums of copies "
                "are a binary tree", item.path, n);
            n = below;
        }
        *PUSH(widths) = n;
    }
}

int devices_for(const Model *m, int stages)
{
    int all = 0;
    for (int i = 0; i < m->plan.widths.n; i++)
        all += m->plan.widths.at[i];
    return all ? all : stages * m->plan.replicas;
}

void widths_end(Model *m, const Node *plan)
{
    PlanSpec *p = &m->plan;
    int most = 1, least = p->widths.at[0];
    for (int i = 0; i < p->widths.n; i++) {
        most = p->widths.at[i] > most ? p->widths.at[i] : most;
        least = p->widths.at[i] < least ? p->widths.at[i] : least;
    }
    if (node_get(plan, "replicas") && (p->replicas_auto || p->replicas != most))
        err(p->replicas_at, "delete it", "plan.replicas: plan.widths says that there are %d copies of the model", most);
    if (node_get(plan, "stages") && (p->stages_min > p->widths.n || p->stages_max < p->widths.n))
        err(p->widths_at, strf("plan.stages: %d, or none", p->widths.n), "plan.widths: %s, and other stages are asked for",
            count_text(p->widths.n, "stage"));
    p->stages_min = p->stages_max = p->widths.n;
    p->replicas = most;
    p->replicas_auto = false;
    p->replicas_at = p->widths_at;
    if (least == most)
        p->widths = (Ints){0};
}
