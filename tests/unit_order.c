/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_order.c: devices in free order, against all permutations of them.
 *
 *   program   the dynamic program over kinds of devices: the least longest stage by every order and every cut of random chains,
 *             stages without operators included; the order it names has such a cut
 *   kinds     orders that are written down are all permutations of the kinds, each once; near one of them are itself, and those
 *             in which two stages have changed places, or one has another device
 *   search    whole plans of small models on random devices: as short a step as the best of all permutations planned one by
 *             one, a plan whenever a search of one of them has one, no bound above any of them, and no arena above its device
 *   least     what is planned where searches find none is within its own devices
 *   far       sends that skip stages: the search finds the number of stages that only they make the best
 */
#include "passes.h"
#include "search/search.h"
#include "world.h"

enum { MOST = 5 };

static bool next_permutation(int *at, int n)
{
    int i = n - 2, j = n - 1;
    while (i >= 0 && at[i] >= at[i + 1])
        i--;
    if (i < 0)
        return false;
    while (at[j] <= at[i])
        j--;
    int swap = at[i];
    at[i] = at[j];
    at[j] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = at[a];
        at[a] = at[b];
        at[b] = swap;
    }
    return true;
}

/* ---- program ----------------------------------------------------------------------------------------------------- */

typedef struct { World *w; int devices, stages; Ns *ns[MOST]; char *cut; } Instance;

static Ns any_ns(World *w, int op)
{
    (void)w, (void)op;
    return 1 + dice(30);
}

/* Devices of up to three classes and two sizes, a few operators, states of any size, cuts that may not be. */
static Instance some_chain(void)
{
    int n = 3 + dice(6), classes = 1 + dice(3);
    Instance x = {.w = random_graph(n)};
    x.devices = 2 + dice(MOST - 1);
    x.stages = 1 + dice(x.devices < n ? x.devices : n);
    set_times(x.w, any_ns);
    Cost *c = &x.w->c;
    c->classes = classes;
    c->of.n = x.devices;
    c->ns = alloc(sizeof(Ns *) * (size_t)classes);
    for (int k = 0; k < classes; k++) {
        c->ns[k] = alloc(sizeof(Ns) * (size_t)x.w->g.op.n);
        for (int o = 0; o < x.w->g.op.n; o++)
            c->ns[k][o] = any_ns(x.w, o);
    }
    for (int d = 0; d < x.devices; d++) {
        c->of.at[d] = dice(classes);
        *PUSH(&x.w->m.devices) = (Device){.name = "d", .memory = dice(2) ? 1 << 20 : 60 + dice(200), .entry = d};
    }
    set_plan(x.w, "1f1b", x.stages);
    x.cut = alloc((size_t)n);
    for (int o = 0; o < n; o++)
        x.cut[o] = dice(4) || o == n - 1 ? CUT_MAY : CUT_NEVER;
    return x;
}

/* The longest of stages first .. of this order, at best; INT64_MAX: none fits. */
static Ns every_cut(const Instance *x, const int *device, int stage, int first)
{
    const Graph *g = &x->w->g;
    Ns best = stage + 1 < x->stages ? every_cut(x, device, stage + 1, first) : INT64_MAX, time = 0;     /* it does nothing */
    Bytes states = 0;
    for (int last = first; last < g->nf; last++) {
        for (int o = 0; o < g->nb; o++)
            time += g->op.at[o].fwd == last ? x->w->c.ns[x->w->c.of.at[device[stage]]][o] : 0;
        for (int s = 0; s < g->state.n; s++) {
            const State *k = &g->state.at[s];
            bool here = k->param >= 0 && (k->kind == S_GRAD ? k->op : g->state.at[k->param].op) == last;
            states += here ? k->bytes : 0;
        }
        if (states > x->w->m.devices.at[device[stage]].memory)
            break;
        if (last == g->nf - 1 && time < best)
            best = time;
        if (x->cut[last] == CUT_NEVER || stage + 1 == x->stages || last == g->nf - 1)
            continue;
        Ns rest = every_cut(x, device, stage + 1, last + 1);
        rest = rest > time ? rest : time;
        best = rest < best ? rest : best;
    }
    return best;
}

static void test_program(void)
{
    test_name = "program";
    int none = 0, kinds = 0;
    for (int i = 0; i < 1500; i++) {
        Instance x = some_chain();
        int at[MOST] = {0, 1, 2, 3, 4}, order[MOST];
        Ns best = INT64_MAX;
        do {
            Ns value = every_cut(&x, at, 0, 0);
            best = value < best ? value : best;
        } while (next_permutation(at, x.devices));
        Kinds k = kinds_of(&x.w->m, &x.w->c);
        Ns found = orders_longest(&k, &x.w->p, x.cut, order);
        check(found == best, "%d: %lld ns, every order and cut %lld", i, (long long)found, (long long)best);
        check(best == INT64_MAX || every_cut(&x, order, 0, 0) == best, "%d: the order is not that of the value", i);
        for (int a = 0; a < x.stages; a++)
            for (int b = 0; b < a; b++)
                check(order[a] != order[b], "%d: device %d twice", i, order[a]);
        none += best == INT64_MAX;
        kinds += k.n > 2;
    }
    check(none > 20 && kinds > 300, "%d without, %d of many kinds: one side is not tried", none, kinds);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static bool is_near(const Kinds *k, int stages, const int *a, const int *b)
{
    int differ = 0, sum = 0;
    for (int s = 0; s < stages; s++) {
        differ += k->of[a[s]] != k->of[b[s]];
        sum += (1 << 4 * k->of[a[s]]) - (1 << 4 * k->of[b[s]]);      /* 0: as many of each kind */
    }
    return differ < 2 || (differ == 2 && sum == 0);
}

static void test_near(const Kinds *k, int stages, const Orders *all)
{
    const int *given = all->at[all->n / 2].device;
    Orders near = {0};
    orders_near(k, stages, given, &near);
    int want = 0;
    for (int i = 0; i < all->n; i++)
        want += is_near(k, stages, given, all->at[i].device);
    check(near.n == want, "%d orders are near, not %d of %d", near.n, want, all->n);
    for (int i = 0; i < near.n; i++) {
        check(is_near(k, stages, given, near.at[i].device), "order %d is far", i);
        for (int j = 0, same; j < i; j++) {
            same = 0;
            for (int s = 0; s < stages; s++)
                same += k->of[near.at[i].device[s]] == k->of[near.at[j].device[s]];
            check(same < stages, "order %d is order %d", i, j);
        }
    }
}

static void test_kinds(void)
{
    test_name = "kinds";
    for (int i = 0; i < 300; i++) {
        Instance x = some_chain();
        Kinds k = kinds_of(&x.w->m, &x.w->c);
        Orders all = {0};
        int at[MOST] = {0, 1, 2, 3, 4};
        bool every = orders_all(&k, x.stages, 1000, &all);
        check(every, "%d: %d orders are too many", i, all.n);
        do {                    /* each permutation is one of them, by kind */
            int same = 0;
            for (int o = 0; o < all.n; o++) {
                int s = 0;
                while (s < x.stages && k.of[all.at[o].device[s]] == k.of[at[s]])
                    s++;
                same += s == x.stages;
            }
            check(same == 1, "%d: a permutation is there %d times", i, same);
        } while (next_permutation(at, x.devices));
        for (int s = 0; s < x.stages; s++)
            check(k.of[all.at[0].device[s]] == k.of[s], "%d: the first is not the given one", i);
        Orders few = {0};
        check(all.n == 1 || !orders_all(&k, x.stages, all.n - 1, &few), "%d: %d orders are fewer", i, all.n);
        test_near(&k, x.stages, &all);
    }
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

static const char *random_devices(int n, bool tight)
{
    static const char *const speed[] = {"", ", flops: 100GFLOP/s, bandwidth: 12GB/s", ", flops: 30GFLOP/s, bandwidth: 5GB/s"};
    const char *text = "devices:\n";
    int most = tight && dice(2) ? 1000 : 0;
    for (int d = 0; d < n; d++) {       /* one throw after the other, for compilers order arguments as they like */
        const char *fast = speed[dice(3)];
        int kib = most ? 40 + dice(dice(2) ? 500 : most) : 1 << 20;
        text = strf("%s  - {name: d%d, memory: %dKiB%s}\n", text, d, kib, fast);
    }
    return dice(3) ? text : strf("%slinks: {d0-d1: {rate: 100MB/s, latency: 30us}}\n", text);
}

static Model *model_on(const char *path, const char *devices, const Strs *set)
{
    Node *root = load(path), *with = load_text("devices", devices, strlen(devices));
    for (int i = 0; i < root->n; i++)
        if (!strcmp(root->key[i]->text, "devices"))
            root->at[i] = node_get(with, "devices");
    if (node_get(with, "links")) {
        size_t n = (size_t)root->n + 1;
        Node **key = alloc(n * sizeof *key), **at = alloc(n * sizeof *at);
        memcpy(key, root->key, (n - 1) * sizeof *key);
        memcpy(at, root->at, (n - 1) * sizeof *at);
        key[n - 1] = with->key[1];
        at[n - 1] = with->at[1];
        root->key = key;
        root->at = at;
        root->n++;
    }
    Overrides over = {.set = *set};
    Model *m = model(root, path, &over);
    m->plan.cuts.n = 0;
    return m;
}

typedef struct { Ns step, bound; bool moved, least; } Found;

/* Forgets all but that. */
static Found found(const Model *m)
{
    void *mark = mem_mark();
    Plan *failed, *p = search(&(Options){0}, m, &failed);
    Found x = {0};
    if (p)
        x = (Found){p->step, p->proof.bound, p->dev.at[0].entry > 0, p->proof.note && strstr(p->proof.note, "of least bytes")};
    for (int d = 0; p && d < p->devices; d++)       /* whatever order m has */
        check(p->dev.at[d].arena <= same_device(m, &p->m->devices.at[d])->memory, "%s: %lld bytes are too many",
              p->m->devices.at[d].name, (long long)p->dev.at[d].arena);
    mem_release(mark);
    return x;
}

/* What is said of this order before it is planned. */
static Ns least_of(const Model *m, int stages)
{
    void *mark = mem_mark();
    const Graph *g = graph_of(&(Options){0}, m);
    Plan *p = new_plan(g, cost(g, m, NULL), m, stages, m->plan.schedule, NULL);
    Bytes limit[MOST] = {0};
    Ns least = 0;
    if (!order(p)) {
        Question q = part_question(p, limit);
        least = order_least(&q, strcmp(m->plan.planner, "madpipe") && strcmp(m->plan.schedule, "1f1b*"));
    }
    mem_release(mark);
    return least;
}

typedef struct { int plans, none, moved, left; } Tally;

static void trial(int number, Tally *seen)
{
    static const char *const schedule[] = {"1f1b", "gpipe", "1f1b", "gpipe", "1f1b", "1f1b*"};
    static const char *const planner[] = {"even", "pipedream:strong", "vpipe:paper", "madpipe", "exact", "exact", "exact"};
    Strs set = {0};
    int n = 2 + dice(3), stages = 1 + dice(n), at[MOST] = {0, 1, 2, 3, 4};
    const char *who = planner[dice(number % 4 ? 4 : 7)];
    bool slow = getenv("SLOW");         /* exact takes a while where memory is short */
    bool quick = strcmp(who, "exact") || (n < 4 && stages < 3);     /* exact takes a while over the branches of the other one */
    const char *devices = random_devices(n, slow || strcmp(who, "exact"));
    const char *path = quick ? "tests/models/branches.yaml" : "tests/models/tiny-gpt.yaml";
    *PUSH(&set) = strf("plan.stages=%d", stages);
    const char *how = schedule[dice(n < 4 ? 6 : 5)];
    if (!strcmp(who, "madpipe") && !strcmp(how, "1f1b*"))
        how = "1f1b";                   /* 1f1b* takes one chunk a device */
    *PUSH(&set) = strf("plan.schedule=%s", how);
    *PUSH(&set) = strf("plan.planner=%s", who);
    *PUSH(&set) = dice(2) && (slow || strcmp(who, "exact")) ? "plan.recompute=auto" : "plan.recompute=none";
    const Model *given = model_on(path, devices, &set);
    *PUSH(&set) = "devices.order=free";
    Found free = found(model_on(path, devices, &set));
    Ns best = 0;
    do {
        Model *m = ordered(given, n, at);
        m->device_order = ORDER_GIVEN;
        Found one = found(m);
        Ns step = one.least ? 0 : one.step;         /* what is no search's is asked for once, of all orders */
        best = step && (best == 0 || step < best) ? step : best;
        check(!one.step || least_of(m, stages) <= one.step, "%d: an order takes %lld ns, less than its bound", number,
              (long long)one.step);
    } while (next_permutation(at, n));
    check(free.step == best || (free.least && !best), "%d: %s, %d stages on %d devices, %s, %s: %lld ns, the best order takes "
          "%lld", number, path, stages, n, given->plan.planner, given->plan.schedule, (long long)free.step, (long long)best);
    check(free.bound <= best, "%d: a bound of %lld ns, and an order takes %lld", number, (long long)free.bound,
          (long long)best);
    seen->plans += free.step > 0;
    seen->none += free.step == 0;
    seen->moved += free.moved;
    seen->left += stages < n;
}

static void test_search(void)
{
    Tally seen = {0};
    int trials = getenv("SLOW") ? 300 : 15;
    test_name = "search";
    trial(0, &(Tally){0});       /* what is made once and kept */
    for (int i = 0; i < trials; i++)
        trial(i, &seen);
    check(seen.plans > trials / 2 && seen.none > 0 && seen.moved > trials / 8 && seen.left > trials / 8,
          "%d plans, %d refusals, %d moved, %d with devices left out: one side is not tried", seen.plans, seen.none, seen.moved,
          seen.left);
}

/* A plan of least bytes fits, where the model has another order than its file: 192 KiB are too many for d1. */
static void test_least(void)
{
    const char *devices = "devices: [{name: d0, memory: 207KiB}, {name: d1, memory: 58KiB, flops: 100GFLOP/s}]\n";
    Strs set = {0};
    int at[] = {1, 0};
    test_name = "least";
    *PUSH(&set) = "plan.planner=even";
    *PUSH(&set) = "plan.recompute=auto";
    Model *m = ordered(model_on("tests/models/branches.yaml", devices, &set), 2, at);
    m->device_order = ORDER_GIVEN;
    Found none = found(m);
    check(!none.step, "%lld ns on a device that is too small", (long long)none.step);
}

/* The search asks for far sends too, and takes them where they win: with any number of stages that may be a plan that
 * was cut off without. */
static void test_far(const char *layers, const char *stages, int least)
{
    const char *path = "examples/t5-small.yaml";
    void *mark = mem_mark();
    Overrides over = {0};
    Node *root = load(path);
    *PUSH(&over.define) = layers;
    *PUSH(&over.set) = "plan.schedule=1f1b";
    *PUSH(&over.set) = strf("plan.stages=%s", stages);
    test_name = "far";
    override_devices(root, "v100-16gb");
    Model *m = model(root, path, &over);
    const Graph *g = graph_of(&(Options){0}, m);
    Plan *failed, *p = search(&(Options){0}, m, &failed);
    Candidate near = {.x = &(Options){0}, .g = g, .c = cost(g, m, NULL), .m = m, .stages = least,
                      .schedule = schedule_of(m->plan.schedule), .key = ""};
    candidate_finish(&near);
    check(p && p->ask.choice.far && plan_stages(p) == least && near.best && p->step < near.best->step,
          "%s stages: %lld ns, %d without far sends %lld", stages, p ? (long long)p->step : 0, least,
          near.best ? (long long)near.best->step : 0);
    mem_release(mark);
}

int main(void)
{
    test_program();
    test_kinds();
    test_search();
    test_least();
    test_far("L=3", "6", 6);
    if (getenv("SLOW"))
        test_far("L=4", "auto", 8);
    printf("unit_order: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
