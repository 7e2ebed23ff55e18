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
        bias_gradient(st, dbias + e * out, dy + offset[e] * out, acc, count_of(offset, e), out);
}
