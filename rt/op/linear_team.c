/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear that the devices of a stage share (docs/width.md).  By columns: a device has rows of the weight, whole columns of y,
 * and its blocks of dx; the last parts may be shorter, or empty.  By rows: it has columns of the weight and of x, and its
 * blocks of y.  linear_team.h closes the sums.  The other calls are those of Linear on the part.  With divided rows a device
 * keeps its own rows of the sum.
 */
#include "gemm.h"
#include "linear_team.h"

/* The blocks that a device has of dx. */
static void columns_sums(Stage *st, float *sum, const real *dy, const real *weight, long rows, long in, long out, long pieces,
                         long whole)
{
    long here = part_here(st, out, whole);
    if (here)
        products(st, (Result){sum, in, 1, STORE, NULL}, view(dy, out, 1), view(weight, in, 1), (Several){1, 0, 0}, rows, in,
                 here, block_of_part(st, out / pieces), pieces);
    else
        fill_nothing(sum, rows * in);
}

void linear_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                               long out, long pieces, long whole)
{
    (void)h;
    columns_sums(st, room_of(dx, tmp), dy, weight, rows, in, out, pieces, whole);
    put_rows(st, dx, close_sums(st, dx, tmp, rows * in), NULL, rows, in);
}

/* Each device keeps its rows of dx: it has room for `mine`. */
void linear_columns_scatter_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                              long out, long pieces, long whole, long mine)
{
    (void)h;
    const long here = part_here(st, mine, rows);
    columns_sums(st, tmp, dy, weight, rows, in, out, pieces, whole);
    put_rows(st, dx, close_part(st, tmp, mine * in, rows * in), NULL, here, in);
    fill_zeros(dx, here * in, mine * in);
}

void linear_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows,
                         long in, long out)
{
    (void)h;
    product_give(st, room_of(y, tmp), view(x, in, 1), view(weight, 1, in), 0, rows, out, in, block_of_part(st, in));
    put_rows(st, y, close_sums(st, y, tmp, rows * out), bias, rows, out);
}

/* Each device keeps its rows of y: it has room for `mine`. */
void linear_rows_scatter_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h,
                                 long rows, long in, long out, long mine)
{
    const long here = part_here(st, mine, rows);
    (void)h;
    product_give(st, tmp, view(x, in, 1), view(weight, 1, in), 0, rows, out, in, block_of_part(st, in));
    put_rows(st, y, close_part(st, tmp, mine * out, rows * out), bias, here, out);
    fill_zeros(y, here * out, mine * out);
}
