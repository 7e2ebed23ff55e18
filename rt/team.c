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
#include "levels.h"
#include <string.h>
#include "parts.h"
#include "owned.h"

static void pass(Stage *st, int with, bool sending, void *buffer, long bytes)
{
    int peer = peer_of(st, with);
    half_end(st, peer, sending, half_begin(st, sending, buffer, peer, bytes));
}

static void add(Stage *st, void *mine, const void *theirs, long bytes)
{
    float *x = mine;
    const float *y = theirs;
    (void)st;
    for (long i = 0; i < bytes / (long)sizeof *x; i++)
        x[i] += y[i];
}

static void join(Stage *st, void *mine, const void *theirs, long bytes)
{
    unsigned char *x = mine;
    const unsigned char *y = theirs;
    (void)st;
    for (long i = 0; i < bytes; i++)
        x[i] |= y[i];
}

static void sum(Stage *st, float *x, long n)
{
    float room[TEAM_PIECE];
    levels_whole(st, x, n * (long)sizeof *x, (Merging){room, sizeof room, add});
}

static void sum_part(Stage *st, float *x, long n, long all)
{
    float room[TEAM_PIECE];
    levels_part(st, x, n * (long)sizeof *x, all * (long)sizeof *x, (Merging){room, sizeof room, add});
}

static void gather(Stage *st, void *x, const long *from)
{
    levels_gather(st, x, from, TEAM_PIECE * (long)sizeof(float));
}

static void take(Stage *st, void *x, long bytes)
{
    unsigned char room[TEAM_PIECE * sizeof(float)];
    levels_whole(st, x, bytes, (Merging){room, sizeof room, join});
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

const Team team_links = {.sum = sum, .sum_part = sum_part, .gather = gather, .take = take, .swap = swap, .deal = deal,
                         .pass = pass};
