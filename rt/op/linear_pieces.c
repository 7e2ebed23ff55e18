/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear whose weight has several projections, one behind the other: q, k and v.  With blocks each is cut, so that a device can
 * have the same part of all of them, and the gradient of x is a tree over devices there too.
 */
#include "gemm.h"

void linear_pieces_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out,
                              long pieces)
{
    (void)h;
    products(st, (Result){dx, in, sizeof(real) == sizeof(float), STORE, NULL}, view(dy, out, 1), view(weight, in, 1),
             (Several){1, 0, 0}, rows, in, out, block_of(st, out / pieces), pieces);
}
