/* SPDX-License-Identifier: Apache-2.0
 *
 * fleet.c: the units of a model over a fleet of devices, as dapple, spp and bapipe see them.
 *
 * Problem: these three plan for devices and links that differ, so a unit has a time on each device, and a cut has the time of
 * the link it falls on.
 *
 * Method: sums from the front, by stage.  A transfer takes its bytes over the rate of the link, and its latency, as `sim` has
 * it.  Replicas are those of the plan: all of one depth and width.  Their exchange of gradients is dpgen's own, level by level
 * of the tree over replicas.
 *
 * fleet_balance is the bottleneck program common to spp and bapipe: the last stage of j units on s devices begins where the
 * larger of the part before it and its own worth is least.
 *
 * Source: the headers of the three.
 *
 * Cost: sums are linear in operators times stages; fleet_balance n n stages at most, as a stage grows only to the best worth.
 * Not handled: units that are no run of the model's order; a stage on more devices than its neighbour.
 */
#include "fleet.h"
#include "fates/choices.h"

#define NONE INT64_MAX

Ns fleet_time(const Fleet *l, int s, int from, int to)
{
    return l->time[s][to] - l->time[s][from];
}

Ns fleet_exchange(const Fleet *l, int s, int from, int to)
{
    return l->exchange ? l->exchange(l->ctx, s, l->grads[to] - l->grads[from]) : 0;
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

static Ns exchange(const void *ctx, int stage, Bytes bytes)
{
    const Question *q = ((const FleetAsked *)ctx)->q;
    int device = stage_of(q->p, stage);
    Ns sum = 0;
    for (int away = 1; away < q->p->m->plan.replicas; away *= 2) {
        int other = device + away * q->p->devices;
        sum += cost_wire(q->p->c, device, other, bytes) + cost_latency(q->p->c, device, other);
    }
    return sum;
}

static Bytes over(const void *ctx, int first, int last, int stage)
{
    const FleetAsked *x = ctx;
    Ns time;
    Bytes more = price_need(x->q->prices, first ? x->u->last[first - 1] + 1 : 0, x->u->last[last], stage, x->fate, &time)
        - x->q->share[stage];
    return more > 0 ? more : 0;
}

/* By forward operator: its unit. */
static int *units_by_op(const Units *u, int operators)
{
    int *of = alloc(sizeof *of * (size_t)operators);
    for (int o = 0, k = 0; o < operators; k += o == u->last[k], o++)
        of[o] = k;
    return of;
}

static void take_stage(Fleet *l, const Plan *p, const Units *u, const int *of, int s)
{
    const Graph *g = p->g;
    int here = stage_of(p, s), next = s + 1 < l->stages ? stage_of(p, s + 1) : here;
    size_t bytes = sizeof(Ns) * (size_t)(l->n + 1);
    l->forward[s] = alloc(bytes);
    l->time[s] = alloc(bytes);
    l->send[s] = alloc(bytes);
    for (int o = 0; o < g->nb; o++) {
        int unit = of[g->op.at[o].fwd];
        l->time[s][unit + 1] += cost_op(p->c, here, o);
        l->forward[s][unit + 1] += o < g->nf ? cost_op(p->c, here, o) : 0;
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
    const int *of = units_by_op(u, p->g->nf);
    FleetAsked *x = alloc(sizeof *x);
    *x = (FleetAsked){q, u, choices_of(p).base};
    size_t rows = sizeof(Ns *) * (size_t)q->chunks;
    Fleet l = {.n = u->n, .stages = q->chunks, .micro = p->g->micro, .forward = alloc(rows), .time = alloc(rows),
              .send = alloc(rows), .grads = alloc(sizeof(Bytes) * (size_t)(u->n + 1)), .must = u->must,
              .exchange = p->m->plan.replicas > 1 ? exchange : NULL, .over = over, .ctx = x};
    for (int s = 0; s < l.stages; s++)
        take_stage(&l, p, u, of, s);
    for (int s = 0; s < p->g->state.n; s++)
        if (p->g->state.at[s].kind == S_GRAD)
            l.grads[of[p->g->state.at[s].op] + 1] += p->g->state.at[s].bytes;
    for (int i = 0; i < l.n; i++)
        l.grads[i + 1] += l.grads[i];
    return l;
}

/* The value is the slowest stage of a micro-batch, as that of every planner here. */
void fleet_answer(const Question *q, const Units *u, const Fleet *l, const int *last, Answer *a)
{
    a->last = alloc(sizeof *a->last * (size_t)l->stages);
    a->fate = choices_of(q->p).base;
    a->value = 0;
    for (int s = 0, from = 0; s < l->stages; from = last[s++] + 1) {
        Ns time = fleet_time(l, s, from, last[s] + 1);
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

Ns fleet_balance(const Fleet *l, Ns (*worth)(const Fleet *l, int stage, int from, int to), int *last)
{
    int n = l->n, *begin = alloc(sizeof *begin * (size_t)(l->stages * (n + 1)));
    Ns *front = alloc(sizeof *front * (size_t)(n + 1)), *now = alloc(sizeof *now * (size_t)(n + 1));
    for (int j = 1; j <= n; j++)
        front[j] = NONE;
    for (int s = 0; s < l->stages; s++) {
        now[0] = NONE;
        for (int j = 1; j <= n; j++) {
            now[j] = NONE;
            for (int i = j - 1; i >= 0 && fleet_joins(l, i, j); i--) {
                Ns time = worth(l, s, i, j), value = time > front[i] ? time : front[i];
                if (time >= now[j])
                    break;
                if (value < now[j]) {
                    now[j] = value;
                    begin[s * (n + 1) + j] = i;
                }
            }
        }
        Ns *swap = front;
        front = now;
        now = swap;
    }
    for (int s = l->stages - 1, j = n; s >= 0 && front[n] != NONE; j = begin[s-- * (n + 1) + j])
        last[s] = j - 1;
    return front[n] == NONE ? -1 : front[n];
}
