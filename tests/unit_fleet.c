/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_fleet.c: planners for devices that differ, against oracles that share nothing with them.
 *
 *   dapple       its program against every cut of small chains, and its pivot against the paper's walk
 *   spp          the same; its order of devices: every part is a least cut, by every subset
 *   long         dapple without exchanges against a bisection of the latency
 *   copies       both against every cut and every list of copies of a stage, for each number of stages
 *   bapipe       its first two steps against every cut; borders that move are honest about what fits, and mostly find it
 */
#include "rivals/rivals.h"
#include "world.h"

enum { UNITS = 8, STAGES = 4, COPIES = 10 };

/* ---- chains on devices ------------------------------------------------------------------------------------------------ */

typedef struct {
    Fleet f;
    Ns forward[STAGES][UNITS + 1], time[STAGES][UNITS + 1], send[STAGES][UNITS], factor[STAGES];
    Ns *rows[3][STAGES];
    Bytes grads[UNITS + 1], held[UNITS], limit;
    bool must[UNITS];
    int given[STAGES];
} Road;

static Ns road_exchange(const void *ctx, int stage, Bytes bytes, int copies)
{
    return 7 + copies + ((const Road *)ctx)->factor[stage] * bytes;
}

static Bytes road_over(const void *ctx, int first, int last, int stage)
{
    const Road *r = ctx;
    Bytes need = -r->limit;
    for (int i = first; i <= last; i++)
        need += r->held[i] * (r->f.stages - stage);
    return need > 0 ? need : 0;
}

static Road *some_road(bool exchange, bool open)
{
    Road *r = alloc(sizeof *r);
    int speed = 1 + dice(3), wire = 1 + dice(400);
    r->f = (Fleet){.n = 1 + dice(UNITS), .stages = 1 + dice(STAGES), .micro = 1 + dice(9), .forward = r->rows[0],
                   .time = r->rows[1], .send = r->rows[2], .grads = r->grads, .must = r->must, .over = road_over, .ctx = r,
                   .exchange = exchange ? road_exchange : NULL, .copies = open ? NULL : r->given,
                   .any = open && dice(2), .devices = COPIES};
    r->f.most = !open ? 4 : r->f.any ? 1 + dice(4) : 1 << dice(4);
    r->f.devices = r->f.stages + dice(COPIES - r->f.stages + 1);
    for (int s = 0; s < r->f.stages; s++) {
        r->rows[0][s] = r->forward[s];
        r->rows[1][s] = r->time[s];
        r->rows[2][s] = r->send[s];
        r->factor[s] = dice(3) ? dice(4) : dice(40);
        r->given[s] = 1 << dice(3);
        for (int i = 0; i < r->f.n; i++) {
            Ns forward = (1 + dice(100)) * (1 + dice(speed));
            r->forward[s][i + 1] = r->forward[s][i] + forward;
            r->time[s][i + 1] = r->time[s][i] + forward + dice(200);
            r->send[s][i] = dice(4) ? dice(wire) : 0;
        }
    }
    for (int i = 0; i < r->f.n; i++) {
        r->grads[i + 1] = r->grads[i] + dice(60);
        r->must[i] = dice(14) == 0;
        r->held[i] = dice(50);
    }
    r->limit = 40 + dice(400);
    return r;
}

typedef struct { Ns f, b, r; } Beat;

typedef struct { int stages, last[STAGES], copies[STAGES]; } Way;

/* Stages and transfers in one row. */
static int road_beats(const Road *r, const Way *x, Beat *beat)
{
    int n = 0;
    for (int s = 0, first = 0; s < x->stages; first = x->last[s++] + 1) {
        int end = x->last[s] + 1, w = x->copies[s];
        Ns f = (r->forward[s][end] - r->forward[s][first] + w - 1) / w, t = (r->time[s][end] - r->time[s][first] + w - 1) / w;
        Ns wire = r->send[s][end - 1], grads = r->grads[end] - r->grads[first];
        beat[n++] = (Beat){f, t - f, r->f.exchange && w > 1 ? road_exchange(r, s, grads, w) : 0};
        if (s + 1 < x->stages)
            beat[n++] = (Beat){wire, wire, 0};
    }
    return n;
}

/* The paper's three phases, for one pivot. */
static Ns with_pivot(const Road *r, const Beat *beat, int n, int q)
{
    Ns warm = 0, tail = INT64_MIN;
    for (int s = 0; s <= q; s++)
        warm += beat[s].f;
    for (int s = 0; s < n; s++) {
        Ns end = beat[s].r;
        for (int a = s; a <= q; a++)
            end += beat[a].b;
        for (int a = q; q < s && a <= s; a++)
            end -= beat[a].b;
        tail = end > tail ? end : tail;
    }
    return warm + (r->f.micro - 1) * (beat[q].f + beat[q].b) + tail;
}

static Ns longest_pivot(const Road *r, const Way *x)
{
    Beat beat[2 * STAGES];
    int n = road_beats(r, x, beat);
    Ns worst = 0;
    for (int q = 0; q < n; q++) {
        Ns value = with_pivot(r, beat, n, q);
        worst = value > worst ? value : worst;
    }
    return worst;
}

/* The paper's walk from the last stage on; left: F + B of the pivots that it leaves. */
static Ns walked_pivot(const Road *r, const Way *x, Ns *left)
{
    Beat beat[2 * STAGES];
    int n = road_beats(r, x, beat), q = n - 1;
    *left = 0;
    for (int s = n - 2; s >= 0; s--) {
        Ns steady = (r->f.micro - 1) * (beat[q].f + beat[q].b);
        for (int a = s + 1; a < q; a++)
            steady += beat[a].f + beat[a].b;
        if ((r->f.micro - 1) * (beat[s].f + beat[s].b) > steady) {
            *left += beat[q].f + beat[q].b;
            q = s;
        }
    }
    return with_pivot(r, beat, n, q);
}

static Ns busiest(const Road *r, const Way *x)
{
    Beat beat[2 * STAGES];
    Ns worst = 0;
    for (int i = 0, n = road_beats(r, x, beat); i < n; i++) {
        Ns work = r->f.micro * (beat[i].f + beat[i].b) / (i % 2 ? x->copies[i / 2] * x->copies[i / 2 + 1] : 1);
        work = work > beat[i].r ? work : beat[i].r;
        worst = work > worst ? work : worst;
    }
    return worst;
}

static Ns slowest(const Road *r, const Way *x)
{
    Beat beat[2 * STAGES];
    Ns worst = 0;
    for (int i = 0, n = road_beats(r, x, beat); i < n; i++) {
        Ns time = (beat[i].f + beat[i].b) / (i % 2 ? x->copies[i / 2] : 1);
        worst = time > worst ? time : worst;
    }
    return worst;
}

static Ns excess(const Road *r, const Way *x)
{
    Ns worst = 0;
    for (int s = 0, first = 0; s < x->stages; first = x->last[s++] + 1) {
        Bytes over = road_over(r, first, x->last[s], s);
        worst = over > worst ? over : worst;
    }
    return worst;
}

static bool may_be(const Road *r, const Way *x)
{
    int devices = 0;
    for (int s = 0, first = 0; s < x->stages; first = x->last[s++] + 1) {
        int w = x->copies[s];
        if (x->last[s] < first || (r->f.copies ? w != r->given[s] : (w & (w - 1) && !r->f.any) || w > r->f.most))
            return false;
        devices += w;
        for (int i = first; i < x->last[s]; i++)
            if (r->must[i])
                return false;
    }
    return x->last[x->stages - 1] == r->f.n - 1 && (r->f.copies || devices <= r->f.devices);
}

typedef Ns Worth(const Road *r, const Way *x);

/* The least value of all cuts and copies; -1: there are none. */
static Ns every_way(const Road *r, Worth *value, int s, Way *x)
{
    Ns best = -1;
    if (s == x->stages)
        return may_be(r, x) ? value(r, x) : -1;
    for (x->last[s] = s ? x->last[s - 1] + 1 : 0; x->last[s] < r->f.n; x->last[s]++)
        for (x->copies[s] = 1; x->copies[s] <= 8; x->copies[s] += r->f.any ? 1 : x->copies[s]) {
            if (r->f.any && x->copies[s] > r->f.most)
                break;
            Ns one = every_way(r, value, s + 1, x);
            best = one >= 0 && (best < 0 || one < best) ? one : best;
        }
    return best;
}

static Ns every_cut(const Road *r, Worth *value)
{
    return every_way(r, value, 0, &(Way){.stages = r->f.stages});
}

/* What a program says of a chain against all cuts. */
static void compare_cuts(int number, const Road *r, Worth *value, Ns said, const Way *x)
{
    Ns best = every_way(r, value, 0, &(Way){.stages = x->stages});
    check(said == best, "%d: %lld, every cut %lld", number, (long long)said, (long long)best);
    check(said < 0 || (may_be(r, x) && value(r, x) == said), "%d: the cuts are not those of the value", number);
}

static void test_bapipe(int number, const Road *r, int *missed, int *moved)
{
    Way x = {.stages = r->f.stages};
    bool by_links;
    memcpy(x.copies, r->given, sizeof x.copies);
    Ns said = bapipe_cut(&r->f, x.last, &by_links);
    compare_cuts(number, r, slowest, said, &x);
    if (said < 0)
        return;
    Ns before = excess(r, &x);
    bool fits = bapipe_fit(&r->f, x.last, by_links), some = every_cut(r, excess) == 0;
    check(may_be(r, &x) && fits == (excess(r, &x) == 0), "%d: it does not know whether it fits", number);
    check(excess(r, &x) <= before, "%d: more is missing than before", number);
    *missed += some && !fits;
    *moved += before > 0 && fits;
}

static void test_fleet(void)
{
    int plans = 0, left = 0, missed = 0, moved = 0;
    for (int i = 0; i < 6000; i++) {
        Road *r = some_road(dice(2), false);
        Way x = {.stages = r->f.stages};
        int pivot = -1;
        test_name = "dapple";
        Ns said = dapple_cut(&r->f, &x.stages, x.last, x.copies), gap;
        compare_cuts(i, r, longest_pivot, said, &x);
        plans += said >= 0;
        if (said >= 0 && !r->f.exchange) {
            Ns walked = walked_pivot(r, &x, &gap);
            check(walked <= said && said <= walked + gap, "%d: %lld, by the paper's walk %lld", i, (long long)said,
                  (long long)walked);
            left += walked < said;
        }
        check(said < 0 || dapple_latency(&r->f, x.stages, x.last, x.copies, &pivot) == said, "%d: another latency", i);
        test_name = "spp";
        said = fleet_take(spp_cut(&r->f), x.stages, x.last, x.copies);
        compare_cuts(i, r, busiest, said, &x);
        test_name = "bapipe";
        test_bapipe(i, r, &missed, &moved);
    }
    check(plans > 2000 && plans < 5800, "%d of 6000 chains have a plan: the test sees one side only", plans);
    check(left > 0 && left < 600, "the walk takes another pivot %d times", left);
    check(moved > 100 && missed < moved, "memory: %d made to fit, %d not found", moved, missed);
}

enum { LONG = 120, DEEP = 24, BEYOND = 1 << 30 };

/* Can every pivot keep to `most`?  front: the least F and B in front of a cut, with all pivots there within it. */
static bool keeps(const Fleet *l, Ns most)
{
    Ns front[DEEP + 1][LONG + 1];
    for (int s = 0; s <= l->stages; s++)
        for (int to = 0; to <= l->n; to++) {
            front[s][to] = s + to ? BEYOND : 0;
            for (int from = 0; s && from < to; from++) {
                Ns send = s > 1 && from ? 2 * l->send[s - 2][from - 1] : 0, time = l->time[s - 1][to] - l->time[s - 1][from];
                Ns wire = front[s - 1][from] + l->micro * send, all = front[s - 1][from] + send + l->micro * time;
                Ns sum = front[s - 1][from] + send + time;
                if (wire <= most && all <= most && sum < front[s][to])
                    front[s][to] = sum;
            }
        }
    return front[l->stages][l->n] < BEYOND;
}

static void test_long(void)
{
    test_name = "dapple of long chains";
    for (int i = 0; i < 12; i++) {
        Ns time[LONG + 1] = {0}, forward[LONG + 1] = {0}, send[LONG], *rows[3][DEEP], low = 0, high = BEYOND;
        int stages = 4 + dice(DEEP - 3), last[DEEP], copies[DEEP], given[DEEP], pivot;
        for (int s = 0; s < stages; s++)
            rows[0][s] = forward, rows[1][s] = time, rows[2][s] = send, given[s] = 1;
        const Fleet l = {.n = 60 + dice(LONG - 59), .stages = stages, .micro = 1 + dice(40), .forward = rows[0],
                         .time = rows[1], .send = rows[2],
                         .grads = alloc(sizeof(Bytes) * (LONG + 1)), .copies = given, .most = 1};
        for (int u = 0; u < l.n; u++) {
            forward[u + 1] = forward[u] + 1 + dice(10000);
            time[u + 1] = time[u] + forward[u + 1] - forward[u] + dice(20000);
            send[u] = dice(6000);
        }
        while (low < high) {
            const Ns half = (low + high) / 2;
            if (keeps(&l, half))
                high = half;
            else
                low = half + 1;
        }
        const Ns said = dapple_cut(&l, &stages, last, copies);
        check(said == low && dapple_latency(&l, stages, last, copies, &pivot) == said, "%d: %lld, by bisection %lld", i,
              (long long)said, (long long)low);
    }
}

/* Copies are open: DAPPLE chooses them with the number of stages, SPP for each number. */
static void test_copies(void)
{
    int uneven = 0, fewer = 0, idle = 0;
    for (int i = 0; i < 700; i++) {
        Road *r = some_road(dice(4), true);
        const int least = 1 + dice(r->f.stages);
        Way x = {.stages = least};
        Ns best = -1, said = dapple_cut(&r->f, &x.stages, x.last, x.copies);
        test_name = "dapple's copies";
        for (int s = least; s <= r->f.stages; s++) {
            Ns one = every_way(r, longest_pivot, 0, &(Way){.stages = s});
            best = one >= 0 && (best < 0 || one < best) ? one : best;
        }
        check(said == best, "%d: %lld, every list %lld", i, (long long)said, (long long)best);
        check(said < 0 || (may_be(r, &x) && longest_pivot(r, &x) == said), "%d: the list is not that of the value", i);
        for (int s = 0, sum = 0; said >= 0 && s < x.stages; s++) {
            uneven += x.copies[s] != x.copies[0];
            sum += x.copies[s];
            idle += s + 1 == x.stages && sum < r->f.devices;
        }
        fewer += said >= 0 && x.stages < r->f.stages;
        test_name = "spp's copies";
        const FleetTable *t = spp_cut(&r->f);
        for (x.stages = 1; x.stages <= r->f.stages; x.stages++) {
            said = fleet_take(t, x.stages, x.last, x.copies);
            compare_cuts(i, r, busiest, said, &x);
        }
    }
    check(uneven > 100 && fewer > 50 && idle > 20, "%d unequal, %d of fewer stages, %d with idle devices", uneven, fewer, idle);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

enum { DEVICES = 7 };

static int64_t cut_rate(const int64_t *rate, int n, const int *device, int all, unsigned side)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sum += side >> i & ~side >> j & 1 ? rate[device[i] * all + device[j]] : 0;
    return sum;
}

/* Does some prefix of the order part it by a least cut, with both parts ordered so again? */
static bool is_parted(const int64_t *rate, int n, const int *device, int all)
{
    int64_t least = INT64_MAX;
    for (unsigned side = 1; side < (1u << n) - 1; side++) {
        int64_t one = cut_rate(rate, n, device, all, side);
        least = one < least ? one : least;
    }
    for (int k = 1; k < n; k++)
        if (cut_rate(rate, n, device, all, (1u << k) - 1) == least && is_parted(rate, k, device, all)
            && is_parted(rate, n - k, device + k, all))
            return true;
    return n < 3;
}

static void test_order(void)
{
    test_name = "order";
    for (int i = 0; i < 400; i++) {
        int n = 1 + dice(DEVICES), order[DEVICES], met = 0;
        int64_t rate[DEVICES * DEVICES] = {0};
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++)
                rate[a * n + b] = rate[b * n + a] = dice(30);
        spp_order(rate, n, order);
        for (int a = 0; a < n; a++)
            met |= 1 << order[a];
        check(met == (1 << n) - 1 && is_parted(rate, n, order, n), "%d: %d devices", i, n);
    }
    static const int want[6] = {0, 2, 4, 1, 3, 5};      /* two servers, their devices numbered in turn */
    int64_t rate[36];
    int order[6];
    for (int i = 0; i < 36; i++)
        rate[i] = (i / 6 + i % 6) % 2 ? 3 : 25;
    spp_order(rate, 6, order);
    check(!memcmp(order, want, sizeof want), "two servers: %d %d %d %d %d %d", order[0], order[1], order[2], order[3], order[4],
          order[5]);
}

int main(void)
{
    test_fleet();
    test_long();
    test_copies();
    test_order();
    printf("unit_fleet: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
