/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_downset: stages over downward-closed prefixes, against brute force.
 *
 * The oracle gives every node a stage number, in all k^n ways, and keeps those in which no edge goes back and no stage is
 * empty: that is what a chain of k downward-closed prefixes is.  It knows no prefixes.  Transfers are bytes over 1 GB/s.
 */
#include "profiled/downset.h"
#include "draw.h"

#include <string.h>

enum { NODES = 10, STAGES = 4 };
typedef struct { int n; Ns time[NODES]; Bytes bytes[NODES]; bool edge[NODES][NODES]; Ints from[NODES], to[NODES]; } Case;

static void make(Case *c, int most)
{
    memset(c, 0, sizeof *c);
    c->n = draw(1, most);
    for (int i = 0; i < c->n; i++) {
        c->time[i] = draw(0, 9) ? draw(0, 30) : 0;
        c->bytes[i] = draw(0, 20);
        for (int k = 0; k < i; k++) {
            c->edge[k][i] = draw(0, 3) == 0;
            if (c->edge[k][i]) {
                *PUSH(&c->from[i]) = k;
                *PUSH(&c->to[k]) = i;
            }
        }
    }
}

/* INT64_MAX: this is no chain of stages. */
static Ns value(const Case *c, const int *stage, int k, bool wires)
{
    Ns time[STAGES] = {0}, most = 0;
    int count[STAGES] = {0};
    for (int i = 0; i < c->n; i++) {
        time[stage[i]] += c->time[i];
        count[stage[i]]++;
        for (int r = i + 1; r < c->n; r++)
            if (c->edge[i][r] && stage[r] < stage[i])
                return INT64_MAX;
    }
    for (int j = 0; j < k; j++) {
        Ns wire = 0;
        for (int i = 0; i < c->n; i++) {
            bool out = false;
            for (int r = i + 1; r < c->n; r++)
                out |= c->edge[i][r] && stage[i] <= j && stage[r] > j;
            wire += out ? 2 * c->bytes[i] : 0;
        }
        if (!count[j])
            return INT64_MAX;
        most = time[j] > most ? time[j] : most;
        most = wires && wire > most ? wire : most;
    }
    return most;
}

/* Of all assignments; runs: of those only that are runs of the order. */
static Ns oracle(const Case *c, int k, bool wires, bool runs)
{
    int stage[NODES] = {0};
    Ns best = INT64_MAX;
    for (;;) {
        bool run = true;
        for (int i = 1; i < c->n; i++)
            run &= stage[i] >= stage[i - 1];
        Ns v = run || !runs ? value(c, stage, k, wires) : INT64_MAX;
        best = v < best ? v : best;
        int i = 0;
        while (i < c->n && ++stage[i] == k)
            stage[i++] = 0;
        if (i == c->n)
            return best;
    }
}

static void check_chain(const Case *c, const ForeignChain *got, int k, bool wires, Ns want, int seed)
{
    int stage[NODES], seen = 0;
    for (int j = 0, at = 0; j < k; j++)
        for (; at <= got->last[j] && at < c->n; at++) {
            stage[got->sequence[at]] = j;
            seen |= 1 << got->sequence[at];
        }
    check(seen == (1 << c->n) - 1 && value(c, stage, k, wires) == want, "the chain has not its value", seed);
    bool sorted = true;
    for (int a = 0; a < c->n; a++)
        for (int b = 0; b < a; b++)
            sorted &= !c->edge[got->sequence[a]][got->sequence[b]];
    check(sorted, "a reader comes first", seed);
}

static void test(int seed, const Cost *wire)
{
    Case c;
    state = (uint64_t)seed;
    make(&c, seed % 3 ? 7 : 9);
    int k = draw(1, c.n > 7 ? 3 : STAGES);
    bool wires = draw(0, 1), few = seed % 5 == 0;
    Dag d = {.n = c.n, .time = c.time, .bytes = c.bytes, .from = c.from, .to = c.to, .wire = wires ? wire : NULL};
    ForeignChain got;
    bool found = downset_chain(&d, k, few ? 1 : MOST_PREFIXES, &got);
    check(found == (c.n >= k), "as many nodes as stages", seed);
    if (!found)
        return;
    Ns want = oracle(&c, k, wires, !got.all);
    check(got.value == want && got.bound == want, "the least bottleneck", seed);
    check(!few || !got.all || got.prefixes <= 2, "more prefixes than asked for", seed);
    check_chain(&c, &got, k, wires, want, seed);
}

/* Two chains of 30 nodes side by side: 31 * 31 prefixes; every time 1 s, so ceil(60 / k) s. */
static void test_ladder(void)
{
    enum { N = 60 };
    Ns time[N];
    Bytes bytes[N] = {0};
    Ints from[N] = {{0}}, to[N] = {{0}};
    for (int i = 0; i < N; i++) {
        time[i] = 1000000000;
        if (i >= 2) {
            *PUSH(&from[i]) = i - 2;
            *PUSH(&to[i - 2]) = i;
        }
    }
    Dag d = {.n = N, .time = time, .bytes = bytes, .from = from, .to = to};
    for (int k = 1; k <= 16; k++) {
        ForeignChain c;
        check(downset_chain(&d, k, MOST_PREFIXES, &c) && c.all && c.prefixes == 31 * 31
              && c.value == (Ns)((N + k - 1) / k) * 1000000000 && c.bound == c.value, "two chains", k);
    }
}

int main(void)
{
    test_name = "unit_downset";
    Wire wires[STAGES * STAGES];
    for (int i = 0; i < STAGES * STAGES; i++)
        wires[i] = (Wire){.rate = 1e9};
    Cost wire = {.devices = STAGES, .wire = wires};
    for (int seed = 1; seed <= 1500; seed++)
        test(seed, &wire);
    test_ladder();
    mem_free_all();
    printf("unit_downset: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
