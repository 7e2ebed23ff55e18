/* SPDX-License-Identifier: Apache-2.0
 *
 * new.c: a plan before any pass.
 */
#include "plan.h"

Plan *new_plan(const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule, const Ask *ask)
{
    Plan *p = alloc(sizeof *p);
    const Ints *map = ask ? ask->choice.map : NULL;    /* with one, a device alone has several chunks */
    *p = (Plan){.g = g, .c = cost_with(c, schedule_of(schedule)), .m = m, .schedule = schedule,
                .ask = ask ? *ask : (Ask){.more = 0},
                .devices = devices_for(m, stages), .chunks = map ? map->n - stages + 1 : m->plan.chunks,
                .replicas = m->plan.replicas > 1 ? m->plan.replicas : 0};
    for (int d = 0; d < p->devices; d++)
        *PUSH(&p->dev) = (DevicePlan){.device = d, .limit = m->devices.at[d].memory};
    return p;
}
