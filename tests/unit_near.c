/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_near.c: what replay/walk.c says a stage needs, against the live bytes that mem finds once all passes have run.
 *
 *   near      ten models in one to four stages, under four schedules
 *   split     the same under zb-h1, and one of its kin, in one to eight stages
 *   folded    the step that a planner expects of there and back again, cuts drawn: that of the simulator, but for some calls
 *
 * Never less than is alive, by more than one alignment.  Offload may need less than said, up to 8 %: the replay sets more time
 * aside for a copy than it takes.
 */
#include "near.h"

#include <math.h>

static bool slow;

/* Every third tensor that backward may want waits in the host's memory. */
static void send_away(Plan *p)
{
    for (int t = 0; t < p->g->tensor.n; t++)
        if (p->g->tensor.at[t].kind == T_ACT && p->g->tensor.at[t].op < p->g->nf && dice(3) == 0)
            p->fate.at[t] = FATE_OFFLOAD;
}

enum { MOST_STAGES = 8 };

/* Values that skip over stages may make them wait in a circle; comm then has all sends wait longer, which no price foresees. */
static bool waits_longer(const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        for (int i = 0, n = 0; i < p->dev.at[d].list.n; i++, n = 0) {
            const Action *k = &p->dev.at[d].list.at[i], *from = k;
            if (k->kind != K_WAIT || k->of != K_SEND || k->tensor < 0)
                continue;
            for (; from->kind != K_SEND || from->request != k->request; from--)
                n += (from->kind == K_F || from->kind == K_I || from->kind == K_W) && from->first == 0;
            if (n > 1)
                return true;
        }
    return false;
}

/* One plan of a model; false: there is none, or none to compare. */
static bool near_plan(Model *m, const Graph *g, const Cost *c, int stages, const char *schedule, bool away, bool far, Worst *w)
{
    Ints cuts = {0};
    Bytes limit[MOST_STAGES];
    for (int i = 0; i < MOST_STAGES; i++)
        limit[i] = INT64_MAX / 4;
    Plan p = {.g = g, .c = c, .m = m, .schedule = schedule, .devices = stages, .chunks = 1};
    p.ask.choice.far = far;
    if (order_refuses(g, m, schedule_of(p.schedule), stages) || order(&p) || part(&p, limit) || keep(&p))
        return false;
    if (part_cuts(&p, &cuts))           /* so the replay knows how far a message goes */
        p.ask.choice.cuts = &cuts;
    if (away)
        send_away(&p);
    p.ask.choice.copy_slack = (CopySlack)dice(4);
    if (comm(&p) || lower(&p) || (schedule_of(schedule)->split && waits_longer(&p)))
        return false;
    mem_unplaced(&p);
    compare_stages(&p, w);
    return true;
}

/* By the last two bits of way a schedule, then what is recomputed, then offload. */
static void near_way(Model *m, const Graph *g, const Cost *c, int stages, int way, bool skips, Worst *w)
{
    static const char *const schedule[] = {"1f1b", "gpipe", "2bw", "pipedream"};
    m->plan.recompute = way & 4 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    if (!((way >= 8 || skips) && way & 2))      /* no offload where steps overlap, and no values that skip over stages */
        near_plan(m, g, c, stages, schedule[way & 3], way >= 8, false, w);
    if (skips && stages > 2 && !(way & 2) && stages % 2 == !(way & 4))
        near_plan(m, g, c, stages, schedule[way & 3], way >= 8, true, w);
}

/* All kept, nothing kept, some in the host's memory: w[0], w[0], w[1]. */
static int near_split(Model *m, const Graph *g, const Cost *c, Worst *w)
{
    static const char *const others[] = {"1f1b-split", "2bp", "zb-h2"};
    int n = 0;
    m->plan.warmup = WARMUP_A;
    m->plan.planner = slow ? "exact" : "even";      /* any cuts do */
    for (int stages = 1; stages <= MOST_STAGES; stages++)
        for (int fates = 0; fates < 3; fates++) {
            void *mark = mem_mark();
            m->plan.recompute = fates == 1 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
            n += near_plan(m, g, c, stages, "zb-h1", fates == 2, false, &w[fates == 2]);
            near_plan(m, g, c, stages, others[(stages + fates) % 3], fates == 2, false, &w[fates == 2]);
            mem_release(mark);
        }
    return n;
}

static int near_model(Node *root, const char *path, const char *set, bool skips, bool split, Worst *w)
{
    Overrides over = {0};
    if (set)
        *PUSH(&over.set) = set;
    Model *m = model(root, path, &over);
    m->plan.cuts.n = 0;
    const Graph *g = graph_of(m);
    Device one = m->devices.at[0];
    while (m->devices.n < MOST_STAGES)
        *PUSH(&m->devices) = one;
    for (int i = 0; i < MOST_STAGES; i++)
        m->devices.at[i].memory = INT64_MAX / 4;
    const Cost *c = cost(g, m, NULL);
    for (int stages = 1; stages <= 4 && !split; stages++)
        for (int way = 0; way < 15; way++) {
            void *mark = mem_mark();
            m->plan.warmup = way < 12 ? WARMUP_A : WARMUP_B;
            near_way(m, g, c, stages, way < 12 ? way : 4 * (way - 12), skips, &w[way >= 12]);
            mem_release(mark);
        }
    return split ? near_split(m, g, c, w) : 0;
}

/* A step that was expected of drawn cuts, against the simulated one: by how much is it off? */
static double folded_plan(const Model *m, const Graph *g, const Cost *c, int stages, const char *schedule)
{
    Bytes limit[MOST_STAGES];
    for (int i = 0; i < MOST_STAGES; i++)
        limit[i] = INT64_MAX / 4;
    Ints cuts = {0};
    int chunks = 2 * stages;
    for (int at = 0, o = 0; o < g->nf - 1; o++)     /* each of the others is as likely as the next */
        if (at < chunks - 1 && dice(g->nf - 1 - o) < chunks - 1 - at) {
            *PUSH(&cuts) = o;
            at++;
        }
    Plan p = {.g = g, .c = c, .m = m, .schedule = schedule, .devices = stages, .chunks = 2, .ask.choice.cuts = &cuts};
    if (order(&p) || part(&p, limit) || keep(&p) || comm(&p) || lower(&p) || sim(&p))
        die("%s on %d stages: no plan", schedule, stages);
    return fabs((double)(p.predicted.value - p.step)) / (double)p.step;
}

static void test_folded(const char *path)
{
    static const char *const names[] = {"zb-v", "v-half", "v-min", "dualpipe-v", "1f1b-v"};
    Overrides over = {0};
    *PUSH(&over.set) = "plan.chunks=2";
    Node *root = load(path);
    Model *m = model(root, path, &over);
    m->plan.recompute = RECOMPUTE_NONE;
    const Graph *g = graph_of(m);
    const Cost *c = cost(g, m, NULL);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        double most = 0;
        for (int i = 0; i < (slow ? 120 : 3); i++) {
            void *mark = mem_mark();
            most = fmax(most, folded_plan(m, g, c, 2 + i % 3, names[k]));
            mem_release(mark);
        }
        printf("  %s: %s: a step off by %.3f %%\n", path, names[k], 100 * most);
        check(most <= 0.006, "%s: %s: a step is off by %.2f %%", path, names[k], 100 * most);
    }
}

static void test_near(void)
{
    static const struct { const char *path, *set; bool skips, small; } models[] = {
        {"tests/models/tiny-gpt.yaml", "train.batch.global=16", false, false},
        {"tests/models/tiny-bert.yaml", NULL, true, false},
        {"tests/models/tiny-t5.yaml", NULL, true, false}, {"tests/models/branches.yaml", NULL, true, false},
        {"tests/models/mlp.yaml", NULL, false, true}, {"tests/models/ops.yaml", NULL, true, false},
        {"examples/bytes-gpt.yaml", NULL, false, false}, {"examples/gpt2-124m.yaml", NULL, false, false},
        {"examples/bert-base.yaml", NULL, true, false},
        /* Under the cuts of portable prices a replay of 1f1b, warm-up B, 3 stages, has 512 KiB too much: 0.07 % */
        {"examples/t5-small.yaml", "devices.0.kernels=onednn", true, false},
    };
    const size_t n = sizeof models / sizeof *models;
    for (size_t i = 0; i < 2 * n; i++) {
        bool split = i >= n;
        const char *path = models[i % n].path;
        Node *root = load(path);        /* its name stays known: not within the mark */
        void *mark = mem_mark();
        Worst w[2] = {0};
        int plans = near_model(root, path, models[i % n].set, models[i % n].skips, split, w);
        printf("  %s: %s off by %.2f %%, %.2f %% %s; with offload at most %.2f %% more\n", path, split ? "zb-h1" : "others",
               100 * w[0].most, 100 * w[1].most, split ? "with offload" : "with warm-up B", 100 * fmax(w[0].more, w[1].more));
        double more = models[i % n].small ? 0.12 : 0.08;        /* 128 bytes of an arena of a kilobyte */
        check(w[0].most <= 0 && w[1].most <= 0 && fmax(w[0].more, w[1].more) <= more && plans >= 12 * split,
              "%s: %d plans; %s; %s", path, plans, w[0].where, w[1].where);
        mem_release(mark);
    }
}

int main(void)
{
    test_name = "unit_near";
    slow = getenv("SLOW") != NULL;
    test_near();
    test_folded("examples/gpt2-124m.yaml");
    test_folded("examples/t5-small.yaml");
    test_folded("examples/bert-base.yaml");
    printf("unit_near: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
