/* SPDX-License-Identifier: Apache-2.0
 *
 * keep.c: which forward tensors backward finds, and which it makes again.
 *
 *   needs   chunk, chunk_device, dev[].order; soft, the limits that part was given
 *   fills   variants (1), fate
 *   keeps   data inputs, what another chunk sent, and whatever plan.keep names are never dropped; nor are gradients
 *   fails   nonzero if plan.recompute is auto and floor.c proves that no set of drops brings a chunk under its limit; a
 *           name in plan.recompute, plan.offload or plan.keep that no operator has is an error of the model file
 *
 *   none    everything that backward reads is kept
 *   full    nothing is: backward rebuilds it from what the chunk received, from data and parameters
 *   list    the results of the named operators, statistics and all, are dropped
 *           (plan.offload: a list, likewise, sends them to the host; an operator named in both is an error)
 *   auto    what the planner wished when it priced the cut; where it wished nothing, the cheapest that fits (fates.c)
 *
 * A tensor that no backward call reads is dropped in all but `none`, for it costs nothing to drop it: it only matters
 * when something is rebuilt from it, and then it is rebuilt too (the rule of rebuild.c), unless auto keeps it for that.
 *
 * Whether a choice fits is judged by replay/walk.c, which leaves out packing; only floor.c, which is a bound, may say
 * that nothing fits.  Where nothing is found that does, the least that was found goes on, and mem has the last word.
 *
 * Cost: that of fates.c for each chunk.
 */
#include "fates/fates.h"
#include "replay/floor.h"

/* ---- auto -------------------------------------------------------------------------------------------------------- */

static int last_of(const Plan *p, int first)
{
    int last = first;
    while (last + 1 < p->g->nf && p->chunk.at[last + 1] == p->chunk.at[first])
        last++;
    return last;
}

/* What the chunks of a device need under these fates, nearly; without the chunk `but`. */
static Bytes needs(const Plan *p, Live *live, const int *fate, int device, int but)
{
    Bytes sum = 0;
    for (int s = 0, first = 0, last; s < p->chunk_device.n; s++, first = last + 1) {
        last = last_of(p, first);
        if (p->chunk_device.at[s] == device && s != but)
            sum += live_load(live, first, last, s, fate).need;
    }
    return sum;
}

/* Chunks that share a device drop one after another, the first ones first: they hold most micro-batches. */
static int choose(Plan *p, int *fate)
{
    const char *may = fates_may(p, fate);
    Live *live = live_open(p);
    Hunt *hunt = fates_open(live, may);
    Floor *floor = floor_open(p, live, fate, may);
    for (int s = 0, first = 0, last; s < p->chunk_device.n; s++, first = last + 1) {
        int device = p->chunk_device.at[s];
        last = last_of(p, first);
        Load l = fates_choose(hunt, first, last, s, p->soft[device] - needs(p, live, fate, device, s), fate);
        if (floor_time(floor, first, last, s, p->soft[device]) == INT64_MAX) {
            p->nofit_device = device;
            p->nofit_need = l.need;
            return 1;
        }
    }
    return 0;
}

Bytes keep_need(const Plan *p, int device)
{
    return needs(p, live_open(p), p->fate.at, device, -1);
}

int keep(Plan *p)
{
    int *fate = p->wish.n == p->g->tensor.n ? p->wish.at : keep_fates(p, false);
    bool automatic = p->m->plan.recompute == RECOMPUTE_AUTO || p->m->plan.offload == OFFLOAD_AUTO;
    if (p->wish.n == 0 && automatic && choose(p, fate))
        return 1;
    p->variants = 1;
    p->fate = (Ints){fate, p->g->tensor.n, p->g->tensor.n};
    return 0;
}
