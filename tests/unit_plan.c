/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_plan.c: the planning passes against brute force and closed forms.
 *
 *   cuts        every cut of small random graphs, with dropped tensors, ties, groups and limits, priced by a plain
 *               second implementation: the same bottleneck, the same tie-break, the same answer to "does it fit"
 *   orders      gpipe and 1f1b: totals and micro-batches in flight for p 1..8, m 1..32, from the formulas
 *   simulation  GPipe's exact makespan with unequal stages; 1F1B with latency; full recomputation
 *   checkers    each lie told to a checker must be found
 *
 * Graphs are made by hand here; nothing of front/ but its names is used.
 */
#include "dpgen.h"
#include "plan/span.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

static void check(bool right, const char *form, ...) PRINTF(2, 3);
static void check(bool right, const char *form, ...)
{
    va_list list;
    passed += right;
    failed += !right;
    if (right)
        return;
    va_start(list, form);
    fprintf(stderr, "unit_plan: ");
    vfprintf(stderr, form, list);
    fputc('\n', stderr);
    va_end(list);
}

static uint64_t seed = 1;
static int dice(int n)          /* 0 .. n-1 */
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- graphs made by hand ------------------------------------------------------------------------------------------------ */

typedef struct { Graph g; Cost c; Model m; Plan p; } World;

static void put_arg(Op *o, ArgKind kind, bool state, int index)
{
    *PUSH(&o->arg) = (Arg){.kind = kind, .token = "x", .state = state, .index = index};
}

static int add_tensor(World *w, TensorKind kind, Bytes bytes, int op)
{
    *PUSH(&w->g.tensor) = (Tensor){.name = strf("t%d", w->g.tensor.n), .kind = kind, .bytes = bytes, .op = op, .of = -1};
    return w->g.tensor.n - 1;
}

static Op *add_op(World *w, Phase phase, int fwd)
{
    int n = w->g.op.n;
    *PUSH(&w->g.op) = (Op){.name = strf("op%d", fwd >= 0 ? fwd : n), .layer = "", .phase = phase, .call = "call",
                           .fwd = phase == PH_F ? n : fwd, .group = n};
    return &w->g.op.at[n];
}

static void set_times(World *w, Ns (*ns)(World *w, int op))
{
    w->c = (Cost){.signature = "test", .link = 1e18};
    w->c.ns = alloc(sizeof(Ns) * (size_t)w->g.op.n);
    for (int o = 0; o < w->g.op.n; o++)
        w->c.ns[o] = ns(w, o);
}

static void set_plan(World *w, const char *schedule, int devices)
{
    w->m.plan.planner = "exact";
    w->p = (Plan){.g = &w->g, .c = &w->c, .m = &w->m, .schedule = schedule, .devices = devices, .chunks = 1};
}

/* A chain of n operators: forward reads the tensor before; the input gradient reads that tensor, or the operator's own
 * result, and the gradient. */
static World *chain(int n, int micro, bool own)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "chain", .batch = 1, .micro = micro, .groups = 1, .nf = n};
    for (int i = 0; i < n; i++)
        add_tensor(w, T_ACT, 1, i);
    for (int i = 0; i < n; i++) {
        Op *o = add_op(w, PH_F, i);
        put_arg(o, ARG_WRITE, false, i);
        if (i > 0)
            put_arg(o, ARG_READ, false, i - 1);
    }
    for (int i = n - 1, grad = -1; i >= 0; i--) {
        int made = i > 0 ? add_tensor(w, T_GRAD, 1, w->g.op.n) : -1;
        Op *o = add_op(w, PH_I, i);
        if (made >= 0)
            put_arg(o, ARG_WRITE, false, made);
        if (grad >= 0)
            put_arg(o, ARG_READ, false, grad);
        put_arg(o, ARG_READ, false, i > 0 && !own ? i - 1 : i);
        grad = made;
    }
    w->g.nb = w->g.op.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}

static void add_param(World *w, int uses)
{
    Bytes bytes = 1 + dice(40);
    int param = w->g.state.n, used[3];
    for (int i = 0; i < uses; i++)
        used[i] = dice(w->g.nf);
    for (int i = 0; i < uses; i++)
        for (int j = i + 1; j < uses; j++)
            if (used[j] < used[i]) {
                int swap = used[i];
                used[i] = used[j];
                used[j] = swap;
            }
    *PUSH(&w->g.state) = (State){.name = strf("w%d", param), .kind = S_PARAM, .bytes = bytes, .param = param, .op = used[0]};
    if (dice(2))
        *PUSH(&w->g.state) = (State){.name = "copy", .kind = S_COPY, .bytes = bytes / 2, .param = param, .op = used[0]};
    for (int i = 0; i < uses; i++)
        *PUSH(&w->g.state) = (State){.name = "grad", .kind = S_GRAD, .bytes = bytes, .param = param, .use = i, .op = used[i]};
    *PUSH(&w->g.state) = (State){.name = "m", .kind = S_MOMENT1, .bytes = bytes, .param = param, .op = used[0]};
}

/* Operators with up to three operands from anywhere before, skips included, and backward readers of any subset. */
static World *random_graph(int n)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "random", .batch = 1, .micro = 1 << dice(4), .nf = n};
    w->g.groups = 1 << dice(3);
    if (w->g.groups > w->g.micro)
        w->g.groups = w->g.micro;
    int input = add_tensor(w, T_INPUT, 1 + dice(9), -1), *made = alloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++) {
        made[i] = add_tensor(w, T_ACT, 1 + dice(30), i);
        Op *o = add_op(w, PH_F, i);
        o->tmp = dice(20);
        o->group = i > 0 && dice(6) == 0 ? w->g.op.at[i - 1].group : i;
        put_arg(o, ARG_WRITE, false, made[i]);
        put_arg(o, ARG_READ, false, i > 0 ? made[i - 1] : input);
        for (int k = dice(3); k > 0; k--)
            put_arg(o, ARG_READ, false, i > 0 ? made[dice(i)] : input);
    }
    for (int i = n - 1; i >= 0; i--)
        for (int k = 0; k < 2; k++) {
            Op *o = add_op(w, k ? PH_W : PH_I, i);
            for (int a = 0; a < w->g.op.at[i].arg.n; a++)
                if (dice(2))
                    put_arg(o, ARG_READ, false, w->g.op.at[i].arg.at[a].index);
        }
    w->g.nb = w->g.op.n;
    for (int k = dice(4); k > 0; k--)
        add_param(w, 1 + dice(3));
    return w;
}

/* ---- the second implementation: plain sets, one chunk at a time -------------------------------------------------------- */

typedef struct { Ns time, again; Bytes bytes, received; } Price;

static bool reads(const Op *o, int t)
{
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_READ && !o->arg.at[i].state && o->arg.at[i].index == t)
            return true;
    return false;
}

static Bytes touched(const World *w, const Op *o)
{
    Bytes sum = o->tmp;
    for (int t = 0; t < w->g.tensor.n; t++)
        for (int i = 0; i < o->arg.n; i++)
            if (!o->arg.at[i].state && o->arg.at[i].index == t) {
                sum += w->g.tensor.at[t].bytes;
                break;
            }
    return sum;
}

static Bytes plain_states(const World *w, int a, int b)
{
    const Graph *g = &w->g;
    int levels = 1;
    Bytes sum = 0;
    while (1 << (levels - 1) < g->groups)
        levels++;
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (x->param < 0)
            continue;
        int home = g->state.at[x->param].op;
        if (x->kind == S_GRAD) {
            sum += x->op >= a && x->op <= b ? levels * x->bytes : 0;
        } else if (home >= a && home <= b) {
            sum += x->bytes;
        } else if (x->kind == S_PARAM) {        /* a guest holds what its kernels read: the copy if there is one */
            Bytes guest = x->bytes;
            bool used = false;
            for (int k = 0; k < g->state.n; k++) {
                const State *y = &g->state.at[k];
                if (y->param == s && y->kind == S_COPY)
                    guest = y->bytes;
                used |= y->param == s && y->kind == S_GRAD && y->op >= a && y->op <= b;
            }
            sum += used ? guest : 0;
        }
    }
    return sum;
}

static Price plain(const World *w, const int *fate, int a, int b, int flight)
{
    const Graph *g = &w->g;
    bool *want = alloc((size_t)g->tensor.n), *direct = alloc((size_t)g->tensor.n), *again = alloc((size_t)g->nf);
    Price x = {0};
    Bytes saved = 0, most = 0;
    for (int o = 0; o < g->nb; o++) {
        if (g->op.at[o].fwd < a || g->op.at[o].fwd > b)
            continue;
        x.time += w->c.ns[o];
        if (touched(w, &g->op.at[o]) > most)
            most = touched(w, &g->op.at[o]);
        for (int t = 0; t < g->tensor.n; t++)
            if (g->op.at[o].phase != PH_F && reads(&g->op.at[o], t))
                want[t] = direct[t] = true;
    }
    for (int round = 0; round < g->nf; round++)
        for (int t = 0; t < g->tensor.n; t++) {
            int op = g->tensor.at[t].op;
            if (!want[t] || op < a || op > b || fate[t] != FATE_RECOMPUTE)
                continue;
            again[op] = true;
            for (int u = 0; u < g->tensor.n; u++)
                want[u] |= reads(&g->op.at[op], u);
        }
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *y = &g->tensor.at[t];
        bool own = y->op >= a && y->op <= b, come = false;
        if (want[t] && (own ? direct[t] && fate[t] == FATE_KEEP : true))
            saved += y->bytes;
        for (int o = a; o <= b; o++)
            come |= y->op >= 0 && y->op < a && reads(&g->op.at[o], t);
        x.received += come ? y->bytes : 0;
    }
    for (int o = a; o <= b; o++)
        x.again += again[o] ? w->c.ns[o] : 0;
    x.time += x.again;
    Bytes full = flight * saved, running = (flight - 1) * saved + most;
    x.bytes = plain_states(w, a, b) + (full > running ? full : running);
    return x;
}

/* ---- every cut -------------------------------------------------------------------------------------------------------- */

typedef struct { bool any; Ns price, second; int last[8]; Bytes over; } Best;

static void try_cut(const World *w, const int *fate, const int *last, const Bytes *limit, Best *best)
{
    int chunks = w->p.chunk_device.n;
    Ns price = 0, second = 0;
    Bytes over = INT64_MIN;
    for (int s = 0; s < chunks; s++) {
        Price x = plain(w, fate, s ? last[s - 1] + 1 : 0, last[s], order_flight(&w->p, s));
        price = x.time > price ? x.time : price;
        over = x.bytes - limit[s] > over ? x.bytes - limit[s] : over;
        second += x.again + cost_wire(&w->c, x.received);
    }
    best->over = over < best->over ? over : best->over;
    if (over > 0 || (best->any && (price > best->price || (price == best->price && second >= best->second))))
        return;
    best->any = true;
    best->price = price;
    best->second = second;
    memcpy(best->last, last, sizeof(int) * (size_t)chunks);
}

/* In ascending order of the first cut, then the second: the first of equals is the smallest. */
static void every_cut(const World *w, const int *fate, const Bytes *limit, const char *no, int s, int *last, Best *best)
{
    int chunks = w->p.chunk_device.n, first = s ? last[s - 1] + 1 : 0;
    if (s == chunks - 1) {
        last[s] = w->g.nf - 1;
        if (first < w->g.nf)
            try_cut(w, fate, last, limit, best);
        return;
    }
    for (last[s] = first; last[s] < w->g.nf - 1; last[s]++)
        if (!no[last[s]])
            every_cut(w, fate, limit, no, s + 1, last, best);
}

static Ns some_ns(World *w, int op)
{
    (void)w, (void)op;
    return dice(4) ? dice(20) : dice(60);
}

static void some_drops(World *w)
{
    w->m.plan.recompute = (Recompute[]){RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_LIST}[dice(3)];
    for (int o = 0; w->m.plan.recompute == RECOMPUTE_LIST && o < w->g.nf; o++)
        if (dice(2))
            *PUSH(&w->m.plan.names) = w->g.op.at[o].name;
    for (int o = 0; o < w->g.nf; o++)
        if (dice(8) == 0)
            *PUSH(&w->m.plan.keep) = w->g.op.at[o].name;
}

static int last_of(const Plan *p, int chunk)
{
    int last = -1;
    for (int o = 0; o < p->g->nf; o++)
        last = p->chunk.at[o] == chunk ? o : last;
    return last;
}

static void compare_cut(World *w, int number, const Bytes *limit)
{
    Best best = {.over = INT64_MAX};
    int last[8];
    char *no = alloc((size_t)w->g.nf);
    for (int o = 0; o + 1 < w->g.nf; o++)
        no[o] = w->g.op.at[o].group == w->g.op.at[o + 1].group;
    every_cut(w, keep_fates(&w->p, false), limit, no, 0, last, &best);
    bool fits = part(&w->p, limit) == 0;
    check(fits == best.any, "graph %d: %s, brute force says the opposite", number, fits ? "fits" : "does not fit");
    if (fits != best.any)
        return;
    if (!fits) {
        int d = w->p.nofit_device;
        check(d < 0 ? best.over == INT64_MAX : w->p.nofit_need - limit[d] == best.over,
              "graph %d: %lld bytes on device %d are least, brute force is %lld over", number, (long long)w->p.nofit_need, d,
              (long long)best.over);
        return;
    }
    check(w->p.bound == best.price, "graph %d: bottleneck %lld, brute force %lld", number, (long long)w->p.bound,
          (long long)best.price);
    for (int s = 0; s < w->p.devices; s++)
        check(last_of(&w->p, s) == best.last[s], "graph %d: chunk %d ends at %d, brute force at %d", number, s,
              last_of(&w->p, s), best.last[s]);
    check_part(&w->p);
}

static void test_cuts(void)
{
    for (int number = 0; number < 3000; number++) {
        World *w = random_graph(1 + dice(8));
        Bytes limit[8];
        set_times(w, some_ns);
        w->c.link = 1e8 + dice(1000) * 1e6;
        set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(4));
        some_drops(w);
        for (int d = 0; d < 8; d++)
            limit[d] = dice(3) ? 50 + dice(500) : 1000000;
        check(order(&w->p) == 0, "graph %d: no order", number);
        check_order(&w->p);
        compare_cut(w, number, limit);
    }
}

/* keep_bound against the sets that lower really saves and makes again: never more. */
static void test_bound(void)
{
    for (int number = 0; number < 1000; number++) {
        World *w = random_graph(2 + dice(10));
        Bytes limit[8] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        set_times(w, some_ns);
        set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(3));
        some_drops(w);
        if (order(&w->p) || part(&w->p, limit) || keep(&w->p))
            continue;
        check_keep(&w->p);
        for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1) {
            Backward back = backward_of(&w->p, s, 0);
            Span span;
            Bytes saved = 0;
            Ns time = 0;
            span_open(&span, reads_of(&w->g, &w->c, w->p.fate.at));
            for (span_start(&span, first); span.last < last_of(&w->p, s);)
                span_grow(&span);
            for (int t = 0; t < w->g.tensor.n; t++)
                saved += back.saved[t] ? w->g.tensor.at[t].bytes : 0;
            for (int o = 0; o < w->g.nf; o++)
                time += w->p.chunk.at[o] == s ? w->c.ns[o] : 0;
            for (int i = 0; i < back.line.n; i++)
                time += w->c.ns[back.line.at[i].op];
            check(span.saved <= saved && span.time <= time, "graph %d chunk %d: %lld bytes and %lld ns, lower has %lld and %lld",
                  number, s, (long long)span.saved, (long long)span.time, (long long)saved, (long long)time);
            check(keep_bound(&w->p, first, span.last, s) == span_bytes(&span, order_flight(&w->p, s)), "graph %d: keep_bound",
                  number);
        }
    }
}

/* auto: drops only where it must, in the order of its prices, and then it fits. */
static void compare_auto(World *w, int number, const Bytes *limit, int *dropped)
{
    check_part(&w->p);
    if (keep(&w->p)) {
        check(w->p.nofit_need > limit[w->p.nofit_device], "graph %d: auto gives up below the limit", number);
        return;
    }
    check_keep(&w->p);
    const int *base = keep_fates(&w->p, false), *all = keep_fates(&w->p, true);
    for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1) {
        int flight = order_flight(&w->p, s), last = last_of(&w->p, s), drops = 0;
        check(plain(w, w->p.fate.at, first, last, flight).bytes <= limit[s], "graph %d: auto is over the limit", number);
        for (int t = 0; t < w->g.tensor.n; t++) {
            int op = w->g.tensor.at[t].op;
            bool here = op >= first && op <= last;
            drops += here && w->p.fate.at[t] != base[t];
            check(w->p.fate.at[t] == base[t] || w->p.fate.at[t] == all[t], "graph %d: a fate out of nowhere", number);
        }
        check((drops == 0) == (plain(w, base, first, last, flight).bytes <= limit[s]), "graph %d: %d drops in chunk %d", number,
              drops, s);
        *dropped += drops;
    }
}

static void test_auto(void)
{
    int dropped = 0, fits = 0;
    for (int number = 0; number < 1000; number++) {
        World *w = random_graph(2 + dice(8));
        Bytes limit[8];
        set_times(w, some_ns);
        set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(3));
        w->m.plan.recompute = RECOMPUTE_AUTO;
        for (int d = 0; d < 8; d++)
            limit[d] = 100 + dice(1000);
        if (order(&w->p) || part(&w->p, limit))
            continue;
        fits++;
        compare_auto(w, number, limit, &dropped);
    }
    check(fits > 100 && dropped > 100, "auto: %d plans and %d drops are too few to mean anything", fits, dropped);
}

/* ---- orders and simulation ------------------------------------------------------------------------------------------- */

enum { UNIT = 1000000000 };     /* so long that loads and the ends of a step vanish in rounding */

static const Ns *forward_units, *backward_units;
static Ns unit_ns(World *w, int op)
{
    const Op *o = &w->g.op.at[op];
    return UNIT * (o->phase == PH_F ? forward_units[op] : backward_units[o->fwd]);
}

/* One operator a stage, through comm, lower and sim; the step in units. */
static World *simulate(const char *schedule, int stages, int micro, Ns latency, Recompute recompute)
{
    World *w = chain(stages, micro, recompute != RECOMPUTE_NONE);
    Bytes limit[8];
    for (int d = 0; d < 8; d++)
        limit[d] = INT64_MAX / 4;
    set_times(w, unit_ns);
    w->c.latency = latency * UNIT / 4;
    set_plan(w, schedule, stages);
    w->m.plan.recompute = recompute;
    if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "%s p=%d m=%d: no plan", schedule, stages, micro);
    check_order(&w->p);
    check_sim(&w->p);
    return w;
}

static Ns units(const World *w)
{
    return w->p.step / (UNIT / 4);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Narayanan et al. 2021, section 2: 3(m+p-1) units either way; m, or min(m, p-i), micro-batches in flight. */
static void test_closed_forms(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++)
            for (int k = 0; k < 2; k++) {
                const char *schedule = k ? "1f1b" : "gpipe";
                World *w = simulate(schedule, p, m, 0, RECOMPUTE_NONE);
                check(units(w) == 4 * 3 * (m + p - 1), "%s p=%d m=%d: %lld quarters", schedule, p, m, (long long)units(w));
                for (int i = 0; i < p; i++)
                    check(order_flight(&w->p, i) == (k ? least(m, p - i) : m), "%s p=%d m=%d: %d in flight on %d", schedule, p, m,
                          order_flight(&w->p, i), i);
            }
}

/* Identical jobs through unequal stages: sum f + sum b + (m-1)(max f + max b). */
static void test_gpipe_exact(void)
{
    for (int number = 0; number < 300; number++) {
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

/* decisions 13: f=1, b=2, latency c/4: 3 + 2c(p-1)/p a micro-batch, because no spare micro-batch is in flight.  p micro-batches
 * more take p times that: the period of the repeating pattern. */
static void test_latency(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 2; p <= 6; p++)
        for (int c = 0; c <= 8; c++) {
            Ns few = units(simulate("1f1b", p, 4 * p, c, RECOMPUTE_NONE)), many = units(simulate("1f1b", p, 8 * p, c, RECOMPUTE_NONE));
            check(many - few == 4 * (12 * p + 2 * c * (p - 1)), "1f1b p=%d latency %d/4: %lld quarters for %d micro-batches", p, c,
                  (long long)(many - few), 4 * p);
        }
}

/* decisions 22: f = r = 1, b = 2.  What is made again runs before the wait for the gradient, so it is hidden in the fill:
 * 4m + 3(p-1), not 4(m+p-1). */
static void test_recompute(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++) {
            World *w = simulate("1f1b", p, m, 0, RECOMPUTE_FULL);
            check(w->p.bound == 4 * (Ns)UNIT, "full p=%d: %lld ns a micro-batch", p, (long long)w->p.bound);
            check(units(w) == 4 * (4 * m + 3 * (p - 1)), "full p=%d m=%d: %lld quarters", p, m, (long long)units(w));
        }
}

/* ---- what is wrong must be found ------------------------------------------------------------------------------------------ */

/* The status that a call ends with, its words thrown away. */
static int status_of(void (*call)(void *), void *with)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        call(with);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

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
static void lie_update(World *w) { find(w, 1, K_U, -1)->part = 1; }
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
static void lie_bound(World *w) { w->p.bound--; }
static void lie_fuse(World *w)
{
    for (int o = 1; o < w->g.nf; o++)
        w->g.op.at[o].group = w->g.op.at[0].group;
}
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
        {"a bound too low", lie_bound, check_part, 70}, {"a cut fusion group", lie_fuse, check_part, 70},
        {"nothing", lie_nothing, check_keep, 0}, {"a kept tensor dropped", lie_fate, check_keep, 70},
        {"an offload", lie_offload, check_keep, 70},
        {"nothing", lie_nothing, check_sim, 0}, {"a later end", lie_step, check_sim, 70}, {"less work", lie_busy, check_sim, 70},
        {"a later action", lie_time, check_sim, 70}, {"a message of two sizes", lie_bytes, check_sim, 70},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        Lie lie = lies[i];
        int status = status_of(judge, &lie);
        check(status == lie.status, "a checker was told of %s: status %d, not %d", lie.what, status, lie.status);
    }
}

/* ---- constraints, and a profile ------------------------------------------------------------------------------------------- */

static void constrained(World *w, int stages)
{
    Bytes limit[4] = {1000000, 1000000, 1000000, 1000000};
    set_times(w, unit_ns);
    set_plan(w, "1f1b", stages);
    check(order(&w->p) == 0 && part(&w->p, limit) == 0, "no cut under the constraints");
    check_part(&w->p);
}

/* op0 .. op5 of times 2 2 2 2 2 2: without constraints the cuts are after op1 and op3. */
static void test_constraints(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1};
    Strs pair = {0};
    forward_units = backward_units = one;
    World *w = chain(6, 4, false);
    constrained(w, 3);
    check(last_of(&w->p, 0) == 1 && last_of(&w->p, 1) == 3, "three equal chunks");
    *PUSH(&w->m.plan.cut_after) = "op2";
    constrained(w, 2);
    check(last_of(&w->p, 0) == 2, "cut_after op2");
    constrained(w, 3);
    check(last_of(&w->p, 0) == 2 || last_of(&w->p, 1) == 2, "cut_after op2, three chunks");
    w = chain(6, 4, false);
    *PUSH(&pair) = "op1";
    *PUSH(&pair) = "op4";
    *PUSH(&w->m.plan.same_stage) = pair;
    constrained(w, 3);
    check(last_of(&w->p, 0) == 0 && last_of(&w->p, 1) == 4, "same_stage op1 op4");
    w = chain(6, 4, false);
    *PUSH(&w->m.plan.no_cut) = "op*";
    Bytes limit[2] = {1000000, 1000000};
    set_times(w, unit_ns);
    set_plan(w, "gpipe", 2);
    check(order(&w->p) == 0 && part(&w->p, limit) != 0 && w->p.nofit_device == -1, "no_cut everywhere leaves no two chunks");
    w->g.op.at[3].name = "other";
    constrained(w, 2);
    check(last_of(&w->p, 0) == 2, "no_cut but around one operator");
    w = chain(6, 4, false);
    *PUSH(&w->m.plan.cuts) = 0;
    *PUSH(&w->m.plan.cuts) = 4;
    constrained(w, 3);
    check(last_of(&w->p, 0) == 0 && last_of(&w->p, 1) == 4 && w->p.bound == 8 * (Ns)UNIT, "cuts 0, 4");
}

static void unknown_name(void *with)
{
    World *w = chain(3, 4, false);
    PlanSpec *spec = &w->m.plan;
    *PUSH((Strs *)((char *)spec + *(size_t *)with)) = "no_such_operator";
    forward_units = backward_units = (const Ns[]){1, 1, 1};
    constrained(w, 2);
}

static void test_names(void)
{
    static size_t lists[] = {offsetof(PlanSpec, names), offsetof(PlanSpec, keep), offsetof(PlanSpec, cut_after),
                             offsetof(PlanSpec, no_cut)};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        check(status_of(unknown_name, &lists[i]) == EXIT_MODEL, "an unknown name in list %zu", i);
}

static World *profiled(void)
{
    World *w = chain(2, 1, false);
    Device *d = PUSH(&w->m.devices);
    *d = (Device){.name = "cpu", .kind = "cpu", .kernels = "portable", .threads = 2};
    for (int o = 0; o < w->g.op.n; o++) {
        *PUSH(&w->g.op.at[o].arg) = (Arg){.kind = ARG_INT, .token = "n", .i = o < 2 ? 7 : 9};
        *PUSH(&w->g.op.at[o].arg) = (Arg){.kind = ARG_INT, .token = "site", .i = o};
        *PUSH(&w->g.op.at[o].arg) = (Arg){.kind = ARG_FLOAT, .token = "drop", .f = 0.5};
        *PUSH(&w->g.op.at[o].arg) = (Arg){.kind = ARG_NONE, .token = "bias"};
    }
    return w;
}

static void read_profile(void *with)
{
    World *w = profiled();
    char path[] = "/tmp/unit_plan.XXXXXX";
    int fd = mkstemp(path);
    size_t n = strlen(with);
    if (fd < 0 || write(fd, with, n) != (ssize_t)n)
        _exit(98);
    close(fd);
    FILE *f = fopen(path, "r");
    Cost *c = NULL;
    if (f) {
        fclose(f);
        atexit(mem_free_all);
        c = cost(&w->g, &w->m, path);
    }
    unlink(path);
    _exit(c && c->measured && c->ns[0] == 31 && c->ns[1] == 31 && c->ns[2] == 8 && c->latency == 5 && c->link == 1e9 ? 0 : 97);
}

#define HEAD "dpgen-profile 1\ndevice cpu portable f32 threads=2\nmessage latency=5 link=1000000000\n"
#define LINE7 "op call n=7 drop=0x1p-1 bias=0 ns=31\n"
#define LINE9 "op call n=9 drop=0x1p-1 bias=0 ns=8\n"
static void test_profile(void)
{
    static const struct { const char *text; int status; } files[] = {
        {HEAD LINE7 LINE9, 0}, {HEAD "# words\n\n" LINE9 LINE7, 0}, {HEAD LINE7, EXIT_STALE}, {HEAD LINE7 LINE9 LINE7, EXIT_STALE},
        {LINE7 LINE9, EXIT_STALE}, {"dpgen-profile 1\n" LINE7 LINE9, EXIT_STALE}, {HEAD LINE7 LINE9 "op call n=1\n", EXIT_STALE},
        {HEAD LINE7 LINE9 "op call n=1 ns=-3\n", EXIT_STALE}, {HEAD LINE7 LINE9 "word\n", EXIT_STALE},
        {"dpgen-profile 1\ndevice cpu onednn f32 threads=2\nmessage latency=5 link=1000000000\n" LINE7 LINE9, EXIT_STALE},
        {HEAD LINE7 LINE9 "op call n=1 ns=99999999999999999999\n", EXIT_STALE}, {"", EXIT_STALE},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int status = status_of(read_profile, (void *)(uintptr_t)files[i].text);
        check(status == files[i].status, "profile %zu: status %d, not %d", i, status, files[i].status);
    }
}

int main(void)
{
    test_checkers();            /* these fork, so they go first: nothing is freed in between */
    test_names();
    test_profile();
    test_constraints();
    test_cuts();
    test_bound();
    test_auto();
    test_closed_forms();
    test_gpipe_exact();
    test_latency();
    test_recompute();
    printf("unit_plan: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
