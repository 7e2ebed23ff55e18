/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.h: copies to the host and back that a plan cannot have: for rt/spill.c, and rt/cuda/spill.c, which stands in for it.
 */
#ifndef SPILL_H
#define SPILL_H
#include "run.h"

static inline void check_range(const Stage *st, size_t host, int copy, long bytes)
{
    const StageInfo *info = st->worker->info;
    if (!st->spill || copy < 0 || copy >= info->copies || bytes < 0 || host > info->host || (size_t)bytes > info->host - host)
        quit(st->link, STATUS_RUN, "%s: copy %d, %ld bytes at %zu of the host's memory, is out of range; this folder is not "
             "what dpgen wrote", info->name, copy, bytes, host);
}

_Noreturn static inline void begins_again(const Stage *st, int copy)
{
    quit(st->link, STATUS_RUN, "%s: copy %d begins again before its end was waited for; this folder is not what dpgen wrote",
         st->worker->info->name, copy);
}

_Noreturn static inline void never_begun(const Stage *st, int copy)
{
    quit(st->link, STATUS_RUN, "%s: waits for copy %d, which was not begun; this folder is not what dpgen wrote",
         st->worker->info->name, copy);
}
#endif
