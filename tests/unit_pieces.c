/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_pieces.c: the planners that choose more than cuts, and what they work on, against oracles that share nothing.
 *
 *   special      MadPipe's program against every set of pieces of small chains, groups of 1F1B* walked anew; with a grid
 *                it may miss some, but what it finds holds
 *   1f1b*        check 6 of the schedule: equal stages store ceil((p-x+1)/j) at period j t, and 2(p-x)+1 where transfers
 *                take as long as stages
 *   twobw        its formulas by hand
 *   units        of the examples: 49 for BERT-large, as in the plans that vPipe's authors published; bytes and times of units
 *                add up to those of the graph
 *   largest      the largest micro-batch against trying all of them, with holes below the edge and islands above it
 */
#include "view/largest.h"
#include "rivals/rivals.h"
#include "rivals/twobw.h"
#include "planner.h"
#include "world.h"

enum { UNITS = 8 };

/* ---- special ----------------------------------------------------------------------------------------------------- */

typedef struct {
    Special s;
    Ns time[UNITS], send[UNITS];
    Bytes once[UNITS], copy[UNITS], border[UNITS];
    bool must[UNITS];
} Mad;

static Mad *some_mad(void)
{
    Mad *m = alloc(sizeof *m);
    m->s = (Special){.n = 2 + dice(UNITS - 1), .devices = 1 + dice(4), .time = m->time, .send = m->send, .once = m->once,
                     .copy = m->copy, .border = m->border, .must = m->must, .memory = 40 + dice(120), .budget = 1000000};
    for (int i = 0; i < m->s.n; i++) {
        m->time[i] = dice(8) ? 1 + dice(20) : 0;
        m->send[i] = dice(12);
        m->once[i] = dice(20);
        m->copy[i] = dice(8);
        m->border[i] = dice(4);
        m->must[i] = dice(16) == 0;
    }
    return m;
}

/* Segment i of n is last[i]; on the special device where its bit says so. */
static bool mad_holds(const Mad *m, const int *last, int n, int special, Ns period, int *flight)
{
    int group = 1, normal = 0;
    Ns acc = 0, load = 0;
    Bytes held = 0;
    for (int i = n - 1; i >= 0; i--) {
        bool here = special >> i & 1;
        int first = i ? last[i - 1] + 1 : 0;
        Ns time = 0;
        Bytes once = 0, copy = 0;
        for (int u = first; u <= last[i]; u++) {
            time += m->time[u];
            once += m->once[u];
            copy += m->copy[u];
            if (m->must[u] && u < last[i])
                return false;
        }
        if (acc + time > period) {
            group++;
            acc = 0;
        }
        acc += time;
        flight[i] = group;
        Bytes bytes = once + group * copy + (first ? m->border[first - 1] : 0) + (i + 1 < n ? m->border[last[i]] : 0);
        normal += !here;
        load += here ? time : 0;
        held += here ? bytes : 0;
        if (time > period || load > period || held > m->s.memory || (!here && bytes > m->s.memory)
            || normal > m->s.devices - 1 || (here && i > 0 && special >> (i - 1) & 1))
            return false;
        if (first) {
            if (m->send[first - 1] > period)
                return false;
            if (acc + m->send[first - 1] > period) {
                group++;
                acc = 0;
            }
            acc += m->send[first - 1];
        }
    }
    return true;
}

static bool every_mad(const Mad *m, Ns period)
{
    for (int cuts = 0; cuts < 1 << (m->s.n - 1); cuts++) {
        int last[UNITS], flight[UNITS], n = 0;
        for (int u = 0; u < m->s.n; u++)
            if (u == m->s.n - 1 || cuts >> u & 1)
                last[n++] = u;
        for (int special = 0; special < 1 << n; special++)
            if (mad_holds(m, last, n, special, period, flight))
                return true;
    }
    return false;
}

static bool mad_answer(const Mad *m, const Segments *a, Ns period)
{
    int last[UNITS] = {0}, flight[UNITS] = {0}, special = 0;
    for (int i = 0; i < a->n; i++) {
        last[i] = a->at[i].last;
        special |= a->at[i].special << i;
    }
    bool holds = mad_holds(m, last, a->n, special, period, flight);
    for (int i = 0; i < a->n; i++)
        holds &= m->s.steps ? flight[i] <= a->at[i].flight : flight[i] == a->at[i].flight;
    return holds;
}

static void test_special(void)
{
    test_name = "special";
    int both = 0, coarse = 0, split = 0;
    for (int i = 0; i < 1500; i++) {
        Mad *m = some_mad();
        Ns period = 10 + dice(60);
        Segments a = {0}, b = {0};
        bool found = special_cut(&m->s, period, &a);
        check(found == every_mad(m, period), "%d: period %lld %s, every set of pieces says the opposite", i,
              (long long)period, found ? "is kept" : "is not kept");
        check(!found || mad_answer(m, &a, period), "%d: the pieces do not keep the period", i);
        int pieces = 0;
        for (int k = 0; k < a.n && found; k++)
            pieces += a.at[k].special;
        split += pieces > 1;
        m->s.steps = 3;
        bool rough = special_cut(&m->s, period, &b);
        check(!rough || (found && mad_answer(m, &b, period)), "%d: the grid finds what is not there", i);
        both += found;
        coarse += rough;
    }
    check(both > 300 && both < 1300 && coarse < both && coarse > both / 2 && split > 30,
          "%d of 1500 kept, %d on the grid, %d with several pieces: the test sees one side only", both, coarse, split);
    for (int i = 0; i < 100; i++) {
        Mad *m = some_mad();
        Segments a = {0};
        Ns period = special_plan(&m->s, &a);
        check(period == 0 || (mad_answer(m, &a, period) && (period == 1 || !every_mad(m, period - 1))),
              "%d: %lld ns is not the shortest period", i, (long long)period);
    }
}

static void test_groups(void)
{
    test_name = "1f1b*";
    for (int p = 1; p <= UNITS; p++)
        for (int j = 1; j <= p; j++)
            for (int wire = 0; wire <= (j == 1); wire++) {
                Mad *m = alloc(sizeof *m);
                Segments a = {0};
                m->s = (Special){.n = p, .devices = p + 1, .time = m->time, .send = m->send, .once = m->once, .copy = m->copy,
                                 .border = m->border, .must = m->must, .memory = 1000, .budget = 100000};
                for (int u = 0; u < p; u++) {
                    m->time[u] = 5;
                    m->send[u] = wire ? 5 : 0;
                    m->must[u] = true;
                }
                check(special_cut(&m->s, 5 * j, &a) && a.n == p, "%d stages at %d t", p, j);
                for (int x = 1; x <= a.n; x++)
                    check(a.at[x - 1].flight == (wire ? 2 * (p - x) + 1 : (p - x + j) / j), "stage %d of %d at %d t: %d", x, p,
                          j, a.at[x - 1].flight);
            }
}

/* ---- twobw ------------------------------------------------------------------------------------------------------- */

static void test_twobw(void)
{
    static const struct { int blocks, depth, stage, want; } equal[] = {
        {24, 4, 0, 6}, {24, 4, 3, 6}, {25, 4, 2, 6}, {25, 4, 3, 7}, {27, 4, 0, 6}, {27, 4, 1, 7}, {27, 4, 3, 7}, {3, 3, 1, 1},
    };
    test_name = "twobw";
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++)
        check(twobw_blocks(equal[i].blocks, equal[i].depth, equal[i].stage) == equal[i].want, "%d blocks on stage %d of %d",
              equal[i].blocks, equal[i].stage, equal[i].depth);
    Equal s[2] = {{.forward = 10, .backward = 20, .wire = 3, .weights = 100, .saved = 10, .input = 2},
                  {.forward = 12, .backward = 17, .wire = 1, .weights = 100, .saved = 10, .input = 2}};
    check(twobw_bytes(s, 4, false) == 200 + 40 + 8, "%lld bytes", (long long)twobw_bytes(s, 4, false));
    check(twobw_bytes(s, 4, true) == 200 + 10 + 8, "%lld bytes recomputed", (long long)twobw_bytes(s, 4, true));
    check(twobw_time(s, 2, false, 8) == 8 * 33 && twobw_time(s, 2, true, 8) == 8 * 43, "time of the slowest stage");
    s[1].exchange = 400;
    check(twobw_time(s, 2, true, 8) == 400, "the exchange is longer");
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static Plan *example(const char *path)
{
    Overrides over = {{0}, {0}};
    const Model *m = model(load(path), path, &over);
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g, m);
    bad_stop();
    Plan *p = alloc(sizeof *p);
    *p = (Plan){.g = g, .c = cost(g, m, NULL), .m = m, .schedule = "1f1b", .devices = 1, .chunks = 1};
    return p;
}

static void test_units(void)
{
    static const struct { const char *path; int units, repeats, blocks; } examples[] = {
        {"examples/bert-large.yaml", 49, 1, 24}, {"examples/gpt2-355m.yaml", 49, 1, 24},
        {"examples/t5-small.yaml", 6 * 2 + 6 * 3 + 1, 2, 6}, {"examples/bytes-gpt.yaml", 0, 1, 0},
    };
    test_name = "units";
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const Plan *p = example(examples[i].path);
        char *cut = alloc((size_t)p->g->nf);
        for (int o = 0; o < p->g->nf; o++)
            cut[o] = CUT_MAY;
        Units u = units_of(p, cut, 1);
        Repeats r = repeats_of(p->g);
        check(examples[i].units == 0 || u.n == examples[i].units, "%s: %d units", examples[i].path, u.n);
        check(r.n == examples[i].repeats, "%s: %d repeats", examples[i].path, r.n);
        check(examples[i].blocks == 0 || (r.n > 0 && r.at[0].last.n == examples[i].blocks), "%s: blocks", examples[i].path);
        Ns time = 0;
        Bytes states = 0;
        for (int o = 0; o < p->g->nb; o++)
            time += cost_op(p->c, 0, o);
        for (int s = 0; s < p->g->state.n; s++)
            states += p->g->state.at[s].param >= 0 ? p->g->state.at[s].bytes : 0;
        for (int k = 0; k < u.n; k++) {
            time -= u.time[k];
            states -= u.states[k];
        }
        check(time == 0 && states == 0 && u.last[u.n - 1] == p->g->nf - 1 && u.out[u.n - 1] == 0,
              "%s: %lld ns and %lld bytes in no unit", examples[i].path, (long long)time, (long long)states);
        cut[5] = CUT_MUST;
        Units forced = units_of(p, cut, 1);
        check(forced.n == u.n + (u.last[0] != 5), "%s: a forced cut is no border", examples[i].path);
        check(units_of(p, cut, p->g->nf).n == p->g->nf, "%s: not so many units", examples[i].path);
    }
}

/* ---- largest ----------------------------------------------------------------------------------------------------- */

typedef struct { int64_t edge, island, hole; Ns slow; int asked; } Sizes;

static Ns size_ns(void *ctx, int64_t b)
{
    Sizes *s = ctx;
    s->asked++;
    if ((b > s->edge && b != s->island) || b == s->hole)
        return 0;
    return 1000000 / b + s->slow * b;           /* small ones waste launches, large ones are made again */
}

static void test_largest(void)
{
    test_name = "largest";
    enum { MOST = 512 };
    for (int i = 0; i < 2000; i++) {
        Sizes s = {.edge = dice(3) ? dice(40) : dice(MOST), .slow = dice(2) ? 0 : dice(2000)};
        s.island = dice(3) ? 0 : s.edge + 1 + dice(LARGEST_AFTER);
        s.hole = s.edge > 40 && dice(3) == 0 ? s.edge - 1 - dice(6) : -1;
        int64_t any = 0, best = 0, b = 0;
        for (int64_t k = 1; k <= MOST; k++)
            if (size_ns(&s, k)) {
                any = k;
                best = best && size_ns(&s, best) <= size_ns(&s, k) ? best : k;
            }
        s.asked = 0;
        Largest l = largest(size_ns, &s, MOST, 0);
        int asked = s.asked;
        check(asked <= 60 && (l.tried == asked || l.any == 0), "%d: %d sizes tried", i, asked);
        if (size_ns(&s, 1) == 0) {
            check(l.b == 0 && l.any == 0, "%d: %lld where nothing fits", i, (long long)l.b);
            continue;
        }
        for (int64_t k = 1; k <= MOST; k++)
            b = size_ns(&s, k) && size_ns(&s, k) <= 2 * l.at_best ? k : b;
        if (s.hole < 0)
            check(l.any == any && l.b == b, "%d: largest %lld and %lld, not %lld and %lld", i, (long long)l.b,
                  (long long)l.any, (long long)b, (long long)any);
        check(l.at_b == size_ns(&s, l.b) && l.at_any == size_ns(&s, l.any) && l.at_b <= 2 * l.at_best, "%d: times", i);
        for (int64_t k = l.any + 1; k <= l.any + LARGEST_AFTER && k <= MOST; k++)
            check(!size_ns(&s, k), "%d: %lld fits, above %lld", i, (long long)k, (long long)l.any);
        check(l.best >= 1 && l.at_best <= 2 * size_ns(&s, best) + 1, "%d: best %lld", i, (long long)l.best);
    }
    Sizes far = {.edge = 40, .island = 300, .hole = -1};
    check(largest(size_ns, &far, MOST, 0).any == 40 && largest(size_ns, &far, MOST, 300).any == 300, "a hint");
}

int main(void)
{
    test_special();
    test_groups();
    test_twobw();
    test_units();
    test_largest();
    printf("unit_pieces: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
