/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: the devices of a stage, for the pages that people and programs read: who they are, and what they send each other.
 *
 * Other systems print a mesh (tensor 8, pipeline 4) and leave the reader to find which device is where, and what it sends.  The
 * bytes here are those of the calls in the lists of the plan, so calls that are made again count.  All devices of a stage send
 * as much.
 *
 * Cost: the calls of a step.
 */
#include "emit.h"

Bytes team_sent(const Plan *p, int device)
{
    Bytes sum = 0, *of = alloc(sizeof *of * (size_t)(p->routine.n + 1));
    const Actions *list = &p->dev.at[device].list;
    for (int r = 0; r < p->routine.n; r++)
        for (int i = 0; p->g->team && i < p->routine.at[r].call.n; i++)
            of[r] += cost_team_bytes(p->m, p->g, &p->g->op.at[p->routine.at[r].call.at[i].op]);
    for (int i = 0; i < list->n; i++)
        sum += list->at[i].routine >= 0 ? of[list->at[i].routine] : 0;
    return sum;
}

const char *team_shape(const Plan *p)
{
    const char *text = p->g->team ? strf(" of %d devices", p->g->team) : "";
    return plan_uneven(p) ? strf("%s in %s copies", text, widths_text(&p->m->plan.widths)) : text;
}

void team_json(FILE *f, const Plan *p, int device)
{
    fprintf(f, ", \"team\": [");
    for (int k = 0; k < p->g->team; k++)
        fprintf(f, "%s%s", k ? ", " : "", quote_json(team_member(p->m, device, k)->name));
    fprintf(f, "], \"team_sent_bytes\": %" PRId64, team_sent(p, device));
}
