/* SPDX-License-Identifier: Apache-2.0
 *
 * planners.c: who may cut a model.  Each row is a planner, or a variant of one, NAME:VARIANT; NAME alone means the first of
 * its variants.  `dpgen --planner ?` prints this table.  front/devices.c has the same words, for what a model file may say.
 *
 * seed: `exact` begins with the answer of a planner for graphs of up to so many operators.  rival: up to so many, candidate.c
 * lays out its whole plan beside that of `exact` where that takes longer than it predicted: it is then never worse.
 */
#include "planner.h"
#include "budgets.h"

#include <string.h>

#define ONE_ORDER "contiguous runs in one order, one chunk a device, devices as given"
#define LAYERS "contiguous runs of layers, everything kept"
#define PIPEDREAM "Narayanan et al., 2019, PipeDream"
#define VPIPE "Zhao et al., 2022, vPipe"
#define DAWNPIPER "Peng et al., 2025, DawnPiper; Peng et al., 2020, Capuchin"

const Planner planners[] = {
    {"exact", exact, ONE_ORDER ", cheapest fates of each run",
     "Zheng et al., 2022, Alpa; Tarnawski et al., 2021, Piper", 0, 0},
    {"even", even, "the one cut into runs of equal time", "Huang et al., 2019, GPipe", OPS_ANY, OPS_MANY},
    {"brute", brute, ONE_ORDER ", all fates of each run: an oracle for small graphs", "enumeration", 0, 0},
    {"interval", plan_interval, ONE_ORDER ", cuts between balance of time and of memory", DAWNPIPER, OPS_MANY, OPS_MANY},
    {"interval:guard", plan_interval_guard, ONE_ORDER ", the same and one cut on either side", DAWNPIPER, OPS_FEW, OPS_FEW},
    {"pipedream:published", plan_pipedream, LAYERS ", memory not looked at", PIPEDREAM, OPS_MANY, OPS_MANY},
    {"pipedream:memflag", plan_pipedream_memflag, LAYERS ", the published memory check", PIPEDREAM, OPS_MANY, OPS_MANY},
    {"pipedream:strong", plan_pipedream_strong, LAYERS ", those that fit", PIPEDREAM, OPS_SOME, OPS_SOME},
    {"pipedream:replicated", plan_pipedream_replicated, "runs of layers on several devices, everything kept", PIPEDREAM, 0, 0},
    {"vpipe:repo", plan_vpipe_repo, "contiguous runs of layers, the tail of each recomputed", VPIPE, OPS_MANY, OPS_MANY},
    {"vpipe:paper", plan_vpipe_paper, "contiguous runs of layers, each kept, swapped or recomputed", VPIPE, OPS_MANY, OPS_MANY},
    {"twobw", plan_twobw, "equal numbers of blocks, all kept or all recomputed",
     "Narayanan et al., 2021, PipeDream-2BW", OPS_MANY, OPS_MANY},
    {"madpipe", plan_madpipe, "runs of layers, everything kept, several on one device", "Beaumont et al., 2022, MadPipe", 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0}
};

const Planner *planner_named(const char *name)
{
    size_t n = strlen(name);
    const Planner *k = planners;
    while (k->name && strcmp(k->name, name) && (strncmp(k->name, name, n) || k->name[n] != ':'))
        k++;
    if (!k->name)
        die("no planner '%s'", name);
    return k;
}

/* text with one part of it, or what is not there put behind it */
static const char *with(const char *text, const char *part, const char *instead)
{
    const char *at = strstr(text, part);
    return at ? strf("%.*s%s%s", (int)(at - text), text, instead, at + strlen(part)) : strf("%s, %s", text, instead);
}

/* What a planner chooses from, as far as this plan leaves it open. */
const char *planner_space(const Planner *k, const Plan *p)
{
    static const char chunk[] = "one chunk a device", given[] = "devices as given", fates[] = "cheapest fates of each run";
    const PlanSpec *s = &p->m->plan;
    bool map = plan_map(p)->n > 0, cuts = plan_cuts(p)->n > 0;
    bool own = k->plan == plan_madpipe && !map;    /* it chooses the chunks */
    const char *text = !cuts || own ? k->space
        : strf("the cuts that were given%s%s", strstr(k->space, fates) ? ", " : "", strstr(k->space, fates) ? fates : "");
    if (map)
        text = with(text, chunk, "chunks on devices as plan.map has them");
    else if (s->chunks > 1 && !own)
        text = with(text, chunk, strf("%d chunks a device in turn", s->chunks));
    if (s->recompute != RECOMPUTE_AUTO && s->offload != OFFLOAD_AUTO && strstr(text, fates))
        text = with(text, fates, "fates as given");
    return p->m->order != ORDER_GIVEN ? with(text, given, "devices in any order") : text;
}

bool planner_says(const char *space, int chunks)
{
    Model *m = alloc(sizeof *m);
    const Plan p = {.m = m};
    PlanSpec *s = &m->plan;
    s->chunks = chunks;
    for (const Planner *k = planners; k->name; k++)
        for (int open = 0; open < 16; open++) {
            s->cuts.n = open & 1;
            s->map.n = open >> 1 & 1;
            s->recompute = open & 4 ? RECOMPUTE_NONE : RECOMPUTE_AUTO;
            m->order = open & 8 ? ORDER_FREE : ORDER_GIVEN;
            if (!strcmp(planner_space(k, &p), space))
                return true;
        }
    return false;
}
