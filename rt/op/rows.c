/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: rows that the devices of a stage share: each has a contiguous part of them, and zeros in the room behind a shorter
 * one.  A device takes its part of what is whole, or all get the parts of all.  n: elements that a device has room for, of
 * `whole`.
 */
#include "kernel.h"
#include "../team.h"

void part_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    const long here = part_here(st, n, whole);
    if (here)
        memcpy(y, x + st->shard * n, (size_t)here * sizeof *y);
    fill_zeros(y, here, n);
}

void gather_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    long from[TEAM_MOST + 1], here = part_here(st, n, whole);
    for (long d = 0; d <= parts_of(st); d++)
        from[d] = least(d * n, whole) * (long)sizeof *y;
    if (here)
        memcpy(y + st->shard * n, x, (size_t)here * sizeof *y);
    if (st->team)
        st->team->gather(st, y, from);
}
