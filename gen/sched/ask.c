/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c: a plan's map, cuts, planner and warm-up.  If a search asks for them, they are the search's; else the model's.
 */
#include "plan.h"

const Ints *plan_map(const Plan *p)
{
    return p->ask.choice.map ? p->ask.choice.map : &p->m->plan.map;
}

const Ints *plan_cuts(const Plan *p)
{
    return p->ask.choice.cuts ? p->ask.choice.cuts : &p->m->plan.cuts;
}

const char *plan_planner(const Plan *p)
{
    return p->ask.choice.planner ? p->ask.choice.planner : p->m->plan.planner;
}

int plan_warmup(const Plan *p)
{
    return p->ask.choice.warmup ? p->ask.choice.warmup - 1 : (int)p->m->plan.warmup;
}

Proof plan_proof(const Plan *p)
{
    Proof known = p->proof.space ? p->proof : p->predicted;
    if (plan_buckets(p) > 1)            /* planners prove for exchanges that stand behind backward */
        known.bound = 0;
    return known;
}
