/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_fleet.c: planners for devices that differ, against oracles that share nothing with them.
 *
 *   dapple       its program against every cut of small chains, and its pivot against the paper's walk
 *   spp          the same; its order of devices: every part is a least cut, by every subset
 *   bapipe       its first two steps against every cut; borders that move are honest about what fits, and mostly find it
 */
#include "rivals/fleet.h"
#include "world.h"

enum { UNITS = 8, STAGES = 4 };

/* ---- chains on devices ------------------------------------------------------------------------------------------------ */

typedef struct {
    Fleet f;
    Ns forward[STAGES][UNITS + 1], time[STAGES][UNITS + 1], send[STAGES][UNITS], factor[STAGES];
    Ns *rows[3][STAGES];
    Bytes grads[UNITS + 1], held[UNITS], limit;
    bool must[UNITS];
} Road;

static Ns road_exchange(const void *ctx, int stage, Bytes bytes)
{
    return 7 + ((const Road *)ctx)->factor[stage] * bytes;
}

static Bytes road_over(const void *ctx, int first, int last, int stage)
{
    const Road *r = ctx;
    Bytes need = -r->limit;
    for (int i = first; i <= last; i++)
        need += r->held[i] * (r->f.stages - stage);
    return need > 0 ? need : 0;
}

static Road *some_road(bool exchange)
{
    Road *r = alloc(sizeof *r);
    int speed = 1 + dice(3), wire = 1 + dice(400);
    r->f = (Fleet){.n = 1 + dice(UNITS), .stages = 1 + dice(STAGES), .micro = 1 + dice(9), .forward = r->rows[0],
                   .time = r->rows[1], .send = r->rows[2], .grads = r->grads, .must = r->must, .over = road_over, .ctx = r,
                   .exchange = exchange ? road_exchange : NULL};
    for (int s = 0; s < r->f.stages; s++) {
        r->rows[0][s] = r->forward[s];
        r->rows[1][s] = r->time[s];
        r->rows[2][s] = r->send[s];
        r->factor[s] = dice(3) ? dice(4) : dice(40);
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

/* Stages and transfers in one row. */
static int road_beats(const Road *r, const int *last, Beat *beat)
{
    int n = 0;
    for (int s = 0, first = 0; s < r->f.stages; first = last[s++] + 1) {
        Ns f = r->forward[s][last[s] + 1] - r->forward[s][first], t = r->time[s][last[s] + 1] - r->time[s][first];
        Ns wire = r->send[s][last[s]];
        beat[n++] = (Beat){f, t - f, r->f.exchange ? road_exchange(r, s, r->grads[last[s] + 1] - r->grads[first]) : 0};
        if (s + 1 < r->f.stages)
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

static Ns longest_pivot(const Road *r, const int *last)
{
    Beat beat[2 * STAGES];
    int n = road_beats(r, last, beat);
    Ns worst = 0;
    for (int q = 0; q < n; q++) {
        Ns value = with_pivot(r, beat, n, q);
        worst = value > worst ? value : worst;
    }
    return worst;
}

/* The paper's walk from the last stage on; left: F + B of the pivots that it leaves. */
static Ns walked_pivot(const Road *r, const int *last, Ns *left)
{
    Beat beat[2 * STAGES];
    int n = road_beats(r, last, beat), q = n - 1;
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

static Ns busiest(const Road *r, const int *last)
{
    Beat beat[2 * STAGES];
    Ns worst = 0;
    for (int i = 0, n = road_beats(r, last, beat); i < n; i++) {
        Ns work = r->f.micro * (beat[i].f + beat[i].b);
        work = work > beat[i].r ? work : beat[i].r;
        worst = work > worst ? work : worst;
    }
    return worst;
}

static Ns slowest(const Road *r, const int *last)
{
    Beat beat[2 * STAGES];
    Ns worst = 0;
    for (int i = 0, n = road_beats(r, last, beat); i < n; i++)
        worst = beat[i].f + beat[i].b > worst ? beat[i].f + beat[i].b : worst;
    return worst;
}

static Ns excess(const Road *r, const int *last)
{
    Ns worst = 0;
    for (int s = 0, first = 0; s < r->f.stages; first = last[s++] + 1) {
        Bytes over = road_over(r, first, last[s], s);
        worst = over > worst ? over : worst;
    }
    return worst;
}

static bool may_cut(const Road *r, const int *last)
{
    for (int s = 0, first = 0; s < r->f.stages; first = last[s++] + 1) {
        if (last[s] < first)
            return false;
        for (int i = first; i < last[s]; i++)
            if (r->must[i])
                return false;
    }
    return last[r->f.stages - 1] == r->f.n - 1;
}

/* The least value of all cuts; -1: there are none. */
static Ns every_cut(const Road *r, Ns (*value)(const Road *, const int *), int s, int *last)
{
    Ns best = -1;
    if (s == r->f.stages)
        return may_cut(r, last) ? value(r, last) : -1;
    for (last[s] = s ? last[s - 1] + 1 : 0; last[s] < r->f.n; last[s]++) {
        Ns one = every_cut(r, value, s + 1, last);
        best = one >= 0 && (best < 0 || one < best) ? one : best;
    }
    return best;
}

/* What a program says of a chain against all cuts. */
static void compare_cuts(int number, const Road *r, Ns (*value)(const Road *, const int *), Ns said, const int *last)
{
    int other[STAGES];
    Ns best = every_cut(r, value, 0, other);
    check(said == best, "%d: %lld, every cut %lld", number, (long long)said, (long long)best);
    check(said < 0 || (may_cut(r, last) && value(r, last) == said), "%d: the cuts are not those of the value", number);
}

static void test_bapipe(int number, const Road *r, int *missed, int *moved)
{
    int last[STAGES], other[STAGES];
    bool by_links;
    Ns said = bapipe_cut(&r->f, last, &by_links);
    compare_cuts(number, r, slowest, said, last);
    if (said < 0)
        return;
    Ns before = excess(r, last);
    bool fits = bapipe_fit(&r->f, last, by_links), some = every_cut(r, excess, 0, other) == 0;
    check(may_cut(r, last) && fits == (excess(r, last) == 0), "%d: it does not know whether it fits", number);
    check(excess(r, last) <= before, "%d: more is missing than before", number);
    *missed += some && !fits;
    *moved += before > 0 && fits;
}

static void test_fleet(void)
{
    int plans = 0, left = 0, missed = 0, moved = 0;
    for (int i = 0; i < 6000; i++) {
        Road *r = some_road(dice(2));
        int last[STAGES], pivot = -1;
        test_name = "dapple";
        Ns said = dapple_cut(&r->f, last), gap;
        compare_cuts(i, r, longest_pivot, said, last);
        plans += said >= 0;
        if (said >= 0 && !r->f.exchange) {
            Ns walked = walked_pivot(r, last, &gap);
            check(walked <= said && said <= walked + gap, "%d: %lld, by the paper's walk %lld", i, (long long)said,
                  (long long)walked);
            left += walked < said;
        }
        check(said < 0 || dapple_latency(&r->f, last, &pivot) == said, "%d: another latency", i);
        test_name = "spp";
        compare_cuts(i, r, busiest, spp_cut(&r->f, last), last);
        test_name = "bapipe";
        test_bapipe(i, r, &missed, &moved);
    }
    check(plans > 2000 && plans < 5800, "%d of 6000 chains have a plan: the test sees one side only", plans);
    check(left > 0 && left < 600, "the walk takes another pivot %d times", left);
    check(moved > 100 && missed < moved, "memory: %d made to fit, %d not found", moved, missed);
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
    test_order();
    printf("unit_fleet: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
