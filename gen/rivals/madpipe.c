/* SPDX-License-Identifier: Apache-2.0
 *
 * madpipe.c: MadPipe's planner over the units of a model.
 *
 * Problem, method and source: madpipe_dp.c, the dynamic program.  Its numbers are taken from a graph here:
 *
 *   once     parameters, gradients and optimiser state of a unit.  A schedule with overlapping steps adds a second version of
 *            the parameters: the paper's three copies of weights are two versions and the gradient
 *   copy     the results of a unit that backward reads
 *   border   all that crosses a cut, received and sent, there and back
 *   limit    the smallest of the devices'
 *
 * The answer is a map from pieces to devices, numbered in the order of the model, and the cuts.  Both go into plan.map and
 * plan.cuts.  So all later passes treat them as if a user had written them.  The special device is one arena like any other.
 * MadPipe neither recomputes nor offloads.  Its period is that of the program.  Whether the special device's pieces can be
 * ordered so tightly shows in the simulation of the list; both periods are printed.
 *
 * Cost: a grid of MADPIPE_GRID steps and MOST_STATES states a period limit the program.
 *
 * Not handled: 1F1B* itself.  The list is 1f1b's for that map.  It lets chunk c of C hold C - c micro-batches, where 1F1B* at a
 * longer period holds fewer.  Such a plan may not fit after all, and is then refused.  Devices that differ are not handled
 * either: all are taken for the first, with the smallest limit.
 */
#include "madpipe.h"
#include "fates/fates.h"
#include "planner.h"
#include "rivals.h"
#include "budgets.h"

static Special chain_of(const Plan *p, const Units *u, const Bytes *limit)
{
    size_t n = sizeof(int64_t) * (size_t)u->n;
    Bytes *once = alloc(n), *border = alloc(n), least = limit[0];
    Ns *send = alloc(n);
    bool second = schedule_of(p->schedule)->async;
    for (int i = 0; i < u->n; i++) {
        once[i] = u->states[i] + (second ? u->params[i] : 0);
        border[i] = 2 * u->out[i];
        send[i] = cost_wire(p->c, 0, p->devices > 1, 2 * u->out[i]);
    }
    for (int d = 1; d < p->devices; d++)
        least = limit[d] < least ? limit[d] : least;
    return (Special){.n = u->n, .devices = p->devices, .time = u->time, .send = send, .once = once, .copy = u->saved,
                     .border = border, .memory = least, .must = u->must, .steps = MADPIPE_GRID, .budget = MOST_STATES};
}

bool madpipe(const Plan *p, const Bytes *limit, MadPipe *answer)
{
    const Graph *g = p->g;
    char *cut = alloc((size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        cut[o] = o + 1 == g->nf ? CUT_MUST : CUT_MAY;
    Units u = units_of(p, cut, p->devices);
    Special s = chain_of(p, &u, limit);
    Segments pieces = {0};
    int special = -1, devices = 0;
    *answer = (MadPipe){.period = special_plan(&s, &pieces)};
    for (int i = 0; i < pieces.n && answer->period; i++) {
        const MadpipeSegment *x = &pieces.at[i];
        int device = x->special && special >= 0 ? special : devices++;
        special = x->special ? device : special;
        *PUSH(&answer->map) = device;
        *PUSH(&answer->flight) = x->flight;
        if (i + 1 < pieces.n)
            *PUSH(&answer->cuts) = u.last[x->last];
    }
    answer->devices = devices;
    return answer->period > 0;
}

/* Takes the cuts that are there already and keeps every tensor. */
bool plan_madpipe(const Question *q, Answer *a)
{
    int n = 0;
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    for (int o = 0; o < q->n; o++)
        if (q->cut[o] == CUT_MUST && n < q->chunks)
            a->last[n++] = o;
    a->fate = choices_of(q->p).base;
    return n == q->chunks && a->last[n - 1] == q->n - 1;
}
