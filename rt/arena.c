/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c: the one piece of memory of a stage.
 *
 * Mapped once, before the first step, between two pages that nobody may touch: a kernel that leaves its arena
 * ends the job with a fault instead of a wrong number.  The end of the arena is rounded up to a page, so an overrun of
 * less than a page at the end goes unseen; `--dump-arena` and two runs with different `--fill` find those.
 * Every byte is written before the start, but for paced jobs: the memory is then really there, and the bytes that a run
 * never wrote can be told from those it did.
 *
 * Here the arena is memory that the runtime can read and write; on a GPU it is not.  So the rest of the runtime reads and
 * writes it through the functions below alone, and cuda/arena.c has them for that case.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "room.h"
#include "run.h"

int arena_open(Worker *w)
{
    /* paced: eight arenas of another machine have no room here, and nobody computes in them */
    w->stage.arena = pages_map(w->info->arena, w->info->pace ? -1 : w->run->opt.fill);
    if (!w->stage.arena)
        return complain(STATUS_RUN, "%s: no memory for its arena of %zu bytes: %s; plan with a smaller limit, or "
                        "check `ulimit -v` and the memory limit of the batch job", w->info->name, w->info->arena,
                        strerror(errno));
    return DONE;
}

void arena_close(Worker *w)
{
    pages_unmap(w->stage.arena, w->info->arena);
    free(w->stage.loss);
}

void arena_enter(Worker *w)
{
    (void)w;
}

void arena_warm(Worker *w)
{
    (void)w;
}

bool arena_read(Worker *w, const void *at, size_t n, ArenaTake take, void *to)
{
    for (size_t done = 0; done < n; done += ARENA_PIECE) {
        if (!take(to, (const char *)at + done, n - done < ARENA_PIECE ? n - done : ARENA_PIECE))
            return false;
        atomic_fetch_add(&w->beat, 1);
    }
    return true;
}

void arena_write(Worker *w, void *at, const void *from, size_t n)
{
    (void)w;
    if (at != from)
        memcpy(at, from, n);
}

void arena_record(Worker *w)
{
    (void)w;
}

void arena_step(Worker *w)
{
    w->info->step(&w->stage);
}

void arena_clock(Stage *st, double *at)
{
    (void)st;
    *at = seconds();
}

void *arena_shared(size_t n)
{
    return calloc(1, n);
}
