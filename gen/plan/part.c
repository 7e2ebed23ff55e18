/* SPDX-License-Identifier: Apache-2.0
 *
 * part.c: which chunk each operator belongs to.
 *
 *   needs   chunk_device and dev[].order; the limits, one a device
 *   fills   chunk (of every operator), bound, space, soft
 *   keeps   chunks are runs of forward operators, none empty, none cutting a fusion group; backward follows its forward
 *           operator, the update of a parameter follows its first use, the norm is totalled in chunk 0
 *   fails   nonzero if no cut fits: nofit_device and nofit_need then name the device that lacks most under the cut that
 *           lacks least, and chunk holds that cut, so that the report can say more; nofit_device -1: the constraints
 *           leave no cut into that many chunks at all
 *
 * Names in constraints are matched against operator names; a pattern also names every operator below it, so `h.5` is
 * the whole block.  cut_after: a cut behind the last operator named.  no_cut: none between two neighbours that are both
 * named.  same_stage: none between the first and the last operator named.  cuts: exactly these.
 *
 * The planner is a row of a table; it sees only positions, prices and limits.
 */
#include "span.h"

#include <string.h>

typedef struct { const char *name; bool (*cut)(Cuts *c); const char *space; } Planner;
static const Planner planners[] = {
    {"exact", exact, "contiguous cuts between any two operators, one order, base times and what is dropped"},
};

/* ---- constraints ------------------------------------------------------------------------------------------------- */

/* The pattern names the operator or a block it is in. */
static bool names(const char *pattern, const char *op)
{
    return match(pattern, op) || match(strf("%s.*", pattern), op);
}

static Loc place(const Plan *p, const char *pattern)
{
    return mark_of(p->m, pattern, p->m->plan.loc);
}

static void must_name(const Plan *p, const char *key, const char *pattern)
{
    const Graph *g = p->g;
    const char **all = alloc(sizeof *all * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++) {
        all[o] = g->op.at[o].name;
        if (names(pattern, all[o]))
            return;
    }
    const char *near = nearest(pattern, all, g->nf);
    bad(place(p, pattern), near ? strf("did you mean '%s'?", near) : NULL, "plan.constraints: %s: no operator is named '%s'",
        key, pattern);
}

static void no_cut(const Plan *p, char *cut, const char *pattern)
{
    for (int o = 0; o + 1 < p->g->nf; o++)
        if (names(pattern, p->g->op.at[o].name) && names(pattern, p->g->op.at[o + 1].name))
            cut[o] = CUT_NEVER;
}

static void same_stage(const Plan *p, char *cut, const Strs *patterns)
{
    int first = p->g->nf, last = -1;
    for (int o = 0; o < p->g->nf; o++)
        for (int i = 0; i < patterns->n; i++)
            if (names(patterns->at[i], p->g->op.at[o].name)) {
                first = o < first ? o : first;
                last = o;
            }
    for (int o = first; o < last; o++)
        cut[o] = CUT_NEVER;
}

/* What keeps operators o and o + 1 together */
static const char *forbids(const Plan *p, int o)
{
    const PlanSpec *spec = &p->m->plan;
    char *cut = alloc((size_t)p->g->nf);
    memset(cut, CUT_MAY, (size_t)p->g->nf);
    for (int i = 0; i < spec->no_cut.n; i++) {
        no_cut(p, cut, spec->no_cut.at[i]);
        if (cut[o] == CUT_NEVER)
            return strf("{no_cut: %s}", spec->no_cut.at[i]);
    }
    for (int i = 0; i < spec->same_stage.n; i++) {
        same_stage(p, cut, &spec->same_stage.at[i]);
        if (cut[o] == CUT_NEVER)
            return strf("{same_stage: [%s, ...]}", spec->same_stage.at[i].at[0]);
    }
    return "fusion";
}

static void cut_after(const Plan *p, char *cut, const char *pattern)
{
    int last = -1;
    for (int o = 0; o < p->g->nf; o++)
        if (names(pattern, p->g->op.at[o].name))
            last = o;
    if (last < 0 || last == p->g->nf - 1)
        return;                 /* unknown: said; the end: cut anyway */
    if (cut[last] == CUT_NEVER)
        bad(place(p, pattern), NULL,
            "plan.constraints: a cut after '%s' is asked for, but %s forbids it", pattern, forbids(p, last));
    cut[last] = CUT_MUST;
}

static void only_these(const Plan *p, char *cut, const Ints *cuts)
{
    int n = p->g->nf;
    Loc at = p->m->plan.cuts_at.line ? p->m->plan.cuts_at : p->m->plan.loc;
    if (cuts->n != p->chunk_device.n - 1)
        err(at, NULL, "plan.cuts: %d cuts make %d chunks, but the plan has %d", cuts->n, cuts->n + 1,
            p->chunk_device.n);
    for (int i = 0; i < cuts->n; i++) {
        int o = cuts->at[i];
        if (o < 0 || o >= n - 1 || (i > 0 && o <= cuts->at[i - 1]))
            err(at, NULL, "plan.cuts: %d is not a position after the one before and below %d", o, n - 1);
        if (cut[o] == CUT_NEVER)
            err(at, NULL, "plan.cuts: no cut is possible after operator %d, '%s': a constraint or fusion forbids it",
                o, p->g->op.at[o].name);
    }
    for (int o = 0, i = 0; o < n - 1; o++) {
        bool here = i < cuts->n && cuts->at[i] == o;
        i += here;
        cut[o] = here ? CUT_MUST : CUT_NEVER;
    }
}

static char *positions(const Plan *p)
{
    const Graph *g = p->g;
    const PlanSpec *spec = &p->m->plan;
    char *cut = alloc((size_t)g->nf);
    for (int o = 0; o + 1 < g->nf; o++)
        cut[o] = g->op.at[o].group == g->op.at[o + 1].group ? CUT_NEVER : CUT_MAY;
    cut[g->nf - 1] = CUT_MUST;
    for (int i = 0; i < spec->no_cut.n; i++) {
        must_name(p, "no_cut", spec->no_cut.at[i]);
        no_cut(p, cut, spec->no_cut.at[i]);
    }
    for (int i = 0; i < spec->same_stage.n; i++) {
        for (int j = 0; j < spec->same_stage.at[i].n; j++)
            must_name(p, "same_stage", spec->same_stage.at[i].at[j]);
        same_stage(p, cut, &spec->same_stage.at[i]);
    }
    for (int i = 0; i < spec->cut_after.n; i++) {
        must_name(p, "cut_after", spec->cut_after.at[i]);
        cut_after(p, cut, spec->cut_after.at[i]);
    }
    if (spec->cuts.n)
        only_these(p, cut, &spec->cuts);
    return cut;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* The chunk of an update: the home of the parameter that its first state belongs to. */
static int home(const Plan *p, const Op *o)
{
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if (a->state && p->g->state.at[a->index].param >= 0)
            return p->chunk.at[p->g->state.at[p->g->state.at[a->index].param].op];
    }
    return 0;
}

static void assign(Plan *p, const Cuts *c)
{
    const Graph *g = p->g;
    p->chunk = (Ints){0};
    for (int o = 0, s = 0; o < g->op.n; o++) {
        int at = 0;
        if (o < g->nf) {
            at = s;
            s += o == c->last[s];
        } else if (o < g->nb) {
            at = p->chunk.at[g->op.at[o].fwd];
        } else {
            at = home(p, &g->op.at[o]);
        }
        *PUSH(&p->chunk) = at;
    }
}

static Cuts begin(Plan *p, const Bytes *limit)
{
    int chunks = p->chunk_device.n;
    int *flight = alloc(sizeof *flight * (size_t)chunks);
    Bytes *most = alloc(sizeof *most * (size_t)chunks);
    Bytes *soft = alloc(sizeof *soft * (size_t)p->devices);
    for (int s = 0; s < chunks; s++) {
        flight[s] = order_flight(p, s);
        most[s] = limit[p->chunk_device.at[s]];
    }
    for (int d = 0; d < p->devices; d++)
        soft[d] = limit[d];
    p->soft = soft;
    return (Cuts){.p = p, .reads = reads_of(p->g, p->c, keep_fates(p, false)), .n = p->g->nf, .chunks = chunks,
                  .flight = flight, .limit = most, .last = alloc(sizeof(int) * (size_t)chunks)};
}

/* No cut fits: say which device lacks most, under the cut that lacks least. */
static int no_fit(Plan *p, Cuts *c)
{
    p->nofit_device = -1;
    p->nofit_need = 0;
    if (!exact_bytes(c))
        return 1;
    assign(p, c);
    for (int s = 0; s < c->chunks; s++) {
        Span span;
        span_open(&span, c->reads);
        span_start(&span, s ? c->last[s - 1] + 1 : 0);
        while (span.last < c->last[s])
            span_grow(&span);
        Bytes need = span_bytes(&span, c->flight[s]);
        if (need - c->limit[s] == c->price && p->nofit_device < 0) {
            p->nofit_device = p->chunk_device.at[s];
            p->nofit_need = need;
        }
    }
    return 1;
}

/* recompute: auto, and nothing fits with all kept.  Cut as if all were dropped, which keep then takes back where there
 * is room.  That cut's time is no bound of what comes out; the best one without limits is. */
static bool cut_with_drops(Plan *p, Cuts *c, const Planner *planner)
{
    if (p->m->plan.recompute != RECOMPUTE_AUTO)
        return false;
    Cuts free = *c;
    Bytes *none = alloc(sizeof *none * (size_t)c->chunks);
    for (int s = 0; s < c->chunks; s++)
        none[s] = INT64_MAX / 2;
    free.limit = none;
    free.last = alloc(sizeof *free.last * (size_t)c->chunks);
    c->reads = reads_of(p->g, p->c, keep_fates(p, true));
    if (!planner->cut(&free) || !planner->cut(c))
        return false;
    c->price = free.price;
    return true;
}

/* Bytes over its limit that device d really has under this cut; its largest chunk is asked to have so much less. */
static Bytes excess(const Plan *p, const Cuts *c, int *fate, int d, Bytes limit, Bytes *asked)
{
    Bytes sum = 0, most = -1, bytes = 0;
    int largest = -1;
    for (int s = 0; s < c->chunks; s++) {
        if (p->chunk_device.at[s] != d)
            continue;
        Span span;
        span_open(&span, c->reads);
        span_start(&span, s ? c->last[s - 1] + 1 : 0);
        while (span.last < c->last[s])
            span_grow(&span);
        Bytes live = live_bytes(p, fate, s, span.states);
        sum += live;
        if (live > most) {
            most = live;
            largest = s;
            bytes = span_bytes(&span, c->flight[s]);
        }
    }
    if (sum > limit)
        asked[largest] = bytes - (sum - limit);
    return sum - limit;
}

enum { ROUNDS = 8 };

/* The planner's bytes are a lower bound, so a cut that passes may still be too large.  Ask as much less of a chunk as
 * it is over by live_bytes, and cut again; the cut that is over least goes on.  The first price stays the bound: what
 * follows excludes cuts without proof. */
static void settle(Plan *p, Cuts *c, const Planner *planner)
{
    int *fate = keep_fates(p, true), *best = alloc(sizeof *best * (size_t)c->chunks);
    Bytes *asked = alloc(sizeof *asked * (size_t)c->chunks), least = INT64_MAX;
    const Bytes *limit = c->limit;
    Ns price = c->price;
    memcpy(asked, limit, sizeof *asked * (size_t)c->chunks);
    c->limit = asked;
    for (int round = 0; round < ROUNDS && least > 0; round++) {
        if (round > 0 && !planner->cut(c))
            break;
        assign(p, c);
        Bytes worst = INT64_MIN;
        for (int d = 0; d < p->devices; d++) {
            Bytes over = excess(p, c, fate, d, p->soft[d], asked);
            worst = over > worst ? over : worst;
        }
        if (worst < least) {
            least = worst;
            memcpy(best, c->last, sizeof *best * (size_t)c->chunks);
        }
    }
    memcpy(c->last, best, sizeof *best * (size_t)c->chunks);
    c->price = price;
    c->limit = limit;
}

int part(Plan *p, const Bytes *limit)
{
    const Planner *planner = planners;
    int known = (int)(sizeof planners / sizeof *planners);
    while (planner < planners + known && strcmp(planner->name, p->m->plan.planner))
        planner++;
    if (planner == planners + known)
        die("part: no planner '%s'", p->m->plan.planner);
    char *cut = positions(p);
    Cuts c = begin(p, limit);       /* with the names of keep: all mistakes in names have been told when it stops for them */
    c.cut = cut;
    if (c.n < c.chunks || !(planner->cut(&c) || cut_with_drops(p, &c, planner)))
        return no_fit(p, &c);
    settle(p, &c, planner);
    assign(p, &c);
    p->bound = c.price;
    p->space = p->m->plan.cuts.n ? "the cuts that were given" : planner->space;
    return 0;
}
