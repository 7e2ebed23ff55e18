/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_optimal.c: the lists of `optimal`.
 *
 *   every     random shops of two and three devices: as short as the best of all lists, and the bound never above that
 *   unit      unit times with the memory of zb-h1 and of zb-h2: proven, the step is the bound and the closed form
 *   rows      random graphs, p 2..8, one chunk a device and two, under limits: no row that fits is faster through all passes
 *             with the same cuts, many are slower, and the bound is not above the step
 *   wires     tiny graphs, other wires there than back, every list through all passes: the bound is never above the least step
 *   two ways  two pipelines on the same devices: the bound is never above the best of all lists, nor above a step
 */
#include "graphs.h"
#include "tune/tune.h"

enum { MOST = 8, LONGEST = 4096 };

/* ---- every ----------------------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

typedef struct { int p, m; int64_t time[3][MOST], way[MOST], held[2][MOST], room[MOST]; } Case;
typedef struct { int at[12]; } Word;            /* kinds of a list; micro-batches ascend, so they follow */
typedef struct { Word *word; int n; } Words;

static void spell(const Case *x, int d, Word *w, int n, int *count, int64_t bytes, Words *all)
{
    if (n == 3 * x->m)
        all->word[all->n++] = *w;
    for (int k = 0; k < 3 && n < 3 * x->m; k++) {
        if (count[k] == x->m || (k && count[k] == count[k - 1]))
            continue;
        int64_t take = k < 2 ? x->held[k][d] : 0, give = k ? x->held[k - 1][d] : 0;
        if (bytes + take > x->room[d])
            continue;
        count[k]++;
        w->at[n] = k;
        spell(x, d, w, n + 1, count, bytes + take - give, all);
        count[k]--;
    }
}

/* Rounds of longest paths until nothing changes; -1: a circle. */
static int64_t length_of(const Case *x, const Word *const *w)
{
    int64_t end[3][MOST][4] = {{{0}}}, worst = 0;
    bool changed = true;
    for (int round = 0; changed; round++) {
        if (round > 3 * x->p * x->m + 1)
            return -1;
        changed = false;
        for (int d = 0; d < x->p; d++) {
            int64_t now = 0;
            int count[3] = {0};
            for (int i = 0; i < 3 * x->m; i++) {
                int k = w[d]->at[i], mb = count[k]++;
                int64_t a = k == 0 ? (d ? end[0][d - 1][mb] + x->way[d] : 0) : end[k - 1][d][mb];
                int64_t b = k == 1 && d + 1 < x->p ? end[1][d + 1][mb] + x->way[d + 1] : 0;
                a = a > b ? a : b;
                now = (a > now ? a : now) + x->time[k][d];
                changed |= end[k][d][mb] != now;
                end[k][d][mb] = now;
            }
            worst = now > worst ? now : worst;
        }
    }
    return worst;
}

static int64_t shortest(const Case *x, int d, const Words *all, const Word **w)
{
    int64_t best = INT64_MAX;
    if (d == x->p) {
        int64_t ns = length_of(x, w);
        return ns < 0 ? INT64_MAX : ns;
    }
    for (int i = 0; i < all[d].n; i++) {
        w[d] = &all[d].word[i];
        int64_t ns = shortest(x, d + 1, all, w);
        best = ns < best ? ns : best;
    }
    return best;
}

static Case some_case(int p, int m)
{
    Case x = {.p = p, .m = m};
    for (int d = 0; d < p; d++) {
        for (int k = 0; k < 3; k++)
            x.time[k][d] = 1 + dice(9);
        x.way[d] = dice(2) ? dice(4) : 0;
        x.held[0][d] = 1 + dice(4);
        x.held[1][d] = dice(4);
        x.room[d] = x.held[0][d] + x.held[1][d] + dice((int)(x.held[0][d] + x.held[1][d]) * (m - 1) + 1);
    }
    return x;
}

static JobShop jobshop_of(const Case *x)
{
    static int home[MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    static bool joint[MOST];
    static Ns tail[MOST], down[MOST];
    for (int d = 0; d + 1 < x->p; d++)
        down[d] = x->way[d + 1];
    return (JobShop){x->p, x->p, x->m, home, joint, {x->time[0], x->time[1], x->time[2]}, down, x->way, tail,
                     {x->held[0], x->held[1]}, x->room, NULL};
}

static Ns found(const JobShop *x, int64_t steps)
{
    Ns best = INT64_MAX;
    for (int ahead = -1; ahead < x->devices; ahead++)
        for (int wait = 0; wait < 2; wait++) {
            Ints list[MOST] = {{0}};
            int64_t left = steps;
            if (ahead < 0)
                jobshop_single(x, list);
            else if (!jobshop_greedy(x, ahead, wait, list))
                continue;
            jobshop_improve(x, list, &left);
            Ns step = jobshop_step(x, list);
            for (int d = 0; d < x->devices; d++)
                check(jobshop_peak(x, list, d) <= x->room[d], "device %d has no room", d);
            best = step < best ? step : best;
        }
    return best;
}

static void test_every(void)
{
    static const struct { int p, m, slow; } size[] = {{2, 1, 0}, {2, 2, 0}, {2, 3, 0}, {3, 1, 0}, {3, 2, 0}, {3, 3, 1},
                                                      {2, 4, 1}};
    int proven = 0, all = 0;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int number = 0; number < (size[i].slow ? 1 : 8) * (getenv("SLOW") ? 32 : 1); number++) {
            void *mark = mem_mark();
            Case x = some_case(size[i].p, size[i].m);
            Words words[MOST];
            const Word *w[MOST];
            for (int d = 0; d < x.p; d++) {
                words[d] = (Words){alloc(sizeof(Word) * LONGEST), 0};
                spell(&x, d, &(Word){{0}}, 0, (int[3]){0}, 0, &words[d]);
            }
            JobShop shop = jobshop_of(&x);
            Ns want = shortest(&x, 0, words, w), got = found(&shop, 100000), bound = jobshop_bound(&shop);
            check(got == want, "p=%d m=%d, case %d: %lld, of all %lld", x.p, x.m, number, (long long)got, (long long)want);
            check(bound <= want, "p=%d m=%d, case %d: a bound of %lld, and %lld is possible", x.p, x.m, number,
                  (long long)bound, (long long)want);
            all++;
            proven += bound == want;
            mem_release(mark);
        }
    printf("  %d shops as the best of all lists, %d of them proven by the bound\n", all, proven);
    check(proven * 3 > all, "%d of %d bounds are reached", proven, all);
}

/* ---- unit ------------------------------------------------------------------------------------------------------------ */

static void put_row(World *w, const char *name, int p, const JobShop *x, Ints *list)
{
    set_plan(w, name, p);
    w->m.plan.chunks = w->m.plan.replicas = 1;
    if (order(&w->p))
        die("no lists of %s", name);
    for (int d = 0; d < p; d++)
        for (int i = 0; i < w->p.dev.at[d].order.n; i++) {
            const Action *k = &w->p.dev.at[d].order.at[i];
            if (k->kind == K_F || k->kind == K_I || k->kind == K_W)
                *PUSH(&list[d]) = jobshop_op(x, k->kind == K_F ? 0 : k->kind == K_I ? 1 : 2, k->chunk, k->mb);
        }
}

static void test_unit(void)
{
    for (int p = 2; p <= MOST; p++)
        for (int more = 0; more < 2; more++)
            for (int m = 2 * p - 1; m <= 4 * p; m += p) {
                void *mark = mem_mark();
                Case x = {.p = p, .m = m};
                Ints list[MOST] = {{0}};
                JobShop shop = jobshop_of(&x);
                for (int d = 0; d < p; d++)
                    x.time[0][d] = x.time[1][d] = x.time[2][d] = x.held[0][d] = x.held[1][d] = 1;
                put_row(chain(p, m, false), more ? "zb-h2" : "zb-h1", p, &shop, list);
                for (int d = 0; d < p; d++)
                    x.room[d] = jobshop_peak(&shop, list, d);
                Ns step = found(&shop, 1000000), bound = jobshop_bound(&shop);
                check(step == 3 * m + p - 1 && bound == step, "p=%d m=%d, memory of zb-h%d: %lld, bound %lld, form %d", p, m,
                      1 + more, (long long)step, (long long)bound, 3 * m + p - 1);
                mem_release(mark);
            }
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

/* The step with these cuts, through all passes; 0: it does not fit. */
static Ns step_with(World *w, const char *row, const Actions *lists, const Ints *cuts, const Bytes *limit)
{
    bool early = w->p.ask.choice.early;
    set_plan(w, row, w->p.devices);
    w->p.chunks = w->m.plan.chunks;
    w->p.ask.choice.early = early;
    w->p.ask.choice.cuts = cuts;
    w->p.ask.choice.lists = lists;
    if (order(&w->p))
        return 0;
    check_order(&w->p);
    Ns step = part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p) ? 0 : w->p.step;
    if (step)
        check_comm(&w->p);
    return step;
}

static World *some_world(int devices, int chunks)
{
    Form f = {.n = devices * chunks + 2 + dice(8), .far = 1, .most = 400, .params = 2};
    World *w = gradient_graph(f, 2 * devices + dice(8));
    set_times(w, some_ns);
    for (int o = 0; o < w->g.op.n; o++)
        w->c.ns[0][o] *= 100000;
    set_plan(w, chunks > 1 ? "zb-v" : "1f1b", devices);
    w->p.chunks = w->m.plan.chunks = chunks;
    w->m.plan.replicas = 1;
    w->m.plan.recompute = dice(2) ? RECOMPUTE_AUTO : RECOMPUTE_NONE;
    for (int d = 0; d < devices; d++)
        PUSH(&w->m.devices)->memory = INT64_MAX / 4;
    return w;
}

static const char *const rows[2][6] = {{"gpipe", "1f1b", "1f1b-split", "2bp", "zb-h1", "zb-h2"},
                                       {"zb-v", "zb-v", "v-half", "v-half", "v-min", "v-min"}};
enum { ROWS = 6 };

/* Cuts, and limits between what the rows need; false: the graph has no such cuts. */
static bool set_limits(World *w, const char *const *row, Ints *cuts, Bytes *limit)
{
    Bytes need[ROWS][MOST] = {{0}};
    int devices = w->p.devices;
    for (int d = 0; d < devices; d++)
        limit[d] = INT64_MAX / 4;
    if (order(&w->p) || part(&w->p, limit) || !part_cuts(&w->p, cuts))
        return false;
    for (int r = 0; r < ROWS; r++) {
        step_with(w, row[r], NULL, cuts, limit);
        keep_needs(&w->p, need[r]);
    }
    for (int d = 0; d < devices; d++)
        limit[d] = need[1][d] + dice((int)(need[0][d] / 2) + 1);
    return true;
}

/* The plans of the rows that fit, and which is fastest; -1: none fits. */
static int rows_planned(World *w, const char *const *row, const Ints *cuts, const Bytes *limit, Plans *from)
{
    int best = -1;
    for (int r = 0; r < ROWS; r++) {
        if (!step_with(w, row[r], NULL, cuts, limit))
            continue;
        Plan *p = alloc(sizeof *p), made = w->p;
        *p = made;
        p->schedule = "optimal";
        p->ask.choice.seed = schedule_of(row[r]);
        *PUSH(from) = p;
        best = best < 0 || p->step < from->at[best]->step ? from->n - 1 : best;
    }
    return best;
}

static void test_rows(void)
{
    int all = 0, shorter[2] = {0}, slower = 0, proven = 0;
    for (int number = 0; number < (getenv("SLOW") ? 500 : 22); number++) {
        void *mark = mem_mark();
        int folds = number % 3 == 0, devices = 2 + dice(folds ? 3 : 7);
        World *w = some_world(devices, 1 + folds);
        Bytes limit[MOST];
        Ints cuts = {0};
        Plans from = {0};
        int first = set_limits(w, rows[folds], &cuts, limit) ? rows_planned(w, rows[folds], &cuts, limit, &from) : -1;
        if (first >= 0) {
            Ns best = from.at[first]->step, bound = lists_bound(from.at[first], limit);
            const Actions *lists = lists_of(from.at[first], limit, &from);
            Ns step = lists ? step_with(w, "optimal", lists, &cuts, limit) : best, got = step && step < best ? step : best;
            check(folds || (step && step <= best), "graph %d: %lld, a row %lld", number, (long long)step, (long long)best);
            check(bound > 0 && bound <= got, "graph %d: bound %lld, step %lld", number, (long long)bound, (long long)got);
            all++;
            shorter[folds] += got < best;
            slower += !step || step > best;
            proven += got <= bound + bound / 1000;
        }
        mem_release(mark);
    }
    printf("  %d graphs: %d and %d folded ones shorter than every row, %d not as fast as judged, %d proven to a thousandth\n",
           all, shorter[0], shorter[1], slower, proven);
    check(all > 16 && shorter[0] * 8 > all && shorter[1] > 0, "%d and %d shorter of %d", shorter[0], shorter[1], all);
}

/* ---- wires ----------------------------------------------------------------------------------------------------------- */

/* Slow there or back, seldom both. */
static void set_wires(World *w, int devices)
{
    Wire *wire = alloc(sizeof *wire * (size_t)(devices * devices));
    int quick = dice(2);
    for (int i = 0; i < devices * devices; i++)
        wire[i] = (i / devices < i % devices) == quick && dice(4) ? (Wire){.rate = 1e18}
            : (Wire){.rate = 1000 * (1 + dice(1000)), .latency = dice(4000000)};
    w->c.devices = devices;
    w->c.wire = wire;
}

static Actions actions_of(const Word *word, int chunk, int m)
{
    static const ActionKind kinds[] = {K_F, K_I, K_W};
    Actions list = {0};
    int count[3] = {0};
    for (int i = 0; i < 3 * m; i++) {
        Action *k = PUSH(&list), new = action_new(kinds[word->at[i]], 0, count[word->at[i]]++);
        new.chunk = chunk;
        *k = new;
    }
    return list;
}

/* The least step of all lists, through all passes. */
static Ns least_step(World *w, const Case *x, int d, const Words *all, const Word **word, const Ints *cuts, const Bytes *limit)
{
    Ns best = INT64_MAX;
    if (d == x->p) {
        Actions list[MOST];
        for (int i = 0; i < x->p; i++)
            list[i] = actions_of(word[i], i, x->m);
        Ns step = length_of(x, word) < 0 ? 0 : step_with(w, "optimal", list, cuts, limit);
        return step ? step : INT64_MAX;
    }
    for (int i = 0; i < all[d].n; i++) {
        word[d] = &all[d].word[i];
        Ns step = least_step(w, x, d + 1, all, word, cuts, limit);
        best = step < best ? step : best;
    }
    return best;
}

static void test_wires(void)
{
    static const struct { int p, m; } size[] = {{2, 1}, {2, 2}, {3, 1}, {3, 2}};
    int all = 0, proven = 0;
    for (int number = 0; number < (getenv("SLOW") ? 400 : 20); number++) {
        void *mark = mem_mark();
        Case x = {.p = size[number % 4].p, .m = size[number % 4].m};
        World *w = gradient_graph((Form){.n = x.p + dice(3), .far = 1, .most = 4000, .params = 1}, x.m);
        Bytes limit[MOST];
        Ints cuts = {0};
        Words words[MOST];
        const Word *word[MOST];
        set_times(w, some_ns);
        for (int o = 0; o < w->g.op.n; o++)
            w->c.ns[0][o] *= w->g.op.at[o].phase == PH_W ? 400000 : 100000;
        set_wires(w, x.p);
        set_plan(w, "1f1b-split", x.p);
        w->m.plan.chunks = w->m.plan.replicas = 1;
        w->m.plan.recompute = RECOMPUTE_NONE;
        for (int d = 0; d < x.p; d++) {
            x.room[d] = x.m;
            x.held[0][d] = x.time[0][d] = x.time[1][d] = x.time[2][d] = 1;
            limit[d] = INT64_MAX / 4;
            PUSH(&w->m.devices)->memory = limit[d];
            words[d] = (Words){alloc(sizeof(Word) * LONGEST), 0};
            spell(&x, d, &(Word){{0}}, 0, (int[3]){0}, 0, &words[d]);
        }
        if (!order(&w->p) && !part(&w->p, limit) && part_cuts(&w->p, &cuts)) {
            Ns least = least_step(w, &x, 0, words, word, &cuts, limit);
            step_with(w, "1f1b-split", NULL, &cuts, limit);
            Ns bound = lists_bound(&w->p, limit);
            check(bound > 0 && bound <= least, "wires, graph %d: a bound of %lld, and %lld is possible", number,
                  (long long)bound, (long long)least);
            all++;
            proven += least <= bound + bound / 1000;
        }
        mem_release(mark);
    }
    printf("  %d graphs with wires, %d proven to a thousandth\n", all, proven);
    check(all >= 20 && proven * 4 > all, "%d of %d", proven, all);
}

/* ---- two directions ---------------------------------------------------------------------------------------------------- */

/* Two pipelines of two stages with one micro-batch each: the three computations of the one and of the other, on each device, in
 * all orders.  word: bit i says whose the i-th computation is. */
static int64_t both_ways(const Case *x, const int *word)
{
    int64_t end[3][2][2] = {{{0}}};             /* kind, pipeline, stage */
    for (int round = 0; round < 13; round++)
        for (int d = 0; d < 2; d++) {
            int64_t now = 0;
            for (int i = 0, count[2] = {0}; i < 6; i++) {
                int way = word[d] >> i & 1, k = count[way]++, s = way ? 1 - d : d;
                int64_t a = k ? end[k - 1][way][s] : s ? end[0][way][0] + x->way[1] : 0;
                int64_t b = k == 1 && s == 0 ? end[1][way][1] + x->way[1] : 0;
                a = larger(a, b);
                if (round == 12 && end[k][way][s] != larger(a, now) + x->time[k][s])
                    return INT64_MAX;           /* it still grows: a circle */
                now = end[k][way][s] = larger(a, now) + x->time[k][s];
            }
        }
    int64_t last = 0;
    for (int way = 0; way < 2; way++)
        for (int s = 0; s < 2; s++)
            last = larger(last, end[2][way][s]);
    return last;
}

static bool is_word(const Case *x, int d, int word)
{
    int count[2] = {0};
    int64_t bytes = 0;
    for (int i = 0; i < 6; i++) {
        int way = word >> i & 1, s = way ? 1 - d : d, k = count[way]++;
        bytes += (k < 2 ? x->held[k][s] : 0);
        if (bytes > x->room[d] || k > 2)
            return false;
        bytes -= k ? x->held[k - 1][s] : 0;
    }
    return true;
}

static void test_both_ways(void)
{
    static const int back[] = {1, 0};
    int proven = 0, all = 0;
    for (int number = 0; number < 400; number++) {
        Case x = some_case(2, 1);
        JobShop shop = jobshop_of(&x);
        int64_t best = INT64_MAX;
        shop.back = back;
        for (int d = 0; d < 2; d++)
            x.room[d] = x.held[0][0] + x.held[1][0] + x.held[0][1] + x.held[1][1] + dice(4) - 2;
        for (int word[2] = {0}; word[0] < 64; word[0]++)
            for (word[1] = 0; word[1] < 64; word[1]++) {
                int64_t step = is_word(&x, 0, word[0]) && is_word(&x, 1, word[1]) ? both_ways(&x, word) : INT64_MAX;
                best = step < best ? step : best;
            }
        Ns bound = jobshop_bound(&shop);
        check(bound <= best, "both ways, case %d: a bound of %lld, and %lld is possible", number, (long long)bound,
              (long long)best);
        all += best < INT64_MAX;
        proven += bound == best;
    }
    printf("  %d shops of two directions, %d proven by the bound\n", all, proven);
    check(proven * 4 > all, "%d of %d", proven, all);
}

/* Is a gradient merged before the last computation of the first device? */
static bool merges_early(const Plan *p)
{
    const Actions *list = &p->dev.at[0].order;
    int first = list->n, last = 0;
    for (int i = list->n - 1; i >= 0; i--) {
        first = list->at[i].kind == K_MERGE ? i : first;
        last = last == 0 && (list->at[i].kind == K_B || list->at[i].kind == K_W) ? i : last;
    }
    return first < last;
}

/* Random graphs through all passes: the bound is not above the step.  At unit times dualpipe is proven optimal. */
static void test_two_ways(void)
{
    static const char *const row[] = {"chimera", "dualpipe", "bitpipe"};
    int all = 0;
    for (int number = 0; number < 45; number++) {
        void *mark = mem_mark();
        int k = number % 3, devices = 2 + 2 * dice(3), chunks = 1 + (k == 2), unit = number % 15 == 1;
        Form f = {.n = devices * chunks + 2 + dice(8), .far = 1, .most = 400, .params = 2};
        int micro = 2 * devices * (1 + dice(2));
        World *w = unit ? apart_chain(devices, micro) : gradient_graph(f, micro);
        Bytes limit[MOST];
        forward_units = backward_units = (const Ns[]){1, 1, 1, 1, 1, 1, 1, 1};
        set_times(w, unit ? unit_ns : some_ns);
        for (int o = 0; o < w->g.op.n; o++)
            w->c.ns[0][o] *= unit ? 1000 : 100000;
        w->g.groups = 2;
        w->m.plan.chunks = chunks;
        w->m.plan.replicas = 1;
        for (int d = 0; d < MOST; d++)
            PUSH(&w->m.devices)->memory = limit[d] = INT64_MAX / 4;
        w->p.devices = devices;
        w->p.ask.choice.early = dice(2);
        Ns step = step_with(w, row[k], NULL, NULL, limit);
        const bool early = w->p.ask.choice.early;
        check(!step || merges_early(&w->p) == early, "%s, graph %d: early merges %d", row[k], number, early);
        if (step && number % 2)
            keep_needs(&w->p, limit);
        for (int d = 0; d < devices && step && number % 2; d++)
            limit[d] += dice(200);
        step = step ? step_with(w, row[k], NULL, NULL, limit) : 0;
        if (step) {
            Ns bound = lists_bound(&w->p, limit);
            check(bound > 0 && bound <= step, "%s, graph %d: bound %lld, step %lld", row[k], number, (long long)bound,
                  (long long)step);
            check(!unit || step <= bound + bound / 200, "dualpipe on %d: bound %lld, step %lld", devices, (long long)bound,
                  (long long)step);
            all++;
        }
        mem_release(mark);
    }
    check(all > 30, "%d planned", all);
}

int main(void)
{
    test_name = "unit_optimal";
    test_every();
    test_unit();
    test_rows();
    test_wires();
    test_both_ways();
    test_two_ways();
    printf("unit_optimal: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
