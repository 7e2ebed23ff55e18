/* SPDX-License-Identifier: Apache-2.0
 *
 * planners.c: who may cut a model, from planners.def.  A row is a planner, or a variant of one, NAME:VARIANT; NAME alone means
 * the first of its variants.  `dpgen --planner ?` prints the table.
 */
#include "planner.h"

#include <limits.h>

const Planner planners[] = {
#define PLANNER(word, make, what, from, ...) {.name = word, .plan = make, .space = what, .source = from, __VA_ARGS__},
#include "planners.def"
    {.name = NULL}
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
    bool maps = k->map && !map;   /* it chooses the chunks */
    const char *schedule = p->schedule ? p->schedule : s->schedule;     /* a comparison asks before there is a plan */
    const char *text = !cuts || maps ? k->space
        : strf("%s%s%s", s->objective == BOTTLENECK ? "the stages of the bottleneck" : "the cuts that were given",
               strstr(k->space, fates) ? ", " : "", strstr(k->space, fates) ? fates : "");
    if (map)
        text = with(text, chunk, "chunks on devices as plan.map has them");
    else if (s->chunks > 1 && !maps)
        text = with(text, chunk, strf("%d chunks a device %s", s->chunks,
                                     schedule_of(schedule)->folds ? "there and back" : "in turn"));
    if (s->recompute != RECOMPUTE_AUTO && s->offload != OFFLOAD_AUTO && strstr(text, fates))
        text = with(text, fates, "fates as given");
    if (k->complete && schedule_of(schedule)->depths && !schedule_of(schedule)->lead)
        text = strf("%s, as many micro-batches in flight as in this plan", text);
    return p->m->device_order != ORDER_GIVEN ? with(text, given, "devices in any order") : text;
}

const char lists_space[] = "any order of F, I and W, the cuts of this plan, any fates";

bool planner_says(const char *space, int chunks)
{
    Model *m = alloc(sizeof *m);
    Plan p = {.m = m};
    PlanSpec *s = &m->plan;
    s->chunks = chunks;
    if (!strcmp(space, lists_space))
        return true;
    for (const Planner *k = planners; k->name; k++)
        for (int open = 0; open < 96; open++) {
            static const char *const rows[] = {"auto", "zb-v", "1f1b*"};
            p.schedule = rows[open >> 5];
            s->cuts.n = open & 1;
            s->map.n = open >> 1 & 1;
            s->recompute = open & 4 ? RECOMPUTE_NONE : RECOMPUTE_AUTO;
            s->objective = open & 16 ? BOTTLENECK : STEP_TIME;
            m->device_order = open & 8 ? ORDER_FREE : ORDER_GIVEN;
            if (!strcmp(planner_space(k, &p), space))
                return true;
        }
    return false;
}
