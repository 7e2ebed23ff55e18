/* SPDX-License-Identifier: Apache-2.0
 *
 * optimal.c: the lists that tune/optimal.c found, or those of a row to begin with.
 * A row for any map gets that of the plan, there and back.
 */
#include "sched.h"

static void put_list(Plan *p, int device, const Actions *list)
{
    for (EACH(const Action, k, *list))
        if (k->kind == K_F || k->kind == K_B || k->kind == K_I || k->kind == K_W)
            sched_put(p, device, k->kind, k->chunk, k->mb);
}

int schedule_optimal(Plan *p)
{
    Plan row = *p;
    row.schedule = p->ask.choice.seed ? p->ask.choice.seed->name : schedule_of("auto")->name;
    row.slack = (Ints){0};
    if (schedule_of(row.schedule)->any_map)
        row.ask.choice.map = &p->home.at[0];
    if (!p->ask.choice.lists && order(&row))
        return 1;
    for (int d = 0; d < plan_stages(p); d++)
        put_list(p, d, p->ask.choice.lists ? &p->ask.choice.lists[d] : &row.dev.at[d].order);
    return 0;
}
