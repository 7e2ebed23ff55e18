/* SPDX-License-Identifier: Apache-2.0
 *
 * team.h: what the devices of a stage do together, for kernels and for the runtime.  team.c does it.
 *
 * A state that is divided is so many stretches of memory, each in as many contiguous parts as there are devices.  A device has
 * room for `room` elements of a stretch.  With stretches of `run` elements, element g of the whole lies in stretch g / run, and
 * belongs to device g % run / room.  So a last part may be shorter, or empty; what is behind it there is 0.
 */
#ifndef TEAM_H
#define TEAM_H
#include <stdbool.h>
#include <string.h>
#include "rt.h"

enum { TEAM_PIECE = 8192,       /* elements that are on their way at once: they lie on the stack of both sides */
       TEAM_MOST = 16 };        /* devices */

/* What a device has of `whole` in its room: the last parts may be shorter, or empty. */
static inline long part_here(const Stage *st, long room, long whole)
{
    long left = whole - st->shard * room;
    return left < 0 ? 0 : left < room ? left : room;
}

/* Devices that have parts; alone it has all. */
static inline long parts_of(const Stage *st) { return st->team ? st->shards : 1; }

/* Of an axis in blocks (docs/bits.md) the length of a block in the part that a device has. */
static inline long block_of_part(const Stage *st, long n)
{
    int blocks = st->shards > 1 ? st->blocks / st->shards : st->blocks;
    return blocks > 1 ? (n + blocks - 1) / blocks : n;
}

static inline void fill_zeros(real *x, long from, long until)
{
    if (from < until)
        memset(x + from, 0, (size_t)(until - from) * sizeof *x);
}

/* The sum of no terms: what it is added to stays as it is, -0 too. */
static inline void fill_nothing(float *x, long n)
{
    for (long i = 0; i < n; i++)
        x[i] = -0.0f;
}

struct Team {
    /* x[n] of all devices, added by the binary tree over them. */
    void (*sum)(Stage *st, float *x, long n);
    /* The same of x[all], of which only elements shard * n .. +n-1 are whole then, those below `all`. */
    void (*sum_part)(Stage *st, float *x, long n, long all);
    /* Bytes from[d] to from[d + 1] - 1 of x are there on device d, which may have none: all get what the others have. */
    void (*gather)(Stage *st, void *x, const long *from);
    /* x[bytes] of all devices, of which each byte is not 0 on one at most: all get what is there. */
    void (*take)(Stage *st, void *x, long bytes);
    /* The same, of which a device gets bytes shard * n .. +n-1, those below `all`; GPUs alone have it. */
    void (*take_part)(Stage *st, void *x, long n, long all);
    /* `out` bytes for device `with` of the team, which calls it too, and `in` of its; none are no message. */
    void (*swap)(Stage *st, int with, const void *mine, long out, void *theirs, long in);
    /* Device d gets elements from + d*step .. +n-1 of a divided g, those below `whole`; n at most TEAM_PIECE. */
    void (*deal)(Stage *st, float *to, const float *g, long whole, long outer, long room, long from, long step, long n);
    /* Between steps: bytes of the host's memory for device `with` of the team, or from it. */
    void (*pass)(Stage *st, int with, bool sending, void *buffer, long bytes);
};
#endif
