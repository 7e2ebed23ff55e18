/* SPDX-License-Identifier: Apache-2.0
 *
 * fleet.c: the units of a model over a fleet of devices, as dapple, spp and bapipe see them.
 *
 * Problem: these three plan for devices and links that differ, so a unit has a time on each device, and a cut has the time of
 * the link it falls on.
 *
 * Method: sums from the front, by stage.  A transfer takes its bytes over the rate of the link, and its latency, as `sim` has
 * it.  Copies of a stage are those of the plan, plan.replicas or plan.widths, or open.  As published they share the samples of
 * each micro-batch; dpgen's take micro-batches in turn, which is as much work of a step.  Their exchange of gradients is that
 * of dpgen: it halves them level by level of the tree, and sends 2 (w-1)/w of the bytes.
 *
 * fleet_balance is the bottleneck program common to spp and bapipe: the last stage of j units on s stages begins where the
 * largest of the part before it, the transfer and its own worth is least.  Open copies are a part of its state, with the
 * devices used.
 *
 * Source: the headers of the three.
 *
 * Cost: sums are linear in operators times stages; fleet_balance n n stages at most, as a stage grows only to the best worth,
 * times devices and the ways to choose the copies of two neighbours.
 * Not handled: units that are no run of the model's order; copies of a stage on devices of other speed than the first of it.
 */
#include "rivals.h"
#include "fates/fates.h"

#define NONE INT64_MAX

Ns fleet_time(const Fleet *l, int s, int from, int to, int copies)
{
    return (l->time[s][to] - l->time[s][from] + copies - 1) / copies;
}

Ns fleet_exchange(const Fleet *l, int s, int from, int to, int copies)
{
    return l->exchange && copies > 1 ? l->exchange(l->ctx, s, l->grads[to] - l->grads[from], copies) : 0;
}

bool fleet_may(const Fleet *l, int s, int copies)
{
    return l->copies ? l->copies[s] == copies : (l->any || (copies & (copies - 1)) == 0) && copies <= l->most;
}

Ns fleet_send(const Fleet *l, int s, int to)
{
    return s + 1 < l->stages ? 2 * l->send[s][to - 1] : 0;
}

bool fleet_joins(const Fleet *l, int unit, int to)
{
    return !l->must || unit == to - 1 || !l->must[unit];
}

/* ---- from a model ------------------------------------------------------------------------------------------------ */

typedef struct { const Question *q; const Units *u; const int *fate; } FleetAsked;

static Ns exchange(const void *ctx, int stage, Bytes bytes, int copies)
{
    return units_exchange(((const FleetAsked *)ctx)->q->p, stage, bytes, copies);
}

static Bytes over(const void *ctx, int first, int last, int stage)
{
    const FleetAsked *x = ctx;
    Ns time;
    Bytes more = price_need(x->q->prices, first ? x->u->last[first - 1] + 1 : 0, x->u->last[last], stage, x->fate, &time)
        - x->q->share[stage];
    return more > 0 ? more : 0;
}

static void take_stage(Fleet *l, const Plan *p, const Units *u, int s)
{
    const Graph *g = p->g;
    int here = stage_of(p, s), next = s + 1 < l->stages ? stage_of(p, s + 1) : here;
    size_t bytes = sizeof(Ns) * (size_t)(l->n + 1);
    l->forward[s] = alloc(bytes);
    l->time[s] = alloc(bytes);
    l->send[s] = alloc(bytes);
    const int turns = plan_turns(p, s);         /* a planner sees a narrow stage slowed by them: part.c */
    for (int o = 0; o < g->nb; o++) {
        int unit = u->of[g->op.at[o].fwd];
        l->time[s][unit + 1] += cost_op(p->c, here, o) / turns;
        l->forward[s][unit + 1] += o < g->nf ? cost_op(p->c, here, o) / turns : 0;
    }
    for (int i = 0; i < l->n; i++) {
        l->time[s][i + 1] += l->time[s][i];
        l->forward[s][i + 1] += l->forward[s][i];
        if (next != here)
            l->send[s][i] = cost_wire(p->c, here, next, u->out[i]) + cost_latency(p->c, here, next);
    }
}

Fleet fleet_of(const Question *q, const Units *u)
{
    const Plan *p = q->p;
    int *copies = alloc(sizeof *copies * (size_t)q->chunks);
    FleetAsked *x = alloc(sizeof *x);
    *x = (FleetAsked){q, u, choices_of(p).base};
    size_t rows = sizeof(Ns *) * (size_t)q->chunks;
    const int most = p->m->plan.replicas > 1 ? p->m->plan.replicas : 1;
    Fleet l = {.n = u->n, .stages = q->chunks, .micro = p->g->micro * most, .forward = alloc(rows), .time = alloc(rows),
              .send = alloc(rows), .grads = alloc(sizeof(Bytes) * (size_t)(u->n + 1)), .must = u->must,
              .copies = copies, .most = most, .exchange = most > 1 ? exchange : NULL, .over = over, .ctx = x};
    for (int s = 0; s < l.stages; s++) {
        take_stage(&l, p, u, s);
        copies[s] = plan_uneven(p) ? plan_copies(p, s) : most;
    }
    for (int i = 0; i < l.n; i++)
        l.grads[i + 1] = l.grads[i] + u->grads[i];
    return l;
}

Fleet fleet_open(const Question *q, const Units *u)
{
    Fleet l = fleet_of(q, u);
    l.copies = NULL;
    l.most = widths_most(q->p->m);
    l.devices = q->p->m->devices.n;
    l.exchange = exchange;
    return l;
}

/* The value is the slowest stage of a micro-batch, as that of every planner here. */
void fleet_answer(const Question *q, const Units *u, const Fleet *l, const int *last, Answer *a)
{
    a->last = alloc(sizeof *a->last * (size_t)l->stages);
    a->fate = choices_of(q->p).base;
    a->value = 0;
    for (int s = 0, from = 0; s < l->stages; from = last[s++] + 1) {
        Ns time = fleet_time(l, s, from, last[s] + 1, 1);
        a->last[s] = u->last[last[s]];
        a->value = time > a->value ? time : a->value;
    }
}

const char *fleet_note(const Fleet *l, const int *last, const char *text)
{
    for (int s = 0; s < l->stages; s++)
        if (l->over(l->ctx, s ? last[s - 1] + 1 : 0, last[s], s) > 0)
            return strf("%s; stage %d does not fit, and it does not look", text, s);
    return text;
}

/* ---- the dearest stage ------------------------------------------------------------------------------------------- */

/* Of the first j units on s stages, the last one of the k-th number of copies, `used` devices in all. */
typedef struct { Ns value; int from, front; } FleetCell;        /* from: units in front of that stage; front: the k there */
struct FleetTable { const Fleet *l; int ways, room; FleetCell *cell; };

/* Where copies are given they are the one way, and nobody counts devices. */
static FleetCell *cell_at(const FleetTable *t, int s, int j, int k, int used)
{
    return &t->cell[(((size_t)s * (size_t)(t->l->n + 1) + (size_t)j) * (size_t)t->ways + (size_t)k) * (size_t)t->room
                    + (size_t)used];
}

static int copies_of(const FleetTable *t, int s, int k)
{
    return t->l->copies ? t->l->copies[s] : t->l->any ? k + 1 : 1 << k;
}

/* Stage s of these copies ends with unit j-1. */
static void fill_cell(const FleetTable *t, int s, int j, int k, int used, FleetWorth *worth, FleetWire *wire)
{
    const Fleet *l = t->l;
    FleetCell *x = cell_at(t, s + 1, j, k, used);
    const int copies = copies_of(t, s, k), left = l->copies ? 0 : used - copies;
    for (int i = j - 1; i >= 0 && left >= 0 && fleet_joins(l, i, j); i--) {
        Ns time = worth(l, s, i, j, copies);
        if (time >= x->value)
            break;
        for (int f = 0; f < (s ? t->ways : 1); f++) {
            Ns send = s && wire ? wire(l, s - 1, i, copies_of(t, s - 1, f), copies) : 0;
            Ns value = cell_at(t, s, i, f, left)->value;
            value = time > value ? time : value;
            value = send > value ? send : value;
            if (value < x->value)
                *x = (FleetCell){value, i, f};
        }
    }
}

const FleetTable *fleet_balance(const Fleet *l, FleetWorth *worth, FleetWire *wire)
{
    FleetTable *t = alloc(sizeof *t);
    *t = (FleetTable){.l = l, .ways = 1, .room = l->copies ? 1 : l->devices + 1};
    while (!l->copies && copies_of(t, 0, t->ways) <= l->most)
        t->ways++;
    size_t cells = (size_t)(l->stages + 1) * (size_t)(l->n + 1) * (size_t)t->ways * (size_t)t->room;
    t->cell = alloc(sizeof *t->cell * cells);
    for (size_t i = 0; i < cells; i++)
        t->cell[i].value = NONE;
    cell_at(t, 0, 0, 0, 0)->value = 0;
    for (int s = 0; s < l->stages; s++)
        for (int j = s + 1; j <= l->n; j++)
            for (int k = 0; k < t->ways; k++)
                for (int used = 0; used < t->room; used++)
                    fill_cell(t, s, j, k, used, worth, wire);
    return t;
}

Ns fleet_take(const FleetTable *t, int stages, int *last, int *copies)
{
    int way = 0, used = 0, j = t->l->n;
    for (int k = 0; k < t->ways; k++)
        for (int u = 0; u < t->room; u++)
            if (cell_at(t, stages, j, k, u)->value < cell_at(t, stages, j, way, used)->value)
                way = k, used = u;
    const Ns value = cell_at(t, stages, j, way, used)->value;
    for (int s = stages; s > 0 && value != NONE; s--) {
        const FleetCell *x = cell_at(t, s, j, way, used);
        last[s - 1] = j - 1;
        copies[s - 1] = copies_of(t, s - 1, way);
        used -= t->l->copies ? 0 : copies[s - 1];
        j = x->from, way = x->front;
    }
    return value == NONE ? -1 : value;
}
