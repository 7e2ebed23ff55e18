/* SPDX-License-Identifier: Apache-2.0
 *
 * owned.h: which elements of a divided state or gradient lie on a device, and where there (team.h says how it is divided).
 */
#ifndef OWNED_H
#define OWNED_H
#include <stdbool.h>
#include <string.h>
#include "rt.h"

typedef struct { long run, each; int shard; long at, end; } Walk;       /* over elements at .. end-1 of the whole */

/* The next elements that lie together on the device, and where there; 0: there are no more. */
static inline long next(Walk *w, long *begin, long *local)
{
    while (w->at < w->end) {
        long stretch = w->at / w->run, in = w->at % w->run, first = w->shard * w->each;
        long stop = in < first ? first : in < first + w->each ? first + w->each : w->run;
        long n = (stop < w->run ? stop : w->run) - in;
        bool here = in >= first && in < first + w->each;
        *begin = w->at;
        *local = stretch * w->each + in - first;
        n = n < w->end - w->at ? n : w->end - w->at;
        w->at += n;
        if (here)
            return n;
    }
    return 0;
}

/* Elements from .. until-1 that a device has: into `to` side by side, or from there to their places in `whole`, which begins
 * with element `from`.  How many. */
static inline long pack(float *to, float *whole, const float *data, Walk w)
{
    long n, begin, local, count = 0, from = w.at;
    for (; (n = next(&w, &begin, &local)) > 0; count += n)
        if (data)
            memcpy(to + count, data + local, (size_t)n * sizeof *to);
        else if (whole)
            memcpy(whole + (begin - from), to + count, (size_t)n * sizeof *to);
    return count;
}

static inline Walk walk(int shard, long whole, long outer, long room, long from, long n)
{
    long end = from + n < whole ? from + n : whole;
    return (Walk){whole / outer, room, shard, from, from < end ? end : from};
}
#endif
