/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupedLinear of which the devices of a stage have a part of every expert (docs/width.md): as linear_team.c, expert by
 * expert.
 */
#include "gemm.h"
#include "linear_team.h"

void grouped_columns_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, void *tmp,
                                long rows, long in, long out, long experts)
{
    for (long e = 0; e < experts; e++)
        product_give(st, room_of(dx, tmp) + offset[e] * in, view(dy + offset[e] * out, out, 1),
                     view(weight + e * out * in, in, 1), 0, offset[e + 1] - offset[e], in, out, block_of_part(st, out));
    put_rows(st, dx, close_sums(st, dx, tmp, rows * in), NULL, rows, in);
}

void grouped_rows_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                          void *tmp, long rows, long in, long out, long experts)
{
    for (long e = 0; e < experts; e++)
        product_give(st, room_of(y, tmp) + offset[e] * out, view(x + offset[e] * in, in, 1),
                     view(weight + e * out * in, 1, in), 0, offset[e + 1] - offset[e], out, in, block_of_part(st, in));
    const float *sum = close_sums(st, y, tmp, rows * out);
    for (long e = 0; e < experts; e++)
        put_rows(st, y + offset[e] * out, sum + offset[e] * out, bias ? bias + e * out : NULL, offset[e + 1] - offset[e], out);
}
