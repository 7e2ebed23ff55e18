/* SPDX-License-Identifier: Apache-2.0
 *
 * bapipe.c: BaPipe's balanced partition as a baseline.
 *
 * Problem: balance the stages of a pipeline over devices that may differ, with links that may be slow and memory that is short.
 *
 * Method: three steps of the paper's exploration, one after another.
 *
 *   balance   between layers: the cuts with the least slowest stage, each layer at the time of the device that it is on
 *   links     where a transfer takes longer than that stage, the partition is coarse-grained: only cuts with a small enough
 *             output are left.  The least T such that cuts with transfers up to T leave no stage above T is found at once, as
 *             the least value of the slowest stage or transfer
 *   memory    where a stage does not fit, border layers move to its neighbours until all fit (moves.c).  The least excess comes
 *             first, then the slowest stage, or transfer where links bind
 *
 * Known are the three steps and their order.  The recurrences are reconstructed: the paper's were not at hand.  Not carried by
 * our frame: the partition within a layer, since no operator is split, and the choice among the paper's schedules, which
 * `plan.schedule` has made.  Nothing is made again and nothing leaves the device.
 *
 * Source: Zhao, Xu, Wang, Tian, Wang, Wu, Ieong, Jin, BaPipe: Exploration of Balanced Pipeline Parallelism for DNN Training,
 * arXiv 2012.12544, 2020, as far as its abstract and notes on it go.
 *
 * Cost: n n a stage at most for each of the first two steps; the last is that of moves.c.
 * Not handled: the last step is a local search, so it may find nothing where some cuts fit.
 */
#include "rivals.h"

typedef struct { const Fleet *l; bool links; } BapipeWalk;

static Ns slower(const Fleet *l, int s, int from, int to, int copies)
{
    Ns time = fleet_time(l, s, from, to, copies), send = fleet_send(l, s, to) / copies;
    return time > send ? time : send;
}

static Burden burden(void *ctx, int first, int last, int stage)
{
    const BapipeWalk *w = ctx;
    const Fleet *l = w->l;
    Ns time = (w->links ? slower : fleet_time)(l, stage, first, last + 1, l->copies[stage]);
    return (Burden){l->over ? l->over(l->ctx, first, last, stage) : 0, time};
}

Ns bapipe_cut(const Fleet *l, int *last, bool *by_links)
{
    int *copies = alloc(sizeof *copies * (size_t)l->stages);
    Ns value = fleet_take(fleet_balance(l, fleet_time, NULL), l->stages, last, copies);
    *by_links = false;
    for (int s = 0; s < l->stages && value >= 0; s++)
        *by_links |= fleet_send(l, s, last[s] + 1) / copies[s] > value;
    return *by_links ? fleet_take(fleet_balance(l, slower, NULL), l->stages, last, copies) : value;
}

bool bapipe_fit(const Fleet *l, int *last, bool by_links)
{
    BapipeWalk w = {l, by_links};
    Moves m = {.units = l->n, .stages = l->stages, .must = l->must, .burden = burden, .ctx = &w};
    if (moves_worst(&m, last).over > 0)
        moves_improve(&m, last);
    return moves_worst(&m, last).over == 0;
}

bool plan_bapipe(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    Fleet l = fleet_of(q, &u);
    bool by_links, fits;
    int *last = alloc(sizeof *last * (size_t)q->chunks);
    if (bapipe_cut(&l, last, &by_links) < 0)
        return false;
    fits = bapipe_fit(&l, last, by_links);
    fleet_answer(q, &u, &l, last, a);
    return fits;
}
