/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear and GroupedLinear that the devices of a stage share (docs/width.md).  By columns: a device has rows of the weight,
 * whole columns of y, and its blocks of dx; the last parts may be shorter, or empty.  By rows: it has columns of the weight and
 * of x, and its blocks of y.  It adds its blocks in f32; then the team adds (team.h), and what Linear does to a finished sum
 * follows.  The other calls are those of Linear on the part.  With divided rows a device keeps its own rows of the sum.
 * By rows alone: it has the weight, and its blocks of the weight's gradient.
 */
#include "gemm.h"
#include "../team.h"

/* The sums of the part, [rows n], of all devices. */
static float *close_sums(Stage *st, real *y, void *tmp, long n)
{
    float *sum = tmp ? tmp : (float *)(void *)y;
    if (st->team)
        st->team->sum(st, sum, n);
    return sum;
}

/* Those of the rows that this device keeps, in room for n of `whole` numbers. */
static const float *close_part(Stage *st, float *sum, long n, long whole)
{
    if (st->team)
        st->team->sum_part(st, sum, n, whole);
    return sum + least(st->shard * n, whole);
}

static float *room_of(real *y, void *tmp)
{
    return tmp ? tmp : (float *)(void *)y;
}

/* The blocks that a device has of dx. */
static void columns_sums(Stage *st, float *sum, const real *dy, const real *weight, long rows, long in, long out, long pieces,
                         long whole)
{
    long here = part_here(st, out, whole);
    if (here)
        product_give_in(st, sum, view(dy, out, 1), view(weight, in, 1), 0, rows, in, here, block_of_part(st, out / pieces),
                        pieces);
    else
        fill_nothing(sum, rows * in);
}

void linear_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                               long out, long pieces, long whole)
{
    (void)h;
    columns_sums(st, room_of(dx, tmp), dy, weight, rows, in, out, pieces, whole);
    const float *sum = close_sums(st, dx, tmp, rows * in);
    MAP(rows * in, i)
        put(dx, i, sum[i]);
}

/* Each device keeps its rows of dx: it has room for `mine`. */
void linear_columns_scatter_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in,
                              long out, long pieces, long whole, long mine)
{
    (void)h;
    const long here = part_here(st, mine, rows) * in;
    columns_sums(st, tmp, dy, weight, rows, in, out, pieces, whole);
    const float *sum = close_part(st, tmp, mine * in, rows * in);
    MAP(here, i)
        put(dx, i, sum[i]);
    fill_zeros(dx, here, mine * in);
}

/* Finished sums, with the bias. */
static void put_rows(Stage *st, real *y, const float *sum, const real *bias, long rows, long out)
{
    EACH(rows * out >= 4 * SPAN)
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < out; j++)
            put(y, i * out + j, bias ? sum[i * out + j] + get(bias, j) : sum[i * out + j]);     /* -0 stays */
}

void linear_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows,
                         long in, long out)
{
    (void)h;
    product_give_in(st, room_of(y, tmp), view(x, in, 1), view(weight, 1, in), 0, rows, out, in, block_of_part(st, in), 1);
    put_rows(st, y, close_sums(st, y, tmp, rows * out), bias, rows, out);
}

/* Each device keeps its rows of y: it has room for `mine`. */
void linear_rows_scatter_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h,
                                 long rows, long in, long out, long mine)
{
    const long here = part_here(st, mine, rows);
    (void)h;
    product_give_in(st, tmp, view(x, in, 1), view(weight, 1, in), 0, rows, out, in, block_of_part(st, in), 1);
    put_rows(st, y, close_part(st, tmp, mine * out, rows * out), bias, here, out);
    fill_zeros(y, here * out, mine * out);
}

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

/* Of each expert. */
void grouped_columns_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, void *tmp,
                                long rows, long in, long out, long experts)
{
    for (long e = 0; e < experts; e++)
        product_give(st, room_of(dx, tmp) + offset[e] * in, view(dy + offset[e] * out, out, 1),
                     view(weight + e * out * in, in, 1), 0, offset[e + 1] - offset[e], in, out, block_of_part(st, out));
    const float *sum = close_sums(st, dx, tmp, rows * in);
    MAP(rows * in, i)
        put(dx, i, sum[i]);
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
