/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear whose weight does not learn, and is there in 8 or 4 bits a number (../quantize.h).  A product makes it wide, in the
 * compute type, while it packs it (gemm.h).  The bits are those of Linear with that wide weight, and it is never there whole.
 */
#include "gemm.h"

void linear_quantized_forward(Stage *st, real *y, const real *x, const void *weight, const real *bias, long rows, long in,
                              long out, long bits)
{
    Few few = {weight, (int)bits, in};
    product_to(st, y, view(x, in, 1), view_few(&few, 1, in), bias, rows, out, in, block_of(st, in));
}

void linear_quantized_backward_x(Stage *st, real *dx, const real *dy, const void *weight, long rows, long in, long out,
                                 long bits)
{
    Few few = {weight, (int)bits, in};
    product_to(st, dx, view(dy, out, 1), view_few(&few, in, 1), NULL, rows, in, out, block_of(st, out));
}
