/* SPDX-License-Identifier: Apache-2.0
 *
 * scale.c: what planning costs as the graph and the number of devices grow.
 *
 * Two kinds of graphs: `random`, each operator reads the one before it and up to two more from the 16 before; `layered`,
 * blocks of ten operators in the proportions of a transformer, residual connections across each half.  Micro-batches 4 p,
 * schedule 1f1b.  Limits: none; and 60 % of what the first device of an even cut would hold if it kept everything, which
 * makes it recompute.
 *
 * A row is: graph, operators, devices, limit, processor seconds of part(), predicted step over the proven bound.
 * Usage: scale [OPERATORS DEVICES]: that pair alone; else the table.
 */
#define _POSIX_C_SOURCE 200809L
#include "graphs.h"
#include "exact/exact.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* norm, qkv, attention, projection, add, norm, up, gelu, down, add: microseconds forward, KiB of the result */
static const struct { int us, kib, back; } block[10] = {
    {30, 1536, 60}, {800, 4608, 1600}, {900, 1536, 2000}, {270, 1536, 540}, {20, 1536, 0},
    {30, 1536, 60}, {1070, 6144, 2140}, {60, 6144, 120}, {1070, 1536, 2140}, {20, 1536, 0},
};

static Ns layered_ns(World *w, int op)
{
    const Op *o = &w->g.op.at[op];
    int us = o->phase == PH_F ? block[o->fwd % 10].us : block[o->fwd % 10].back;
    return us * (Ns)1000;
}

static Ns random_ns(World *w, int op)
{
    (void)w, (void)op;
    return 1000 * (Ns)(1 + dice(dice(8) ? 200 : 2000));
}

static World *graph(bool layered, int n, int64_t micro)
{
    Form f = {.n = n, .skips = layered ? 0 : 2, .far = 16, .most = 4096, .params = layered ? 3 : 4};
    World *w = gradient_graph(f, micro);
    for (int t = 0; t < w->g.tensor.n; t++) {
        Tensor *x = &w->g.tensor.at[t];
        x->bytes = layered && x->kind == T_ACT ? block[x->op % 10].kib * (Bytes)1024 : x->bytes * 1024;
    }
    for (int s = 0; s < w->g.state.n; s++)
        w->g.state.at[s].bytes *= 65536;
    set_times(w, layered ? layered_ns : random_ns);
    w->c.link = 25e9;
    w->c.latency = 10000;
    return w;
}

static Bytes keep_all(World *w, int n, int devices)
{
    Bytes free[64];
    for (int d = 0; d < 64; d++)
        free[d] = INT64_MAX / 4;
    return price_best(prices_open(&w->p, free), 0, n / devices, 0)->need;
}

static void measure(bool layered, int n, int devices, bool tight)
{
    seed = 1;
    World *w = graph(layered, n, 4 * devices);
    Bytes limit[64];
    set_plan(w, "1f1b", devices);
    w->m.plan.recompute = RECOMPUTE_AUTO;
    if (order(&w->p))
        die("no order");
    Bytes all = tight ? keep_all(w, n, devices) / 10 * 6 : INT64_MAX / 4;
    for (int d = 0; d < 64; d++)
        limit[d] = all;
    double from = now();
    int none = part(&w->p, limit);
    double took = now() - from;
    printf("%-8s %6d %3d %-4s %8.4f", layered ? "layered" : "random", n, devices, tight ? "60%" : "-", took);
    if (none)
        printf("  does not fit\n");
    else
        printf("  %6.2f %%\n", 100.0 * (double)(w->p.predicted.value - w->p.predicted.bound) / (double)w->p.predicted.bound);
    fflush(stdout);
    mem_free_all();
}

int main(int argc, char **argv)
{
    static const int sizes[] = {125, 250, 500, 1000, 2500, 5000, 10000}, counts[] = {2, 4, 8, 16, 32, 64};
    for (int layered = 0; layered < 2; layered++)
        for (int tight = 0; tight < 2; tight++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
                    bool asked = argc < 3 || (atoi(argv[1]) == sizes[i] && atoi(argv[2]) == counts[k]);
                    if (asked && sizes[i] >= 10 * counts[k])
                        measure(layered, sizes[i], counts[k], tight);
                }
    return 0;
}
