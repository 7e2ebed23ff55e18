/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_widths: stages with copies and degrees, against brute force.
 *
 * The oracle gives every node a stage, in all ways in which no edge goes back, then every stage a degree and a number of
 * copies, from the last one to the first, and every node a choice.  It knows no prefixes, no bounds and no knapsack.  At 1 GB/s
 * a byte takes 1000 ps.  SLOW=1: 2,000 graphs.
 */
#include "downset/widths.h"
#include "draw.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 6, DEGREES = 2, EDGES = 15 };
static const Ps none = INT64_MAX;
typedef struct {
    Widths w;
    int degree[DEGREES];
    WidthWay way[NODES * DEGREES];
    WidthEdge edge[EDGES];
    Bytes bytes[EDGES][2 * DEGREES];
    Ints from[NODES], to[NODES];
} Case;

static void make(Case *c)
{
    static const int micros[] = {1, 4, 6, 12, 12};
    memset(c, 0, sizeof *c);
    int n = draw(1, 5 + (draw(0, 5) == 0)), degrees = draw(1, DEGREES), edges = 0;
    c->degree[0] = draw(0, 3) ? 1 : 2;
    c->degree[1] = c->degree[0] + draw(1, 2);
    for (int i = 0; i < n; i++) {
        for (int x = 0; x < degrees; x++) {
            WidthWay *y = &c->way[i * degrees + x];
            *y = (WidthWay){.choices = draw(0, 15) ? draw(1, 2) : 0, .params = draw(0, 2000)};
            for (int k = 0; k < y->choices; k++)
                y->choice[k] = (WidthChoice){draw(0, 3) ? draw(0, 90) * 1000 : 40000, draw(0, 20), draw(0, 9)};
        }
        for (int k = 0; k < i; k++) {
            if (draw(0, 2) || edges == EDGES)
                continue;
            for (int x = 0; x < 2 * degrees; x++)
                c->bytes[edges][x] = draw(0, 9);
            c->edge[edges] = (WidthEdge){k, i, c->bytes[edges]};
            edges++;
            *PUSH(&c->from[i]) = k;
            *PUSH(&c->to[k]) = i;
        }
    }
    c->w = (Widths){.n = n, .from = c->from, .to = c->to, .degrees = degrees, .degree = c->degree, .split = c->way,
                    .edges = edges, .edge = c->edge, .devices = draw(1, 9), .micro = micros[draw(0, 4)],
                    .memory = draw(20, 160), .rate = 1000000000};
}

/* ---- the oracle -------------------------------------------------------------------------------------------------- */

typedef struct { const Case *c; int stage[NODES], stages; Ps best; } Oracle;

/* One stage with these choices: of its nodes, bit by bit. */
static Ps stage_time(const Case *c, const int *stage, int s, int x, int d, int y, int choices)
{
    const Widths *w = &c->w;
    Ps time = 0;
    Bytes memory = 0;
    for (int i = 0; i < w->n; i++) {
        const WidthWay *v = &w->split[i * w->degrees + x];
        int k = choices >> i & 1;
        if (stage[i] != s)
            continue;
        if (k >= v->choices)
            return none;
        time += v->choice[k].time + (d - 1) * (4000 * v->params / w->micro);
        memory += v->choice[k].each * y + v->choice[k].fixed;
    }
    for (int i = 0; i < w->edges; i++) {
        bool a = stage[w->edge[i].from] == s, b = stage[w->edge[i].to] == s;
        time += a != b ? 2000 * w->edge[i].bytes[2 * x + a] : 0;
    }
    return memory <= w->memory ? (time + d - 1) / d : none;
}

static Ps least(const Case *c, const int *stage, int s, int x, int d, int y)
{
    Ps best = none;
    for (int choices = 0; choices < 1 << c->w.n; choices++) {
        bool needed = true;             /* bits of other nodes stay 0 */
        for (int i = 0; i < c->w.n; i++)
            needed &= stage[i] == s || !(choices >> i & 1);
        Ps with = needed ? stage_time(c, stage, s, x, d, y, choices) : none;
        best = with < best ? with : best;
    }
    return best;
}

static void widen(Oracle *o, int s, int devices, int copies, Ps longest)
{
    const Widths *w = &o->c->w;
    if (s < 0)
        o->best = longest;
    for (int x = 0; s >= 0 && x < w->degrees; x++)
        for (int d = 1; d <= w->micro; d++) {
            int used = devices + d * w->degree[x];
            if (w->micro % d || used > w->devices || copies + d > w->micro)
                continue;
            Ps time = least(o->c, o->stage, s, x, d, (copies + d + d - 1) / d);
            time = time > longest ? time : longest;
            if (time < o->best)
                widen(o, s - 1, used, copies + d, time);
        }
}

static void assign(Oracle *o, int node)
{
    const Case *c = o->c;
    if (node == c->w.n) {
        int seen = 0;
        for (int i = 0; i < node; i++)
            seen |= 1 << o->stage[i];
        if (seen == (1 << o->stages) - 1)
            widen(o, o->stages - 1, 0, 0, 0);
        return;
    }
    for (int s = 0; s < o->stages; s++) {
        bool back = false;
        for (int k = 0; k < c->from[node].n; k++)
            back |= o->stage[c->from[node].at[k]] > s;
        o->stage[node] = s;
        if (!back)
            assign(o, node + 1);
    }
}

/* ---- what is found ----------------------------------------------------------------------------------------------- */

/* The plan is one, and takes what it says; the oracle's own words for a stage. */
static bool sound(const Case *c, const WidthPlan *p)
{
    const Widths *w = &c->w;
    int stage[NODES], seen = 0, choices = 0, devices = 0, copies = 0;
    Ps longest = 0;
    for (int s = 0, at = 0; s < p->stage.n; s++)
        for (; at <= p->stage.at[s].last && at < w->n; at++) {
            stage[p->sequence[at]] = s;
            seen |= 1 << p->sequence[at];
            choices |= p->choice[p->sequence[at]] << p->sequence[at];
        }
    if (seen != (1 << w->n) - 1)
        return false;
    for (int s = p->stage.n - 1; s >= 0; s--) {
        const WidthStage *g = &p->stage.at[s];
        int x = g->degree == w->degree[0] ? 0 : 1;
        devices += g->degree * g->copies;
        copies += g->copies;
        Ps time = stage_time(c, stage, s, x, g->copies, (copies + g->copies - 1) / g->copies, choices);
        if (time != g->time || g->memory > w->memory || w->micro % g->copies)
            return false;
        longest = time > longest ? time : longest;
    }
    for (int i = 0; i < w->edges; i++)
        if (stage[w->edge[i].from] > stage[w->edge[i].to])
            return false;
    return longest == p->value && devices <= w->devices && copies <= w->micro;
}

static void test(int seed)
{
    Case c;
    state = (uint64_t)seed;
    make(&c);
    Oracle o = {.c = &c, .best = none};
    for (o.stages = 1; o.stages <= c.w.n && o.stages <= c.w.devices; o.stages++)
        assign(&o, 0);
    WidthPlan got, heuristic;
    bool found = widths_plan(&c.w, &got);
    check(found == (o.best < none), "there is a plan or there is none", seed);
    if (found) {
        check(got.value == o.best, "the least bottleneck", seed);
        check(got.bound == got.value && got.all, "its proof", seed);
        check(sound(&c, &got), "the plan is what it says", seed);
    }
    c.w.heuristic = true;
    bool also = widths_plan(&c.w, &heuristic);
    check(also == found, "the heuristic fits where anything does", seed);
    check(!also || (heuristic.value >= o.best && heuristic.bound <= heuristic.value && sound(&c, &heuristic)),
          "the heuristic's plan", seed);
}

int main(void)
{
    test_name = "unit_widths";
    for (int seed = 1; seed <= (getenv("SLOW") ? 2000 : 300); seed++) {
        void *mark = mem_mark();
        test(seed);
        mem_release(mark);
    }
    printf("unit_widths: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
