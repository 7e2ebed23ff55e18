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
 *   zb*               between 1f1b and zb-h2, by device: search/paces.c
 *
 * Backward and weight gradients of a chunk ascend, so the bits are those of any synchronous schedule.
 *
 * Cost: linear in the actions.  Not handled: maps that fold back, where places differ between devices (zb-v).
 */
#include "sched.h"

typedef struct { int p, i, m, v, g; } Names;
typedef struct { int chunk, mb; } Place;

static bool look_up(void *ctx, const char *name, double *value)
{
    const Names *n = ctx;
    const struct { char name; int value; } all[] = {{'p', n->p}, {'i', n->i}, {'m', n->m}, {'v', n->v}, {'g', n->g}};
    for (int k = 0; k < 5; k++)
        if (name[0] == all[k].name && !name[1]) {
            *value = all[k].value;
            return true;
        }
    return false;
}

static int number(const Plan *p, const char *text, Names *n)
{
    return (int)expr_int(p->m->plan.loc, text, look_up, n);
}

int sched_group(const Schedule *k, const Model *m, int stages, int micro)
{
    Names n = {.p = stages, .m = micro, .v = m->plan.chunks};
    return m->plan.group > 0 ? m->plan.group : (int)expr_int(m->plan.loc, k->group, look_up, &n);
}

/* The place of number n: which of the device's chunks, which micro-batch. */
static Place place_of(const Names *x, int n)
{
    int whole = x->m / x->g * x->g, group = n / (x->g * x->v), size = x->g;
    if (n >= whole * x->v) {
        group = x->m / x->g;
        size = x->m - whole;
    }
    int rest = n - group * x->g * x->v;
    return (Place){rest / size, group * x->g + rest % size};
}

static void put(Plan *p, const Ints *chunk, const Names *x, ActionKind kind, int n)
{
    if (n < 0 || n >= x->m * x->v)
        return;
    Place at = place_of(x, n);
    sched_put(p, x->i, kind, chunk->at[kind == K_F ? at.chunk : x->v - 1 - at.chunk], at.mb);
}

static void put_device(Plan *p, const Schedule *k, Names *x)
{
    Ints chunk = {0};
    for (int c = 0; c < plan_chunks(p); c++)
        if (plan_home(p, 0, c) == x->i)
            *PUSH(&chunk) = c;
    const Ints *leads = p->ask.lead, *lags = p->ask.lag;
    int all = x->m * x->v, lead = leads ? leads->at[x->i] : number(p, k->lead, x);
    int lag = lags ? lags->at[x->i] : k->lag ? number(p, k->lag, x) : -1;
    for (int n = -lead; n < all + (lag > 0 ? lag : 0); n++) {
        put(p, &chunk, x, K_F, n + lead);
        put(p, &chunk, x, lag < 0 ? K_B : K_I, n);
        if (lag >= 0)
            put(p, &chunk, x, K_W, n - lag);
    }
}

int schedule_beats(Plan *p)
{
    const Schedule *k = schedule_of(p->schedule);
    int stages = plan_stages(p), chunks = plan_chunks(p);
    if (chunks % stages)
        return 1;
    Names x = {.p = stages, .m = plan_micro(p), .v = chunks / stages};
    x.g = sched_group(k, p->m, stages, x.m);
    if (x.g < 1 || x.g > x.m)
        x.g = x.m;
    for (x.i = 0; x.i < stages; x.i++)
        put_device(p, k, &x);
    return 0;
}
