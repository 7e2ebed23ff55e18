/* SPDX-License-Identifier: Apache-2.0
 *
 * beats.c: the list of a row of schedules.def, from three numbers for each device: lead, lag and group.
 *
 * Method: device i counts in beats.  In beat n stand its forward of place n + lead, its backward of place n, and its weight
 * gradient of place n - lag, as far as there are such places.  Places number chunks and micro-batches, alike on every device.
 * Micro-batches go in groups.  A group passes chunk by chunk, forward by ascending and backward by descending chunks of the
 * device.  Within a chunk its micro-batches ascend.  A last group may be short.  Without a lag, input and weight gradient are
 * one computation.
 *
 * A row gives lead, lag and group as expressions of p (devices), i (the device), m (micro-batches), v (chunks a device) and g
 * (the group).  Known schedules in these terms:
 *
 *   interleaved       (v-1)g + 2(p-1-i), none; v > 1  Narayanan et al., 2021, Megatron-LM, section 2.2
 *   breadth-first     vm, none, g = m                 Lamy-Poirier, 2023, Breadth-First Pipeline Parallelism
 *   gis               (v-1)g + p-1-i, 0               Wan et al., 2025, PipeOffload: the group-interleaved base
 *   interleaved-zb    (v-1)g + p-1-i, i               PyTorch, ScheduleInterleavedZeroBubble
 *   1f1b-split, 2bp   p-1-i, 0 or m                   Rae et al., 2024, 2BP
 *   zb-h1, zb-h2      p-1-i, i; 2(p-1-i), 2i          Qi et al., 2024, Zero Bubble Pipeline Parallelism, section 2
 *   zb*               between 1f1b and zb-h2, by device: tune/paces.c
 *
 * Backward and weight gradients of a chunk ascend, so the bits are those of any synchronous schedule.
 *
 * plan.schedule as a map is such a row, over chunks in turn or there and back.  Its lists are replayed before they are
 * taken, for a lead that is too short makes devices wait in a circle.
 *
 * Cost: linear in the actions; a row that is refused is replayed a logarithm of times.  Not handled: places that differ
 * between devices, which the good lists of folded maps need (v_loops.c, slots.c).
 */
#include "sched.h"

#include <limits.h>

typedef struct { int p, i, m, v, g; Loc at; } BeatsNames;
typedef struct { int chunk, mb; } BeatWork;

static bool look_up(void *ctx, const char *name, double *value)
{
    const BeatsNames *n = ctx;
    const struct { char name; int value; } all[] = {{'p', n->p}, {'i', n->i}, {'m', n->m}, {'v', n->v}, {'g', n->g}};
    for (int k = 0; k < 5; k++)
        if (name[0] == all[k].name && !name[1]) {
            *value = all[k].value;
            return true;
        }
    err(n->at, "p devices, i the device, m micro-batches, v chunks a device, g the group", "unknown name '%s'", name);
}

static int64_t number(const Model *m, const char *text, BeatsNames *n)
{
    n->at = mark_of(m, text, m->plan.loc);
    return expr_int(n->at, text, look_up, n);
}

int sched_group(const Schedule *k, const Model *m, int stages, int micro)
{
    BeatsNames n = {.p = stages, .m = micro, .v = m->plan.chunks};
    int64_t group = m->plan.group > 0 ? m->plan.group : number(m, k->custom ? m->plan.custom.group : k->group, &n);
    return (int)(group < 0 ? 0 : group > INT_MAX ? INT_MAX : group);
}

static void put(Plan *p, const Ints *chunk, const BeatsNames *x, ActionKind kind, int n)
{
    if (n < 0 || n >= x->m * x->v)
        return;
    /* The place of number n: which of the device's chunks, which micro-batch. */
    int whole = x->m / x->g * x->g, group = n / (x->g * x->v), size = x->g;
    if (n >= whole * x->v) {
        group = x->m / x->g;
        size = x->m - whole;
    }
    int rest = n - group * x->g * x->v;
    BeatWork at = (BeatWork){rest / size, group * x->g + rest % size};
    sched_put(p, x->i, kind, chunk->at[kind == K_F ? at.chunk : x->v - 1 - at.chunk], at.mb);
}

/* At most all places: more is no other list. */
static int within(const BeatsNames *x, int64_t n)
{
    return (int)(n < -1 ? -1 : n > (int64_t)x->m * x->v ? (int64_t)x->m * x->v : n);
}

/* -1 and less: no list */
static int lead_of(const Schedule *k, const Model *m, BeatsNames *x)
{
    return within(x, number(m, k->custom ? m->plan.custom.lead : k->lead, x));
}

/* -1: none */
static int lag_of(const Schedule *k, const Model *m, BeatsNames *x)
{
    const char *text = k->custom ? m->plan.custom.lag : k->lag;
    return text ? within(x, number(m, text, x)) : -1;
}

static void put_device(Plan *p, const Schedule *k, BeatsNames *x)
{
    Ints chunk = {0};
    if (p->dev.at[x->i].order.n > 0)            /* order_like() has it */
        return;
    for (int c = 0; c < plan_chunks(p); c++)
        if (stage_of(p, c) == x->i)
            *PUSH(&chunk) = c;
    const Ints *leads = p->ask.choice.lead, *lags = p->ask.choice.lag;
    int all = x->m * x->v, lead = leads ? leads->at[x->i] : lead_of(k, p->m, x);
    int lag = lags ? lags->at[x->i] : lag_of(k, p->m, x);
    for (int n = -lead; n < all + (lag > 0 ? lag : 0); n++) {
        put(p, &chunk, x, K_F, n + lead);
        put(p, &chunk, x, lag < 0 ? K_B : K_I, n);
        if (lag >= 0)
            put(p, &chunk, x, K_W, n - lag);
    }
}

static BeatsNames names_of(const Schedule *k, const Model *m, int stages, int micro, int chunks)
{
    BeatsNames x = {.p = stages, .m = micro, .v = chunks};
    x.g = sched_group(k, m, stages, x.m);
    if (x.g < 1 || x.g > x.m)
        x.g = x.m;
    return x;
}

int schedule_beats(Plan *p)
{
    const Schedule *k = schedule_of(p->schedule);
    int stages = plan_stages(p), chunks = plan_chunks(p);
    if (chunks % stages)
        return 1;
    BeatsNames x = names_of(k, p->m, stages, plan_micro(p), chunks / stages);
    for (x.i = 0; x.i < stages; x.i++)
        put_device(p, k, &x);
    return 0;
}

/* ---- a row of the model file: plan.schedule as a map ------------------------------------------------------------------- */

typedef struct { Plan p; Ints lead, lag; } RowTrial;

static char letter_of(ActionKind kind)
{
    return kind == K_F ? 'F' : kind == K_B ? 'B' : kind == K_I ? 'I' : 'W';
}

/* The circle of its lists with so much more lead. */
static Circle circle_of(const RowTrial *trial, int more)
{
    RowTrial x = *trial;
    OrderTable t = {.devices = trial->lead.n, .chunks = plan_chunks(&x.p), .micro = plan_micro(&x.p), .map = x.p.home.at[0]};
    x.lead = (Ints){0};
    for (int i = 0; i < t.devices; i++) {
        *PUSH(&x.lead) = trial->lead.at[i] + more;
        PUSH(&x.p.dev);
    }
    x.p.ask = (Ask){.choice = {.lead = &x.lead, .lag = &x.lag}};
    schedule_beats(&x.p);
    for (int i = 0; i < t.devices; i++) {
        TableRow *row = PUSH(&t.line);
        const Actions *list = &x.p.dev.at[i].order;
        for (int k = 0; k < list->n; k++)
            *PUSH(row) = (TableCell){.kind = letter_of(list->at[k].kind), .chunk = list->at[k].chunk, .mb = list->at[k].mb};
    }
    return table_circle(&t);
}

const char *sched_own_refuses(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    int micro = (int)(g->micro / m->plan.replicas), group;
    if (!m->plan.custom.word || strcmp(m->plan.custom.word, s->name))
        return "plan.schedule has no such row; give it a map, a lead and a lag";
    if (m->plan.map.n)
        return "it deals chunks out in turn; delete plan.map, and say plan.chunks";
    group = sched_group(s, m, devices, micro);
    if (group < 1 || group > micro)
        return strf("a group has 1 to m micro-batches: m is %d, and its group, %s, is %d; take %d", micro, m->plan.custom.group,
                    group, group < 1 ? 1 : micro);
    BeatsNames x = names_of(s, m, devices, micro, m->plan.chunks);
    RowTrial trial = {.p = {.g = g, .m = m, .schedule = s->name, .devices = devices * m->plan.replicas, .chunks = x.v,
                            .replicas = m->plan.replicas}};
    for (x.i = 0; x.i < devices; x.i++) {
        *PUSH(&trial.lead) = lead_of(s, m, &x);
        *PUSH(&trial.lag) = lag_of(s, m, &x);
        bool lead = trial.lead.at[x.i] < 0, lag = m->plan.custom.lag && trial.lag.at[x.i] < 0;
        if (lead || lag)
            return strf("its %s, %s, is negative on device %d; it is 0 at least", lead ? "lead" : "lag",
                        lead ? m->plan.custom.lead : m->plan.custom.lag, x.i);
    }
    for (int c = 0; c < devices * x.v; c++)
        plan_settle(&trial.p, 0, s->folds && c / devices % 2 ? devices - 1 - c % devices : c % devices);
    /* With a lead of all places forwards go first, so some lead is enough. */
    int all = micro * x.v;
    Circle c = circle_of(&trial, 0);
    int least = 1, most = all;
    if (!c.waits)
        return NULL;
    while (least < most) {
        int middle = (least + most) / 2;
        if (circle_of(&trial, middle).waits)
            least = middle + 1;
        else
            most = middle;
    }
    return strf("its lists wait in a circle: %s waits for %s, which stands behind %s; make its lead, %s, larger by %d",
                table_name(c.waits), table_name(c.wants), table_name(c.before), trial.p.m->plan.custom.lead, most);
}
