/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rows.c: the rows of schedules.def against their closed forms, through the whole line.
 *
 * A graph of another system has one node a chunk.  Its forward, input gradient and weight gradient take one unit each, and its
 * forward saves BIG bytes.  All else is small: outputs, parameters, messages.  From the file on the passes of dpgen plan run:
 * the model, the cost of messages, cuts, lists, memory, simulation.
 *
 *   step        the closed form of the table in docs/schedules.md, within half a per cent
 *   peak        of each device: the bytes alive at once are as many times BIG as the form says, exactly
 *   legal       no row refuses numbers that the table allows
 *   chunks      interleaved and auto are never slower than 1f1b of the same operators on equal chunks, predicted by the same
 *               line: p 2..8, m p..32, v 2..4
 *   refusals    the number that a refusal of any row names is legal, and by trial of all others the nearest that is
 *
 * p 1..8, m 1..32, v 1..4, groups of p, p + 1 and m, as far as they are legal.  One case in SHARE, and all with SLOW=1.
 */
#include "world.h"
#include "passes.h"
#include "search/search.h"

#include <inttypes.h>

enum { UNIT_MS = 1000, BIG = 1 << 20, SHARE = 71 };

typedef struct { const char *row; int p, m, v, g; } Case;   /* g 0: as the row has it */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool among(const char *names, const char *schedule)
{
    return strstr(strf(" %s ", names), strf(" %s ", schedule)) != NULL;
}

/* The tables of schedules.md: step in units of a chunk's F, I or W, and micro-batches that device i holds from F to W. */
static int step_of(const char *schedule, int p, int m, int v)
{
    int far = 6 * (strcmp(schedule, "v-min") ? (p - 1) / 2 : (2 * p - 2) / 3) - 1;
    if (among("v-half v-min", schedule))
        return 6 * m + (far > p - 1 ? far : p - 1);
    if (!strcmp(schedule, "1f1b-v"))
        return 6 * m + 4 * (p - 1) + 3 * (p / 3);
    if (among("chimera bitpipe", schedule))
        return 3 * v * m + (2 + m / p - 1) * (p - 2);
    if (!strcmp(schedule, "zb-h1") && m < p)
        return 2 * m + 2 * p - 1;
    return 3 * v * m + (!strcmp(schedule, "dualpipe") ? p / 2 - 1 : (p - 1) * (among("1f1b-split 2bp gis", schedule) ? 2
                        : among("zb-h1 zb-h2 zb-v dualpipe-v interleaved-zb", schedule) ? 1 : 3));
}

static int peak_of(const char *schedule, int p, int m, int v, int g, int i)
{
    if (among("chimera bitpipe", schedule))
        return (2 * v - 1) * p / 2 + 1 + least(i, p - 1 - i);
    if (among("zb-v dualpipe-v dualpipe", schedule))
        return v * p + (*schedule == 'd');
    if (among("v-half v-min 1f1b-v", schedule))
        return !strcmp(schedule, "v-half") ? 2 * ((p + 2) / 2) : (p + 4) / 3 + (*schedule == '1' ? p : (p + 4) / 3);
    if (among("zb-h1 zb-h2", schedule))
        return least(m, strcmp(schedule, "zb-h2") ? p : 2 * p - 1);
    if (among("interleaved-zb gis 1f1b-split 1f1b", schedule))
        return least(v * m, (v - 1) * g + p - (*schedule == 'i' ? 0 : i));
    return among("breadth-first 2bp gpipe", schedule) ? v * m : least(v * m, (v - 1) * g + least(v, 2) * (p - 1 - i) + 1);
}

/* ---- one case ------------------------------------------------------------------------------------------------------- */

static const char *write_nodes(const Case *k)
{
    const char *path = strf("build/unit_rows.%ld.txt", (long)getpid());
    FILE *f = fopen(path, "w");
    if (!f)
        die("cannot write %s", path);
    fprintf(f, "dpgen-nodes 1\ngraph rows micro=%d\n", k->m);
    for (int i = 0; i < k->p * k->v; i++)
        fprintf(f, "node n%d forward=%d backward=%d weight=0.5 output=4 saved=%d params=4\n", i, UNIT_MS, 2 * UNIT_MS, BIG);
    for (int i = 1; i < k->p * k->v; i++)
        fprintf(f, "edge n%d to=n%d\n", i - 1, i);
    fclose(f);
    return path;
}

/* Files that were read are remembered: this stays. */
static const Model *read_model(const Case *k, Options *x)
{
    const char *path = write_nodes(k);
    const Foreign *f = x->foreign = foreign_read(path);
    Overrides over = {0};
    remove(path);
    *PUSH(&over.set) = strf("plan.schedule=%s", k->row);
    *PUSH(&over.set) = strf("plan.stages=%d", k->p);
    *PUSH(&over.set) = strf("devices.0.count=%d", k->p);
    *PUSH(&over.set) = "devices.0.memory=64GiB";
    const Schedule *row = schedule_of(k->row);      /* auto is none */
    if (row && row->chunks)
        *PUSH(&over.set) = strf("plan.chunks=%d", k->v);
    if (k->g)
        *PUSH(&over.set) = strf("plan.group=%d", k->g);
    Node *root = foreign_model(path, f->name, f->batch, f->micro, row ? schedule_ways(row) : 1, f->optimizer,
                               NULL);
    return model(root, path, &over);
}

static Plan *plan_of(const Case *k, const Options *x, const Model *m)
{
    const Schedule *row = schedule_of(k->row);
    const Graph *g = graph_of(x, m);
    const char *why = order_refuses(g, m, row, k->p);
    check(!why, "%s p=%d m=%d v=%d g=%d: %s", k->row, k->p, k->m, k->v, k->g, why);
    return new_plan(g, cost_shared(cost(g, m, NULL), m, k->p), m, k->p, k->row, &(Ask){.choice.early = true});
}

/* 1f1b's devices have v of these chunks in one stage. */
static void test_chunks(const Case *k, const Plan *p)
{
    Ns whole = (Ns)(3 * k->v * (k->m + k->p - 1)) * UNIT_MS * 1000000;
    check(p->step <= whole + whole / 1000, "%s p=%d m=%d v=%d g=%d: %" PRId64 " ns, 1f1b %" PRId64, k->row, k->p, k->m, k->v,
          k->g, p->step, whole);
}

/* What the row says of itself: backward of the last chunk behind each of its forwards, with nothing between. */
static void test_adjoins(const Case *k, const Plan *p)
{
    for (int d = 0; d < p->devices && schedule_of(k->row)->adjoins; d++) {
        const Actions *list = &p->dev.at[d].order;
        for (int i = 0; i + 1 < list->n; i++) {
            const Action *f = &list->at[i], *b = f + 1;
            bool last = f->kind == K_F && f->chunk == plan_chunks(p) - 1;
            check(!last || ((b->kind == K_B || b->kind == K_I) && b->chunk == f->chunk && b->mb == f->mb),
                  "%s p=%d m=%d v=%d g=%d: something stands behind forward of %d", k->row, k->p, k->m, k->v, k->g, f->mb);
        }
    }
}

/* Free: the form does not hold, and only the peak is bounded. */
static void test_case(const Case *k, bool free)
{
    Options x = {0};
    const Model *m = read_model(k, &x);
    void *mark = mem_mark();
    Plan *p = plan_of(k, &x, m);
    Bytes limit[8];
    for (int d = 0; d < 8; d++)
        limit[d] = (Bytes)1 << 40;
    int64_t want = step_of(k->row, k->p, k->m, k->v), form = schedule_form(schedule_of(k->row), k->p, k->m, k->v);
    check(form == (free ? 0 : want), "%s p=%d m=%d v=%d: a form of %" PRId64, k->row, k->p, k->m, k->v, form);
    if (order(p) || part(p, limit) || keep(p) || comm(p) || lower(p) || sim(p))
        check(false, "%s p=%d m=%d v=%d g=%d: no plan", k->row, k->p, k->m, k->v, k->g);
    check_order(p);
    check_comm(p);
    check_sim(p);
    test_adjoins(k, p);
    mem_unplaced(p);
    Ns unit = (Ns)UNIT_MS * 1000000;
    check(free || llabs(p->step - want * unit) <= want * unit / 200, "%s p=%d m=%d v=%d g=%d: %" PRId64 " ns for %" PRId64
          " units", k->row, k->p, k->m, k->v, k->g, p->step, want);
    if (!strcmp(k->row, "interleaved") && k->m >= k->p)
        test_chunks(k, p);
    for (int i = 0, high = 0; i < k->p; i++) {
        int held = (int)(p->dev.at[i].bound / BIG), group = k->g ? k->g : least(k->p, k->m);
        int most = peak_of(k->row, k->p, k->m, k->v, group, i);
        high = held > high ? held : high;
        bool below = free || (!strcmp(k->row, "1f1b-v") && (i < k->p - 1 || high == most));
        check(below ? held <= most : held == most, "%s p=%d m=%d v=%d g=%d: %d saved on device %d, not %d", k->row, k->p,
              k->m, k->v, k->g, held, i, most);
    }
    mem_release(mark);
}

/* A whole group, or p micro-batches at least, in the last one. */
static bool legal(const Case *k)
{
    int g = k->g ? k->g : k->p;
    return g >= k->p && g <= k->m && (k->m % g == 0 || k->m % g >= k->p);
}

/* Chunks a device, least m = p[0] * p + p[1], m a multiple of p.  Two ways: p even, m too.  Below m = p the squeezed rows only
 * have to be legal.  The peak of 1f1b-v is that of its fullest device. */
static void test_rows(void)
{
    static const struct { const char *name; int from, to, p[2]; bool whole, grouped, squeezed; } row[] = {
        {"gpipe", 1, 1, {0, 1}, false, false, false}, {"1f1b", 1, 1, {0, 1}, false, false, false},
        {"1f1b-split", 1, 1, {0, 1}, false, false, false}, {"2bp", 1, 1, {0, 1}, false, false, false},
        {"zb-h1", 1, 1, {0, 1}, false, false, false}, {"zb-h2", 1, 1, {2, -1}, false, false, false},
        {"interleaved", 1, 4, {1, 0}, false, true, false}, {"interleaved-zb", 1, 4, {1, 0}, false, true, false},
        {"gis", 1, 4, {1, 0}, true, false, false}, {"breadth-first", 1, 4, {1, 0}, false, false, false},
        {"zb-v", 2, 2, {2, -1}, false, false, false}, {"dualpipe-v", 2, 2, {2, 0}, false, false, false},
        {"v-half", 2, 2, {0, 1}, false, false, true}, {"v-min", 2, 2, {0, 1}, false, false, true},
        {"1f1b-v", 2, 2, {1, 0}, true, false, false}, {"bitpipe", 2, 2, {1, 0}, true, false, false},
        {"chimera", 1, 1, {1, 0}, true, false, false}, {"dualpipe", 1, 1, {2, 0}, false, false, false},
    };
    int share = getenv("SLOW") ? 1 : SHARE, number = 0;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        for (int ways = schedule_ways(schedule_of(row[k].name)), p = ways; p <= 8; p += ways)
            for (int m = row[k].p[0] * p + row[k].p[1]; m <= 32; m += row[k].whole ? p : ways)
                for (int v = row[k].from; v <= row[k].to; v++)
                    for (int group = 0; group < (row[k].grouped ? 3 : 1); group++) {
                        Case x = {row[k].name, p, m, v, group == 1 ? p + 1 : group == 2 ? m : 0};
                        if ((!row[k].grouped || legal(&x)) && number++ % share == 0)
                            test_case(&x, row[k].squeezed && m < p);
                    }
}

/* Asked as the command line asks.  interleaved: one case in SHARE stands above, and here are others. */
static void test_never_slower(void)
{
    int share = getenv("SLOW") ? 1 : SHARE, number = 0;
    for (int p = 2; p <= 8; p++)
        for (int m = p; m <= 32; m++)
            for (int v = 2; v <= 4; v++, number++)
                for (int any = 0; any < 2; any++) {
                    Case x = {any ? "auto" : "interleaved", p, m, v, m % p && !any ? m : 0};
                    Options options = {0};
                    Plan *failed, *best;
                    if (number % share != (2 * any + 3) % share)
                        continue;
                    best = search(&options, read_model(&x, &options), &failed);
                    check(best, "%s p=%d m=%d v=%d: no plan", x.row, p, m, v);
                    if (best)
                        test_chunks(&x, best);
                }
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

/* What a refusal depends on.  total: micro-batches of all replicas. */
typedef struct { const Schedule *row; int p, total, v, g, groups, replicas; } Asked;

static const char *refuses(const Asked *k)
{
    Graph g = {.batch = 2, .micro = k->total, .groups = k->groups};
    Model m = {.plan = {.chunks = k->v, .group = k->g, .replicas = k->replicas}};
    m.devices.n = 16;
    return order_refuses(&g, &m, k->row, k->p);
}

/* The number behind a phrase of a refusal; -1: it has no such phrase. */
static int named(const char *why, const char *phrase)
{
    const char *at = strstr(why, phrase);
    return at ? atoi(at + strlen(phrase)) : -1;
}

/* One number of the question is changed to every value up to `most`; which legal one is the nearest?  Of two the smaller one,
 * or the larger.  -1: none is legal. */
static int nearest_legal(const Asked *k, size_t field, int from, int most, bool larger)
{
    Asked with = *k;
    int *number = (int *)((char *)&with + field), own = *number, best = -1;
    for (int n = from; n <= most; n++) {
        *number = n;
        bool groups = with.total % with.groups == 0 && with.total % with.replicas == 0;    /* else it is no model */
        if (!groups || refuses(&with))
            continue;
        if (best < 0 || abs(n - own) < abs(best - own) || (larger && abs(n - own) == abs(best - own)))
            best = n;
    }
    return best;
}

static void test_refusal(const Asked *k)
{
    const char *why = refuses(k);
    if (!why)
        return;
    const char *what = strf("%s p=%d m=%d v=%d g=%d groups=%d replicas=%d: %s", k->row->name, k->p, k->total / k->replicas,
                            k->v, k->g, k->groups, k->replicas, why);
    int group = named(why, "set plan.group to "), most = named(why, "take at most ");
    int even = named(why, "; take "), global = named(why, "set train.batch.global to ");
    check(group < 0 || group == nearest_legal(k, offsetof(Asked, g), 1, 2 * k->total, false), "%s", what);
    Asked free = *k;            /* a group is refused by itself, once there are fewer stages */
    free.g = 0;
    check(most < 0 || (most < k->p && most == nearest_legal(&free, offsetof(Asked, p), 1, k->p, false)), "%s", what);
    check(global < 0 || global == 2 * nearest_legal(k, offsetof(Asked, total), 1, 4 * k->total + 64, true), "%s", what);
    int near = nearest_legal(k, offsetof(Asked, p), 1, 16 / k->replicas, true);
    check(even < 0 || (even % 2 == 0 && abs(even - k->p) == 1 && (abs(near - k->p) != 1 || even == near)), "%s", what);
    bool fewer = nearest_legal(k, offsetof(Asked, p), 1, k->p, false) > 0;
    bool other = strstr(why, "set ") || strstr(why, "equal");
    check(group > 0 || most > 0 || even > 0 || global > 0 || other || !fewer, "%s", what);
}

/* Groups are taken from rows that have them, copies of the model from those that allow them. */
static void test_refusals(void)
{
    for (const Schedule *k = schedules; k->name; k++)
        for (int p = 1; p <= 8; p++)
            for (int m = 1; m <= 32; m++)
                for (int g = 0; g <= (k->grouped ? m + 2 : 0); g++)
                    for (int groups = 1; groups <= (k->ways > 1 ? 8 : 1); groups *= 2)
                        for (int replicas = 1; replicas <= (k->async ? 1 : 2) && replicas <= groups; replicas *= 2) {
                            Asked x = {k, p, m * replicas, k->chunks ? k->chunks : 1, g, groups, replicas};
                            if (!k->custom && !k->given && x.total % groups == 0)
                                test_refusal(&x);
                        }
    const Schedule *inter = schedule_of("interleaved"), *chimera = schedule_of("chimera");
    const char *why = refuses(&(Asked){inter, 4, 5, 3, 4, 1, 1});
    check(why && named(why, "set plan.group to ") == 5, "interleaved p=4 v=3 g=4 m=5: %s", why ? why : "not refused");
    why = refuses(&(Asked){chimera, 3, 8, 1, 0, 2, 1});
    check(why && named(why, "; take ") == 4, "chimera p=3: %s", why ? why : "not refused");
}

int main(void)
{
    test_name = "unit_rows";
    test_refusals();
    test_rows();
    test_never_slower();
    printf("unit_rows: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
