/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.c: the actions of a step that compute and are no operators: sums over gradient groups and over the partial norms of
 * other devices, copies of weight versions.  Each element is one addition, in the order of the calls.
 */
#include <string.h>
#ifdef LIBRARY                  /* where no job is paced */
#include "rt.h"
#define paced(st) ((void)(st), 0)
#else
#include "run.h"
#endif

void group_fold(Stage *st, float *into, const float *from, long n)
{
    for (long i = 0; i < n && !paced(st); i++)
        into[i] += from[i];
}

void version_copy(Stage *st, void *newer, const void *older, long bytes)
{
    if (!paced(st))
        memcpy(newer, older, (size_t)bytes);
}

void norm_gather(Stage *st, double *into, const double *from, long n)
{
    for (long i = 0; i < n && !paced(st); i++)
        into[i] += from[i];
}

void fill_zero(Stage *st, void *to, long bytes)
{
    if (!paced(st))
        memset(to, 0, (size_t)bytes);
}
