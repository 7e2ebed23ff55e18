/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_twobw.c: depth, width, micro-batch and recomputation as PipeDream-2BW's planner chooses them, against the paper's
 * formulas (Narayanan et al., 2021, section 3.3) written down once more, from the graph alone, over the whole grid.
 *
 * The plan must be that of the first layout in the order of the formulas that dpgen accepts: each one before it is asked for
 * by number and must have no plan.
 */
#include "passes.h"
#include "search/search.h"
#include "world.h"

typedef struct { int depth, width, batch; bool again; Ns step; } Point;
typedef VEC(Point) Points;

typedef struct {                /* a trial */
    int blocks, devices, groups, global;
    const char *recompute, *link, *limit;
} Setting;

static Model *model_of(const Setting *k, int batch, int width, int depth, const char *recompute)
{
    Overrides over = {0};
    *PUSH(&over.set) = strf("model.dims.L=%d", k->blocks);
    *PUSH(&over.set) = strf("devices.0.count=%d", k->devices);
    *PUSH(&over.set) = strf("devices.0.memory=%s", k->limit);
    *PUSH(&over.set) = strf("links.cpu-cpu=%s", k->link);
    *PUSH(&over.set) = strf("train.batch.groups=%d", k->groups);
    *PUSH(&over.set) = strf("train.batch.global=%d", k->global);
    *PUSH(&over.set) = batch ? strf("train.batch.micro=%d", batch) : "train.batch.micro=auto";
    *PUSH(&over.set) = width ? strf("plan.replicas=%d", width) : "plan.replicas=auto";
    *PUSH(&over.set) = depth ? strf("plan.stages=%d", depth) : "plan.stages=auto";
    *PUSH(&over.set) = strf("plan.recompute=%s", recompute);
    *PUSH(&over.set) = "plan.schedule=1f1b";
    *PUSH(&over.set) = "plan.planner=twobw";
    Model *m = model(load("tests/models/tiny-gpt.yaml"), "tests/models/tiny-gpt.yaml", &over);
    m->plan.cuts.n = 0;
    return m;
}

/* ---- the formulas ------------------------------------------------------------------------------------------------ */

/* By forward operator: its stage.  Blocks are h.0, h.1, ...: each stage has blocks / depth of them, the last blocks % depth
 * stages one more; what is in no block is with the first or the last. */
static int *stages_by(const Graph *g, int blocks, int depth)
{
    int *of = alloc(sizeof *of * (size_t)g->nf), block = 0;
    for (int o = 0; o < g->nf; o++) {
        const char *layer = g->op.at[o].layer;
        bool inside = !strncmp(layer, "h.", 2);
        block = inside ? atoi(layer + 2) : block;
        int low = (depth - blocks % depth) * (blocks / depth);      /* blocks on the stages that have fewer */
        of[o] = block < low ? block / (blocks / depth) : depth - blocks % depth + (block - low) / (blocks / depth + 1);
        if (!inside && o > 0 && block == blocks - 1)
            of[o] = depth - 1;
    }
    return of;
}

typedef struct { Ns forward, backward; Bytes weights, saved, in, out, gradient; } Sums;

static Sums sums_of(const Graph *g, const Cost *c, const int *of, int stage)
{
    Sums x = {0};
    for (int o = 0; o < g->nb; o++)
        if (of[g->op.at[o].fwd] == stage)
            *(o < g->nf ? &x.forward : &x.backward) += cost_op(c, 0, o);
    for (int s = 0; s < g->state.n; s++) {
        const State *k = &g->state.at[s];
        x.weights += k->kind == S_PARAM && of[k->op] == stage ? k->bytes : 0;
        x.gradient += k->kind == S_GRAD && of[k->op] == stage ? k->bytes : 0;
    }
    for (int t = 0; t < g->tensor.n; t++) {
        int made = g->tensor.at[t].op, far = -1;
        bool back = false;
        if (made < 0 || made >= g->nf)
            continue;
        for (int o = 0; o < g->nb; o++)
            for (int i = 0; i < g->op.at[o].arg.n; i++) {
                const Arg *a = &g->op.at[o].arg.at[i];
                bool reads = a->kind == ARG_READ && !a->state && a->index == t;
                back |= reads && o >= g->nf;
                far = reads && o < g->nf && of[o] > far ? of[o] : far;
            }
        x.saved += of[made] == stage && back ? g->tensor.at[t].bytes : 0;
        x.in += of[made] < stage && far >= stage ? g->tensor.at[t].bytes : 0;
        x.out += of[made] <= stage && far > stage ? g->tensor.at[t].bytes : 0;
    }
    return x;
}

static void add_points(const Setting *k, int batch, int width, Points *all)
{
    Model *m = model_of(k, batch, width, 1, "none");
    const Graph *g = graph_of(&(Options){0}, m);
    const Cost *c = cost(g, m, NULL);
    for (int depth = 1; depth * width <= k->devices && depth <= k->blocks; depth++)
        for (int again = 0; again < 2; again++) {
            int64_t micro = k->global / batch / width;
            Point x = {depth, width, batch, again, 0};
            bool fits = micro >= depth && strcmp(k->recompute, again ? "none" : "full");
            for (int s = 0; s < depth; s++) {
                Sums y = sums_of(g, c, stages_by(g, k->blocks, depth), s);
                Ns step = micro * (y.forward * (1 + again) + y.backward + cost_wire(c, 0, depth > 1, 2 * (y.in + y.out)));
                Ns reduce = 0;
                for (int l = 1; l < width; l *= 2)
                    for (int way = 0; way < 2; way++)
                        reduce += cost_wire(c, s, s + l * depth, y.gradient / l / 2);
                x.step = step > x.step ? step : x.step;
                x.step = reduce > x.step ? reduce : x.step;
                fits &= 2 * y.weights + (again ? 1 : depth) * y.saved + depth * y.in <= m->devices.at[0].memory;
            }
            if (fits)
                *PUSH(all) = x;
        }
}

/* Is a before b? */
static bool before(const Point *a, const Point *b)
{
    if (a->step != b->step)
        return a->step < b->step;
    if (a->depth * a->width != b->depth * b->width)
        return a->depth * a->width < b->depth * b->width;
    if (a->depth != b->depth)
        return a->depth < b->depth;
    return a->batch != b->batch ? a->batch > b->batch : a->again < b->again;
}

static Points grid(const Setting *k)
{
    Points all = {0};
    for (int width = 1; width <= k->groups && width <= k->devices; width *= 2)
        for (int batch = 1; batch <= k->global; batch *= 2)
            if (k->global % batch == 0 && k->global / batch % k->groups == 0)
                add_points(k, batch, width, &all);
    for (int i = 1; i < all.n; i++)
        for (int j = i; j > 0 && before(&all.at[j], &all.at[j - 1]); j--) {
            Point swap = all.at[j];
            all.at[j] = all.at[j - 1];
            all.at[j - 1] = swap;
        }
    return all;
}

/* ---- trials ------------------------------------------------------------------------------------------------------ */

static Plan *asked(const Setting *k, const Point *x)
{
    Plan *failed;
    Model *m = x ? model_of(k, x->batch, x->width, x->depth, x->again ? "full" : "none") : model_of(k, 0, 0, 0, k->recompute);
    return search(&(Options){0}, m, &failed);
}

static bool is(const Plan *p, const Point *x)
{
    return p && p->devices == x->depth * x->width && (p->replicas > 1 ? p->replicas : 1) == x->width && p->g->batch == x->batch
        && (p->m->plan.recompute == RECOMPUTE_FULL) == x->again;
}

typedef struct { int plans, wide, deep, again, refused, none; } Tally;

static void trial(int number, Tally *seen)
{
    static const char *const recompute[] = {"none", "auto", "auto", "full"};
    static const char *const link[] = {"10GB/s", "1GB/s", "400MB/s", "100MB/s"};
    Setting k = {.blocks = 1 + dice(6), .devices = 1 + dice(8), .groups = 1 << dice(4), .global = 16 << dice(2),
                 .recompute = recompute[dice(4)], .link = link[dice(4)],
                 .limit = strf("%dKiB", 100 + dice(dice(2) ? 900 : 4000))};
    k.blocks += k.blocks == 1;          /* one block is no repeat */
    Points all = grid(&k);
    Plan *p = asked(&k, NULL);
    int at = 0;
    while (at < all.n && !is(p, &all.at[at]))
        at++;
    check(!p || at < all.n, "%d: %d devices in %d replicas, micro-batches of %d: not in the grid", number, p ? p->devices : 0,
          p ? p->replicas : 0, p ? (int)p->g->batch : 0);
    check(!p || at == all.n || p->proof.value == all.at[at].step, "%d: a step of %lld ns by the planner, %lld by the formulas",
          number, p ? (long long)p->proof.value : 0, at < all.n ? (long long)all.at[at].step : 0);
    for (int i = 0; i < at; i++)
        check(!asked(&k, &all.at[i]), "%d: depth %d, width %d, micro-batch %d, recompute %d is faster by the formulas and fits",
              number, all.at[i].depth, all.at[i].width, all.at[i].batch, all.at[i].again);
    seen->plans += p != NULL;
    seen->none += p == NULL;
    seen->refused += p && at > 0;
    seen->wide += p && all.at[at].width > 1;
    seen->deep += p && all.at[at].depth > 1;
    seen->again += p && all.at[at].again;
}

int main(void)
{
    Tally seen = {0};
    int trials = getenv("SLOW") ? 400 : 17;
    test_name = "unit_twobw";
    for (int i = 0; i < trials; i++)
        trial(i, &seen);
    check(seen.plans > trials / 2 && seen.none > 0 && seen.refused > 2 && seen.wide > 2 && seen.deep > 2 && seen.again > 2,
          "%d plans, %d refusals, %d wide, %d deep, %d recompute, %d without: one side is not tried", seen.plans, seen.refused,
          seen.wide, seen.deep, seen.again, seen.none);
    printf("unit_twobw: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
