/* SPDX-License-Identifier: Apache-2.0
 *
 * norm_rows.h: the same as norm.h of the rows of a device (docs/width.md), which has room for `rows` of `whole`.
 */
#ifndef NORM_ROWS_H
#define NORM_ROWS_H
#include "norm.h"
#include "../team.h"

/* sum: of its blocks, for dweight, and with a mean for dbias. */
static inline void norm_rows_dw(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                                const float *rstd, float *sum, int acc, long rows, long width, long whole)
{
    const long here = part_here(st, rows, whole);
    float *bias = mean ? sum + width : NULL;
    if (here)
        norm_dw(st, sum, bias, dy, x, mean, rstd, 0, here, width, block_of_part(st, rows));
    else
        fill_nothing(sum, (mean ? 2 : 1) * width);
    if (st->team)               /* what is wanted */
        st->team->sum(st, dweight ? sum : bias, (dweight && dbias ? 2 : 1) * width);
    if (dweight)
        give(dweight, sum, width, acc);
    if (dbias)
        give(dbias, bias, width, acc);
}
#endif
