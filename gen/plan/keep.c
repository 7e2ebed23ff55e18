/* SPDX-License-Identifier: Apache-2.0
 *
 * keep.c: which forward tensors backward finds, which it makes again, and which are in the host's memory meanwhile.
 *
 *   needs   chunk; chosen, of part
 *   fills   fate
 *   keeps   data inputs, tensors that another chunk sent, and results that plan.keep names are never dropped; nor are
 *           gradients
 *   fails   a name in plan.recompute, plan.offload or plan.keep that no operator has is an error of the model file
 *
 * Where plan.recompute or plan.offload is auto, each chunk has the cheapest fates under its target limit, or those of a planner
 * that chooses its own (part.c).  Else they stand in the model file (fates/given.c).
 *
 * A chunk fits by the replay of replay/walk.c, which leaves out packing; mem has the last word.
 */
#include "planner.h"

static int last_of(const Plan *p, int first)
{
    int last = first;
    while (last + 1 < p->g->nf && p->chunk.at[last + 1] == p->chunk.at[first])
        last++;
    return last;
}

void keep_chunks(const Plan *p, Bytes *need)
{
    void *mark = mem_mark();
    Live *live = live_open(part_row(p));
    for (int s = 0, first = 0, last; s < plan_chunks(p); s++, first = last + 1) {
        last = last_of(p, first);
        need[s] = live_load(live, first, last, s, p->fate.at).need;
    }
    mem_release(mark);
}

void keep_needs(const Plan *p, Bytes *need)
{
    Bytes *chunk = alloc(sizeof *chunk * (size_t)plan_chunks(p));
    keep_chunks(p, chunk);
    memset(need, 0, sizeof *need * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++)
        for (int s = 0; s < plan_chunks(p); s++)
            need[d] += plan_holds(p, d, s) ? chunk[s] : 0;
}

int keep(Plan *p)
{
    int *fate = keep_fates(p, false);
    if (p->chosen)
        memcpy(fate, p->chosen, sizeof *fate * (size_t)p->g->tensor.n);
    p->fate = (Ints){fate, p->g->tensor.n, p->g->tensor.n};
    return 0;
}
