/* SPDX-License-Identifier: Apache-2.0
 *
 * One in, one out, element by element.  Relu, Tanh and Sigmoid take their slope from the result, Silu from its
 * operand.  A NaN goes through.
 */
#include "kernel.h"

void relu_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, get(x, i) < 0 ? 0.0f : get(x, i));
}

void relu_backward(Stage *st, real *dx, const real *dy, const real *y, long n)
{
    MAP(n, i)
        put(dx, i, get(y, i) > 0 ? get(dy, i) : 0.0f);
}

void silu_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, get(x, i) * fsigmoid(get(x, i)));
}

void silu_backward(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    MAP(n, i) {
        float v = get(x, i), s = fsigmoid(v);
        put(dx, i, get(dy, i) * (s + v * s * (1.0f - s)));
    }
}

void tanh_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, ftanh(get(x, i)));
}

void tanh_backward(Stage *st, real *dx, const real *dy, const real *y, long n)
{
    MAP(n, i)
        put(dx, i, get(dy, i) * (1.0f - get(y, i) * get(y, i)));
}

void sigmoid_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, fsigmoid(get(x, i)));
}

void sigmoid_backward(Stage *st, real *dx, const real *dy, const real *y, long n)
{
    MAP(n, i)
        put(dx, i, get(dy, i) * (get(y, i) * (1.0f - get(y, i))));
}

void scale_forward(Stage *st, real *y, const real *x, long n, float factor)
{
    MAP(n, i)
        put(y, i, get(x, i) * factor);
}
