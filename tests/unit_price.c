/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_price.c: what a stage costs, against the passes that build it and against brute force.
 *
 *   near      what live.c says a stage needs, against the live bytes that mem finds once all passes have run
 */
#include "world.h"
#include "plan/price.h"

/* ---- near -------------------------------------------------------------------------------------------------------- */

typedef struct { double most; const char *where; } Worst;

static const Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g);
    check_graph(g);
    return g;
}

static void compare_stages(const Plan *p, Worst *w)
{
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    Prices *x = prices_open(p, limit);
    for (int s = 0, first = 0; s < p->devices; first = last_of(p, s++) + 1) {
        Price price = price_with(x, first, last_of(p, s), s, p->fate.at);
        Bytes bound = p->dev.at[s].bound;
        double far = (double)(price.need - bound) / (double)bound;
        if ((far < 0 ? -far : far) > w->most) {
            w->most = far < 0 ? -far : far;
            w->where = strf("%s %d stages, recompute %d, stage %d: %lld for %lld", p->schedule, p->devices,
                            p->m->plan.recompute, s, (long long)price.need, (long long)bound);
        }
    }
}

static void near_model(const char *path, const char *set, Worst *w)
{
    Overrides over = {0};
    if (set)
        *PUSH(&over.set) = set;
    Model *m = model(load(path), path, &over);
    const Graph *g = graph_of(m);
    const Cost *c = cost(g, m, NULL);
    Device one = m->devices.at[0];
    while (m->devices.n < 4)
        *PUSH(&m->devices) = one;
    for (int i = 0; i < 4; i++)
        m->devices.at[i].memory = INT64_MAX / 4;
    for (int stages = 1; stages <= 4; stages++)
        for (int way = 0; way < 4; way++) {
            Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
            Plan p = {.g = g, .c = cost(g, m, NULL), .m = m, .schedule = way & 1 ? "gpipe" : "1f1b", .devices = stages,
                      .chunks = 1};
            m->plan.recompute = way & 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
            p.c = c;
            if (order(&p) || part(&p, limit) || keep(&p) || comm(&p) || lower(&p))
                continue;
            mem(&p);
            compare_stages(&p, w);
        }
}

static void test_near(void)
{
    static const struct { const char *path, *set; } models[] = {
        {"tests/models/tiny-gpt.yaml", "train.batch.global=16"}, {"tests/models/tiny-bert.yaml", NULL},
        {"tests/models/tiny-t5.yaml", NULL}, {"tests/models/branches.yaml", NULL}, {"tests/models/mlp.yaml", NULL},
        {"tests/models/ops.yaml", NULL}, {"examples/bytes-gpt.yaml", NULL}, {"examples/gpt2-124m.yaml", NULL},
        {"examples/bert-base.yaml", NULL}, {"examples/t5-small.yaml", NULL},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        Worst w = {0};
        near_model(models[i].path, models[i].set, &w);
        printf("  %s: off by %.2f %%%s%s\n", models[i].path, 100 * w.most, w.where ? " in " : "", w.where ? w.where : "");
        check(w.most <= 0.03, "%s: %s", models[i].path, w.where);
    }
}

int main(void)
{
    test_name = "unit_price";
    test_near();
    printf("unit_price: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
