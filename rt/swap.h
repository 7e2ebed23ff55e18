/* SPDX-License-Identifier: Apache-2.0
 *
 * swap.h: messages between the devices of a stage, on processors (team.c) and on GPUs (cuda/team.c) alike.
 */
#ifndef SWAP_H
#define SWAP_H
#include "link.h"
#include "meet.h"
#include "team.h"

static inline int peer_of(const Stage *st, int shard)
{
    return st->index + (shard - st->shard) * st->apart;
}

static inline void *half_begin(Stage *st, bool sending, void *buffer, int peer, long bytes)
{
    return link_begin(st, TEAM_REQUEST + !sending, sending, buffer, peer, 0, bytes);
}

static inline void half_end(Stage *st, int peer, bool sending, void *half)
{
    stage_waits(st, sending ? -1 - peer : 1 + peer);
    link_wait(st, half);
    stage_waits(st, 0);
}

/* Both halves begin before either is waited for: link_nccl.c makes one group of them. */
static inline void swap_with(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    int peer = peer_of(st, with);
    void *sent = half_begin(st, true, (void *)(uintptr_t)mine, peer, out), *got = half_begin(st, false, theirs, peer, in);
    half_end(st, peer, true, sent);
    half_end(st, peer, false, got);
}

/* Team.swap: none are no message. */
static inline void swap(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    int peer = peer_of(st, with);
    if (out && in)
        swap_with(st, with, mine, out, theirs, in);
    else if (out)
        half_end(st, peer, true, half_begin(st, true, (void *)(uintptr_t)mine, peer, out));
    else if (in)
        half_end(st, peer, false, half_begin(st, false, theirs, peer, in));
}
#endif
