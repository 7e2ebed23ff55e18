/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_plan.c: part and keep against brute force.
 *
 *   cuts         every cut of small random graphs, with dropped tensors, ties, groups and limits, priced by a plain
 *                second implementation: the same bottleneck, the same tie-break, the same answer to "does it fit"
 *   keep         the bound never above what lower saves and makes again, the estimate never below the bound; auto
 *                drops only what it must
 *   constraints  each by a graph small enough to see the answer
 */
#include "world.h"
#include "plan/live.h"

/* ---- the second implementation: plain sets, one chunk at a time
 * -------------------------------------------------------- */

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
        x.time += w->c.ns[0][o];
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
        x.again += again[o] ? w->c.ns[0][o] : 0;
    x.time += x.again;
    Bytes full = flight * saved, running = (flight - 1) * saved + most;
    x.bytes = plain_states(w, a, b) + (full > running ? full : running);
    return x;
}

/* ---- every cut
 * -------------------------------------------------------------------------------------------------------- */

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
        second += x.again + cost_wire(&w->c, 0, 0, x.received);
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

/* The planner's question, asked without part. */
static Cuts question(World *w, const char *cut, const Bytes *limit)
{
    int chunks = w->p.chunk_device.n, *flight = alloc(sizeof(int) * (size_t)chunks);
    for (int s = 0; s < chunks; s++)
        flight[s] = order_flight(&w->p, s);
    return (Cuts){.p = &w->p, .reads = reads_of(&w->g, &w->c, keep_fates(&w->p, false)), .n = w->g.nf, .chunks = chunks,
                  .cut = cut, .flight = flight, .limit = limit, .last = alloc(sizeof(int) * (size_t)chunks)};
}

static void compare_cut(World *w, int number, const Bytes *limit)
{
    Best best = {.over = INT64_MAX};
    int last[8];
    char *no = alloc((size_t)w->g.nf), *cut = alloc((size_t)w->g.nf);
    for (int o = 0; o < w->g.nf; o++) {
        no[o] = o + 1 < w->g.nf && w->g.op.at[o].group == w->g.op.at[o + 1].group;
        cut[o] = o + 1 == w->g.nf ? CUT_MUST : no[o] ? CUT_NEVER : CUT_MAY;
    }
    every_cut(w, keep_fates(&w->p, false), limit, no, 0, last, &best);
    Cuts c = question(w, cut, limit), least = question(w, cut, limit);
    bool fits = c.n >= c.chunks && exact(&c), any = least.n >= least.chunks && exact_bytes(&least);
    check(fits == best.any, "graph %d: %s, brute force says the opposite", number, fits ? "fits" : "does not fit");
    check(any == (best.over < INT64_MAX) && (!any || least.price == best.over),
          "graph %d: least is %lld bytes over, brute force %lld",
          number, (long long)least.price, (long long)best.over);
    check((part(&w->p, limit) == 0) == fits, "graph %d: part and its planner disagree", number);
    if (!fits && any)
        check(w->p.nofit_need - limit[w->p.nofit_device] == best.over, "graph %d: %lld bytes on device %d are least",
              number,
              (long long)w->p.nofit_need, w->p.nofit_device);
    if (!fits || !best.any)
        return;
    check(c.price == best.price && w->p.bound == best.price,
          "graph %d: bottleneck %lld and bound %lld, brute force %lld", number,
          (long long)c.price, (long long)w->p.bound, (long long)best.price);
    for (int s = 0; s < c.chunks; s++)
        check(c.last[s] == best.last[s], "graph %d: chunk %d ends at %d, brute force at %d", number, s, c.last[s],
              best.last[s]);
    check_part(&w->p);
}

static void test_cuts(void)
{
    for (int number = 0; number < 3000; number++) {
        World *w = random_graph(1 + dice(8));
        Bytes limit[8];
        set_times(w, some_ns);
        w->c.link = 1e8 + dice(1000) * 1e6;
        some_plan(w, 1, 4);
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
        some_plan(w, 1, 3);
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
                time += w->p.chunk.at[o] == s ? w->c.ns[0][o] : 0;
            for (int i = 0; i < back.line.n; i++)
                time += w->c.ns[0][back.line.at[i].op];
            check(span.saved <= saved && span.time <= time,
                  "graph %d chunk %d: %lld bytes and %lld ns, lower has %lld and %lld",
                  number, s, (long long)span.saved, (long long)span.time, (long long)saved, (long long)time);
            bool plain_case = w->p.devices == 1 && w->m.plan.keep.n == 0;      /* every reader is in this chunk */
            check(!plain_case || (span.saved == saved && span.time == time),
                  "graph %d: %lld bytes and %lld ns, lower has %lld and %lld",
                  number, (long long)span.saved, (long long)span.time, (long long)saved, (long long)time);
            check(live_bytes(&w->p, w->p.fate.at, s, span.states) >= span_bytes(&span, order_flight(&w->p, s)),
                  "graph %d chunk %d: the estimate is below the bound", number, s);
            check(keep_bound(&w->p, first, span.last, s) == span_bytes(&span, order_flight(&w->p, s)),
                  "graph %d: keep_bound",
                  number);
        }
    }
}

static Bytes need_of(World *w, int first, int last, int chunk, const int *fate)
{
    return live_load(live_open(&w->p), first, last, chunk, fate).need;
}

/* auto: drops only where it must, and then it fits. */
static void compare_auto(World *w, int number, const Bytes *limit, int *dropped)
{
    check_part(&w->p);
    if (keep(&w->p)) {
        check(w->p.nofit_need > limit[w->p.nofit_device], "graph %d: auto gives up below the limit", number);
        return;
    }
    check_keep(&w->p);
    int *base = keep_fates(&w->p, false), *all = keep_fates(&w->p, true);
    for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1) {
        int last = last_of(&w->p, s), drops = 0;
        for (int t = 0; t < w->g.tensor.n; t++) {
            int op = w->g.tensor.at[t].op;
            bool here = op >= first && op <= last;
            drops += here && w->p.fate.at[t] != base[t];
            check(w->p.fate.at[t] == FATE_KEEP || w->p.fate.at[t] == all[t], "graph %d: a fate out of nowhere", number);
        }
        Bytes kept = need_of(w, first, last, s, base);
        check(kept > limit[s] || drops == 0, "graph %d: %d drops in chunk %d, which fits without", number, drops, s);
        check(kept <= limit[s] || need_of(w, first, last, s, w->p.fate.at) <= limit[s]
              || need_of(w, first, last, s, all) > limit[s], "graph %d: too few drops in chunk %d", number, s);
        *dropped += drops;
    }
}

/* In units of alignment, so that it rounds nothing. */
static void align_all(World *w)
{
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes *= ALIGN;
    for (int o = 0; o < w->g.op.n; o++)
        w->g.op.at[o].tmp *= ALIGN;
    for (int s = 0; s < w->g.state.n; s++)
        w->g.state.at[s].bytes *= ALIGN;
}

static void test_auto(void)
{
    int dropped = 0, fits = 0;
    for (int number = 0; number < 1000; number++) {
        World *w = random_graph(2 + dice(8));
        Bytes limit[8];
        set_times(w, some_ns);
        some_plan(w, 1, 3);
        w->m.plan.recompute = RECOMPUTE_AUTO;
        align_all(w);
        for (int d = 0; d < 8; d++)
            limit[d] = ALIGN * (100 + dice(1000));
        if (order(&w->p) || part(&w->p, limit))
            continue;
        fits++;
        compare_auto(w, number, limit, &dropped);
    }
    check(fits > 100 && dropped > 100, "auto: %d plans and %d drops are too few to mean anything", fits, dropped);
}

/* ---- constraints ------------------------------------------------------------------------------------------- */

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
    check(order(&w->p) == 0 && part(&w->p, limit) != 0 && w->p.nofit_device == -1,
          "no_cut everywhere leaves no two chunks");
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

int main(void)
{
    test_name = "unit_plan";
    test_names();               /* these fork, so they go first: nothing is freed in between */
    test_constraints();
    test_cuts();
    test_bound();
    test_auto();
    printf("unit_plan: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
