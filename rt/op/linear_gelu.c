/* SPDX-License-Identifier: Apache-2.0
 *
 * A Linear and the Gelu (by tanh) behind it, y = gelu(pre), pre = x weight^T + bias; and backward of the Linear behind that:
 * dpre = gelu'(pre) dy weight.  Here they are the calls that they stand for, with the bits of those.  And a Linear with a term
 * that is added before the one rounding; and its first gradient with a sum so far, here with the bits of two calls.
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

void linear_add_forward(Stage *st, real *y, const real *skip, const real *x, const real *weight, const real *bias, int h,
                        long rows, long in, long out)
{
    (void)st, (void)h;
    for (long i = 0; i < rows * out; i++) {
        float sum = 0;
        for (long k = 0; k < in; k++)
            sum += get(x, i / out * in + k) * get(weight, i % out * in + k);
        put(y, i, sum + get(skip, i) + (bias ? get(bias, i % out) : 0));
    }
}

void linear_add_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const real *onto, int h, long rows, long in,
                           long out)
{
    linear_backward_x(st, dx, dy, weight, h, rows, in, out);
    grad_add(st, dx, onto, dx, rows * in);
}
