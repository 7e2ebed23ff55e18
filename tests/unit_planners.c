/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_planners.c: the planners that are baselines, against oracles that share nothing with them.
 *
 *   chain        PipeDream's dynamic program against every cut and replication of small chains
 *   published    the same against the figures of the optimiser its authors published, on their profile of VGG-16
 *   halves       DawnPiper's recursion over all cuts against every cut; over the interval alone with two stages and the
 *                theorem's assumption true, where it must lose nothing; with the assumption broken, where it may, but may
 *                not say that it did not
 *   moves        vPipe's local search: never worse than where it began, honest about its value, and optimal where one
 *                stage's burden does not depend on which units it has
 */
#include "rivals/rivals.h"
#include "planner.h"
#include "world.h"

/* ---- chain ------------------------------------------------------------------------------------------------------- */

enum { UNITS = 8 };
typedef struct {
    PipedreamChain c;
    Ns time[UNITS], send[UNITS], reduce[UNITS];
    Bytes stash[UNITS];
    bool must[UNITS], fit[UNITS][UNITS][UNITS];
    int list[6], stages, given[6];      /* replicas by stage, where they are given; the same by machines used */
} Small;

static bool small_fits(void *ctx, int first, int last, int index)
{
    return ((const Small *)ctx)->fit[first][last][index];
}

static Small *small_chain(void)
{
    Small *s = alloc(sizeof *s);
    s->c = (PipedreamChain){.n = 1 + dice(UNITS), .machines = 1 + dice(5), .time = s->time, .send = s->send,
                            .reduce = s->reduce, .stash = s->stash, .must = s->must, .ctx = s};
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
    s->c.most = dice(2) ? 1 << dice(3) : 0;
    for (int used = 0; used < s->c.machines; s->given[used] = s->list[s->stages++])
        used += s->list[s->stages] = 1 + dice(s->c.machines - used);
    s->c.given = s->c.replicate && dice(3) == 0 ? s->given : NULL;
    return s;
}

/* The definition: of stages ending at last[] on replicas[] machines the slowest stage or transfer; -1: not allowed. */
static Ns defined(const Small *s, const ChainStage *stage, int n)
{
    Ns worst = 0;
    for (int i = 0, first = 0, used = 0; i < n; first = stage[i++].last + 1) {
        int r = stage[i].replicas, last = stage[i].last;
        if (s->c.given ? i >= s->stages || r != s->list[i] : s->c.most && (r > s->c.most || (r & (r - 1))))
            return -1;
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
    Ns time[64] = {0}, send[64] = {0}, reduce[64] = {0}, value;
    Bytes stash[64] = {0};
    int n = read_profile("tests/data/planner/vgg16.txt", time, send, reduce, stash);
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
            PipedreamChain c = {.n = n, .machines = reference[i].k, .time = time, .send = send, .reduce = reduce,
                                .stash = stash, .transfers = asked[k].transfers, .replicate = asked[k].replicate,
                                .memory = asked[k].memory};
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
    DawnpiperHalves h;
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
    l->h = (DawnpiperHalves){.n = stages + dice(most - stages), .stages = stages, .cut = l->cut, .time = l->time,
                             .fixed = l->fixed, .saved = l->saved, .flight = l->flight, .price = line_price, .ctx = l};
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
    Ns worth = found ? line_value(l, last) : -1;        /* without a find last[] holds nothing */
    check(worth == time || !found, "%d: the cuts are worth %lld, not %lld", number, (long long)worth, (long long)time);
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

/* The heaviest stage: excess first, then time. */
static Burden pile_worst(Pile *p, const int *last)
{
    Burden worst = {0, 0};
    for (int s = 0; s < p->m.stages; s++) {
        Burden b = pile_burden(p, s ? last[s - 1] + 1 : 0, last[s], s);
        if (b.over > worst.over || (b.over == worst.over && b.time > worst.time))
            worst = b;
    }
    return worst;
}

static bool less(Burden a, Burden b)
{
    return a.over < b.over || (a.over == b.over && a.time < b.time);
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
    int better = 0, fits = 0;
    for (int i = 0; i < 1000; i++) {
        int stages = 2 + dice(5), units = stages + dice(LONG - stages), last[8];
        Pile *p = some_pile(units, stages);
        for (int s = 0; s < stages; s++)
            last[s] = s < stages - 1 ? s + dice(units - stages + 1) : units - 1;
        for (int s = stages - 2; s >= 0; s--)           /* ascending, with a unit for each */
            last[s] = last[s] >= last[s + 1] ? last[s + 1] - 1 : last[s];
        int forced = dice(stages);
        p->must[last[forced]] = dice(3) == 0;
        Burden before = pile_worst(p, last), after;
        int kept = last[forced];
        moves_improve(&p->m, last);
        after = pile_worst(p, last);
        moves_improve(&p->m, last);
        check(!less(pile_worst(p, last), after), "%d: a second search goes on", i);
        better += less(after, before);
        fits += before.over > 0 && after.over == 0;
        check(!less(before, after), "%d: worse than before", i);
        check(!p->must[kept] || last[forced] == kept, "%d: a forced border was moved", i);
        for (int s = 0; s < stages; s++)
            check(last[s] > (s ? last[s - 1] : -1), "%d: stage %d is empty", i, s);
        check(last[stages - 1] == units - 1, "%d: the end was moved", i);
    }
    check(better > 700, "%d of 1000 partitions became better", better);
    check(fits > 50, "%d of 1000 partitions fit only after the search", fits);
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

int main(void)
{
    test_chain();
    test_published();
    test_halves();
    test_moves();
    printf("unit_planners: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
