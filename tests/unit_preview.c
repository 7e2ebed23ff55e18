/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_preview.c: the step that exact/preview.c predicts of a cut, against the simulation of the lists that are then written.
 *
 * Without copies to the host the two agree to the nanosecond.  Random graphs with values that skip over stages, in one to four
 * stages under six schedules, and over links of every kind: a rate, rounded up for each message, or measured points.
 */
#include "graphs.h"

static const Bytes infinite[8] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};

/* One curve each way between two neighbours, and other ones farther off; small messages are dear by the byte. */
static void measured_links(World *w)
{
    int n = w->p.devices;
    Wire *wire = alloc(sizeof *wire * (size_t)(n * n));
    for (int i = 0; i < n * n; i++) {
        Curve *c = alloc(sizeof *c);
        for (c->n = 0; c->n < 4; c->n++) {
            c->bytes[c->n] = (c->n ? c->bytes[c->n - 1] : 0) + 1 + dice(100);
            c->ns[c->n] = (c->n ? c->ns[c->n - 1] : 0) + 1 + dice(200);
        }
        wire[i] = (Wire){.rate = 1e9, .latency = dice(30), .curve = c};
    }
    w->c.devices = n;
    w->c.wire = wire;
}

static void test_previewed(int graphs)
{
    static const char *const schedule[] = {"1f1b", "gpipe", "zb-h1", "zb-h2", "1f1b-split", "2bp"};
    void *mark = mem_mark();
    for (int i = 0, devices; i < graphs; mem_release(mark), i++) {
        Form f = {.n = 4 + dice(8), .skips = dice(3), .far = 8, .most = 300, .params = 3, .ties = dice(2)};
        World *w = gradient_graph(f, 1 + dice(8));
        devices = 1 + dice(4);
        set_times(w, some_ns);
        set_pairs(w);
        set_plan(w, schedule[i % 6], devices);
        w->m.plan.recompute = dice(2) ? RECOMPUTE_NONE : RECOMPUTE_FULL;
        w->c.latency = dice(2) ? 0 : dice(30);
        w->c.link = 1e8 + dice(1000) * 1e7;
        if (i / 6 % 2)
            measured_links(w);
        if (order(&w->p) || part(&w->p, infinite))
            continue;
        if (keep(&w->p) || comm(&w->p) || lower(&w->p))
            die("no lists");
        sim(&w->p);
        check(w->p.predicted.value == w->p.step, "graph %d, %s on %d devices: previewed %lld, simulated %lld", i,
              schedule[i % 6], devices, (long long)w->p.predicted.value, (long long)w->p.step);
        check(w->p.predicted.bound <= w->p.step, "graph %d, %s on %d devices: bound %lld, simulated %lld", i, schedule[i % 6],
              devices, (long long)w->p.predicted.bound, (long long)w->p.step);
    }
    check(passed > graphs, "%d of %d are too few", passed, graphs);
}

int main(void)
{
    test_name = "unit_preview";
    test_previewed(getenv("SLOW") ? 20000 : 600);
    printf("unit_preview: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
