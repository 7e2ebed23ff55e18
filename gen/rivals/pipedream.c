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
 *   replicated   stages on several machines, as published, in numbers that are powers of two: plan.widths: auto.  Where the
 *                numbers are given, only the cuts are its choice
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
#include "rivals.h"
#include "fates/fates.h"
#include "planner.h"

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

/* With the copies of the plan. */
bool plan_pipedream_replicated(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    PipedreamChain c = chain_of(q, &u);
    ChainStage *stage = alloc(sizeof *stage * (size_t)q->chunks);
    const int turns = plan_turns(q->p, 0), most = q->p->m->plan.replicas > 1 ? q->p->m->plan.replicas : 1;
    int *given = alloc(sizeof *given * (size_t)(q->chunks * most + 1));
    for (int i = 0; i < u.n; i++)
        u.time[i] /= turns;                     /* a planner sees a narrow stage slowed by them: part.c */
    c.machines = 0;
    for (int s = 0; s < q->chunks; s++) {
        int copies = plan_uneven(q->p) ? plan_copies(q->p, s) : most;
        given[c.machines += copies] = copies;
    }
    c.replicate = true;
    c.transfers = false;
    c.given = given;
    if (!chain_plan(&c, stage, &a->value))
        return false;
    a->note = describe(stage, q->chunks, a->value);
    take(q, &u, stage, a);
    return true;
}

void pipedream_copies(const Question *q, int least, WidthLists *all)
{
    Units u = units_of(q->p, q->cut, least);
    PipedreamChain c = chain_of(q, &u);
    c.machines = q->p->m->devices.n;
    c.replicate = true;
    c.transfers = false;
    c.most = widths_most(q->p->m);
    ChainStage *stage = alloc(sizeof *stage * (size_t)c.machines);
    Ints list = {0};
    Ns value;
    int n = 0;
    for (; n == 0 && c.machines > 0; c.machines -= n == 0)      /* few stages cannot have them all */
        n = chain_plan(&c, stage, &value);
    for (int s = 0; s < n; s++)
        *PUSH(&list) = stage[s].replicas;
    if (n >= least && n <= q->chunks)
        *PUSH(all) = list;
}
