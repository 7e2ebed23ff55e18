/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c: the one piece of memory of a stage.
 *
 * Mapped once, before the first step, between two pages that nobody may touch: a kernel that leaves its arena
 * ends the job with a fault instead of a wrong number.  The end of the arena is rounded up to a page, so an overrun of
 * less than a page at the end goes unseen; `--dump-arena` and two runs with different `--fill` find those.
 * Every byte is written before the start, but for paced jobs: the memory is then really there, and the bytes that a run
 * never wrote can be told from those it did.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "run.h"

enum { ALIGN = 4096 };

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

unsigned char *arena_map(size_t bytes, int fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = round_up(ALIGN, page);
    size_t body = round_up(bytes, guard);
    unsigned char *at = mmap(NULL, body + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at + guard, body, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    if (fill >= 0)
        memset(at + guard, fill, bytes);
    return at + guard;
}

int arena_open(Worker *w)
{
    /* paced: eight arenas of another machine have no room here, and nobody computes in them */
    w->stage.arena = arena_map(w->info->arena, w->info->pace ? -1 : w->run->opt.fill);
    if (!w->stage.arena)
        return complain(STATUS_RUN, "%s: no memory for its arena of %zu bytes: %s; plan with a smaller limit, or "
                        "check `ulimit -v` and the memory limit of the batch job", w->info->name, w->info->arena,
                        strerror(errno));
    return DONE;
}

int arena_dump(const Worker *w, const char *path)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", path, w->info->name);
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || !write_all(file, w->stage.arena, w->info->arena) || close(file) != 0)
        return complain(STATUS_RUN, "%s: cannot write the arena: %s", name, strerror(errno));
    return DONE;
}
