/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that the devices of a stage share, on GPUs: rt/op/rows.c says who has what.
 */
#include "../../team.h"
#include "kernel.h"

void part_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    const long here = part_here(st, n, whole);
    if (here)
        version_copy(st, y, x + st->shard * n, here * (long)sizeof *y);
    if (here < n)
        fill_zero(st, y + here, (n - here) * (long)sizeof *y);
}

void gather_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    long from[TEAM_MOST + 1], here = part_here(st, n, whole);
    for (long d = 0; d <= parts_of(st); d++)
        from[d] = (d * n < whole ? d * n : whole) * (long)sizeof *y;
    if (here)
        version_copy(st, y + st->shard * n, x, here * (long)sizeof *y);
    if (st->team)
        st->team->gather(st, y, from);
}
