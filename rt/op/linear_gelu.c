/* SPDX-License-Identifier: Apache-2.0
 *
 * A Linear and the Gelu (by tanh) behind it, y = gelu(pre), pre = x weight^T + bias; and backward of the Linear behind that:
 * dpre = gelu'(pre) dy weight.  Here they are the calls that they stand for, with the bits of those.
 */
#include "kernel.h"

void linear_gelu_forward(Stage *st, real *y, real *pre, const real *x, const real *weight, const real *bias, int h, long rows,
                         long in, long out)
{
    linear_forward(st, pre, x, weight, bias, h, rows, in, out);
    gelu_forward(st, y, pre, rows * out, 1);
}

void linear_gelu_backward(Stage *st, real *dpre, const real *dy, const real *weight, const real *pre, int h, long rows, long in,
                          long out)
{
    linear_backward_x(st, dpre, dy, weight, h, rows, in, out);
    gelu_backward(st, dpre, dpre, pre, rows * in, 1);
}
