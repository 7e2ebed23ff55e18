/* SPDX-License-Identifier: Apache-2.0
 *
 * levels.h: what the devices of a stage send each other level by level, on processors (team.c) and on GPUs (cuda/team.c) alike.
 *
 * At level k a device swaps with device d xor 2^k.  What comes lies in a room until it is merged: so it goes in pieces.
 */
#ifndef LEVELS_H
#define LEVELS_H
#include "swap.h"

typedef struct {
    void *room;
    long bytes;                 /* of the room */
    void (*merge)(Stage *st, void *mine, const void *theirs, long bytes);
} Merging;

static inline long at_least(long a, long b) { return a > b ? a : b; }
static inline long at_most(long a, long b) { return a < b ? a : b; }

/* x of all devices becomes what is merged of all. */
static inline void levels_whole(Stage *st, void *x, long bytes, Merging m)
{
    unsigned char *mine = x;
    for (long from = 0; from < bytes; from += m.bytes) {
        const long k = at_most(m.bytes, bytes - from);
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, mine + from, k, m.room, k);
            m.merge(st, mine + from, m.room, k);
        }
    }
}

/* The same of bytes shard * n .. +n-1 alone, those below `all`, by the same tree.  Devices that are alike in the bits of the
 * levels so far share bytes that are not whole yet: each sends its partner those that the partner keeps, half of them. */
static inline void levels_part(Stage *st, void *x, long n, long all, Merging m)
{
    unsigned char *at = x;
    for (long level = 1; level < st->shards; level *= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level)
            for (long from = 0; from < n; from += m.bytes) {
                const long k = at_most(m.bytes, n - from), mine = at_most(part * n + from, all);
                const long away = at_most((part ^ level) * n + from, all), in = at_most(k, all - mine);
                swap(st, st->shard ^ (int)level, at + away, at_most(k, all - away), m.room, in);
                if (in)
                    m.merge(st, at + mine, m.room, in);
            }
}

/* The way back: at each level a device has twice as many parts. */
static inline void levels_gather(Stage *st, void *x, const long *from, long piece)
{
    unsigned char *all = x;
    for (long level = st->shards / 2; level > 0; level /= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level) {
            const long mine = from[part], theirs = from[part ^ level], out = from[part + 1] - mine;
            const long in = from[(part ^ level) + 1] - theirs;
            for (long at = 0; at < out || at < in; at += piece)
                swap(st, st->shard ^ (int)level, all + at_most(mine + at, mine + out), at_least(0, at_most(piece, out - at)),
                     all + at_most(theirs + at, theirs + in), at_least(0, at_most(piece, in - at)));
        }
}
#endif
