/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_team.c: Linear that the devices of a stage share, by oneDNN: rt/op/linear_team.c says who has what.  The library adds
 * in an order of its own, so a device has one block of each sum, and adds up its terms in one product, in f32.  The room
 * behind a shorter last part holds zeros, which a product takes along.  Entries are chosen as in linear.c.
 */
#include "../linear_team.h"
#include "product.h"

static const int bf16 = sizeof(real) != sizeof(float);

/* ---- rows of the stored weight's other axis: y is a sum ---------------------------------------------------------- */

void open_linear_rows_forward(Stage *st, int h, long rows, long in, long out)
{
    st->handle[h] = product_open(st, (Recipe){ .batch = 1, .m = rows, .n = out, .k = in, .tb = 1, .wide = 1 });
}

void open_linear_rows_scatter_forward(Stage *st, int h, long rows, long in, long out, long mine)
{
    (void)mine;
    open_linear_rows_forward(st, h, rows, in, out);
}

void linear_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows,
                         long in, long out)
{
    (void)in;
    product_run(st, st->handle[h], room_of(y, tmp), x, weight, NULL);
    put_rows(st, y, close_sums(st, y, tmp, rows * out), bias, rows, out);
}

void linear_rows_scatter_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h,
                                 long rows, long in, long out, long mine)
{
    const long here = part_here(st, mine, rows);
    (void)in;
    product_run(st, st->handle[h], tmp, x, weight, NULL);
    put_rows(st, y, close_part(st, tmp, mine * out, rows * out), bias, here, out);
    fill_zeros(y, here * out, mine * out);
}

/* ---- columns: the gradient of x is a sum ------------------------------------------------------------------------- */

static Recipe to_x(long rows, long in, long out)
{
    return (Recipe){ .batch = 1, .m = rows, .n = in, .k = out, .wide = 1 };
}

void open_linear_columns_backward_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole)
{
    (void)pieces, (void)whole;
    if (bf16)
        st->handle[h] = product_open(st, to_x(rows, in, out));
}

void open_linear_columns_scatter_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole, long mine)
{
    (void)mine;
    open_linear_columns_backward_x(st, h, rows, in, out, pieces, whole);
}

static void columns_sums(Stage *st, float *sum, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    if (bf16)
        product_run(st, st->handle[h], sum, dy, weight, NULL);
    else
        product_f32(st, to_x(rows, in, out), sum, (const float *)dy, (const float *)weight);
}

void linear_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                               long out, long pieces, long whole)
{
    (void)pieces, (void)whole;
    columns_sums(st, room_of(dx, tmp), dy, weight, h, rows, in, out);
    put_rows(st, dx, close_sums(st, dx, tmp, rows * in), NULL, rows, in);
}

void linear_columns_scatter_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                              long out, long pieces, long whole, long mine)
{
    const long here = part_here(st, mine, rows);
    (void)pieces, (void)whole;
    columns_sums(st, tmp, dy, weight, h, rows, in, out);
    put_rows(st, dx, close_part(st, tmp, mine * in, rows * in), NULL, here, in);
    fill_zeros(dx, here * in, mine * in);
}
