/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_replay.c: replay/fast.c against the walk of replay/walk.c, call by call: random runs of random graphs under random
 * choices of what is kept, of which the last sends tensors away too.
 */
#include "graphs.h"
#include "replay/walk.h"

static void compare_replays(World *w, Live *live, int number)
{
    int a = dice(w->g.nf), b = a + dice(w->g.nf - a), chunk = dice(w->p.devices);
    int *fate = alloc(sizeof *fate * (size_t)w->g.tensor.n);
    for (int time = 0; time < 8; time++) {
        for (int t = 0; t < w->g.tensor.n; t++)
            if (w->g.tensor.at[t].kind == T_ACT && w->g.tensor.at[t].op < w->g.nf)
                fate[t] = time == 7 && dice(4) == 0 ? FATE_OFFLOAD : dice(8) < time ? FATE_RECOMPUTE : FATE_KEEP;
        Load x = live_load(live, a, b, chunk, fate), y = live_walk(live, a, b, chunk, fate);
        bool same = x.need == y.need && x.states == y.states && x.saved == y.saved && x.again == y.again && x.stall == y.stall;
        same &= x.held == y.held;
        same &= x.forward == y.forward && x.backward == y.backward;
        check(same && x.moved == y.moved, "replay %d, %d..%d as chunk %d: %lld bytes, walk %lld", number, a, b, chunk,
              (long long)x.need, (long long)y.need);
    }
}

static void test_replay(void)
{
    static const char *const schedule[] = {"1f1b", "gpipe", "2bw", "pipedream", "zb-h1"};
    for (int number = 0; number < (getenv("SLOW") ? 4000 : 200); number++) {
        int devices = 1 + dice(4), way = dice(5), n = 4 + dice(40);
        Form f = {.n = n, .skips = dice(3), .far = 8, .most = 400, .params = 3, .ties = way != 2 && way != 3 && dice(2),
                  .joint = way == 4};
        World *w = gradient_graph(f, way == 3 ? 1 : 4);
        set_times(w, some_ns);
        set_pairs(w);
        set_plan(w, schedule[way], devices);
        w->m.plan.recompute = RECOMPUTE_AUTO;
        w->p.ask.choice.far = way < 2 && number % 2;
        if (order(&w->p))
            continue;
        Live *live = live_open(&w->p);
        for (int run = 0; run < 4; run++)
            compare_replays(w, live, number);
    }
}

int main(void)
{
    test_name = "unit_replay";
    test_replay();
    printf("unit_replay: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
