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
 * Whether a choice fits is judged by the replay of live.c, which leaves out packing; only floor.c, which is a bound, may say
 * that nothing fits.  Where nothing is found that does, the least that was found goes on, and mem has the last word.
 *
 * Cost: that of fates.c for each chunk.
 */
#include "fates.h"
#include "floor.h"

/* By forward operator: does one of the patterns name it? */
static bool *named(const Plan *p, const Strs *patterns, const char *key)
{
    const Graph *g = p->g;
    bool *hit = alloc((size_t)g->nf);
    const char **names = alloc(sizeof *names * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        names[o] = g->op.at[o].name;
    for (int i = 0; i < patterns->n; i++) {
        bool any = false;
        for (int o = 0; o < g->nf; o++)
            if (match(patterns->at[i], names[o]))
                any = hit[o] = true;
        const char *near = any ? NULL : nearest(patterns->at[i], names, g->nf);
        if (!any)
            bad(mark_of(p->m, patterns->at[i], p->m->plan.loc), near ? strf("did you mean '%s'?", near) : NULL,
                "%s: no operator is named '%s'", key, patterns->at[i]);
    }
    return hit;
}

static bool *read_by_backward(const Graph *g)
{
    bool *read = alloc((size_t)g->tensor.n);
    for (int o = g->nf; o < g->nb; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind == ARG_READ && !a->state)
                read[a->index] = true;
        }
    return read;
}

/* A result is dropped, offloaded or kept; the file names it for two of them. */
static void check_apart(const Plan *p, const char *key, const Strs *patterns, const char *other, const Strs *others)
{
    for (int o = 0; o < p->g->nf; o++)
        for (int i = 0; i < patterns->n; i++)
            for (int k = 0; match(patterns->at[i], p->g->op.at[o].name) && k < others->n; k++) {
                if (!match(others->at[k], p->g->op.at[o].name))
                    continue;
                Loc at = mark_of(p->m, others->at[k], p->m->plan.loc);
                bad(mark_of(p->m, patterns->at[i], p->m->plan.loc), "name it once",
                    "%s: '%s' names %s, as '%s' does in %s, %s:%d:%d", key, patterns->at[i], p->g->op.at[o].name,
                    others->at[k], other, diag_path(at), at.line, at.col);
                return;
            }
}

int *keep_fates(const Plan *p, bool cheap)
{
    const Graph *g = p->g;
    const PlanSpec *spec = &p->m->plan;
    int *fate = alloc(sizeof *fate * (size_t)g->tensor.n);      /* FATE_KEEP */
    bool *held = named(p, &spec->keep, "plan.constraints: keep");
    bool *dropped = named(p, &spec->names, "plan.recompute");
    bool *away = named(p, &spec->away, "plan.offload");
    bool *read = read_by_backward(g);
    check_apart(p, "plan.offload", &spec->away, "plan.recompute", &spec->names);
    check_apart(p, "plan.offload", &spec->away, "plan.constraints: keep", &spec->keep);
    bad_stop();
    bool all = spec->recompute == RECOMPUTE_FULL || (spec->recompute == RECOMPUTE_AUTO && cheap);
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        if (x->kind != T_ACT || x->op < 0 || x->op >= g->nf || held[x->op])
            continue;
        if (away[x->op])
            fate[t] = FATE_OFFLOAD;
        else if (cheap && spec->offload == OFFLOAD_AUTO && spec->recompute == RECOMPUTE_NONE)
            fate[t] = read[t] ? FATE_OFFLOAD : FATE_KEEP;
        else if (spec->recompute != RECOMPUTE_NONE)
            fate[t] = all || dropped[x->op] || !read[t] ? FATE_RECOMPUTE : FATE_KEEP;
    }
    return fate;
}

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
