/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_stage.c: prices of the stages of real models, where brute force ends.
 *
 *   falling   equal blocks on equal devices under 1f1b: what is made again falls from the first stage to none on the last,
 *             within one operator, if the limit fits the last stage unaided (and fits it alone: nothing else is promised)
 *   simple    never more added time than with everything dropped, or with operators dropped by time per byte until it fits
 *   gap       added time above the floor, printed
 */
#include "world.h"
#include "fates/fates.h"

static Model *model_of(const char *path, int devices, Graph **g)
{
    Overrides none = {0};
    Model *m = model(load(path), path, &none);
    *g = build(m);
    shape(*g, m);
    grad(*g, m);
    fuse(*g, m);
    Device one = m->devices.at[0];
    while (m->devices.n < devices)
        *PUSH(&m->devices) = one;
    m->plan.recompute = RECOMPUTE_AUTO;
    return m;
}

static Plan plan_of(const Graph *g, const Model *m, int stages)
{
    Plan p = {.g = g, .c = cost(g, m, NULL), .m = m, .schedule = "1f1b", .devices = stages, .chunks = 1};
    check(order(&p) == 0, "no order");
    return p;
}

/* ---- falling ------------------------------------------------------------------------------------------------------- */

static int block_of(const Graph *g, int op)
{
    int n = -1;
    return op < g->nf && sscanf(g->op.at[op].name, "h.%d.", &n) == 1 ? n : -1;
}

/* Time that is added to the blocks of a stage, and that of its longest operator. */
static Ns added(Prices *x, const Plan *p, int stage, int blocks, Ns *longest)
{
    const Graph *g = p->g;
    int first = -1, last = -1;
    Ns base = 0;
    for (int o = 0; o < g->nf; o++)
        if (block_of(g, o) >= stage * blocks && block_of(g, o) < (stage + 1) * blocks) {
            first = first < 0 ? o : first;
            last = o;
        }
    const Price *y = price_best(x, first, last, stage);
    for (int o = 0; o < g->nb; o++) {
        bool here = g->op.at[o].fwd >= first && g->op.at[o].fwd <= last;
        base += here ? cost_op(p->c, stage, o) : 0;
        if (here && o < g->nf && cost_op(p->c, stage, o) > *longest)
            *longest = cost_op(p->c, stage, o);
    }
    check(y->fits, "stage %d of blocks does not fit", stage);
    return y->forward + y->backward - base;
}

static void test_falling(const char *path, int blocks)
{
    Graph *g;
    int stages = 4;
    Ns again[4], longest = 0;
    Model *m = model_of(path, stages, &g);
    Plan p = plan_of(g, m, stages);
    Bytes limit[4];
    for (int share = 0; share < 3; share++) {
        for (int s = 0; s < stages; s++)
            limit[s] = INT64_MAX / 4;
        Prices *x = prices_open(&p, limit);
        int first = 0, last;
        while (block_of(g, first) < (stages - 1) * blocks)
            first++;
        for (last = first; block_of(g, last + 1) >= 0;)
            last++;
        Bytes need = price_best(x, first, last, stages - 1)->need;
        for (int s = 0; s < stages; s++)
            limit[s] = need + need / 5 * share;
        x = prices_open(&p, limit);
        for (int s = 0; s < stages; s++) {
            again[s] = added(x, &p, s, blocks, &longest);
            check(s == 0 || again[s] <= again[s - 1] + longest, "%s: %lld ns on stage %d, %lld before", path,
                  (long long)again[s], s, s ? (long long)again[s - 1] : 0);
        }
        printf("  %s: made again %lld %lld %lld %lld us, longest operator %lld\n", path, (long long)again[0] / 1000,
               (long long)again[1] / 1000, (long long)again[2] / 1000, (long long)again[3] / 1000, (long long)longest / 1000);
        check(again[stages - 1] == 0 && again[0] > 0, "%s: from %lld to %lld", path, (long long)again[0],
              (long long)again[stages - 1]);
    }
}

/* ---- simple -------------------------------------------------------------------------------------------------------- */

typedef struct { int op; double worth; } Cheap;

static int by_worth(const void *a, const void *b)
{
    const Cheap *x = a, *y = b;
    return x->worth != y->worth ? (x->worth < y->worth ? -1 : 1) : x->op - y->op;
}

/* Time of a stage with the n operators dropped that take least time per byte: the fewest that fit; -1: none does. */
static Ns greedy(Prices *x, const Plan *p, int first, int last, int chunk)
{
    const Graph *g = p->g;
    int *fate = alloc(sizeof *fate * (size_t)g->tensor.n), n = last - first + 1;
    Cheap *cheap = alloc(sizeof *cheap * (size_t)n);
    for (int o = first; o <= last; o++) {
        Bytes bytes = 1;
        for (int t = 0; t < g->tensor.n; t++)
            bytes += g->tensor.at[t].op == o ? g->tensor.at[t].bytes : 0;
        cheap[o - first] = (Cheap){o, (double)cost_op(p->c, chunk, o) / (double)bytes};
    }
    qsort(cheap, (size_t)n, sizeof *cheap, by_worth);
    for (int i = 0; i <= n; i++) {
        for (int t = 0; i > 0 && t < g->tensor.n; t++)
            if (g->tensor.at[t].op == cheap[i - 1].op)
                fate[t] = FATE_RECOMPUTE;
        Price y = price_with(x, first, last, chunk, fate);
        if (y.fits)
            return y.forward + y.backward;
    }
    return -1;
}

static Ns full(Prices *x, const Plan *p, int first, int last, int chunk)
{
    int *fate = alloc(sizeof *fate * (size_t)p->g->tensor.n);
    for (int t = 0; t < p->g->tensor.n; t++)
        fate[t] = p->g->tensor.at[t].kind == T_ACT ? FATE_RECOMPUTE : FATE_KEEP;
    Price y = price_with(x, first, last, chunk, fate);
    return y.fits ? y.forward + y.backward : -1;
}

static void test_simple(const char *path)
{
    Graph *g;
    Model *m = model_of(path, 4, &g);
    Plan p = plan_of(g, m, 4);
    double over = 0;
    int found = 0, least = 0;
    for (int s = 0; s < 4; s++) {
        int first = g->nf * s / 4, last = g->nf * (s + 1) / 4 - 1;
        Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        Price all = *price_best(prices_open(&p, limit), first, last, s);
        for (int share = 3; share <= 9; share += 2) {
            for (int d = 0; d < 4; d++)
                limit[d] = all.states + (all.need - all.states) / 10 * share;
            Prices *x = prices_open(&p, limit);
            const Price *y = price_best(x, first, last, s);
            Ns time = y->forward + y->backward, simple[] = {greedy(x, &p, first, last, s), full(x, &p, first, last, s)};
            for (int i = 0; i < 2; i++)
                check(simple[i] < 0 || (y->fits && time <= simple[i]), "%s stage %d, %d0 %%: %lld ns, simply %lld", path, s,
                      share, (long long)time, (long long)simple[i]);
            Ns floor = price_floor(x, first, last, s);
            check(!y->fits || floor <= time, "%s stage %d: floor %lld above %lld", path, s, (long long)floor,
                  (long long)time);
            over += y->fits ? (double)(time - floor) / (double)floor : 0;
            found += y->fits;
            least++;
        }
    }
    printf("  %s: %d of %d limits fit, %.1f %% above the floor on average\n", path, found, least,
           100 * over / (found + !found));
}

int main(void)
{
    test_name = "unit_stage";
    test_falling("examples/gpt2-124m.yaml", 3);
    test_simple("examples/gpt2-124m.yaml");
    test_simple("examples/bert-base.yaml");
    test_simple("examples/t5-small.yaml");
    printf("unit_stage: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
