/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_positions.c: Linear on the rows of a device (docs/width.md): it has the weight, and its blocks of that one's
 * gradient.
 */
#include "gemm.h"
#include "linear_team.h"

/* The gradients of a weight that all devices have, of which each has room for `rows` of `whole` rows.  tmp: of both. */
void linear_positions_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, void *tmp, int h,
                                 int acc, long rows, long in, long out, long whole)
{
    const long here = part_here(st, rows, whole), block = block_of_part(st, rows), n = dweight ? in * out : 0;
    float *sum = tmp;
    (void)h;
    if (!here)
        fill_nothing(sum, n + (dbias ? out : 0));
    if (here && dweight)
        product_give(st, sum, view(dy, 1, out), view(x, in, 1), 0, out, in, here, block);
    if (here && dbias)
        bias_blocks(st, sum + n, dy, 0, here, out, block);
    if (st->team)
        st->team->sum(st, sum, n + (dbias ? out : 0));
    if (dweight)
        give(dweight, sum, n, acc);
    if (dbias)
        give(dbias, sum + n, out, acc);
}
