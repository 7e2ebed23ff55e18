/* SPDX-License-Identifier: Apache-2.0
 *
 * spp.c: SPP's planner as a baseline.
 *
 * Problem: devices and links that differ, and a synchronous step of m micro-batches.
 *
 * Method: two parts.
 *
 *   order   RDO, recursive device ordering.  Devices and the rates of their links are a graph.  Its least cut parts it in two,
 *           each part is ordered so again, and one stands behind the other.  So the slowest links meet few borders of stages.
 *           The least cut is found by Stoer and Wagner's algorithm; the part with the lowest number stands in front
 *   cuts    PRM, partition and mapping.  W(j, s, r, d), of the first j units as s stages on the first d devices in that order,
 *           the last one on r, is the least over the last stage of the largest of four: W in front, m times the stage over r, m
 *           times the transfer in front of it over r and the copies there, and its exchange of gradients
 *
 * Known are the two parts, the recursion by least cuts and the state of the program.  Reconstructed are which part stands in
 * front, that an exchange counts beside the work of its stage and not behind it, and that pairs of copies share a transfer.
 * SPP takes the number of stages that its list of micro-batches makes shortest: here the replay of the schedule that is asked
 * for.  Not carried by our frame: that list, and copies that are no power of two.  With `plan.widths: auto` the copies are its
 * choice; else they are given.  The order is taken where `devices.order: free` leaves it open, which wants one copy a stage.
 *
 * Source: Luo, Yi, Long, Fan, Wu, Yang, Lin, Efficient Pipeline Planning for Expedited Distributed DNN Training, INFOCOM 2022,
 * arXiv 2204.10562, as far as its abstract and notes on it go; Stoer and Wagner, A Simple Min-Cut Algorithm, JACM 44(4), 1997.
 *
 * Cost: cuts n n a stage at most, with open copies that of fleet.c; order devices to the fourth.
 * Not handled: memory is not looked at, so the plan may not fit; recomputation and offload.
 */
#include "rivals.h"

/* ---- PRM --------------------------------------------------------------------------------------------------------- */

static Ns worth(const Fleet *l, int s, int from, int to, int copies)
{
    Ns work = l->micro * fleet_time(l, s, from, to, copies), exchange = fleet_exchange(l, s, from, to, copies);
    return work > exchange ? work : exchange;
}

/* Each pair of copies has a link. */
static Ns wire(const Fleet *l, int s, int to, int copies, int next)
{
    return l->micro * fleet_send(l, s, to) / (copies * next);
}

const FleetTable *spp_cut(const Fleet *l)
{
    return fleet_balance(l, worth, wire);
}

/* The paper's scheduler chooses the number of stages: a replay does here. */
void spp_copies(const Question *q, int least, WidthLists *all)
{
    Units u = units_of(q->p, q->cut, least);
    Fleet l = fleet_open(q, &u);
    const FleetTable *t = spp_cut(&l);
    for (int stages = least; stages <= q->chunks; stages++) {
        int *last = alloc(sizeof *last * (size_t)stages), *copies = alloc(sizeof *copies * (size_t)stages);
        if (fleet_take(t, stages, last, copies) >= 0)
            *PUSH(all) = (Ints){copies, stages, stages};
    }
}

bool plan_spp(const Question *q, Answer *a)
{
    Units u = units_of(q->p, q->cut, q->chunks);
    Fleet l = fleet_of(q, &u);
    int *last = alloc(sizeof *last * (size_t)q->chunks), *copies = alloc(sizeof *copies * (size_t)q->chunks);
    Ns longest = fleet_take(spp_cut(&l), q->chunks, last, copies);
    if (longest < 0)
        return false;
    fleet_answer(q, &u, &l, last, a);
    a->note = fleet_note(&l, last, strf("the busiest device, link or exchange works %.3f ms of a step by SPP's program",
                                        (double)longest / 1e6));
    return true;
}

/* ---- RDO --------------------------------------------------------------------------------------------------------- */

typedef struct { int before, last; int64_t rate; } SppMet;   /* the last two groups; what links the last one to all others */

/* One phase of Stoer and Wagner: groups are met from device 0 on, most closely linked first.  A device that stands for its
 * group is its own `group`. */
static SppMet phase(const int64_t *rate, const int *group, int n)
{
    int64_t *sum = alloc(sizeof *sum * (size_t)n);
    bool *met = alloc((size_t)n);
    SppMet end = {0};
    for (int next = 0; next >= 0;) {
        end = (SppMet){end.last, next, sum[next]};
        met[next] = true;
        for (int i = 0; i < n; i++)
            sum[i] += rate[end.last * n + i];
        next = -1;
        for (int i = 0; i < n; i++)
            if (group[i] == i && !met[i] && (next < 0 || sum[i] > sum[next]))
                next = i;
    }
    return end;
}

/* Orders n of the devices, ascending, in place. */
static void order_part(const int64_t *rate, int all, int *device, int n)
{
    if (n < 3)
        return;
    int64_t *rates = alloc(sizeof *rates * (size_t)(n * n));
    for (int i = 0; i < n * n; i++)
        rates[i] = i / n == i % n ? 0 : rate[device[i / n] * all + device[i % n]];
    /* By device: is it on the side of a least cut that device 0 is not on? */
    bool *side = alloc((size_t)n);
    int *group = alloc(sizeof *group * (size_t)n);
    int64_t least = INT64_MAX;
    for (int i = 0; i < n; i++)
        group[i] = i;
    for (int groups = n; groups > 1; groups--) {
        SppMet end = phase(rates, group, n);
        for (int i = 0; i < n && end.rate < least; i++)
            side[i] = group[i] == end.last;
        least = end.rate < least ? end.rate : least;
        for (int i = 0; i < n; i++) {
            rates[end.before * n + i] += rates[end.last * n + i];
            rates[i * n + end.before] = rates[end.before * n + i];
            group[i] = group[i] == end.last ? end.before : group[i];
        }
    }
    const bool *behind = side;
    int *copy = alloc(sizeof *copy * (size_t)n), front = 0;
    memcpy(copy, device, sizeof *copy * (size_t)n);
    for (int i = 0; i < n; i++)
        if (!behind[i])
            device[front++] = copy[i];
    for (int i = 0, k = front; i < n; i++)
        if (behind[i])
            device[k++] = copy[i];
    order_part(rate, all, device, front);
    order_part(rate, all, device + front, n - front);
}

void spp_order(const int64_t *rate, int n, int *order)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    order_part(rate, n, order, n);
}
