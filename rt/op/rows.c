/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: rows that the devices of a stage share: each has a contiguous part of them.  One takes its part of what is whole, or
 * all get the parts of all.
 */
#include "kernel.h"
#include "../team.h"

/* n: elements of a part. */
void part_forward(Stage *st, real *y, const real *x, long n)
{
    memcpy(y, x + (st->team ? st->shard : 0) * n, (size_t)n * sizeof *y);
}

void gather_forward(Stage *st, real *y, const real *x, long n)
{
    long from[TEAM_MOST + 1];
    for (long d = 0; d <= parts_of(st); d++)
        from[d] = d * n * (long)sizeof *y;
    memcpy(y + (st->team ? st->shard : 0) * n, x, (size_t)n * sizeof *y);
    if (st->team)
        st->team->gather(st, y, from);
}
