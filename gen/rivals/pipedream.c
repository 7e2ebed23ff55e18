/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream.c: PipeDream's planner as a baseline.
 *
 * Problem: an existing system's stages, so that ours can be compared with them.
 *
 * Method: the dynamic program is in pipedream_dp.c; a unit is a layer (unit.c).  Nothing is made again and nothing leaves the
 * device: PipeDream has neither.
 *
 *   published    a straight pipeline, transfers in the maximum, memory not looked at: the plan may not fit
 *   memflag      with the published memory check.  It charges the last stage nothing, and takes the bytes of results and
 *                parameters for the bytes that training needs
 *   strong       the best straight pipeline among those that fit under dpgen's own memory model: PipeDream with a true model,
 *                and the fair one to compare with
 *   replicated   stages on several machines, as published.  Those of one width are `replicas` and could run.  Others are
 *                planned, their objective is printed, and they are not generated: gradients of a stage would be summed in
 *                another order than those of its neighbour, and the bits of a run would depend on the plan
 *
 * Users complain that the program ignores transfers and memory unless flags tell it otherwise.  They also complain that it
 * cuts where a layer ends, although the tensor within one may be smaller.
 *
 * Source: Narayanan, Harlap, Phanishayee, Seshadri, Devanur, Ganger, Gibbons, Zaharia, PipeDream: Generalized Pipeline
 * Parallelism for DNN Training, SOSP 2019, section 3.1, and the optimiser that its authors published.
 *
 * Cost: pipedream_dp.c's.
 * Not handled: devices that differ (all are taken for the first), hierarchies of networks.
 */
#include "pipedream_dp.h"
#include "fates/choices.h"
#include "planner.h"
#include "unit.h"

#include <inttypes.h>

typedef struct { const Question *q; const Units *u; const int *fate; } PipedreamAsked;

/* dpgen's own model in the place of the published one. */
static bool fits(void *ctx, int first, int last, int index)
{
    const PipedreamAsked *x = ctx;
    int from = first ? x->u->last[first - 1] + 1 : 0;
    Ns time;
    return price_need(x->q->prices, from, x->u->last[last], index, x->fate, &time)
        <= x->q->share[index];
}

static bool never(void *ctx, int first, int last, int index)
{
    const PipedreamAsked *x = ctx;
    return price_never(x->q->prices, first ? x->u->last[first - 1] + 1 : 0, x->u->last[last], index);
}

static Bytes least_limit(const Question *q)
{
    Bytes least = q->share[0];
    for (int c = 1; c < q->chunks; c++)
        least = q->share[c] < least ? q->share[c] : least;
    return least;
}

static PipedreamChain chain_of(const Question *q, const Units *u)
{
    size_t n = sizeof(int64_t) * (size_t)u->n;
    Ns *send = alloc(n), *reduce = alloc(n);
    Bytes *stash = alloc(n);
    int next = q->p->devices > 1;
    for (int i = 0; i < u->n; i++) {
        send[i] = cost_wire(q->p->c, 0, next, 2 * u->out[i]);
        reduce[i] = cost_wire(q->p->c, 0, next, 4 * u->params[i]);
        stash[i] = u->made[i] + u->params[i];
    }
    return (PipedreamChain){.n = u->n, .machines = q->chunks, .time = u->time, .send = send, .reduce = reduce, .stash = stash,
                            .transfers = true, .must = u->must};
}

static void take(const Question *q, const Units *u, const ChainStage *stage, Answer *a)
{
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    for (int s = 0; s < q->chunks; s++)
        a->last[s] = u->last[stage[s].last];
    a->fate = choices_of(q->p).base;
}

static bool straight(const Question *q, Answer *a, bool memory, bool constrained)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    PipedreamAsked x = {q, &u, choices_of(q->p).base};
    PipedreamChain c = chain_of(q, &u);
    ChainStage *stage = alloc(sizeof *stage * (size_t)q->chunks);
    c.memory = memory ? least_limit(q) : 0;
    c.fits = constrained ? fits : NULL;
    c.never = constrained ? never : NULL;
    c.ctx = &x;
    if (chain_plan(&c, stage, &a->value) != q->chunks)
        return false;
    take(q, &u, stage, a);
    return true;
}

bool plan_pipedream(const Question *q, Answer *a)
{
    return straight(q, a, false, false);
}

bool plan_pipedream_memflag(const Question *q, Answer *a)
{
    return straight(q, a, true, false);
}

bool plan_pipedream_strong(const Question *q, Answer *a)
{
    return straight(q, a, false, true);
}

static const char *describe(const ChainStage *stage, int n, Ns value)
{
    const char *text = strf("%d stages:", n);
    for (int i = 0; i < n; i++)
        text = strf("%s units %d-%d on %d;", text, i ? stage[i - 1].last + 1 : 0, stage[i].last, stage[i].replicas);
    return strf("%s %" PRId64 " ns a micro-batch by its own objective", text, value);
}

bool plan_pipedream_replicated(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    PipedreamChain c = chain_of(q, &u);
    ChainStage *stage = alloc(sizeof *stage * (size_t)q->chunks);
    c.replicate = true;
    c.transfers = false;
    int n = chain_plan(&c, stage, &a->value);
    a->note = n ? describe(stage, n, a->value) : NULL;
    if (n && n != q->chunks)
        a->note = strf("%s; a stage on several devices beside one on fewer is planned and not generated", a->note);
    if (n != q->chunks)
        return false;
    take(q, &u, stage, a);
    return true;
}
