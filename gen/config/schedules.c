/* SPDX-License-Identifier: Apache-2.0
 *
 * schedules.c: the traits of each schedule, by the word that the model file has for it, and its closed form; a row that the
 * model file writes itself.  order.c has their lists.
 */
#include "schema.h"

const Schedule schedules[] = {
#define SCHEDULE(word, make, text, ...) {.name = word, .about = text, __VA_ARGS__},
#define LATER(word)
#include "schedules.def"
#undef SCHEDULE
    {.name = NULL}
};

const char schedule_words[] = "auto"
#define SCHEDULE(word, ...) " " word
#include "schedules.def"
#undef SCHEDULE
#undef LATER
#define SCHEDULE(word, ...)
#define LATER(word) " " word
#include "schedules.def"
;

/* Most ask with the word of the table itself, and some passes often. */
const Schedule *schedule_of(const char *name)
{
    for (const Schedule *k = schedules; k->name; k++)
        if (k->name == name)
            return k;
    bool any = schedule_open(name);
    for (const Schedule *k = schedules; k->name; k++)
        if (any ? k->usual : !strcmp(k->name, name))
            return k;
    return NULL;
}

typedef struct { int p, m, v; } ScheduleSizes;

static bool look_up(void *ctx, const char *name, double *value)
{
    const ScheduleSizes *n = ctx;
    *value = *name == 'p' ? n->p : *name == 'm' ? n->m : n->v;
    return strchr("pmv", *name) && !name[1];
}

/* The form of a row that deals out no chunks is of one chunk a device. */
int64_t schedule_form(const Schedule *k, int p, int m, int v)
{
    ScheduleSizes n = {p, m, v};
    Loc nowhere = {0};
    bool known = k->form && (k->chunks || v == 1) && (!k->holds || m >= expr_int(nowhere, k->holds, look_up, &n));
    return known ? expr_int(nowhere, k->form, look_up, &n) : 0;
}

bool schedule_open(const char *word)
{
    return !strcmp(word, "auto");
}

const Model *with_schedule(const Model *m, const Schedule *k)
{
    Model *with = COPY(m);
    PlanSpec *p = &with->plan;
    p->schedule = k->name;
    p->map = p->table && !k->given ? (Ints){0} : p->map;
    p->waves = k->waves ? p->waves : 0;
    p->group = k->grouped ? p->group : 0;
    p->warmup = k->warmups ? p->warmup : WARMUP_A;
    if (!p->chunks_said && !p->map.n)
        p->chunks = !k->chunks ? 1 : k->chunks * (p->waves ? p->waves : 1);
    return with;
}

/* ---- plan.schedule: {map: v, group: 4, lead: "p-1-i", lag: "i"} ------------------------------------------------------- */

static void read_expression(const Spot *s)
{
    read_text(s);
    *PUSH(&s->m->marks) = (Mark){ s->value->text, s->value->loc };
}

void read_schedule_row(const Spot *s)
{
    static const Field fields[] = {
        { "map", read_choice, offsetof(OwnRow, map), 0, 0, "line v" },
        { "lead", read_expression, offsetof(OwnRow, lead), 0, 0, NULL },
        { "lag", read_expression, offsetof(OwnRow, lag), 0, 0, NULL },
        { "group", read_expression, offsetof(OwnRow, group), 0, 0, NULL },
    };
    static const char form[] = "plan.schedule: {map: v, lead: \"(v-1)*g+2*(p-1-i)\", lag: i}";
    OwnRow *row = &s->m->plan.custom;
    const char **name = s->to;
    if (s->value->kind != MAP) {
        read_built(s);
        s->m->plan.any_row = schedule_open(*name);
        if (schedule_of(*name)->custom)
            bad(s->value->loc, form, "schedule %s has the lead and lag of the model file, which gives none", *name);
        return;
    }
    row->group = "min(p, m)";
    row->at = s->value->loc;
    section(s->m, s->value, s->path, fields, COUNT(fields), row);
    if (!row->lead)
        bad(row->at, form, "plan.schedule: a row has a lead: the forwards of device i before its first backward");
    const Schedule *k = schedules;              /* the row of that map */
    while (!k->custom || k->folds != (row->map == THERE_AND_BACK))
        k++;
    *name = row->word = k->name;
}
