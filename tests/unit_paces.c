/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_paces.c: the leads and lags of zb*.
 *
 *   ends      with the numbers of 1f1b, 1f1b-split, zb-h1 and zb-h2 its lists are those rows', p 1..8, m up to 20
 *   every     random graphs of two and three devices: the step of the choice, through all passes, against that of every choice
 */
#include "graphs.h"
#include "tune/tune.h"

enum { MOST = 8 };
typedef struct { int lead[MOST], lag[MOST]; } Pace;

static void set_pace(World *w, const Pace *a, Ints *lead, Ints *lag)
{
    *lead = (Ints){(int *)a->lead, MOST, MOST};
    *lag = (Ints){(int *)a->lag, MOST, MOST};
    w->p.ask.choice.lead = lead;
    w->p.ask.choice.lag = lag;
}

/* ---- ends ------------------------------------------------------------------------------------------------------------ */

static int differing(const Plan *a, const Plan *b)
{
    int n = 0;
    for (int d = 0; d < a->devices; d++) {
        const Actions *x = &a->dev.at[d].order, *y = &b->dev.at[d].order;
        n += x->n != y->n;
        for (int i = 0; i < x->n && x->n == y->n; i++)
            n += x->at[i].kind != y->at[i].kind || x->at[i].mb != y->at[i].mb;
    }
    return n;
}

static void test_ends(void)
{
    static const struct { const char *name; int lead, lag, more; } row[] = {
        {"1f1b", 1, 0, -1}, {"1f1b-split", 1, 0, 0}, {"zb-h1", 1, 1, 0}, {"zb-h2", 2, 2, 0}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        for (int p = 1; p <= MOST; p++)
            for (int m = 1; m <= 20; m++) {
                void *mark = mem_mark();
                World *w = chain(p, m, false), *v = chain(p, m, false);
                Pace a;
                Ints lead, lag;
                for (int i = 0; i < p; i++) {
                    a.lead[i] = row[k].lead * (p - 1 - i);
                    a.lag[i] = row[k].lag * i + row[k].more;
                }
                set_plan(w, row[k].name, p);
                set_plan(v, "zb*", p);
                set_pace(v, &a, &lead, &lag);
                w->m.plan.chunks = v->m.plan.chunks = 1;
                if (order(&w->p) || order(&v->p))
                    check(false, "p=%d m=%d: no list", p, m);
                check(!differing(&w->p, &v->p), "zb* with the numbers of %s, p=%d m=%d: other lists", row[k].name, p, m);
                check_order(&v->p);
                mem_release(mark);
            }
}

/* ---- every ----------------------------------------------------------------------------------------------------------- */

/* The step under these numbers, with the cheapest fates of each chunk; 0: it does not fit. */
static Ns step_with(World *w, const Pace *a, const Ints *cuts, const Bytes *limit)
{
    Ints lead, lag;
    int devices = w->p.devices;
    void *mark = mem_mark();
    set_plan(w, "zb*", devices);
    w->p.ask.choice.cuts = cuts;
    set_pace(w, a, &lead, &lag);
    Ns step = order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p) ? 0 : w->p.step;
    if (step)
        check_comm(&w->p);
    mem_release(mark);
    return step;
}

/* The least step of all numbers from device i on. */
static Ns least_step(World *w, Pace *a, int i, const Ints *cuts, const Bytes *limit)
{
    int own = w->p.devices - 1 - i;
    if (own < 0)
        return step_with(w, a, cuts, limit);
    Ns least = 0;
    for (int lead = own; lead <= 2 * own && (i == 0 || lead <= a->lead[i - 1]); lead++)
        for (int lag = -1; lag <= 2 * i; lag++) {
            a->lead[i] = lead;
            a->lag[i] = lag;
            Ns step = least_step(w, a, i + 1, cuts, limit);
            least = step && (!least || step < least) ? step : least;
        }
    return least;
}

static World *some_world(int devices)
{
    Form f = {.n = 4 + dice(8), .far = 1, .most = 400, .params = 2};
    World *w = gradient_graph(f, 2 + dice(5));
    set_times(w, some_ns);
    for (int o = 0; o < w->g.op.n; o++)
        w->c.ns[0][o] *= 100000;
    set_plan(w, "zb*", devices);
    w->m.plan.chunks = w->m.plan.replicas = 1;
    w->m.plan.recompute = RECOMPUTE_AUTO;
    for (int d = 0; d < devices; d++)
        PUSH(&w->m.devices)->memory = INT64_MAX / 4;
    return w;
}

/* The cuts of 1f1b, and on two devices of three little more than it needs; then the numbers for them. */
static bool chosen(World *w, Bytes *limit, Ints *cuts, Pace *a)
{
    Ints lead, lag;
    if (order(&w->p) || part(&w->p, limit) || !part_cuts(&w->p, cuts) || keep(&w->p))
        return false;
    Bytes *need = alloc(sizeof *need * (size_t)w->p.devices);
    keep_needs(&w->p, need);
    for (int d = 0; d < w->p.devices; d++)
        limit[d] = dice(3) ? need[d] * (100 + dice(40)) / 100 : limit[d];
    paces_of(&w->p, limit, &lead, &lag);
    memcpy(a->lead, lead.at, sizeof(int) * (size_t)w->p.devices);
    memcpy(a->lag, lag.at, sizeof(int) * (size_t)w->p.devices);
    return true;
}

static void test_every(void)
{
    int same = 0, all = 0, shorter = 0, tight = 0;
    for (int number = 0; number < (getenv("SLOW") ? 400 : 40); number++) {
        void *mark = mem_mark();
        int devices = 2 + (number % 4 == 0);
        World *w = some_world(devices);
        Bytes limit[MOST];
        Ints cuts = {0};
        Pace a = {0}, b = {0}, plain = {{2, 1, 0}, {-1, -1, -1}};
        for (int d = 0; d < devices; d++)
            limit[d] = INT64_MAX / 4;
        if (chosen(w, limit, &cuts, &a)) {
            for (int d = 0; d < devices; d++)
                plain.lead[d] = devices - 1 - d;
            Ns got = step_with(w, &a, &cuts, limit), want = least_step(w, &b, 0, &cuts, limit);
            Ns one = step_with(w, &plain, &cuts, limit), free = 0;
            check(got && got >= want && got <= want + want / 12 && got <= one, "paces %d: %lld, %lld of all, 1f1b %lld", number,
                  (long long)got, (long long)want, (long long)one);
            all++;
            same += got == want;
            shorter += got < one;
            for (int d = 0; d < devices; d++)
                limit[d] = INT64_MAX / 4;
            free = least_step(w, &b, 0, &cuts, limit);
            tight += free < want;
        }
        mem_release(mark);
    }
    printf("  %d choices: %d as every choice, %d shorter than 1f1b, %d slower for a limit\n", all, same, shorter, tight);
    check(all > 20 && same * 20 >= all * 19 && shorter * 2 > all && tight, "%d of %d", same, all);
}

int main(void)
{
    test_name = "unit_paces";
    test_ends();
    test_every();
    printf("unit_paces: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
