/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: the devices of a stage that share its operators.
 *
 * Problem: sums over devices with the bits of one device.
 *
 * Method.  Device d has neighbouring blocks of each divided sum, so a whole subtree (docs/bits.md).  The upper levels are
 * messages: at level k it swaps what it has with device d xor 2^k, and both add.  Addition is commutative, so all have the same
 * bits (recursive doubling: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH,
 * 2005).  Libraries choose an order of their own by size and number, so none is asked.
 *
 * Where rows are divided too, each device keeps its own rows of a sum, and sends half of what is left at each level (recursive
 * halving); the same way back gathers rows.
 *
 * Cost: log2 of the devices times the bytes of a sum.  Not handled: a sum that other work hides.  cuda/team.c has the same for
 * GPUs, which have memory of their own.
 */
#include "swap.h"
#include <string.h>
#include "parts.h"
#include "owned.h"

static void pass(Stage *st, int with, bool sending, void *buffer, long bytes)
{
    int peer = peer_of(st, with);
    half_end(st, peer, sending, half_begin(st, sending, buffer, peer, bytes));
}

static void sum(Stage *st, float *x, long n)
{
    float theirs[TEAM_PIECE];
    for (long from = 0; from < n; from += TEAM_PIECE) {
        long k = n - from < TEAM_PIECE ? n - from : TEAM_PIECE;
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, x + from, k * (long)sizeof *theirs, theirs, k * (long)sizeof *theirs);
            for (long i = 0; i < k; i++)
                x[from + i] += theirs[i];
        }
    }
}

static long at_least(long a, long b) { return a > b ? a : b; }
static long at_most(long a, long b) { return a < b ? a : b; }

/* Level by level as in sum(), so each element has the same tree.  Devices that are alike in the bits of the levels so far share
 * elements that are not whole yet: each sends its partner those that the partner keeps, half of them. */
static void sum_part(Stage *st, float *x, long n, long all)
{
    float theirs[TEAM_PIECE];
    for (long level = 1; level < st->shards; level *= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level)
            for (long from = 0; from < n; from += TEAM_PIECE) {
                long k = at_most(TEAM_PIECE, n - from), mine = at_most(part * n + from, all);
                long away = at_most((part ^ level) * n + from, all), in = at_most(k, all - mine);
                swap(st, st->shard ^ (int)level, x + away, at_most(k, all - away) * (long)sizeof *theirs, theirs,
                     in * (long)sizeof *theirs);
                for (long i = 0; i < in; i++)
                    x[mine + i] += theirs[i];
            }
}

/* The way back: at each level a device has twice as many parts. */
static void gather(Stage *st, void *x, const long *from)
{
    const long piece = TEAM_PIECE * (long)sizeof(float);
    unsigned char *all = x;
    for (long level = st->shards / 2; level > 0; level /= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level) {
            long mine = from[part], theirs = from[part ^ level], out = from[part + 1] - mine;
            long in = from[(part ^ level) + 1] - theirs;
            for (long at = 0; at < out || at < in; at += piece)
                swap(st, st->shard ^ (int)level, all + at_most(mine + at, mine + out), at_least(0, at_most(piece, out - at)),
                     all + at_most(theirs + at, theirs + in), at_least(0, at_most(piece, in - at)));
        }
}

static void take(Stage *st, void *x, long bytes)
{
    unsigned char theirs[TEAM_PIECE * sizeof(float)], *mine = x;
    for (long from = 0; from < bytes; from += (long)sizeof theirs) {
        long k = bytes - from < (long)sizeof theirs ? bytes - from : (long)sizeof theirs;
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, mine + from, k, theirs, k);
            for (long i = 0; i < k; i++)
                mine[from + i] |= theirs[i];
        }
    }
}

static void deal(Stage *st, float *to, const float *g, long whole, long outer, long room, long from, long step, long n)
{
    float mine[TEAM_PIECE], theirs[TEAM_PIECE];
    for (int with = 0; with < st->shards; with++) {
        int d = st->shard ^ with;
        Walk away = walk(st->shard, whole, outer, room, from + d * step, n);
        Walk here = walk(d, whole, outer, room, from + st->shard * step, n);
        long out = pack(mine, NULL, g, away), in = pack(NULL, NULL, NULL, here);
        if (with == 0)
            memcpy(theirs, mine, (size_t)out * sizeof *mine);
        if (with)
            swap(st, d, mine, out * (long)sizeof *mine, theirs, in * (long)sizeof *mine);
        pack(theirs, to, NULL, here);
    }
}

const Team team_links = {sum, sum_part, gather, take, swap, deal, pass};
