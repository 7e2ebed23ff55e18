/* SPDX-License-Identifier: Apache-2.0
 *
 * room.h: memory between two pages that nobody may touch: arenas, copies for checkpoints, and what is offloaded.
 */
#ifndef ROOM_H
#define ROOM_H
#include <string.h>
#include <unistd.h>
#include "pages.h"

/* Every byte is `fill`; below 0 none is written.  NULL: there is no such memory. */
static inline unsigned char *pages_map(size_t bytes, int fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    unsigned char *at = mmap(NULL, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, body, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    if (fill >= 0) {
        pages_large(at + page, body);
        memset(at + page, fill, bytes);
    }
    return at + page;
}

static inline void pages_unmap(unsigned char *at, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (at)
        munmap(at - page, (bytes + page - 1) / page * page + 2 * page);
}
#endif
