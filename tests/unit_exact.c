/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_exact.c: the exact planner against enumeration.
 *
 *   brute     every cut and every fate of small random graphs, over schedules, links, devices and limits: the same value
 *             of the objective that adds up, the same answer to "does it fit", and no bound above what is possible
 *   offload   the same with offload among the fates
 *   product   every cut with every fate, built and simulated by the real passes: no bound above the fastest, nothing
 *             called infeasible that fits, and `exact` as fast as the fastest
 *   moved     the same with offload, copies in each hurry: no bound above the fastest, and no chunk of any of these plans
 *             computes less than its floor under a link that carries just what it sends
 *   inputs    the same with data to load: no bound above the fastest
 *   table     a full dynamic program over cuts, buying every run, on graphs of up to 60 operators and 8 chunks
 *   seeds     never slower than any other planner of the space
 */
#include "graphs.h"
#include "exact/exact.h"
#include "fates/fates.h"

static bool slow;

/* ---- questions --------------------------------------------------------------------------------------------------- */

static Question ask(const World *w, const Bytes *limit, const char *objective)
{
    const Plan *p = &w->p;
    int chunks = plan_chunks(p), *flight = alloc(sizeof(int) * (size_t)chunks);
    char *cut = alloc((size_t)w->g.nf);
    for (int s = 0; s < chunks; s++)
        flight[s] = order_flight(p, s);
    for (int o = 0; o < w->g.nf; o++)
        cut[o] = o + 1 == w->g.nf ? CUT_MUST : CUT_MAY;
    const Bytes *share = price_whole(p, limit);
    return (Question){.p = p, .prices = prices_open(p, share), .n = w->g.nf, .chunks = chunks, .cut = cut, .flight = flight,
                      .limit = limit, .share = share, .seeds = planners, .objective = objective};
}

/* Devices of two kinds, links of some rate and latency. */
static void some_machine(World *w)
{
    enum { MOST = 64 };
    set_times(w, some_ns);
    w->c.link = dice(2) ? 1e18 : 1e9 + dice(1000) * 1e7;
    w->c.latency = dice(2) ? 0 : dice(30);
    set_pairs(w);
    if (dice(3))
        return;
    Ns *first = w->c.ns[0];
    w->c.classes = 2;
    w->c.ns = alloc(2 * sizeof(Ns *));
    w->c.ns[0] = first;
    w->c.ns[1] = alloc(sizeof(Ns) * (size_t)w->g.op.n);
    for (int o = 0; o < w->g.op.n; o++)
        w->c.ns[1][o] = first[o] * 2 + dice(3);
    for (int d = 0; d < MOST; d++)
        w->c.of.at[d] = dice(2);
    set_pairs(w);
}

static World *world_of(int most, int chunks, int micro)
{
    Form f = {.n = 2 + dice(most - 1), .skips = dice(3), .far = 4, .most = 30, .params = 3, .ties = dice(2)};
    World *w = gradient_graph(f, micro);
    some_machine(w);
    some_plan(w, 1, chunks < f.n ? chunks : f.n);
    w->m.plan.recompute = dice(4) ? RECOMPUTE_AUTO : dice(2) ? RECOMPUTE_NONE : RECOMPUTE_FULL;
    if (order(&w->p))
        die("no order");
    return w;
}

static World *small_world(int most, int chunks)
{
    return world_of(most, chunks, 1 << dice(5));
}

/* Limits around what chunks need, so that some of them bind. */
static const Bytes *some_limits(const World *w)
{
    Bytes *limit = alloc(sizeof *limit * 8), free[8] = {0}, most = 0;
    for (int d = 0; d < 8; d++)
        free[d] = INT64_MAX / 4;
    Prices *x = prices_open(&w->p, price_whole(&w->p, free));
    for (int s = 0; s < w->p.devices; s++) {
        Bytes need = price_best(x, 0, w->g.nf - 1, s)->need;
        most = need > most ? need : most;
    }
    for (int d = 0; d < 8; d++)
        limit[d] = dice(4) ? most / (w->p.devices + dice(3)) + dice((int)most + 1) / 3 : free[0];
    return limit;
}

/* ---- brute ------------------------------------------------------------------------------------------------------- */

/* Nothing below a limit on the step is only said where brute finds nothing there; what is rough says no more than what is not.
 * Returns whether it was said. */
static bool test_below(Question q, int i, Ns least, Ns value)
{
    Answer a = {0}, b = {0};
    q.below = least - 1;
    bool refuted = !exact(&q, &a);
    check(!refuted || a.bound == least, "graph %d: none below %lld, the bound is %lld", i, (long long)q.below,
          (long long)a.bound);
    q.below = least;
    check(exact(&q, &a), "graph %d: none below %lld, brute finds one", i, (long long)least);
    q.unseeded = true;
    check(exact(&q, &b) && b.value >= value && b.bound <= least && !b.proven, "graph %d: a rough plan of %lld, bound %lld", i,
          (long long)b.value, (long long)b.bound);
    return refuted;
}

static void test_brute(int graphs)
{
    int fits = 0, not = 0, proven = 0, tight = 0, refuted = 0;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = small_world(9, 3);
        const Bytes *limit = some_limits(w);
        Question q = ask(w, limit, "bound"), step = ask(w, limit, "step");
        Answer a = {0}, b = {0}, c = {0}, d = {0};
        bool one = exact(&q, &a), other = brute(&q, &b);
        check(one == other, "graph %d: exact says %d, brute %d", i, one, other);
        fits += one && other;
        not += !other;
        if (!one || !other)
            continue;
        check(a.value == b.value, "graph %d: exact finds %lld, brute %lld", i, (long long)a.value, (long long)b.value);
        check(a.bound <= b.value, "graph %d: the bound is %lld, brute finds %lld", i, (long long)a.bound, (long long)b.value);
        exact(&step, &c);
        brute(&step, &d);
        check(c.bound <= d.value && c.bound > 0, "graph %d: bound %lld, brute %lld", i, (long long)c.bound, (long long)d.value);
        check(!c.proven || c.value <= d.value, "graph %d: proven at %lld, brute finds %lld", i, (long long)c.value,
              (long long)d.value);
        proven += c.proven;
        tight += c.bound == d.value;
        refuted += test_below(step, i, d.value, c.value);
    }
    check(refuted > fits / 4, "%d limits below the best step of %d refuted: too few to mean anything", refuted, fits);
    check(fits > graphs / 4 && not > graphs / 20 && proven > fits * 9 / 10,
          "%d that fit, %d that do not, %d proven: too few to mean anything", fits, not, proven);
    printf("  brute: %d fit, %d do not, %d proven, the bound is met by %d\n", fits, not, proven, tight);
}

/* The same where results may wait in the host's memory.  Prices take the link for slower than it may be, so bounds are no part
 * of it. */
static void test_offload(int graphs)
{
    int fits = 0, sent = 0;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = small_world(6, 3);
        for (int t = 0; t < w->g.tensor.n; t++)
            w->g.tensor.at[t].bytes *= 4096;        /* exact tries no smaller copies; brute does */
        w->c.host = 4e12 * (1 + dice(40));
        w->m.plan.offload = OFFLOAD_AUTO;
        const Bytes *limit = some_limits(w);
        Question q = ask(w, limit, "bound");
        Answer a = {0}, b = {0};
        bool one = exact(&q, &a), other = brute(&q, &b);
        check(one == other, "offload %d: exact says %d, brute %d", i, one, other);
        check(!one || !other || a.value == b.value, "offload %d: exact finds %lld, brute %lld", i, (long long)a.value,
              (long long)b.value);
        fits += one;
        for (int t = 0; one && other && t < w->g.tensor.n; t++)
            if (b.fate[t] == FATE_OFFLOAD) {
                sent++;
                break;
            }
    }
    check(fits > graphs / 4 && sent > graphs / 20, "offload: %d that fit and %d that send are too few", fits, sent);
    printf("  offload: %d fit, %d send\n", fits, sent);
}

/* ---- product ----------------------------------------------------------------------------------------------------- */

typedef struct { World *w; const Bytes *limit; Prices *prices; int last[8]; Ns best; int plans; } Product;

/* The simulated step of one cut with one set of fates; INT64_MAX: it does not fit. */
static Ns build_plan(Product *x, const int *fate)
{
    Plan p = x->w->p;
    Model m = x->w->m;
    for (int s = 0; s < p.devices; s++)
        if (!price_with(x->prices, s ? x->last[s - 1] + 1 : 0, x->last[s], s, fate).fits)
            return INT64_MAX;
    void *mark = mem_mark();
    memset(&m.plan.cuts, 0, sizeof m.plan.cuts);
    for (int s = 0; s + 1 < p.devices; s++)
        *PUSH(&m.plan.cuts) = x->last[s];
    Bytes free[8];
    for (int d = 0; d < 8; d++)
        free[d] = INT64_MAX / 4;
    p.m = &m;
    if (order(&p) || part(&p, free))
        die("product: no plan");
    p.chosen = fate;
    if (keep(&p) || comm(&p) || lower(&p))
        die("product: no lists");
    sim(&p);
    mem_release(mark);
    return p.step;
}

static void every_fate(Product *x)
{
    const Graph *g = &x->w->g;
    const int *base = keep_fates(&x->w->p, false), *all = keep_fates(&x->w->p, true);
    int may[16], n = 0, *fate = alloc(sizeof(int) * (size_t)g->tensor.n);
    for (int t = 0; t < g->tensor.n; t++)
        if (all[t] == FATE_RECOMPUTE && x->w->m.plan.recompute == RECOMPUTE_AUTO && n < 16)
            may[n++] = t;
    for (int set = 0; set < 1 << n; set++) {
        memcpy(fate, base, sizeof(int) * (size_t)g->tensor.n);
        for (int i = 0; i < n; i++)
            fate[may[i]] = set >> i & 1 ? FATE_RECOMPUTE : FATE_KEEP;
        Ns step = build_plan(x, fate);
        x->best = step < x->best ? step : x->best;
        x->plans++;
    }
}

static void every_cut(Product *x, int s, int first)
{
    int chunks = x->w->p.devices;
    if (s == chunks - 1) {
        x->last[s] = x->w->g.nf - 1;
        every_fate(x);
        return;
    }
    for (x->last[s] = first; x->last[s] <= x->w->g.nf - (chunks - s); x->last[s]++)
        every_cut(x, s + 1, x->last[s] + 1);
}

static Ns simulated(World *w, const Bytes *limit, Ns *bound)
{
    if (part(&w->p, limit))
        return INT64_MAX;
    if (keep(&w->p) || comm(&w->p) || lower(&w->p))
        die("product: no lists");
    sim(&w->p);
    check_sim(&w->p);
    *bound = w->p.predicted.bound;
    return w->p.step;
}

/* Data that operators anywhere read, one tensor for several of them or one each. */
static void add_inputs(World *w)
{
    int input = -1;
    for (int o = 0; o < w->g.nf; o++) {
        input = input < 0 || dice(2) ? add_tensor(w, T_INPUT, 1 + dice(8000), -1) : input;
        if (dice(2))
            put_arg(&w->g.op.at[o], ARG_READ, false, input);
    }
}

/* With data to load, which takes as long as operators do, and either warm-up: no bound above the fastest. */
static void test_inputs(int graphs)
{
    int fits = 0;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = small_world(6, 3);
        add_inputs(w);
        w->m.plan.warmup = dice(2) ? WARMUP_A : WARMUP_B;
        if (order(&w->p))
            die("no order");
        Product x = {.w = w, .limit = some_limits(w), .best = INT64_MAX};
        for (int o = 0; o < w->g.op.n; o++)             /* so long that the ends of a step vanish */
            for (int k = 0; k < w->c.classes; k++)
                w->c.ns[k][o] *= 1000000;
        w->c.latency *= 1000000;
        w->c.link = w->c.link < 1e17 ? w->c.link / 1e6 : 1e18;
        for (int o = 0; o < w->g.op.n; o++)
            for (int k = 0; k < w->c.classes; k++)
                w->c.ns[k][o] *= 100;
        set_pairs(w);
        x.prices = prices_open(&w->p, price_whole(&w->p, x.limit));
        every_cut(&x, 0, 0);
        Ns bound = 0, step = simulated(w, x.limit, &bound);
        fits += step != INT64_MAX;
        check(bound <= x.best, "inputs %d: bound %lld, the fastest of %d plans %lld", i, (long long)bound, x.plans,
              (long long)x.best);
    }
    check(fits > graphs / 4, "inputs: %d that fit are too few", fits);
}

static void test_product(int graphs)
{
    int fits = 0, equal = 0;
    double far = 1;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = small_world(6, 3);
        Product x = {.w = w, .limit = some_limits(w), .best = INT64_MAX};
        x.prices = prices_open(&w->p, price_whole(&w->p, x.limit));
        every_cut(&x, 0, 0);
        Ns bound = 0, step = simulated(w, x.limit, &bound);
        check((step == INT64_MAX) == (x.best == INT64_MAX), "product %d: exact %lld, the fastest %lld", i, (long long)step,
              (long long)x.best);
        if (step == INT64_MAX || x.best == INT64_MAX)
            continue;
        fits++;
        equal += step <= x.best;
        far = (double)step / (double)x.best > far ? (double)step / (double)x.best : far;
        check(bound <= x.best, "product %d: bound %lld, the fastest of %d plans %lld", i, (long long)bound, x.plans,
              (long long)x.best);
    }
    printf("  product: %d fit, %d as fast as the fastest, others within %.3f %%\n", fits, equal, 100 * (far - 1));
    check(fits > graphs / 5, "product: %d that fit are too few", fits);
    check(far < 1.001, "product: %.3f %% slower than the fastest", 100 * (far - 1));
}

/* ---- moved ------------------------------------------------------------------------------------------------------- */

typedef struct { Product x; const char *may; int open[16], n, fits, number; } Moved;

/* The floor of each chunk of a plan: what it computes for a micro-batch, no less, while the link carries what it sends. */
static void hold(Moved *m, const int *fate)
{
    const World *w = m->x.w;
    for (int s = 0, first = 0; s < w->p.devices; first = m->x.last[s++] + 1) {
        Bytes free[8];
        for (int d = 0; d < 8; d++)
            free[d] = INT64_MAX / 4;
        Price own = price_with(prices_open(&w->p, price_whole(&w->p, free)), first, m->x.last[s], s, fate);
        Ns span = (Ns)((double)own.offloaded * 1e9 / w->c.host) + 1, time = own.forward;
        Ns floor = price_within(m->x.prices, first, m->x.last[s], s, &(Passage){.window = span, .m = 1});
        const Ns *ns = w->c.ns[w->c.of.at[stage_of(&w->p, s)]];
        for (int o = 0; o < w->g.nb; o++)
            time += o >= w->g.nf && w->g.op.at[o].fwd >= first && w->g.op.at[o].fwd <= m->x.last[s] ? ns[o] : 0;
        for (int i = 0; i < w->g.nf; i++)       /* at most: each operator with a dropped result, once */
            for (int k = 0, drop = 0; !drop && k < own.tensor.n; k++)
                if (own.fate.at[k] == FATE_RECOMPUTE && w->g.tensor.at[own.tensor.at[k]].op == i) {
                    time += cost_alone(&w->c, stage_of(&w->p, s), i);
                    drop = 1;
                }
        check(floor <= time, "moved %d: chunk %d computes %lld, its floor is %lld", m->number, s, (long long)time,
              (long long)floor);
    }
}

static void every_move(Moved *m, int i, int *fate)
{
    if (i < m->n) {
        for (int k = FATE_KEEP; k <= FATE_OFFLOAD; k++) {
            fate[m->open[i]] = k;
            if (k == FATE_KEEP || m->may[m->open[i]] & (k == FATE_RECOMPUTE ? MAY_DROP : MAY_SEND))
                every_move(m, i + 1, fate);
        }
        return;
    }
    Ns step = build_plan(&m->x, fate);
    m->x.plans++;
    if (step == INT64_MAX)
        return;
    m->fits++;
    m->x.best = step < m->x.best ? step : m->x.best;
    hold(m, fate);
}

static void every_moved_cut(Moved *m, int s, int first)
{
    int chunks = m->x.w->p.devices;
    int *last = &m->x.last[s], *fate = alloc(sizeof(int) * (size_t)m->x.w->g.tensor.n);
    for (*last = s == chunks - 1 ? m->x.w->g.nf - 1 : first; *last <= m->x.w->g.nf - (chunks - s); ++*last) {
        if (s < chunks - 1) {
            every_moved_cut(m, s + 1, *last + 1);
            continue;
        }
        memcpy(fate, keep_fates(&m->x.w->p, false), sizeof(int) * (size_t)m->x.w->g.tensor.n);
        every_move(m, 0, fate);
    }
}

static World *moved_world(void)
{
    bool equal = dice(2);       /* floors are nearly met where so many micro-batches are in flight */
    World *w = world_of(4, 2, equal ? 32 : 1 << dice(5));
    Bytes unit = dice(4) ? 1024 : 64;           /* exact tries no copies of less than 4096 bytes; its bound knows of them */
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes *= unit;
    for (int o = 0; o < w->g.op.n; o++)
        for (int k = 0; k < w->c.classes; k++)
            w->c.ns[k][o] *= 1000;              /* so long that the ends of a step vanish */
    for (int t = 0; t < w->g.tensor.n && equal; t++)
        w->g.tensor.at[t].bytes = w->g.tensor.at[t].kind == T_ACT ? 64 * 1024 : 0;
    for (int o = 0; o < w->g.op.n && equal; o++)
        for (int k = 0; k < w->c.classes; k++)
            w->c.ns[k][o] = 20000;
    set_pairs(w);
    w->c.host = dice(3) ? 1e8 * (1 + dice(dice(2) ? 400 : 10)) : 1e5;       /* the slowest: nothing is worth a copy */
    w->m.plan.recompute = unit < 1024 && dice(2) ? RECOMPUTE_NONE : RECOMPUTE_AUTO;
    w->m.plan.offload = OFFLOAD_AUTO;
    return w;
}

/* The bytes that some plan needs. */
static const Bytes *just_enough(const Moved *m, const World *w)
{
    Bytes *limit = alloc(sizeof *limit * 8), free[8];
    int *fate = alloc(sizeof(int) * (size_t)w->g.tensor.n), chunks = w->p.devices, cut = dice(w->g.nf - chunks + 1);
    memcpy(fate, keep_fates(&w->p, false), sizeof(int) * (size_t)w->g.tensor.n);
    for (int i = 0; i < m->n; i++)
        if (dice(2) && m->may[m->open[i]] & MAY_DROP)
            fate[m->open[i]] = FATE_RECOMPUTE;
        else if (dice(2) && m->may[m->open[i]] & MAY_SEND)
            fate[m->open[i]] = FATE_OFFLOAD;
    for (int d = 0; d < 8; d++)
        free[d] = INT64_MAX / 4;
    Prices *x = prices_open(&w->p, price_whole(&w->p, free));
    for (int d = 0; d < chunks; d++)
        limit[d] = price_with(x, d ? cut + 1 : 0, d == chunks - 1 ? w->g.nf - 1 : cut, d, fate).need;
    return limit;
}

static void test_moved(int graphs)
{
    int fits = 0, plans = 0;
    double near = 0;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = moved_world();
        Moved m = {.number = i, .may = fates_may(&w->p, keep_fates(&w->p, false))};
        for (int t = 0; t < w->g.tensor.n; t++)
            if (m.may[t] && m.n < 4)
                m.open[m.n++] = t;
        const Bytes *limit = just_enough(&m, w);
        Question q = ask(w, limit, "step");
        Answer a = {0};
        m.x = (Product){.w = w, .limit = limit, .best = INT64_MAX};
        bool any = exact(&q, &a);
        CopySlack *slack = &w->p.ask.choice.copy_slack;
        for (*slack = COPY_SLACK_ALL; *slack <= COPY_SLACK_NONE; ++*slack) {
            m.x.prices = prices_open(&w->p, price_whole(&w->p, limit));
            every_moved_cut(&m, 0, 0);
        }
        plans += m.fits;
        if (!any || m.x.best == INT64_MAX)
            continue;
        fits++;
        near += (double)a.bound / (double)m.x.best;
        check(a.bound <= m.x.best, "moved %d: bound %lld, the fastest of %d plans %lld", i, (long long)a.bound, m.x.plans,
              (long long)m.x.best);
    }
    printf("  moved: %d fit, %d plans, bounds at %.3f of the fastest\n", fits, plans, fits ? near / fits : 0.0);
    check(fits > graphs / 4, "moved: %d that fit are too few", fits);
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* The smallest longest chunk or transfer over all cuts, every run bought. */
static Ns table(const Question *q)
{
    Facts *x = facts_of(q);
    Ns *best = alloc(sizeof(Ns) * (size_t)(q->chunks + 1) * (size_t)(q->n + 1));
    int row = q->n + 1;
    for (int i = 0; i < (q->chunks + 1) * row; i++)
        best[i] = INT64_MAX;
    best[0] = 0;
    for (int s = 0; s < q->chunks; s++)
        for (int a = s; a < q->n; a++)
            for (int b = a; b < q->n && best[s * row + a] < INT64_MAX; b++) {
                const Price *k = price_best(q->prices, a, b, s);
                Ns own = k->forward + k->backward, wire = x->transfer[s][b], both = best[s * row + a];
                if (!k->fits || (b < q->n - 1 && s == q->chunks - 1) || q->cut[b] == CUT_NEVER)
                    continue;
                both = own > both ? own : both;
                both = wire > both ? wire : both;
                if (both < best[(s + 1) * row + b + 1])
                    best[(s + 1) * row + b + 1] = both;
            }
    return best[q->chunks * row + q->n];
}

static void test_table(int graphs, int most)
{
    int fits = 0;
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        int n = 8 + dice(most - 7), chunks = 1 + dice(8);
        Form f = {.n = n, .skips = dice(3), .far = 8, .most = 40, .params = 4, .ties = dice(2)};
        World *w = gradient_graph(f, 8);
        some_machine(w);
        set_plan(w, dice(2) ? "1f1b" : "gpipe", chunks);
        w->m.plan.recompute = dice(4) ? RECOMPUTE_AUTO : RECOMPUTE_NONE;
        if (order(&w->p))
            die("no order");
        Question q = ask(w, some_limits(w), "bottleneck");
        Answer a = {0};
        Ns best = table(&q);
        bool any = exact(&q, &a);
        check(any == (best < INT64_MAX), "table %d: exact says %d, the table %lld", i, any, (long long)best);
        fits += any;
        check(!any || a.value == best, "table %d: exact %lld, the table %lld", i, (long long)a.value, (long long)best);
        check(!any || a.bound == best, "table %d: exact proves %lld of %lld", i, (long long)a.bound, (long long)best);
    }
    check(fits > graphs / 3, "table: %d that fit are too few", fits);
    printf("  table: %d of %d fit\n", fits, graphs);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

static void test_seeds(int graphs)
{
    void *mark = mem_mark();
    for (int i = 0; i < graphs; mem_release(mark), i++) {
        World *w = small_world(20, 4);
        Question q = ask(w, some_limits(w), "step");
        Answer a = {0};
        bool any = exact(&q, &a);
        const Facts *facts = facts_of(&q);
        Preview *view = preview_open(facts);
        for (const Planner *k = planners; k->name; k++) {
            Answer b = {0};
            if (!k->seed || !k->plan(&q, &b))
                continue;
            if (k->blind) {
                Question other = ask(w, some_limits(w), "step");
                Answer c = {0};
                check(k->plan(&other, &c) && !memcmp(b.last, c.last, sizeof(int) * (size_t)q.chunks),
                      "seed %d: %s looks at no limit, and has another answer under others", i, k->name);
            }
            const Price *price[8];
            bool fits = true;
            for (int s = 0; s < q.chunks; s++) {
                price[s] = price_best(q.prices, s ? b.last[s - 1] + 1 : 0, b.last[s], s);
                fits &= price[s]->fits;
            }
            Ns value = fits ? preview(preview_open(facts), b.last, price, INT64_MAX) : INT64_MAX;
            /* One that was open before, with other cuts, and with something to beat. */
            for (Ns most = value; fits && most > 1; most /= 2) {
                Ns less = preview(view, b.last, price, most), more = preview(view, b.last, price, 2 * value - most + 1);
                check(less >= most && more == value, "seed %d: %s: below %lld %lld, above it %lld, not %lld", i, k->name,
                      (long long)most, (long long)less, (long long)more, (long long)value);
            }
            check(!fits || (any && a.value <= value), "seed %d: %s has %lld, exact %lld", i, k->name, (long long)value,
                  any ? (long long)a.value : -1);
        }
    }
}

int main(void)
{
    test_name = "unit_exact";
    slow = getenv("SLOW") != NULL;
    test_brute(slow ? 2000 : 300);
    test_offload(slow ? 1000 : 100);
    test_product(slow ? 400 : 40);
    test_moved(slow ? 1000 : 60);
    test_inputs(slow ? 400 : 40);
    test_table(slow ? 500 : 40, slow ? 60 : 24);
    test_seeds(slow ? 500 : 60);
    printf("unit_exact: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
