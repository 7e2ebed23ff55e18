/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cuts.c: `exact` against every --cuts.
 *
 * Who names cuts asks for one plan of the same space, so no cuts may have a shorter step than `exact`, none may fit where it
 * finds nothing, and no bound that it prints may be above any of them.  With plenty of memory what the planner predicts is what
 * is simulated, to the nanosecond; where devices take turns (plan.chunks) updates are in another order, and it is not.  Of
 * replicas the planner sees the first one, and others may have a longer part of a gradient: a hundredth.  Their gradients leave
 * in one bucket: more are tried with finished plans alone, and nothing is said of other cuts then.  Small models, in
 * depths that leave few hundred cuts, over replicas, chunks that share a device, schedules and limits; every plan is made by
 * all passes, packing included.
 * A limit that is the largest arena of a plan has a plan too, down to limits that have none: copies to the host by slow links,
 * which planners hold for slower than they are, with lists of tensors and without.
 *   SLOW=1: deeper models, more limits; there half a per cent is allowed: fates are the cheapest of each run, or all that may
 *   be dropped, and what lies between may hide better in a wait (by 0.3 % where that was met)
 *   unit_cuts MODEL LAYERS STAGES SHARE [PATH=VALUE ...]: one case, all cuts listed that are faster
 */
#include "passes.h"
#include "search/search.h"
#include "world.h"

#include <inttypes.h>

typedef struct { Ns step, bound, value; } Found;

static Model *model_with(const char *path, const Strs *set)
{
    Overrides over = {.set = *set};
    Model *m = model(load(path), path, &over);
    m->plan.buckets = 1;
    return m;
}

/* Forgets all but that. */
static Found plan_with(const Model *m, const Ints *cuts, Bytes limit, Bytes *arena)
{
    void *mark = mem_mark();
    Model with = *m;
    memset(&with.devices, 0, sizeof with.devices);
    for (int d = 0; d < m->devices.n; d++) {
        *PUSH(&with.devices) = m->devices.at[d];
        with.devices.at[d].memory = limit;
    }
    if (cuts)
        with.plan.cuts = *cuts;
    Plan *failed, *p = search(&(Options){0}, &with, &failed);
    Found x = {0};
    if (p)
        x = (Found){p->step, p->proof.bound, p->proof.value};
    for (int d = 0; p && arena && d < p->devices; d++)
        *arena = p->dev.at[d].arena > *arena ? p->dev.at[d].arena : *arena;
    mem_release(mark);
    return x;
}

/* The next rising choice of cuts below n - 1. */
static bool next_cuts(Ints *cuts, int n)
{
    int i = cuts->n - 1;
    while (i >= 0 && cuts->at[i] == n - 1 - (cuts->n - i))
        i--;
    if (i < 0)
        return false;
    cuts->at[i]++;
    for (int j = i + 1; j < cuts->n; j++)
        cuts->at[j] = cuts->at[j - 1] + 1;
    return true;
}

typedef struct { int cases, none, plans; } Tally;

static bool close_to(const Model *m, Ns value, Ns step)
{
    return value <= step && step - value <= (m->plan.replicas > 1 ? step / 100 : 0);
}

/* limit: so many hundredths of the way from what all made again takes to what all kept takes. */
static Bytes limit_at(const Model *m, int share)
{
    Model with = *m;
    Bytes least = 0, most = 0;
    with.plan.recompute = RECOMPUTE_NONE;
    plan_with(&with, NULL, 1 << 30, &most);
    with.plan.recompute = RECOMPUTE_FULL;
    plan_with(&with, NULL, 1 << 30, &least);
    return share > 100 ? 1 << 30 : least + (most - least) * share / 100;
}

static void try_case(const char *name, const Model *m, int share, bool list, Tally *seen)
{
    const Graph *g = graph_of(&(Options){0}, m);
    int chunks = m->plan.map.n ? m->plan.map.n : m->plan.stages_min * m->plan.chunks;
    Bytes limit = limit_at(m, share);
    Found own = plan_with(m, NULL, limit, NULL), best = {0};
    const char *at = "";
    Ints cuts = {0};
    for (int i = 0; i + 1 < chunks; i++)
        *PUSH(&cuts) = i;
    int each = chunks > 2 && !list && !getenv("SLOW") ? 16 : 1, n = 0;    /* of two cuts and more, one choice in sixteen */
    do {
        if (n++ % each)
            continue;
        Found x = plan_with(m, &cuts, limit, NULL);
        seen->plans += x.step > 0;
        check(share <= 100 || m->plan.chunks > 1 || close_to(m, x.value, x.step), "%s: --cuts %d...: %" PRId64
              " ns predicted, %" PRId64 " simulated", name, cuts.at[0], x.value, x.step);
        bool faster = x.step > 0 && (best.step == 0 || x.step < best.step);
        if (faster)
            best = x;
        for (int i = 0; faster && i < cuts.n; i++)
            at = strf("%s%s%d", i ? at : "", i ? "," : "", cuts.at[i]);
        if (list && x.step > 0 && (own.step == 0 || x.step < own.step))
            printf("  %" PRId64 " ns, faster than exact; the fastest so far: %s\n", x.step, at);
    } while (next_cuts(&cuts, g->nf));
    Ns more = getenv("SLOW") ? best.step / 200 : 0;
    check(best.step == 0 || (own.step > 0 && own.step <= best.step + more),
          "%s, %d hundredths: exact takes %" PRId64 " ns, --cuts %s %" PRId64, name, share, own.step, at, best.step);
    check(best.step == 0 || own.bound <= best.step, "%s, %d hundredths: no plan is faster than %" PRId64 " ns, --cuts %s is: %"
          PRId64, name, share, own.bound, at, best.step);
    seen->cases++;
    seen->none += best.step == 0;
    if (list)
        printf("  limit %" PRId64 ": exact %" PRId64 " ns, bound %" PRId64 ", best cuts %s %" PRId64 " ns\n", limit,
               own.step, own.bound, at, best.step);
}

/* ---- the sweep --------------------------------------------------------------------------------------------------- */

enum { MOST_SET = 8, PAIRS = 4 };       /* PAIRS: the first of `quick`, with one cut */
typedef struct { const char *path, *set[MOST_SET]; } Case;

static const char gpt[] = "tests/models/tiny-gpt.yaml";
#define L1 "model.dims.L=1"
#define L2 "model.dims.L=2"
#define L3 "model.dims.L=3"

static const Case quick[] = {
    {gpt, {L1, "plan.stages=2"}},
    {gpt, {L1, "plan.stages=2", "plan.replicas=2", "train.batch.groups=2"}},
    {gpt, {L1, "plan.stages=2", "plan.replicas=4", "train.batch.groups=4"}},
    {gpt, {L2, "plan.stages=2", "plan.replicas=2", "train.batch.groups=4"}},
    {gpt, {L1, "plan.stages=2", "plan.map=[0,1,0]"}},
    {gpt, {L1, "plan.stages=3"}},
};
static const Case slow[] = {
    {gpt, {L2, "plan.stages=3"}},
    {gpt, {L2, "plan.stages=3", "plan.replicas=2", "train.batch.groups=2"}},
    {gpt, {L1, "plan.stages=2", "plan.chunks=2"}},
    {gpt, {L2, "plan.stages=2", "plan.map=[0,1,0]"}},
    {gpt, {L2, "plan.stages=2", "plan.map=[1,0,1]", "plan.replicas=2", "train.batch.groups=2"}},
    {gpt, {L3, "plan.stages=2", "plan.replicas=4", "train.batch.groups=4"}},
    {"tests/models/branches.yaml", {"plan.stages=2", "plan.replicas=2", "train.batch.groups=2"}},
    {"tests/models/tiny-t5.yaml", {"plan.stages=2", "plan.replicas=2", "train.batch.groups=2"}},
    {"tests/models/ops.yaml", {"plan.stages=2"}},
};

static void sweep(const Case *all, size_t n, const int *share, size_t shares, bool slowly, Tally *seen)
{
    static const char *const schedule[] = {"1f1b", "gpipe"};
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            Strs set = {0};
            const char *name = strf("%s %s", all[i].path, schedule[k]);
            for (int j = 0; j < MOST_SET && all[i].set[j]; j++)
                name = strf("%s %s", name, *PUSH(&set) = all[i].set[j]);
            *PUSH(&set) = strf("plan.schedule=%s", schedule[k]);
            *PUSH(&set) = "plan.recompute=auto";
            *PUSH(&set) = "train.batch.global=8";
            *PUSH(&set) = "devices.0.count=8";
            const Model *m = model_with(all[i].path, &set);
            for (size_t j = 0; j < shares; j++)
                if (slowly || (i < PAIRS ? (i + j + k) % 2 == 0 : k == 0 && share[j] == 50))
                    try_case(name, m, share[j], false, seen);
        }
}

/* ---- the limit that a plan takes --------------------------------------------------------------------------------- */

static const Case copies[] = {
    {gpt, {L1, "plan.stages=2", "plan.schedule=1f1b", "plan.recompute=none", "plan.offload=auto"}},
    {gpt, {L1, "plan.stages=2", "plan.schedule=gpipe", "plan.recompute=auto", "plan.offload=auto"}},
    {gpt, {L1, "plan.stages=2", "plan.schedule=1f1b", "plan.recompute=none", "plan.offload=['*']"}},
    {gpt, {L2, "plan.stages=3", "plan.schedule=1f1b", "plan.recompute=['*.mlp.*']", "plan.offload=['*.attn.*', '*ln_1']",
           "plan.cuts=[8,16]"}},
    {"tests/models/branches.yaml", {"plan.stages=2", "plan.schedule=gpipe", "plan.recompute=none", "plan.offload=['*']"}},
};

/* From plenty down by a sixteenth each time, or an eighth without SLOW; every plan is asked for again under its own arena. */
static int try_own(const Case *x, const char *rate)
{
    Strs set = {0};
    int plans = 0, part = getenv("SLOW") ? 16 : 8;
    for (int j = 0; j < MOST_SET && x->set[j]; j++)
        *PUSH(&set) = x->set[j];
    *PUSH(&set) = "train.batch.global=8";
    *PUSH(&set) = strf("links.cpu-host.rate=%s", rate);
    const Model *m = model_with(x->path, &set);
    for (Bytes limit = 1 << 30, arena = 0;; limit = arena - arena / part, arena = 0, plans++) {
        Bytes again = 0;
        if (plan_with(m, NULL, limit, &arena).step == 0)
            return plans;
        check(plan_with(m, NULL, arena, &again).step > 0 && again <= arena, "%s %s, %s: a plan of %" PRId64
              " bytes is lost under that limit", x->path, x->set[4], rate, arena);
    }
}

static void own_limits(void)
{
    int plans = 0;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        plans += try_own(&copies[i], "64MB/s");
    check(plans > 12, "only %d plans under a limit", plans);
    printf("  %d plans under their own arena\n", plans);
}

/* Two of the 703 cuts fit, far from what is predicted to be fast. */
static void few_fit(void)
{
    Strs set = {0};
    *PUSH(&set) = "plan.stages=2";
    *PUSH(&set) = "plan.map=[0,1,0]";
    *PUSH(&set) = "plan.recompute=auto";
    check(plan_with(model_with(gpt, &set), NULL, 330 << 10, NULL).step > 0, "no plan where two cuts fit");
}

/* What the encoder makes goes to every stage of the decoder, and devices would wait in a circle if sends were waited for as
 * soon as elsewhere: what is predicted is what is simulated then too. */
static void deep_skips(void)
{
    Strs set = {0};
    *PUSH(&set) = "model.dims.L=4";
    *PUSH(&set) = "plan.stages=12";
    *PUSH(&set) = "plan.schedule=1f1b";
    *PUSH(&set) = "plan.recompute=none";
    *PUSH(&set) = getenv("SLOW") ? "train.batch.global=32" : "train.batch.global=24";     /* as many micro-batches as stages */
    *PUSH(&set) = "devices.0.count=12";
    const Model *m = model_with("tests/models/tiny-t5.yaml", &set);
    int n = graph_of(&(Options){0}, m)->nf;
    for (int i = 0; i < (getenv("SLOW") ? 3 : 1); i++) {
        Ints cuts = {0};
        for (int k = 1; k < 12; k++)
            *PUSH(&cuts) = n * k / 12 - 1 - dice(n / 12);
        Found x = plan_with(m, &cuts, 1 << 30, NULL);
        check(x.step > 0 && x.value == x.step, "tiny-t5, 12 stages, --cuts %d,%d...: %" PRId64 " ns predicted, %"
              PRId64 " simulated", cuts.at[0], cuts.at[1], x.value, x.step);
    }
}

static int one_case(int argc, char **argv)
{
    Strs set = {0};
    *PUSH(&set) = strf("model.dims.L=%s", argv[2]);
    *PUSH(&set) = strf("plan.stages=%s", argv[3]);
    *PUSH(&set) = "plan.recompute=auto";
    *PUSH(&set) = "train.batch.global=8";
    *PUSH(&set) = "devices.0.count=8";
    for (int i = 5; i < argc; i++)
        *PUSH(&set) = argv[i];
    try_case(argv[1], model_with(argv[1], &set), atoi(argv[4]), true, &(Tally){0});
    return failed > 0;
}

int main(int argc, char **argv)
{
    static const int few[] = {200, 50}, many[] = {200, 80, 60, 40, 20, 5, 0, -5};
    Tally seen = {0};
    test_name = "cuts";
    if (argc > 4)
        return one_case(argc, argv);
    if (getenv("SLOW")) {
        sweep(quick, sizeof quick / sizeof *quick, many, sizeof many / sizeof *many, true, &seen);
        sweep(slow, sizeof slow / sizeof *slow, many, sizeof many / sizeof *many, true, &seen);
    } else {
        sweep(quick, sizeof quick / sizeof *quick, few, sizeof few / sizeof *few, false, &seen);
    }
    own_limits();
    few_fit();
    deep_skips();
    check(seen.none < seen.cases / 2, "%d of %d cases have no plan at all", seen.none, seen.cases);
    printf("  %d cases, %d without a plan, %d plans of given cuts\n", seen.cases, seen.none, seen.plans);
    printf("unit_cuts: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
