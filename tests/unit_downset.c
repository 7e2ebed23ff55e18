/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_downset: stages over downward-closed prefixes, against brute force.
 *
 * The oracle gives every node a stage number, in all k^n ways, and keeps those in which no edge goes back and no stage is
 * empty: that is what a chain of k downward-closed prefixes is.  It knows no prefixes.  Transfers are bytes over 1 GB/s.
 * Of unequal devices it also tries every device for each stage, every number of stages that is allowed, and keeps those whose
 * states have room; transfers between two kinds take twice as long.
 */
#include "downset/downset.h"
#include "draw.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 10, STAGES = 5, KINDS = 2 };
typedef struct {
    int n, ways, kind[STAGES];          /* kind: by device */
    Ns time[NODES], slow[NODES];        /* on kind 0, on kind 1 */
    Bytes bytes[NODES], states[NODES], room[STAGES];
    bool edge[NODES][NODES];
    Ints from[NODES], to[NODES];
} Case;
static const int in_turn[STAGES] = {0, 1, 2, 3, 4};

static void make(Case *c, int most)
{
    memset(c, 0, sizeof *c);
    c->n = draw(1, most);
    c->ways = 2;
    for (int d = 0; d < STAGES; d++)
        c->room[d] = INT64_MAX;
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
static Ns value(const Case *c, const int *stage, const int *device, int k, bool wires)
{
    Ns time[STAGES] = {0}, most = 0;
    int count[STAGES] = {0};
    Bytes states[STAGES] = {0};
    for (int i = 0; i < c->n; i++) {
        time[stage[i]] += c->kind[device[stage[i]]] ? c->slow[i] : c->time[i];
        states[stage[i]] += c->states[i];
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
            wire += out ? c->ways * c->bytes[i] : 0;
        }
        if (!count[j] || states[j] > c->room[device[j]])
            return INT64_MAX;
        most = time[j] > most ? time[j] : most;
        if (wires && j + 1 < k && c->kind[device[j]] != c->kind[device[j + 1]])
            wire *= 2;
        most = wires && wire > most ? wire : most;
    }
    return most;
}

/* Of all assignments; runs: of those only that are runs of the order. */
static Ns oracle_on(const Case *c, const int *device, int k, bool wires, bool runs)
{
    int stage[NODES] = {0};
    Ns best = INT64_MAX;
    for (;;) {
        bool run = true;
        for (int i = 1; i < c->n; i++)
            run &= stage[i] >= stage[i - 1];
        Ns v = run || !runs ? value(c, stage, device, k, wires) : INT64_MAX;
        best = v < best ? v : best;
        int i = 0;
        while (i < c->n && ++stage[i] == k)
            stage[i++] = 0;
        if (i == c->n)
            return best;
    }
}

static Ns oracle(const Case *c, int k, bool wires, bool runs)
{
    return oracle_on(c, in_turn, k, wires, runs);
}

/* Of all rows of different devices, too. */
static Ns oracle_free(const Case *c, int devices, int least, int most, bool wires)
{
    Ns best = INT64_MAX;
    for (int k = least; k <= most; k++)
        for (int code = 0, all = 1 << (3 * k); code < all; code++) {
            int device[STAGES];
            bool legal = true;
            for (int j = 0; j < k; j++) {
                device[j] = code >> 3 * j & 7;
                legal &= device[j] < devices;
                for (int i = 0; i < j && legal; i++)        /* those of a kind in turn */
                    legal = device[i] != device[j] && (c->kind[device[i]] != c->kind[device[j]] || device[i] < device[j]);
            }
            Ns v = legal ? oracle_on(c, device, k, wires, false) : INT64_MAX;
            best = v < best ? v : best;
        }
    return best;
}

static void check_chain(const Case *c, const ForeignChain *got, bool wires, Ns want, int seed)
{
    int stage[NODES], seen = 0, k = got->stages;
    for (int j = 0, at = 0; j < k; j++)
        for (; at <= got->last[j] && at < c->n; at++) {
            stage[got->sequence[at]] = j;
            seen |= 1 << got->sequence[at];
        }
    check(seen == (1 << c->n) - 1 && value(c, stage, got->device, k, wires) == want, "the chain has not its value", seed);
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
    int k = draw(1, c.n > 7 ? 3 : 4);
    bool wires = draw(0, 1), few = seed % 5 == 0;
    Dag d = {.n = c.n, .classes = 1, .time = (const Ns *const[]){c.time}, .bytes = c.bytes, .from = c.from, .to = c.to,
             .wire = wires ? wire : NULL, .ways = 2};
    ForeignPlaces p = places_row((int[STAGES]){0}, NULL, k, k);
    ForeignChain got;
    bool found = downset_chain(&d, &p, MOST_PREFIXES, &got);
    check(found == (c.n >= k), "as many nodes as stages", seed);
    if (!found)
        return;
    Ns want = oracle(&c, k, wires, false);
    check(got.value == want && got.bound == want && got.all, "the least bottleneck", seed);
    check_chain(&c, &got, wires, want, seed);
    if (!few)
        return;
    orders_chain(&d, &p, 20000, &got);
    check(got.bound <= want && got.value >= want && got.value <= oracle(&c, k, wires, true), "the best of some orders", seed);
    check(c.n > 6 || got.value == want, "the best of all orders", seed);
    check_chain(&c, &got, wires, got.value, seed);
}

/* Devices of two kinds, in a given order or a free one; some have no room for all states. */
static void test_kinds(int seed)
{
    Case c;
    state = (uint64_t)seed;
    make(&c, 5);
    c.ways = draw(1, 2);
    int devices = draw(1, 4), least = draw(1, devices), most = draw(least, devices), small = draw(0, 2);
    bool wires = draw(0, 1), free = draw(0, 1);
    Bytes sum = 1;
    for (int i = 0; i < c.n; i++) {
        c.slow[i] = draw(0, 3) ? c.time[i] + draw(0, 40) : draw(0, 30);
        sum += c.states[i] = draw(0, 9);
    }
    int class[STAGES], room[KINDS] = {draw(1, (int)sum), draw(1, (int)sum)};
    for (int d = 0; d < devices; d++) {
        class[d] = c.kind[d] = draw(0, 1);
        c.room[d] = small ? INT64_MAX : room[c.kind[d]];
    }
    Wire wires_of[STAGES * STAGES];
    for (int i = 0; i < STAGES * STAGES; i++)
        wires_of[i] = (Wire){.rate = c.kind[i / STAGES] == c.kind[i % STAGES] ? 1e9 : 5e8};
    Cost wire = {.devices = STAGES, .wire = wires_of};
    Dag d = {.n = c.n, .classes = KINDS, .time = (const Ns *const[]){c.time, c.slow}, .bytes = c.bytes, .from = c.from,
             .to = c.to, .states = c.states, .wire = wires ? &wire : NULL, .ways = c.ways};
    ForeignPlaces p = free ? places_free(c.kind, class, c.room, devices, least, most) : places_row(class, c.room, least, most);
    ForeignChain got;
    Ns want = INT64_MAX;
    for (int k = least; k <= most && !free; k++) {
        Ns v = oracle(&c, k, wires, false);
        want = v < want ? v : want;
    }
    want = free ? oracle_free(&c, devices, least, most, wires) : want;
    bool found = downset_chain(&d, &p, MOST_PREFIXES, &got);
    check(found == (want < INT64_MAX), "are there stages with room", seed);
    if (!found || want == INT64_MAX)
        return;
    for (int j = 0; free && j < got.stages; j++)        /* one device stands for all of its kind */
        check(got.device[j] < devices, "a device", seed);
    check(got.value == want && got.bound == want && got.all, "the least bottleneck of unequal devices", seed);
    check_chain(&c, &got, wires, want, seed);
    found = orders_chain(&d, &p, 20000, &got);
    check(found && got.bound <= want && got.value == want, "the best of all orders on unequal devices", seed);
    if (found)
        check_chain(&c, &got, wires, got.value, seed);
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
    Dag d = {.n = N, .classes = 1, .time = (const Ns *const[]){time}, .bytes = bytes, .from = from, .to = to};
    for (int k = 1; k <= 16; k++) {
        ForeignChain c;
        ForeignPlaces p = places_row((int[16]){0}, NULL, k, k);
        check(downset_chain(&d, &p, MOST_PREFIXES, &c) && c.all && c.prefixes == 31 * 31
              && c.value == (Ns)((N + k - 1) / k) * 1000000000 && c.bound == c.value, "two chains", k);
    }
}

/* ---- large graphs: no worse than the best of 400 random orders, each with its own best stages ------------------- */

enum { LARGE = 1400 };
typedef struct { int n; Ns time[LARGE]; Bytes bytes[LARGE]; Ints from[LARGE], to[LARGE]; } Large;

static int add(Large *g, int after)
{
    g->time[g->n] = draw(1, 30000000);
    g->bytes[g->n] = draw(1, 20) * 100000;
    if (after >= 0) {
        *PUSH(&g->to[after]) = g->n;
        *PUSH(&g->from[g->n]) = after;
    }
    return g->n++;
}

/* Blocks of 2 to 9 branches of up to 15 nodes, one after the other. */
static void make_large(Large *g, int nodes)
{
    memset(g, 0, sizeof *g);
    for (int last = add(g, -1); g->n < nodes;) {
        int branches = draw(2, 9), end[9];
        for (int i = 0; i < branches; i++) {
            end[i] = last;
            for (int k = draw(1, 15); k > 0; k--)
                end[i] = add(g, end[i]);
        }
        last = add(g, end[0]);
        for (int i = 1; i < branches; i++) {
            *PUSH(&g->to[end[i]]) = last;
            *PUSH(&g->from[last]) = end[i];
        }
    }
}

static void random_order(const Large *g, int *order)
{
    static int missing[LARGE], ready[LARGE];
    int waiting = 0;
    for (int i = 0; i < g->n; i++)
        if ((missing[i] = g->from[i].n) == 0)
            ready[waiting++] = i;
    for (int x = 0; x < g->n; x++) {
        int at = draw(0, waiting - 1), node = order[x] = ready[at];
        ready[at] = ready[--waiting];
        for (int k = 0; k < g->to[node].n; k++)
            if (--missing[g->to[node].at[k]] == 0)
                ready[waiting++] = g->to[node].at[k];
    }
}

/* The least longest stage or transfer of an order, by a table of stages and ends; a transfer is 2 ns a byte. */
static Ns least_of(const Large *g, const int *order, int k)
{
    static Ns time[LARGE + 1], wire[LARGE + 1], was[LARGE + 1], now[LARGE + 1];
    static bool made[LARGE];
    memset(made, 0, sizeof made);
    for (int x = 0; x < g->n; x++) {
        made[order[x]] = true;
        time[x + 1] = time[x] + g->time[order[x]];
        wire[x + 1] = wire[x] + (g->to[order[x]].n ? 2 * g->bytes[order[x]] : 0);
        for (int i = 0; i < g->from[order[x]].n; i++) {
            int operand = g->from[order[x]].at[i], unread = 0;
            for (int r = 0; r < g->to[operand].n; r++)
                unread += !made[g->to[operand].at[r]];
            wire[x + 1] -= unread ? 0 : 2 * g->bytes[operand];
        }
        was[x + 1] = INT64_MAX;
    }
    was[0] = 0;
    for (int j = 1; j <= k; j++) {
        for (int x = 0; x <= g->n; x++) {
            now[x] = INT64_MAX;
            for (int y = x - 1; y >= 0 && time[x] - time[y] < now[x]; y--) {
                Ns v = time[x] - time[y] > was[y] ? time[x] - time[y] : was[y];
                v = j < k && wire[x] > v ? wire[x] : v;
                now[x] = v < now[x] ? v : now[x];
            }
        }
        memcpy(was, now, sizeof was);
    }
    return was[g->n];
}

/* SLOW=1: up to 1,200 nodes, with all that a command looks at. */
static void test_large(int seed, int nodes, int k, const Cost *wire, int64_t looks)
{
    static Large g;
    static int order[LARGE];
    state = (uint64_t)seed;
    make_large(&g, nodes);
    Dag d = {.n = g.n, .classes = 1, .time = (const Ns *const[]){g.time}, .bytes = g.bytes, .from = g.from, .to = g.to,
             .wire = wire, .ways = 2};
    ForeignPlaces p = places_row((int[STAGES]){0}, NULL, k, k);
    ForeignChain got;
    if (looks)
        orders_chain(&d, &p, looks, &got);
    else
        check(downset_chain(&d, &p, MOST_PREFIXES, &got) && !got.all, "more prefixes than are looked at", seed);
    check(got.bound <= got.value && least_of(&g, got.sequence, k) == got.value, "the value of an order", seed);
    for (int i = 0; i < 400; i++) {
        random_order(&g, order);
        Ns least = least_of(&g, order, k);
        check(got.value <= least && got.bound <= least, "a random order is better", seed);
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
    for (int seed = 1; seed <= 600; seed++)
        test_kinds(seed);
    test_ladder();
    bool slow = getenv("SLOW") && *getenv("SLOW");
    for (int seed = 1; seed <= 3; seed++)
        test_large(seed, slow ? (int[]){300, 600, 1200}[seed - 1] : 100 + 20 * seed, 2 + seed, &wire, slow ? 0 : 20000000);
    mem_free_all();
    printf("unit_downset: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
