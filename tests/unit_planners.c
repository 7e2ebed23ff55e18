/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_planners.c: the planners that are baselines, against oracles that share nothing with them.
 *
 *   chain        PipeDream's dynamic program against every cut and replication of small chains
 *   published    the same against the figures of the optimiser its authors published, on their profile of VGG-16; that
 *                file is theirs and not here: PIPEDREAM_PROFILES names its folder, skipped without it
 *   halves       DawnPiper's recursion over all cuts against every cut; over the interval alone with two stages and the
 *                theorem's assumption true, where it must lose nothing; with the assumption broken, where it may, but may
 *                not say that it did not
 *   moves        vPipe's local search: never worse than where it began, honest about its value, and optimal where one
 *                stage's burden does not depend on which units it has
 *   special      MadPipe's program against every set of pieces of small chains, groups of 1F1B* walked anew; with a grid
 *                it may miss some, but what it finds holds
 *   1f1b*        check 6 of the schedule: equal stages store ceil((p-x+1)/j) at period j t, and 2(p-x)+1 where transfers
 *                take as long as stages
 *   twobw        its formulas by hand
 *   units        of the examples: 49 for BERT-large, as in the plans that vPipe's authors published; bytes and times of units
 *                add up to those of the graph
 *   largest      the largest micro-batch against trying all of them, with holes below the edge and islands above it
 */
#include "plan/chain.h"
#include "plan/halves.h"
#include "plan/largest.h"
#include "plan/moves.h"
#include "plan/special.h"
#include "plan/twobw.h"
#include "plan/unit.h"
#include "world.h"

static int skipped;

/* ---- chain ------------------------------------------------------------------------------------------------------- */

enum { UNITS = 8 };
typedef struct {
    Chain c;
    Ns time[UNITS], send[UNITS], reduce[UNITS];
    Bytes stash[UNITS];
    bool must[UNITS], fit[UNITS][UNITS][UNITS];
} Small;

static bool small_fits(void *ctx, int first, int last, int index)
{
    return ((const Small *)ctx)->fit[first][last][index];
}

static Small *small_chain(void)
{
    Small *s = alloc(sizeof *s);
    s->c = (Chain){.n = 1 + dice(UNITS), .machines = 1 + dice(5), .time = s->time, .send = s->send, .reduce = s->reduce,
                   .stash = s->stash, .must = s->must, .ctx = s};
    for (int i = 0; i < s->c.n; i++) {
        s->time[i] = 1 + dice(1000);
        s->send[i] = dice(3) ? dice(600) : dice(3000);
        s->reduce[i] = dice(400);
        s->stash[i] = dice(100);
        s->must[i] = dice(12) == 0;
        for (int j = 0; j < UNITS; j++)
            for (int k = 0; k < UNITS; k++)
                s->fit[i][j][k] = dice(4) > 0;
    }
    s->c.transfers = dice(2);
    s->c.replicate = dice(2);
    s->c.memory = dice(2) ? 0 : 50 + dice(500);
    s->c.fits = s->c.replicate || dice(2) ? NULL : small_fits;
    return s;
}

/* The definition: of stages ending at last[] on replicas[] machines the slowest stage or transfer; -1: not allowed. */
static Ns defined(const Small *s, const ChainStage *stage, int n)
{
    Ns worst = 0;
    for (int i = 0, first = 0, used = 0; i < n; first = stage[i++].last + 1) {
        int r = stage[i].replicas, last = stage[i].last;
        Ns time = 0, reduce = 0;
        Bytes stash = 0;
        for (int u = first; u <= last; u++) {
            time += s->time[u];
            reduce += s->reduce[u];
            stash += s->stash[u];
            if (s->must[u] && u < last)
                return -1;
        }
        used += r;
        int copies = 0;
        while (copies * r < s->c.machines - used)
            copies++;
        if ((s->c.memory && stash * copies > s->c.memory) || (s->c.fits && !s->fit[first][last][i]))
            return -1;
        Ns t = r == 1 ? time : (time + (r - 1) * reduce / r) / r;
        worst = t > worst ? t : worst;
        if (s->c.transfers && i > 0) {
            Ns in = s->send[first - 1] / r, out = i + 1 < n ? s->send[last] / r : 0;
            worst = in > worst ? in : worst;
            worst = out > worst ? out : worst;
        }
    }
    return worst;
}

static void every_chain(const Small *s, ChainStage *stage, int n, int first, int left, Ns *best)
{
    if (first == s->c.n && left == 0) {
        Ns value = defined(s, stage, n);
        if (value >= 0 && (*best < 0 || value < *best))
            *best = value;
        return;
    }
    for (int last = first; last < s->c.n; last++)
        for (int r = 1; r <= (s->c.replicate ? left : left > 0); r++) {
            stage[n] = (ChainStage){last, r};
            every_chain(s, stage, n + 1, last + 1, left - r, best);
        }
}

static void test_chain(void)
{
    test_name = "chain";
    int plans = 0;
    for (int i = 0; i < 3000; i++) {
        Small *s = small_chain();
        ChainStage stage[UNITS];
        Ns value = 0, best = -1;
        every_chain(s, stage, 0, 0, s->c.machines, &best);
        int n = chain_plan(&s->c, stage, &value);
        plans += n > 0;
        check((n > 0) == (best >= 0), "%d: %d stages, brute force %lld", i, n, (long long)best);
        check(n == 0 || value == best, "%d: %lld ns, brute force %lld", i, (long long)value, (long long)best);
        check(n == 0 || defined(s, stage, n) == value, "%d: the stages are not those of the value", i);
    }
    check(plans > 1000 && plans < 2900, "%d of 3000 chains have a plan: the test sees one side only", plans);
}

/* ---- published --------------------------------------------------------------------------------------------------- */

/* Their profile of a chain: the nodes in the order of their numbers, without the input. */
static int read_profile(const char *path, Ns *time, Ns *send, Ns *reduce, Bytes *stash)
{
    enum { MOST = 64 };
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    for (int id; f && fgets(line, sizeof line, f);) {
        double forward, backward, activation, parameters;
        const char *at = strstr(line, "forward_compute_time=");
        if (!at || sscanf(line, "node%d", &id) != 1 || strstr(line, "-- Input")
            || sscanf(at, "forward_compute_time=%lf, backward_compute_time=%lf, activation_size=%lf, parameter_size=%lf",
                      &forward, &backward, &activation, &parameters) != 4)
            continue;
        id -= 2;                /* node1 is the input */
        if (id < 0 || id >= MOST)
            continue;
        time[id] = (Ns)((forward + backward) * 1e6 + 0.5);      /* milliseconds */
        send[id] = (Ns)(2 * activation);                        /* 1 GB/s: a byte a nanosecond */
        reduce[id] = (Ns)(4 * parameters);
        stash[id] = (Bytes)(activation + parameters);
        n = id + 1 > n ? id + 1 : n;
    }
    if (f)
        fclose(f);
    return n;
}

/* reference.csv beside that profile: k, straight with transfers, without, replicated without, with the memory flag. */
static void test_published(void)
{
    static const struct { int k; double transfers, none, replicated, memory; } reference[] = {
        {2, 0.411041792, 0.370931, 0.370931, 0.411041792},
        {4, 0.411041792, 0.216450, 0.175732624, 3.288334336},
        {8, 0.411041792, 0.159531, 0.093513230, 3.288334336},
    };
    test_name = "published";
    const char *folder = getenv("PIPEDREAM_PROFILES");
    if (!folder) {
        skipped++;
        return;
    }
    Ns time[64] = {0}, send[64] = {0}, reduce[64] = {0}, value;
    Bytes stash[64] = {0};
    int n = read_profile(strf("%s/vgg16.txt", folder), time, send, reduce, stash);
    check(n == 39 || n == 40, "VGG-16 has %d layers", n);
    for (size_t i = 0; i < sizeof reference / sizeof *reference; i++) {
        ChainStage stage[8];
        const struct { const char *what; bool transfers, replicate; Bytes memory; double want; } asked[] = {
            {"transfers", true, false, 0, reference[i].transfers},
            {"no transfers", false, false, 0, reference[i].none},
            {"replicated", false, true, 0, reference[i].replicated},
            {"memory", true, false, 16000000000, reference[i].memory},
        };
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            Chain c = {.n = n, .machines = reference[i].k, .time = time, .send = send, .reduce = reduce, .stash = stash,
                       .transfers = asked[k].transfers, .replicate = asked[k].replicate, .memory = asked[k].memory};
            int stages = chain_plan(&c, stage, &value);
            double off = (double)value / 1e9 - asked[k].want;
            check(stages > 0 && off < 1e-7 && off > -1e-7, "k=%d, %s: %.9f s, theirs %.9f", reference[i].k,
                  asked[k].what, (double)value / 1e9, asked[k].want);
        }
    }
}

/* ---- halves ------------------------------------------------------------------------------------------------------ */

enum { LONG = 40 };
typedef struct {
    Halves h;
    char cut[LONG];
    bool hidden[LONG];
    Ns time[LONG + 1];
    Bytes fixed[LONG + 1], saved[LONG + 1];
    int flight[8];
    Bytes limit;
    int64_t rate[8];            /* ns a byte over the limit, by stage */
    Bytes floor;                /* so much can be saved, not more */
    int asked;
} Stretch;

/* Divisible bytes at a constant price. */
static bool line_price(void *ctx, int first, int last, int stage, Ns *time)
{
    Stretch *l = ctx;
    Bytes need = l->fixed[last + 1] - l->fixed[first] + (l->saved[last + 1] - l->saved[first]) * l->flight[stage];
    Bytes over = need > l->limit ? need - l->limit : 0;
    l->asked++;
    *time = l->time[last + 1] - l->time[first] + over * l->rate[stage];
    return over <= l->floor;
}

static Stretch *some_line(int most, int stages, bool a3)
{
    Stretch *l = alloc(sizeof *l);
    l->h = (Halves){.n = stages + dice(most - stages), .stages = stages, .cut = l->cut, .time = l->time, .fixed = l->fixed,
                    .saved = l->saved, .flight = l->flight, .price = line_price, .ctx = l};
    for (int i = 0; i < l->h.n; i++) {
        l->time[i + 1] = l->time[i] + 1 + dice(100);
        l->fixed[i + 1] = l->fixed[i] + dice(60) * dice(2);
        l->saved[i + 1] = l->saved[i] + 1 + dice(50);
        l->cut[i] = (char)(dice(9) || a3 ? CUT_MAY : dice(2) ? CUT_MUST : CUT_NEVER);
    }
    Bytes all = 0;
    for (int s = 0; s < stages; s++) {
        l->flight[s] = stages - s;
        l->rate[s] = a3 ? 2 : dice(6);
        all += (l->fixed[l->h.n] + l->saved[l->h.n] * l->flight[s]) / stages;
    }
    l->limit = all / stages * (2 + dice(10)) / 8;
    l->floor = a3 ? INT64_MAX / 4 : all / 4;
    return l;
}

/* The slowest stage of these cuts; -1: they may not be. */
static Ns line_value(Stretch *l, const int *last)
{
    Ns worst = 0, time;
    for (int s = 0, first = 0; s < l->h.stages; first = last[s++] + 1) {
        for (int i = first; i < last[s]; i++)
            if (l->cut[i] == CUT_MUST)
                return -1;
        if (last[s] < first || (last[s] < l->h.n - 1 && l->cut[last[s]] == CUT_NEVER)
            || !line_price(l, first, last[s], s, &time))
            return -1;
        worst = time > worst ? time : worst;
    }
    return worst;
}

static Ns every_line(Stretch *l, int s, int *last)
{
    Ns best = -1;
    if (s == l->h.stages - 1) {
        last[s] = l->h.n - 1;
        return line_value(l, last);
    }
    for (last[s] = s ? last[s - 1] + 1 : 0; last[s] < l->h.n - 1; last[s]++) {
        Ns value = every_line(l, s + 1, last);
        if (value >= 0 && (best < 0 || value < best))
            best = value;
    }
    return best;
}

static void compare_halves(int number, Stretch *l, Ns best, bool equal)
{
    int last[8];
    Ns time = -1;
    bool found = halves(&l->h, last, &time);
    check(!found || line_value(l, last) == time, "%d: the cuts are worth %lld, not %lld", number,
          (long long)line_value(l, last), (long long)time);
    check(!found || (best >= 0 && time >= best), "%d: %lld ns, better than every cut", number, (long long)time);
    check(!equal || (found == (best >= 0) && (!found || time == best)), "%d: %lld ns with %d stages, best %lld", number,
          (long long)time, l->h.stages, (long long)best);
}

static void test_halves(void)
{
    test_name = "halves";
    int worse = 0, none = 0;
    for (int i = 0; i < 4000; i++) {            /* all cuts: must be exact, memo and all */
        int last[8];
        Stretch *l = some_line(14, 1 + dice(6), false);
        Ns best = every_line(l, 0, last);
        l->h.all = true;
        compare_halves(i, l, best, true);
        l->h.all = false;
        compare_halves(i, l, best, false);
        Ns time = 0;
        bool found = halves(&l->h, last, &time);
        worse += found && time > best;
        none += !found && best >= 0;
    }
    check(worse > 0 && none > 0, "the interval lost %d times and found nothing %d times: it is not tried", worse, none);
    test_name = "interval";
    int over = 0;
    for (int i = 0; i < 2400; i++) {            /* two stages that pay alike: the theorem is true */
        int last[8];
        Stretch *l = some_line(LONG, 2, true);
        Ns best = every_line(l, 0, last);
        over += l->fixed[l->h.n] + l->saved[l->h.n] > l->limit;
        compare_halves(i, l, best, true);
    }
    check(over > 1000, "memory binds in %d of 2400 only", over);
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

typedef struct { Moves m; Ns weight[LONG]; Bytes bytes[LONG]; Bytes limit; bool must[LONG]; } Pile;

static Burden pile_burden(void *ctx, int first, int last, int stage)
{
    const Pile *p = ctx;
    Burden b = {0, 0};
    for (int i = first; i <= last; i++) {
        b.time += p->weight[i];
        b.over += p->bytes[i] * (p->m.stages - stage);
    }
    b.over = b.over > p->limit ? b.over - p->limit : 0;
    return b;
}

static Pile *some_pile(int units, int stages)
{
    Pile *p = alloc(sizeof *p);
    p->m = (Moves){.units = units, .stages = stages, .must = p->must, .burden = pile_burden, .ctx = p};
    p->limit = 200 + dice(400);
    for (int i = 0; i < units; i++) {
        p->weight[i] = 1 + dice(50);
        p->bytes[i] = dice(40);
    }
    return p;
}

static void test_moves(void)
{
    test_name = "moves";
    int better = 0;
    for (int i = 0; i < 1000; i++) {
        int stages = 2 + dice(5), units = stages + dice(LONG - stages), last[8];
        Pile *p = some_pile(units, stages);
        for (int s = 0; s < stages; s++)
            last[s] = s < stages - 1 ? s + dice(units - stages + 1) : units - 1;
        for (int s = stages - 2; s >= 0; s--)           /* ascending, with a unit for each */
            last[s] = last[s] >= last[s + 1] ? last[s + 1] - 1 : last[s];
        int forced = dice(stages);
        p->must[last[forced]] = dice(3) == 0;
        Burden before = moves_worst(&p->m, last), after;
        int kept = last[forced];
        moves_improve(&p->m, last);
        after = moves_worst(&p->m, last);
        moves_improve(&p->m, last);
        check(!lighter(moves_worst(&p->m, last), after), "%d: a second search goes on", i);
        better += lighter(after, before);
        check(!lighter(before, after), "%d: worse than before", i);
        check(!p->must[kept] || last[forced] == kept, "%d: a forced border was moved", i);
        for (int s = 0; s < stages; s++)
            check(last[s] > (s ? last[s - 1] : -1), "%d: stage %d is empty", i, s);
        check(last[stages - 1] == units - 1, "%d: the end was moved", i);
    }
    check(better > 700, "%d of 1000 partitions became better", better);
    for (int stages = 2; stages <= 8; stages++) {       /* equal units all in front: they travel to the end */
        Pile *p = some_pile(4 * stages, stages);
        int last[8];
        p->limit = 1000000;
        for (int i = 0; i < p->m.units; i++)
            p->weight[i] = 7;
        for (int s = 0; s < stages; s++)
            last[s] = p->m.units - stages + s;
        moves_improve(&p->m, last);
        check(moves_worst(&p->m, last).time == 28, "%d equal stages: %lld ns, not 28", stages,
              (long long)moves_worst(&p->m, last).time);
    }
}

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
        Largest l = largest(size_ns, &s, MOST);
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
    check(twobw_time(s, 2, false, 0, 8) == 33 && twobw_time(s, 2, true, 0, 8) == 43, "time of the slowest stage");
    check(twobw_time(s, 2, true, 400, 8) == 50, "the exchange is longer");
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static Plan *example(const char *path)
{
    Overrides over = {{0}, {0}};
    const Model *m = model(load(path), path, &over);
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g);
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

int main(void)
{
    test_twobw();
    test_units();
    test_largest();
    test_special();
    test_groups();
    test_chain();
    test_published();
    test_halves();
    test_moves();
    printf("unit_planners: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0;
}
