/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: GPUs that share the operators of their stage: rt/team.c, where the numbers lie in the memory of a GPU.
 *
 * Method.  The tree is that of rt/team.c: at level k a device swaps what it has with device d xor 2^k, and both add.  A swap
 * is one send and one receive, ordered with the stage's computation, and the host waits for neither.  What comes lies in
 * team_room() until it is added, so a sum goes in pieces of that size.
 *
 * GPUs of one process may read each other's memory.  A sum is then one kernel on each: it reads what all have, and adds in
 * the order of the tree (one-shot all-reduce, as vLLM has it for inference).  That is (T-1)/log2 T times the bytes, so large
 * sums of many devices go level by level.  Both have the same bits.  Of a sum of which it keeps a part, and of rows that it
 * gathers, a device reads no more than it would be sent.
 *
 * Order.  All devices of a stage have one source, so they make these calls in the same order.  A swap waits for the partner's
 * computation alone, and each level has one partner.  So swaps cannot wait for each other in a ring.
 *
 * Cost: log2 of the devices times the bytes of a sum, and a pass over memory at each level.  Not handled: a sum that other work
 * hides.  No GPU has run it yet (docs/cuda.md).
 */
#include "levels.h"
#include "device.h"
#include "op/cuda/sums.h"
#include "parts.h"
#include "run.h"

static Device *device_at(const Stage *st, int shard)
{
    const Run *run = st->worker->run;
    return device_of(&run->worker[peer_of(st, shard) - run->first].stage);
}

/* What each device was given so far comes before what any is given from now on.  The hosts' threads meet as well, so what they
 * have written of their devices can be read. */
static void meet(Stage *st)
{
    for (int level = 1; level < st->shards; level *= 2)
        swap_with(st, st->shard ^ level, NULL, 0, NULL, 0);
}

enum { LARGE = 2 << 20 };       /* bytes of all devices together; nobody has measured it */

/* Is the memory of all within reach?  The same answer on all. */
static bool reach(const Stage *st)
{
    for (int k = 0; k < st->shards && st->worker->run->count > 1; k++)
        if (!device_at(st, k)->reaches)
            return false;
    return st->worker->run->count > 1;
}

static bool at_once(const Stage *st, long n)
{
    return reach(st) && (st->shards <= 2 || n * (long)sizeof(float) * st->shards <= LARGE);
}

/* k of them, from the memory of all.  Nobody writes over what another still reads. */
static void sum_at_once(Stage *st, float *x, float *room, long k)
{
    const float *all[TEAM_MOST];
    device_of(st)->shared = x;
    meet(st);
    for (int i = 0; i < st->shards; i++)
        all[i] = device_at(st, i)->shared;
    sums_tree(st, room, all, st->shards, k);
    meet(st);
    version_copy(st, x, room, k * (long)sizeof *x);
}

static void add(Stage *st, void *mine, const void *theirs, long bytes)
{
    sums_add(st, mine, theirs, bytes / (long)sizeof(float));
}

static Merging merging(const Stage *st, void (*merge)(Stage *st, void *mine, const void *theirs, long bytes))
{
    size_t bytes;
    void *room = team_room(st, &bytes);
    return (Merging){room, (long)bytes, merge};
}

static void sum(Stage *st, float *x, long n)
{
    const Merging m = merging(st, add);
    const long most = m.bytes / (long)sizeof *x;
    if (!at_once(st, n))
        levels_whole(st, x, n * (long)sizeof *x, m);
    else
        for (long from = 0; from < n; from += most)
            sum_at_once(st, x + from, m.room, at_most(most, n - from));
}

/* From the memory of all: each device reads as much as it keeps, and nobody reads what another one writes. */
static void sum_part(Stage *st, float *x, long n, long all)
{
    const float *of[TEAM_MOST];
    const long mine = at_most(st->shard * n, all);
    if (!reach(st)) {
        levels_part(st, x, n * (long)sizeof *x, all * (long)sizeof *x, merging(st, add));
        return;
    }
    device_of(st)->shared = x;
    meet(st);
    for (int i = 0; i < st->shards; i++)
        of[i] = (const float *)device_at(st, i)->shared + mine;
    sums_tree(st, x + mine, of, st->shards, at_most(n, all - mine));
    meet(st);
}

static void gather(Stage *st, void *x, const long *from)
{
    if (!reach(st)) {
        levels_gather(st, x, from, merging(st, NULL).bytes);
        return;
    }
    device_of(st)->shared = x;
    meet(st);
    for (int with = 1; with < st->shards; with++) {
        const int d = st->shard ^ with;
        version_copy(st, (char *)x + from[d], (const char *)device_at(st, d)->shared + from[d], from[d + 1] - from[d]);
    }
    meet(st);
}

static void take(Stage *st, void *x, long bytes)
{
    levels_whole(st, x, bytes, merging(st, sums_join));
}

static void take_part(Stage *st, void *x, long n, long all)
{
    levels_part(st, x, n, all, merging(st, sums_join));
}

static bool into_buffer(void *to, const void *piece, size_t n)
{
    unsigned char **at = to;
    memcpy(*at, piece, n);
    *at += n;
    return true;
}

/* From the memory of this host to that of another, over both GPUs: what carries sums carries states too. */
static void pass(Stage *st, int with, bool sending, void *buffer, long n)
{
    int peer = peer_of(st, with);
    unsigned char *to = buffer;
    size_t bytes;
    void *room = team_room(st, &bytes);
    if ((size_t)n > bytes)
        quit(st->link, STATUS_RUN, "stage %d: %ld bytes of a state are too many at once", st->index, n);
    if (sending)
        arena_write(st->worker, room, buffer, (size_t)n);
    half_end(st, peer, sending, half_begin(st, sending, room, peer, n));
    if (!sending)
        arena_read(st->worker, room, (size_t)n, into_buffer, &to);
}

const Team team_links = {.sum = sum, .sum_part = sum_part, .gather = gather, .take = take, .take_part = take_part, .swap = swap,
                         .pass = pass};
