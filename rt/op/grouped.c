/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupedLinear: rows sorted by expert, each expert's by its own weight [out in] and bias: y[r] = x[r] weight[e]^T
 * + bias[e] for the rows offset[e] .. offset[e + 1] - 1 of expert e (T. Gale et al., MegaBlocks, 2023).
 *
 * Order: as in Linear, blocks included, so that the bits of a row do not depend on the rows beside it.  The gradients
 * of a weight and a bias add the rows of their expert ascending, in one block: how many there are follows from the data.  An
 * expert without rows gets zeros.
 */
#include "gemm.h"
#include "../team.h"

static long count_of(const int32_t *offset, long e) { return offset[e + 1] - offset[e]; }

void grouped_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows,
                     long in, long out, long experts)
{
    (void)rows;
    for (long e = 0; e < experts; e++)
        product_to(st, y + offset[e] * out, view(x + offset[e] * in, in, 1), view(weight + e * out * in, 1, in),
                   bias ? bias + e * out : NULL, count_of(offset, e), out, in, block_of(st, in));
}

void grouped_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows, long in,
                        long out, long experts)
{
    (void)rows;
    for (long e = 0; e < experts; e++)
        product_to(st, dx + offset[e] * in, view(dy + offset[e] * out, out, 1), view(weight + e * out * in, in, 1), NULL,
                   count_of(offset, e), in, out, block_of(st, out));
}

void grouped_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset, int acc,
                        long rows, long in, long out, long experts)
{
    (void)rows;
    for (long e = 0; e < experts && dweight; e++)
        product_give(st, dweight + e * out * in, view(dy + offset[e] * out, 1, out), view(x + offset[e] * in, in, 1), acc, out,
                     in, count_of(offset, e), count_of(offset, e));
    for (long e = 0; e < experts && dbias; e++)
        bias_blocks(st, dbias + e * out, dy + offset[e] * out, acc, count_of(offset, e), out, count_of(offset, e));
}

/* ---- whole experts on the devices of a stage (experts_team.c) --------------------------------------------------------- */

enum { MOST_EXPERTS = 1024 };       /* the shape rule refuses more */

/* Offsets of the experts of this device, from 0 on. */
static const int32_t *offsets_here(const Stage *st, int32_t *to, const int32_t *offset, long experts)
{
    const int32_t *first = offset + (st->team ? st->shard : 0) * experts;
    for (long e = 0; e <= experts; e++)
        to[e] = first[e] - *first;
    return to;
}

/* Behind n rows, up to `rows`. */
static void zeros_behind(real *y, long n, long rows, long width)
{
    if (n < rows)
        memset(y + n * width, 0, (size_t)((rows - n) * width) * sizeof *y);
}

void grouped_experts_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias,
                             long rows, long all, long in, long out, long experts)
{
    int32_t here[MOST_EXPERTS + 1];
    (void)all;
    grouped_forward(st, y, x, offsets_here(st, here, offset, experts), weight, bias, rows, in, out, experts);
    zeros_behind(y, here[experts], rows, out);
}

void grouped_experts_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows,
                                long all, long in, long out, long experts)
{
    int32_t here[MOST_EXPERTS + 1];
    (void)all;
    grouped_backward_x(st, dx, dy, offsets_here(st, here, offset, experts), weight, rows, in, out, experts);
    zeros_behind(dx, here[experts], rows, in);
}

void grouped_experts_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset,
                                int acc, long rows, long all, long in, long out, long experts)
{
    int32_t here[MOST_EXPERTS + 1];
    (void)all;
    grouped_backward_w(st, dweight, dbias, dy, x, offsets_here(st, here, offset, experts), acc, rows, in, out, experts);
}
