/* SPDX-License-Identifier: Apache-2.0
 *
 * fleet_widths.c: the planners of DAPPLE and SPP over graphs of other systems, with stages of any width.
 *
 * Problem: an existing system's stages, so that ours can be compared with them.
 *
 * Method: their programs of dapple.c and spp.c over the nodes in the order of the file, each a unit; any number of copies,
 * which share a micro-batch.  Times are picoseconds.  A cut sends the results of the nodes in front that others behind it read,
 * each once, and their gradients come back.  Forward is half of what the file says, as the program that DAPPLE's authors
 * published has it; the file of a graph with degrees does not part the two.  An exchange of w copies sends 2 (w-1)/w of the
 * parameters.  SPP's own list of micro-batches would choose the number of stages: here the least of its objective does.
 *
 * Source and cost: theirs.
 * Not handled: machines of several devices (all links have the slowest rate); memory; nodes computed again; more devices than
 * MOST_LOOKS allows, several dozens.
 */
#include "rivals.h"
#include "budgets.h"

/* Graphs with degrees have them from 1 on where a node may be on one device. */
static bool may(const Widths *w, WidthPlan *plan)
{
    const int64_t d = w->devices;
    const bool small = d * d * d * w->n <= MOST_LOOKS / w->n;
    *plan = (WidthPlan){.lacks = !small ? "its program takes too long for so many devices and nodes"
                                 : w->degree[0] != 1 ? "it knows nodes on one device alone" : NULL};
    return !plan->lacks;
}

static Ns exchange(const void *ctx, int stage, Bytes bytes, int copies)
{
    (void)stage;
    return widths_ps(2 * (copies - 1) * bytes / copies, ((const Widths *)ctx)->rate);
}

/* By node: of its results, what crosses the cuts behind it, up to the last node that reads them. */
static void take_sends(const Widths *w, Bytes *send)
{
    Bytes *bytes = alloc(sizeof *bytes * (size_t)w->n);
    int *last = alloc(sizeof *last * (size_t)w->n);
    for (int i = 0; i < w->edges; i++) {
        const WidthEdge *e = &w->edge[i];
        bytes[e->from] = e->bytes[0] > bytes[e->from] ? e->bytes[0] : bytes[e->from];
        last[e->from] = e->to > last[e->from] ? e->to : last[e->from];
    }
    for (int i = 0; i < w->n; i++)
        for (int k = i; k < last[i]; k++)
            send[k] += bytes[i];
    for (int k = 0; k < w->n; k++)
        send[k] = widths_ps(send[k], w->rate);
}

static Fleet fleet_for(const Widths *w)
{
    const int stages = w->devices < w->n ? w->devices : w->n;
    size_t rows = sizeof(Ns *) * (size_t)stages, n = (size_t)(w->n + 1);
    Fleet l = {.n = w->n, .stages = stages, .micro = w->micro, .forward = alloc(rows), .time = alloc(rows), .send = alloc(rows),
               .grads = alloc(sizeof(Bytes) * n), .any = true, .most = w->devices, .devices = w->devices, .exchange = exchange,
               .ctx = w};
    Ns *half = alloc(sizeof *half * n), *time = alloc(sizeof *time * n), *send = alloc(sizeof *send * n);
    for (int i = 0; i < w->n; i++) {
        const WidthWay *way = &w->split[i * w->degrees];
        time[i + 1] = time[i] + way->choice[0].time;
        half[i + 1] = time[i + 1] / 2;
        l.grads[i + 1] = l.grads[i] + way->params;
    }
    take_sends(w, send);
    for (int s = 0; s < stages; s++)
        l.forward[s] = half, l.time[s] = time, l.send[s] = send;
    return l;
}

static bool answer(const Widths *w, int stages, const int *last, const int *copies, Ps claim, WidthPlan *plan)
{
    *plan = (WidthPlan){.prefixes = w->n, .sequence = alloc(sizeof(int) * (size_t)w->n), .choice = alloc((size_t)w->n)};
    for (int i = 0; i < w->n; i++)
        plan->sequence[i] = i;
    for (int s = 0; s < stages; s++)
        *PUSH(&plan->stage) = (WidthStage){.last = last[s], .copies = copies[s], .degree = 1};
    widths_judge(w, plan);
    plan->claim = claim;
    return true;
}

bool widths_dapple(const Widths *w, WidthPlan *plan)
{
    const Fleet l = fleet_for(w);
    int stages = 1, *last = alloc(sizeof *last * (size_t)l.stages), *copies = alloc(sizeof *copies * (size_t)l.stages);
    Ns latency = may(w, plan) ? dapple_cut(&l, &stages, last, copies) : -1;
    return latency >= 0 && answer(w, stages, last, copies, latency, plan);
}

bool widths_spp(const Widths *w, WidthPlan *plan)
{
    const Fleet l = fleet_for(w);
    const FleetTable *t = may(w, plan) ? spp_cut(&l) : NULL;
    int stages = 0, *last = alloc(sizeof *last * (size_t)l.stages), *copies = alloc(sizeof *copies * (size_t)l.stages);
    Ns best = -1;
    for (int s = 1; t && s <= l.stages; s++) {
        Ns value = fleet_take(t, s, last, copies);
        if (value >= 0 && (best < 0 || value < best))
            best = value, stages = s;
    }
    return best >= 0 && answer(w, stages, last, copies, fleet_take(t, stages, last, copies), plan);
}
