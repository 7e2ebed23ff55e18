/* SPDX-License-Identifier: Apache-2.0
 *
 * keep.c: which forward tensors backward finds, and which it makes again.
 *
 *   needs   chunk, chunk_device, dev[].order; soft, the limits that part was given
 *   fills   variants (1), fate
 *   keeps   data inputs, what another chunk sent, and whatever plan.keep names are never dropped; nor are gradients
 *   fails   nonzero if plan.recompute is auto and keep_bound proves that no set of drops brings a chunk under its
 *           limit; a name in plan.recompute or plan.keep that no operator has is an error of the model file
 *
 *   none    everything that backward reads is kept
 *   full    nothing is: backward rebuilds it from what the chunk received, from data and parameters
 *   list    the results of the named operators, statistics and all, are dropped
 *           (plan.offload: a list, likewise, sends them to the host; an operator named in both is an error)
 *   auto    per chunk: nothing if that fits; else results are dropped in the order of forward time per byte until it
 *           fits
 *
 * A tensor that no backward call reads is dropped in all but `none`, for it costs nothing to drop it: it only matters
 * when something is rebuilt from it, and then it is rebuilt too (the rule of rebuild.c).
 *
 * auto is greedy: each result is priced by its own producer, although one rebuild may need another; the cost-optimal
 * choice is a planner of its own.  It never adds more than one forward.  Whether a choice fits is judged by live_bytes,
 * which is near the truth; only keep_bound, which is a bound, may say that nothing fits.  Cost: sort of n results, then
 * one walk of the chunk for each step of a bisection over how many are dropped.
 */
#include "span.h"

#include <stdlib.h>

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

/* ---- the bound --------------------------------------------------------------------------------------------------- */

/* The fewest copies that any chunk of the device holds: then the bound is one, whichever of them the run is. */
static int flight_of(const Plan *p, int device)
{
    int least = -1;
    for (int c = 0; c < p->chunk_device.n; c++)
        if (p->chunk_device.at[c] == device) {
            int n = order_flight(p, c);
            least = least < 0 || n < least ? n : least;
        }
    return least < 0 ? 0 : least;
}

static Span span_under(const Plan *p, const int *fate, int first, int last)
{
    Span s;
    span_open(&s, reads_of(p->g, p->c, fate));
    span_start(&s, first);
    while (s.last < last)
        span_grow(&s);
    return s;
}

static Bytes bytes_under(const Plan *p, const int *fate, int first, int last, int flight)
{
    Span s = span_under(p, fate, first, last);
    return span_bytes(&s, flight);
}

Bytes keep_bound(const Plan *p, int first, int last, int device)
{
    const int *fate = p->fate.n == p->g->tensor.n ? p->fate.at : keep_fates(p, true);
    return bytes_under(p, fate, first, last, flight_of(p, device));
}

/* ---- auto -------------------------------------------------------------------------------------------------------- */

typedef struct { int op; Ns per_mib; } Drop;

/* Least forward time per byte freed first; of equals the earlier. */
static int by_price(const void *a, const void *b)
{
    const Drop *x = a, *y = b;
    return x->per_mib != y->per_mib ? (x->per_mib > y->per_mib) - (x->per_mib < y->per_mib) : x->op - y->op;
}

typedef struct {                /* one chunk, and the operators whose results it may drop, cheapest first */
    const Plan *p;
    int chunk, first, last;
    Bytes states;
    int *rank, n;               /* by forward operator: place in that order, -1: not a candidate */
    const bool *may;            /* by tensor */
    int *fate;
} Choice;

static void rank(Choice *c)
{
    const Graph *g = c->p->g;
    Drop *drop = alloc(sizeof *drop * (size_t)g->nf);
    Bytes *bytes = alloc(sizeof *bytes * (size_t)g->nf);
    for (int t = 0; t < g->tensor.n; t++)
        if (c->may[t])
            bytes[g->tensor.at[t].op] += g->tensor.at[t].bytes;
    for (int o = c->first; o <= c->last; o++) {
        Ns ns = cost_op(c->p->c, 0, o);
        if (bytes[o] > 0)
            drop[c->n++] = (Drop){o, ns < INT64_MAX / 1048576 ? ns * 1048576 / bytes[o] : INT64_MAX};
    }
    qsort(drop, (size_t)c->n, sizeof *drop, by_price);
    c->rank = alloc(sizeof *c->rank * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        c->rank[o] = -1;
    for (int i = 0; i < c->n; i++)
        c->rank[drop[i].op] = i;
}

/* Drop the results of the n cheapest; what the chunk then needs, nearly. */
static Bytes drop(Choice *c, int n)
{
    const Graph *g = c->p->g;
    for (int t = 0; t < g->tensor.n; t++)
        if (c->may[t] && c->rank[g->tensor.at[t].op] >= 0)
            c->fate[t] = c->rank[g->tensor.at[t].op] < n ? FATE_RECOMPUTE : FATE_KEEP;
    return live_bytes(c->p, c->fate, c->chunk, c->states);
}

/* The fewest that fit: n does, n-1 does not.  If not even all seem to, all are dropped and mem has the last word. */
static void fit(Choice *c, Bytes limit)
{
    int low = 0, high = c->n;
    if (drop(c, 0) <= limit || drop(c, c->n) > limit)
        return;
    while (high - low > 1) {
        int mid = low + (high - low) / 2;
        if (drop(c, mid) <= limit)
            high = mid;
        else
            low = mid;
    }
    drop(c, high);
}

static int last_of(const Plan *p, int first)
{
    int last = first;
    while (last + 1 < p->g->nf && p->chunk.at[last + 1] == p->chunk.at[first])
        last++;
    return last;
}

/* What the chunks of a device need under these fates, nearly; without the chunk `but`. */
static Bytes needs(const Plan *p, int *fate, int device, int but)
{
    Bytes sum = 0;
    for (int s = 0, first = 0, last; s < p->chunk_device.n; s++, first = last + 1) {
        last = last_of(p, first);
        if (p->chunk_device.at[s] == device && s != but)
            sum += live_bytes(p, fate, s, span_under(p, fate, first, last).states);
    }
    return sum;
}

/* Chunks that share a device drop one after another, the first ones first: they hold most micro-batches. */
static int choose(Plan *p, int *fate)
{
    const int *cheap = keep_fates(p, true);
    bool *may = alloc((size_t)p->g->tensor.n);
    for (int t = 0; t < p->g->tensor.n; t++)
        may[t] = cheap[t] == FATE_RECOMPUTE && fate[t] == FATE_KEEP;
    for (int s = 0, first = 0; s < p->chunk_device.n; s++) {
        Bytes limit = p->soft[p->chunk_device.at[s]] - needs(p, fate, p->chunk_device.at[s], s);
        Choice c = {.p = p, .chunk = s, .first = first, .last = last_of(p, first), .may = may, .fate = fate};
        Bytes least = bytes_under(p, cheap, first, c.last, order_flight(p, s));
        if (least > p->soft[p->chunk_device.at[s]]) {
            p->nofit_device = p->chunk_device.at[s];
            p->nofit_need = least;
            return 1;
        }
        c.states = span_under(p, cheap, first, c.last).states;
        rank(&c);
        fit(&c, limit);
        first = c.last + 1;
    }
    return 0;
}

Bytes keep_need(const Plan *p, int device)
{
    return needs(p, p->fate.at, device, -1);
}

int keep(Plan *p)
{
    int *fate = keep_fates(p, false);
    if (p->m->plan.recompute == RECOMPUTE_AUTO && choose(p, fate))
        return 1;
    p->variants = 1;
    p->fate = (Ints){fate, p->g->tensor.n, p->g->tensor.n};
    return 0;
}
