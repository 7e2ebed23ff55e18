/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_sched.c: order and sim against their formulas, through comm and lower.
 *
 *   orders      gpipe and 1f1b: totals and micro-batches in flight for p 1..8, m 1..32
 *   hanayo      it idles no more than its paper says, nor than 1f1b
 *   simulation  GPipe's exact makespan with unequal stages; 1F1B with latency; recomputation hidden in the fill; times
 *               over a slow wire by two ways
 *   checkers    each lie told to a checker must be found
 */
#include "world.h"

/* ---- orders and simulation
 * ------------------------------------------------------------------------------------------- */

/* One operator a chunk, through comm, lower and sim; the step in units. */
static World *through(World *w, const char *schedule, int stages, int chunks, Ns latency, Recompute recompute)
{
    Bytes limit[8];
    for (int d = 0; d < 8; d++)
        limit[d] = INT64_MAX / 4;
    set_times(w, unit_ns);
    w->c.latency = latency * UNIT / 4;
    set_plan(w, schedule, stages);
    w->p.chunks = w->m.plan.chunks = chunks;
    w->m.plan.recompute = recompute;
    if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "%s p=%d m=%lld: no plan", schedule, stages, (long long)w->g.micro);
    check_order(&w->p);
    check_sim(&w->p);
    return w;
}

static World *simulate(const char *schedule, int stages, int micro, Ns latency, Recompute recompute)
{
    return through(chain(stages, micro, recompute != RECOMPUTE_NONE), schedule, stages, 1, latency, recompute);
}

static World *simulate_chunks(const char *schedule, int stages, int micro, int chunks)
{
    static Ns one[64];
    for (int c = 0; c < 64; c++)
        one[c] = 1;
    forward_units = backward_units = one;
    World *w = apart_chain(stages * chunks, micro);
    w->g.groups = schedule_ways(schedule_of(schedule));
    return through(w, schedule, stages, chunks, 0, RECOMPUTE_NONE);
}

static Ns units(const World *w)
{
    return w->p.step / (UNIT / 4);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Forms are lines in m from 2p on: few long lists, but all with SLOW=1. */
static bool worth(int p, int m)
{
    return m <= 2 * p + 2 || m % 16 == 0 || getenv("SLOW");
}

/* Narayanan et al. 2021, section 2: 3(m+p-1) units either way; m, or min(m, p-i), micro-batches in flight. */
static void test_closed_forms(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++)
            for (int k = 0; k < 2 && worth(p, m); k++) {
                void *mark = mem_mark();
                const char *schedule = k ? "1f1b" : "gpipe";
                World *w = simulate(schedule, p, m, 0, RECOMPUTE_NONE);
                check(schedule_form(schedule_of(schedule), p, m, 1) == 3 * (m + p - 1), "the form of %s", schedule);
                check(units(w) == 4 * 3 * (m + p - 1), "%s p=%d m=%d: %lld quarters", schedule, p, m,
                      (long long)units(w));
                for (int i = 0; i < p; i++)
                    check(order_flight(&w->p, i) == (k ? least(m, p - i) : m), "%s p=%d m=%d: %d in flight on %d", schedule, p,
                          m, order_flight(&w->p, i), i);
                mem_release(mark);
            }
}

/* The lists of slots.c against those written by hand, where both exist: one chunk a device, in order. */
static void test_lists(void)
{
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 20; m++)
            for (int k = 0; k < 2; k++) {
                void *mark = mem_mark();
                World *w = chain(p, m, false), *v = chain(p, m, false);
                int differ = 0;
                set_plan(w, k ? "1f1b" : "gpipe", p);
                set_plan(v, k ? "1f1b" : "gpipe", p);
                v->p.chunks = 2;
                for (int d = 0; d < p; d++)
                    *PUSH(&v->m.plan.map) = d;
                if (order(&w->p) || order(&v->p))
                    check(false, "p=%d m=%d: no list", p, m);
                for (int d = 0; d < p; d++)
                    for (int i = 0; i < w->p.dev.at[d].order.n; i++)
                        differ += w->p.dev.at[d].order.n != v->p.dev.at[d].order.n
                                  || w->p.dev.at[d].order.at[i].kind != v->p.dev.at[d].order.at[i].kind
                                  || w->p.dev.at[d].order.at[i].mb != v->p.dev.at[d].order.at[i].mb;
                check(differ == 0, "p=%d m=%d: %d actions of the list differ", p, m, differ);
                mem_release(mark);
            }
}

/* At m = p no more idle than (2p-2)/(3pW+p-1); at m = 2p and 4p than 1f1b's (p-1)/(m+p-1). */
static void test_hanayo(void)
{
    for (int p = 1; p <= 8; p++)
        for (int waves = 1; waves <= 4; waves++)
            for (int m = p; m <= 4 * p; m *= 2) {
                if (m > p && p * waves > 16 && !getenv("SLOW"))
                    continue;
                void *mark = mem_mark();
                World *w = simulate_chunks("hanayo", p, m, 2 * waves);
                Ns idle = m == p ? 2 * p - 2 : p - 1, whole = m == p ? 3 * p * waves + p - 1 : m + p - 1;
                Ns work = 4 * 6 * m * waves;            /* in quarters of a unit */
                check(units(w) * (whole - idle) <= work * whole, "hanayo p=%d m=%d waves=%d: %lld quarters, at most %lld", p,
                      m, waves, (long long)units(w), (long long)(work * whole / (whole - idle)));
                mem_release(mark);
            }
}

/* The sum over micro-batches from .. to-1 as decisions A1 writes it: chains in groups, halves above them. */
static const char *sum_of(int from, int to, int size)
{
    const char *text = strf("%d", from);
    int mid = from + (to - from) / 2;
    if (to - from > size)
        return strf("[%s %s]", sum_of(from, mid, size), sum_of(mid, to, size));
    for (int i = from + 1; i < to; i++)
        text = strf("(%s %d)", text, i);
    return text;
}

/* What the lists add up, as text; of two sums that are merged the one with the smaller numbers stands first. */
static const char **sums_of(const Plan *p)
{
    enum { SLOTS = 8 };
    const char **sum = alloc(sizeof *sum * SLOTS * (size_t)p->devices);
    int *next = alloc(sizeof *next * (size_t)p->devices);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < p->devices; d++) {
            const Actions *list = &p->dev.at[d].order;
            const Action *k = next[d] < list->n ? &list->at[next[d]] : NULL;
            const char **own = &sum[d * SLOTS];
            if (!k || (k->kind == K_MERGE && k->from_device < d))
                continue;               /* the partner with the smaller number does it for both */
            if (k->kind == K_MERGE) {
                int e = k->from_device;
                const Actions *theirs = &p->dev.at[e].order;
                if (next[e] == theirs->n || theirs->at[next[e]].kind != K_MERGE || theirs->at[next[e]].from_device != d)
                    continue;
                own[0] = sum[e * SLOTS] = strf("[%s %s]", own[0], sum[e * SLOTS]);
                next[e]++;
            } else if (k->kind == K_B) {
                own[k->group] = k->acc ? strf("(%s %d)", own[k->group], k->mb) : strf("%d", k->mb);
            } else if (k->kind == K_FOLD) {
                own[k->into] = strf("[%s %s]", own[k->into], own[k->group]);
            }
            next[d]++;
            moved = true;
        }
    }
    return sum;
}

/* Any number of replicas adds in the same order, and takes the time of its share of the micro-batches. */
static void test_replicas(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int g = 1; g <= 16; g *= 2)
        for (int r = 1; r <= g; r *= 2)
            for (int size = 1; size <= 3; size++)
                for (int stages = 1; stages <= 3; stages++) {
                    void *mark = mem_mark();
                    World *w = chain(stages, g * size, false);
                    Bytes *limit = alloc(sizeof *limit * (size_t)(r * stages));
                    for (int d = 0; d < r * stages; d++)
                        limit[d] = INT64_MAX / 4;
                    set_times(w, unit_ns);
                    set_plan(w, stages % 2 ? "1f1b" : "gpipe", r * stages);
                    w->g.groups = g;
                    w->p.replicas = r;
                    if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
                        check(false, "g=%d r=%d: no plan", g, r);
                    check_order(&w->p);
                    check_sim(&w->p);
                    const char **sum = sums_of(&w->p), *want = sum_of(0, g * size, size);
                    for (int d = 0; d < r * stages; d++)
                        check(sum[d * 8] && !strcmp(sum[d * 8], want), "g=%d r=%d: device %d adds %s, not %s", g, r, d,
                              sum[d * 8], want);
                    check(units(w) == 4 * 3 * (g / r * size + stages - 1), "g=%d r=%d stages=%d: %lld quarters", g, r, stages,
                          (long long)units(w));
                    mem_release(mark);
                }
}

/* Random maps: legal lists, and the whole of the step after them. */
static void test_maps(void)
{
    void *mark = mem_mark();
    for (int number = 0; number < 400; mem_release(mark), number++) {
        World *w = random_graph(6 + dice(8));
        int devices = 1 + dice(3), chunks = devices + dice(7 - devices);
        Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        set_times(w, some_ns);
        set_plan(w, dice(2) ? "gpipe" : "1f1b", devices);
        w->p.chunks = chunks;
        for (int c = 0; c < chunks; c++)
            *PUSH(&w->m.plan.map) = c < devices ? devices - 1 - c : dice(devices);
        some_drops(w);
        if (order(&w->p) || part(&w->p, limit))
            continue;           /* fewer places to cut than chunks */
        check_order(&w->p);
        if (keep(&w->p) || comm(&w->p) || lower(&w->p))
            check(false, "map %d: no plan", number);
        check_comm(&w->p);
        sim(&w->p);
        check_sim(&w->p);
        passed++;
    }
}

/* Identical jobs through unequal stages: sum f + sum b + (m-1)(max f + max b). */
static void test_gpipe_exact(void)
{
    void *mark = mem_mark();
    for (int number = 0; number < 300; mem_release(mark), number++) {
        int p = 1 + dice(6), m = 1 + dice(12);
        Ns f[8], b[8], sum = 0, most_f = 0, most_b = 0;
        for (int i = 0; i < p; i++) {
            f[i] = 1 + dice(9);
            b[i] = 1 + dice(18);
            sum += f[i] + b[i];
            most_f = f[i] > most_f ? f[i] : most_f;
            most_b = b[i] > most_b ? b[i] : most_b;
        }
        forward_units = f;
        backward_units = b;
        World *w = simulate("gpipe", p, m, 0, RECOMPUTE_NONE);
        check(units(w) == 4 * (sum + (m - 1) * (most_f + most_b)), "gpipe p=%d m=%d: %lld quarters, formula %lld", p, m,
              (long long)units(w), (long long)(4 * (sum + (m - 1) * (most_f + most_b))));
    }
}

/* decisions 13: f=1, b=2, latency c/4: 3 + 2c(p-1)/p a micro-batch, because no spare micro-batch is in flight.  p
 * micro-batches more take p times that: the period of the repeating pattern. */
static void test_latency(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 2; p <= 6; p++)
        for (int c = 0; c <= 8; c++) {
            void *mark = mem_mark();
            Ns few = units(simulate("1f1b", p, 4 * p, c, RECOMPUTE_NONE)),
                many = units(simulate("1f1b", p, 8 * p, c, RECOMPUTE_NONE));
            check(many - few == 4 * (12 * p + 2 * c * (p - 1)),
                  "1f1b p=%d latency %d/4: %lld quarters for %d micro-batches", p, c,
                  (long long)(many - few), 4 * p);
            mem_release(mark);
        }
}

/* decisions 22: f = r = 1, b = 2.  What is made again runs before the wait for the gradient, so it is hidden in the
 * fill: 4m + 3(p-1), not 4(m+p-1). */
static void test_recompute(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++) {
            void *mark = mem_mark();
            World *w = simulate("1f1b", p, m, 0, RECOMPUTE_FULL);
            check(w->p.predicted.bound / UNIT == 4 * m + 3 * (p - 1), "full p=%d m=%d: a bound of %lld ns", p, m,
                  (long long)w->p.predicted.bound);
            check(units(w) == 4 * (4 * m + 3 * (p - 1)), "full p=%d m=%d: %lld quarters", p, m, (long long)units(w));
            mem_release(mark);
        }
}

/* Random graphs with skips over a slow wire: two ways to the same times. */
static void test_wire(void)
{
    void *mark = mem_mark();
    for (int number = 0; number < 200; mem_release(mark), number++) {
        World *w = random_graph(4 + dice(8));
        Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        set_times(w, some_ns);
        w->c.link = 1e9 / (1 + dice(9));
        w->c.latency = dice(20);
        some_plan(w, 2, 3);
        some_drops(w);
        if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
            continue;
        passed++;
        check_sim(&w->p);
    }
}

/* All pairs of so many devices joined by wires of their own: the rate differs by direction, duplex by pair. */
static void join_devices(World *w, int devices, bool (*half)(int a, int b))
{
    Wire *wire = alloc(sizeof *wire * (size_t)(devices * devices));
    for (int i = 0; i < devices * devices; i++) {
        int a = i / devices, b = i % devices;
        wire[i] = (Wire){.rate = 1e9 / (1 + dice(9)), .latency = dice(20), .half = half(a < b ? a : b, a < b ? b : a)};
    }
    w->c.devices = devices;
    w->c.wire = wire;
}

static bool some_half(int a, int b)
{
    return (a + b) % 2;
}

static bool all_half(int a, int b)
{
    (void)a, (void)b;
    return true;
}

static bool no_half(int a, int b)
{
    (void)a, (void)b;
    return false;
}

/* Two stages that do next to nothing but send: m messages forth and m back of time c.  GPipe sends all of one direction
 * before the other: 2 m c either way.  1F1B overlaps the two where each has a wire, (m+1) c, and cannot where they share
 * one. */
static void test_duplex(void)
{
    static const Ns none[] = {0, 0};
    enum { COST = 1000000 };    /* ns a message of one byte */
    forward_units = backward_units = none;
    for (int m = 2; m <= 9; m++)
        for (int k = 0; k < 4; k++) {
            World *w = chain(2, m, false);
            Bytes limit[2] = {1000, 1000};
            set_times(w, unit_ns);
            join_devices(w, 2, k & 1 ? all_half : no_half);
            for (int i = 0; i < 4; i++)
                ((Wire *)(uintptr_t)w->c.wire)[i].rate = 1e9 / COST;
            set_plan(w, k & 2 ? "1f1b" : "gpipe", 2);
            if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
                check(false, "no plan");
            check_sim(&w->p);
            Ns want = k == 2 ? m + 1 : 2 * m, got = w->p.step / COST, rest = w->p.step % COST;
            check(got == want && rest < COST / 20, "%s, %s duplex, m=%d: %lld and %lld", w->p.schedule,
                  k & 1 ? "half" : "full", m, (long long)got, (long long)rest);
        }
}

/* Random graphs over wires of which some are shared: the checker agrees. */
static void test_shared(void)
{
    void *mark = mem_mark();
    for (int number = 0; number < 200; mem_release(mark), number++) {
        World *w = random_graph(4 + dice(8));
        Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        set_times(w, some_ns);
        some_plan(w, 2, 3);
        join_devices(w, w->p.devices, number % 2 ? all_half : some_half);
        if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
            continue;
        check_sim(&w->p);
        passed++;
    }
}

/* Every receive of a device is begun before all else, under a request of its own. */
static void receive_early(Actions *list)
{
    Actions all = {0};
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < list->n; i++) {
            Action *k = &list->at[i];
            if (pass == 0 && k->kind == K_RECV) {
                int old = k->request, wait = i + 1;
                while (list->at[wait].kind != K_WAIT || list->at[wait].request != old)
                    wait++;
                k->request = list->at[wait].request = 1000 + i;
            }
            if ((k->kind == K_RECV) == (pass == 0))
                *PUSH(&all) = *k;
        }
    *list = all;
}

/* A message is then ready when it is sent.  Stage 1 is slow: its gradient of micro-batch 1 is sent long after stage 0 has
 * sent micro-batch 2, and is simulated first, for stage 1 runs on until it waits. */
static void test_early(void)
{
    for (int slow = 1; slow <= 40; slow += 3) {
        World *w = chain(2, 6, false);
        Bytes limit[2] = {1000, 1000};
        forward_units = backward_units = (const Ns[]){1, slow};
        set_times(w, unit_ns);
        join_devices(w, 2, all_half);
        for (int i = 0; i < 4; i++)
            ((Wire *)(uintptr_t)w->c.wire)[i].rate = 1e9 / UNIT;
        set_plan(w, "1f1b", 2);
        if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p))
            check(false, "no plan");
        for (int d = 0; d < 2; d++)
            receive_early(&w->p.dev.at[d].list);
        sim(&w->p);
        check_sim(&w->p);
        passed++;
    }
}

/* ---- what is wrong must be found
 * ------------------------------------------------------------------------------------------ */

static World *small_world(void)
{
    World *w = chain(6, 8, true);
    w->g.groups = 4;
    forward_units = backward_units = (const Ns[]){1, 2, 3, 1, 2, 3};
    set_times(w, unit_ns);
    set_plan(w, "1f1b", 3);
    Bytes limit[3] = {1000000, 1000000, 1000000};
    if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "no plan of the small chain");
    return w;
}

static Action *find(World *w, int device, ActionKind kind, int mb)
{
    Actions *list = &w->p.dev.at[device].order;
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == kind && list->at[i].mb == mb)
            return &list->at[i];
    return NULL;
}

static void swap_with_next(Action *k)
{
    Action keep = k[0];
    k[0] = k[1];
    k[1] = keep;
}

static void lie_nothing(World *w) { (void)w; }
static void lie_twice(World *w) { find(w, 0, K_F, 2)->mb = 1; }
static void lie_order(World *w) { swap_with_next(find(w, 2, K_F, 3)); }
static void lie_late(World *w) { swap_with_next(find(w, 0, K_F, 1)); }
static void lie_acc(World *w) { find(w, 1, K_B, 3)->acc = 0; }
static void lie_first(World *w) { find(w, 1, K_B, 4)->acc = 1; }
static void lie_slot(World *w) { find(w, 1, K_B, 4)->group = 0; }
static void lie_fold(World *w) { find(w, 1, K_FOLD, 3)->into = 1; }
static void lie_no_fold(World *w) { find(w, 1, K_FOLD, 7)->kind = K_END; }
static void lie_device(World *w) { find(w, 1, K_B, 4)->chunk = 0; }
static void lie_update(World *w) { find(w, 1, K_U, -1)->update = U_NORM; }
static void lie_short(World *w) { w->p.dev.at[2].order.n--; }
static void lie_chain(World *w)
{
    Action *a = find(w, 0, K_B, 6), *b = find(w, 0, K_B, 7);
    a->mb = 7;
    b->mb = 6;
}
/* Every device runs all its forwards but the last only then: nobody takes the messages in between. */
static void lie_deadlock(World *w)
{
    Actions *list = &w->p.dev.at[1].order;
    Action first = list->at[0];
    for (int i = 1; i < 4; i++)
        list->at[i - 1] = list->at[i];
    list->at[3] = first;
}

typedef struct { const char *what; void (*lie)(World *); void (*judge)(const Plan *); int status; } Lie;

static void lie_cut(World *w) { w->p.chunk.at[0] = 1; }
static void lie_empty(World *w)
{
    for (int o = 0; o < w->g.op.n; o++)
        w->p.chunk.at[o] = w->p.chunk.at[o] == 2 ? 1 : w->p.chunk.at[o];
}
static void lie_backward(World *w) { w->p.chunk.at[w->g.nf] = 0; }
static void lie_bound(World *w) { w->p.predicted.bound = w->p.step + 1; }
static void lie_fate(World *w) { w->p.fate.at[0] = FATE_RECOMPUTE; }
static void lie_offload(World *w) { w->p.fate.at[0] = FATE_OFFLOAD; }
static void lie_step(World *w) { w->p.step++; }
static void lie_busy(World *w) { w->p.dev.at[1].busy--; }
static void lie_time(World *w) { w->p.dev.at[1].list.at[9].to++; }
static void lie_bytes(World *w)
{
    Actions *list = &w->p.dev.at[0].list;
    for (int i = 0; i < list->n; i++)
        list->at[i].bytes += list->at[i].kind == K_SEND;
}

static void judge(void *with)
{
    const Lie *x = with;
    World *w = small_world();
    x->lie(w);
    x->judge(&w->p);
}

static void test_checkers(void)
{
    static const Lie lies[] = {
        {"nothing", lie_nothing, check_order, 0}, {"a forward twice", lie_twice, check_order, 70},
        {"backward before forward", lie_order, check_order, 70}, {"forwards out of order", lie_late, check_order, 70},
        {"a chain begun again", lie_acc, check_order, 70}, {"a chain not begun", lie_first, check_order, 70},
        {"an accumulator in use", lie_slot, check_order, 70}, {"a fold of itself", lie_fold, check_order, 70},
        {"an unknown action", lie_no_fold, check_order, 70}, {"another device's chunk", lie_device, check_order, 70},
        {"the update's parts", lie_update, check_order, 70}, {"a list cut short", lie_short, check_order, 70},
        {"a chain out of order", lie_chain, check_order, 70}, {"a deadlock", lie_deadlock, check_order, 70},
        {"nothing", lie_nothing, check_part, 0}, {"a chunk that goes back", lie_cut, check_part, 70},
        {"an empty chunk", lie_empty, check_part, 70}, {"backward elsewhere", lie_backward, check_part, 70},
        {"a bound above the step", lie_bound, check_sim, 70},
        {"nothing", lie_nothing, check_keep, 0}, {"a kept tensor dropped", lie_fate, check_keep, 70},
        {"an offload", lie_offload, check_keep, 70},
        {"nothing", lie_nothing, check_sim, 0}, {"a later end", lie_step, check_sim, 70},
            {"less work", lie_busy, check_sim, 70},
        {"a later action", lie_time, check_sim, 70}, {"a message of two sizes", lie_bytes, check_sim, 70},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        Lie lie = lies[i];
        int status = status_of(judge, &lie);
        check(status == lie.status, "a checker was told of %s: status %d, not %d", lie.what, status, lie.status);
    }
}

int main(void)
{
    test_name = "unit_sched";
    test_checkers();            /* forks, so it goes first: nothing is freed in between */
    test_closed_forms();
    test_hanayo();
    test_lists();
    test_replicas();
    test_maps();
    test_gpipe_exact();
    test_latency();
    test_recompute();
    test_wire();
    test_duplex();
    test_shared();
    test_early();
    printf("unit_sched: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
