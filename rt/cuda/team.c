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
 * sums of many devices go level by level.  Both have the same bits.
 *
 * Order.  All devices of a stage have one source, so they make these calls in the same order.  A swap waits for the partner's
 * computation alone, and each level has one partner.  So swaps cannot wait for each other in a ring.
 *
 * Cost: log2 of the devices times the bytes of a sum, and a pass over memory at each level.  Not handled: a sum that other work
 * hides.  No GPU has run it yet (docs/cuda.md).
 */
#include "swap.h"
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

/* The same answer on all. */
static bool at_once(const Stage *st, long n)
{
    if (st->shards > 2 && n * (long)sizeof(float) * st->shards > LARGE)
        return false;
    for (int k = 0; k < st->shards && st->worker->run->count > 1; k++)
        if (!device_at(st, k)->reaches)
            return false;
    return st->worker->run->count > 1;
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

static void sum(Stage *st, float *x, long n)
{
    size_t bytes;
    float *theirs = team_room(st, &bytes);
    long most = (long)(bytes / sizeof *theirs);
    const bool direct = at_once(st, n);
    for (long from = 0, k; from < n; from += k) {
        k = n - from < most ? n - from : most;
        if (direct)
            sum_at_once(st, x + from, theirs, k);
        for (int level = 1; level < st->shards && !direct; level *= 2) {
            swap(st, st->shard ^ level, x + from, k * (long)sizeof *x, theirs, k * (long)sizeof *x);
            sums_add(st, x + from, theirs, k);
        }
    }
}

static void take(Stage *st, void *x, long n)
{
    size_t bytes;
    unsigned char *theirs = team_room(st, &bytes), *mine = x;
    for (long from = 0, k; from < n; from += k) {
        k = n - from < (long)bytes ? n - from : (long)bytes;
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, mine + from, k, theirs, k);
            sums_join(st, mine + from, theirs, k);
        }
    }
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

const Team team_links = {.sum = sum, .take = take, .swap = swap, .pass = pass};
