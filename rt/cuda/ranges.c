/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.c: what the host enqueues, as ranges that a profiler draws: NVTX.
 *
 * A range for each action of the plan, under its text, and in it one for each routine of the stage's source that calls a
 * kernel: h_3_backward.  Nsight Systems lays them over the kernels that were launched inside.  On with DPGEN_NVTX=1, and
 * where a profiler has put itself into the process, which NVTX learns from NVTX_INJECTION64_PATH; else no call is looked at.
 * The headers of NVTX are no part of each toolkit: without them there are no ranges, and DPGEN_NVTX=1 is refused.
 */
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "feed.h"

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0");
}

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

/* Ranges of a thread nest: `depth` are open, the routine's within the action's. */
static void end_to(Device *d, int depth)
{
    for (; d->ranges > depth; d->ranges--)
        nvtxRangePop();
}

static void range(Stage *st, int what, const char *where, const char *call, const Given *of)
{
    Device *d = device_of(st);
    (void)call, (void)of;
    if (what == CALL_ENDS || (what == CALL_BEGINS && d->routine == where))
        return;
    end_to(d, what == CALL_BEGINS && d->ranges > 0);
    d->routine = what == CALL_BEGINS ? where : NULL;
    if (where)
        nvtxRangePushA(where), d->ranges++;
}

int ranges_open(Worker *w)
{
    if (is_set("DPGEN_NVTX") || is_set("NVTX_INJECTION64_PATH"))
        w->stage.hook = range;
    return DONE;
}
#else
int ranges_open(Worker *w)
{
    if (!is_set("DPGEN_NVTX"))
        return DONE;
    return complain(STATUS_MACHINE, "%s: DPGEN_NVTX is set, and the job was compiled without nvtx3/nvToolsExt.h; install the "
                    "headers of NVTX and compile rt/cuda/ranges.c again, or unset it", w->info->name);
}
#endif
