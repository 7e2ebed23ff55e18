/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_team.c: Linear that the devices of a stage share, by cublasLt: rt/op/linear_team.c says who has what.  A device adds
 * up its terms in one product, in f32.  Then the team adds (team.h), and what Linear does to a finished sum follows.  The room
 * behind a shorter last part holds zeros, which a product takes along.  With divided rows a device keeps its own of the sum.
 */
#include "../../team.h"
#include "product.h"
#include "sums.h"

/* Of the sums of `rows` rows, [rows n], those of the rows that a device keeps: it has room for `mine`. */
static void keep_rows(Stage *st, real *y, float *sum, const real *bias, long rows, long n, long mine)
{
    const long here = part_here(st, mine, rows), first = st->shard * mine < rows ? st->shard * mine : rows;
    if (st->team)
        st->team->sum_part(st, sum, mine * n, rows * n);
    sums_put(st, y, sum + first * n, bias, here, n);
    if (here < mine)
        fill_zero(st, y + here * n, (mine - here) * n * (long)sizeof *y);
}

/* y[rows out] of the columns of x and of the weight that a device has. */
void open_linear_rows_forward(Stage *st, int h, long rows, long in, long out)
{
    product_open(st, h, 0, (Recipe){ .call = "linear_rows_forward", .batch = 1, .m = rows, .n = out, .k = in, .tb = 1,
                                     .wide = 1 });
}

void linear_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows,
                         long in, long out)
{
    float *sum = tmp ? tmp : (float *)(void *)y;
    (void)in;
    product_run(st, h, 0, sum, x, weight, NULL, 0);
    if (st->team)
        st->team->sum(st, sum, rows * out);
    sums_put(st, y, sum, bias, rows, out);
}

void open_linear_rows_scatter_forward(Stage *st, int h, long rows, long in, long out, long mine)
{
    (void)mine;
    open_linear_rows_forward(st, h, rows, in, out);
}

void linear_rows_scatter_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h,
                                 long rows, long in, long out, long mine)
{
    (void)in;
    product_run(st, h, 0, tmp, x, weight, NULL, 0);
    keep_rows(st, y, tmp, bias, rows, out, mine);
}

/* dx[rows in] of the columns of y that a device has. */
void open_linear_columns_backward_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole)
{
    (void)pieces, (void)whole;
    product_open(st, h, 0, (Recipe){ .call = "linear_columns_backward_x", .batch = 1, .m = rows, .n = in, .k = out,
                                     .wide = 1 });
}

void linear_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                               long out, long pieces, long whole)
{
    float *sum = tmp ? tmp : (float *)(void *)dx;
    (void)out, (void)pieces, (void)whole;
    product_run(st, h, 0, sum, dy, weight, NULL, 0);
    if (st->team)
        st->team->sum(st, sum, rows * in);
    sums_put(st, dx, sum, NULL, rows, in);
}

void open_linear_columns_scatter_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole, long mine)
{
    (void)mine;
    open_linear_columns_backward_x(st, h, rows, in, out, pieces, whole);
}

void linear_columns_scatter_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                              long out, long pieces, long whole, long mine)
{
    (void)out, (void)pieces, (void)whole;
    product_run(st, h, 0, tmp, dy, weight, NULL, 0);
    keep_rows(st, dx, tmp, NULL, rows, in, mine);
}

/* Whole on each device: the product adds in an order of its own, whatever is packed. */
void open_linear_pieces_backward_x(Stage *st, int h, long rows, long in, long out, long pieces)
{
    (void)pieces;
    product_open(st, h, 0, (Recipe){ .call = "linear_pieces_backward_x", .batch = 1, .m = rows, .n = in, .k = out });
}

void linear_pieces_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out,
                              long pieces)
{
    (void)rows, (void)in, (void)out, (void)pieces;
    if (dx)
        product_run(st, h, 0, dx, dy, weight, NULL, 0);
}
