/* SPDX-License-Identifier: Apache-2.0
 *
 * One in, one out, element by element.  Relu, Tanh and Sigmoid take their slope from the result, Silu from its
 * operand.  A NaN goes through.
 */
#include "kernel.h"
#include "../scalar.h"

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

/* The slope is 0 at a bound and outside. */
void clip_forward(Stage *st, real *y, const real *x, long n, float low, float high)
{
    MAP(n, i) {
        float v = get(x, i);
        put(y, i, v < low ? low : v > high ? high : v);
    }
}

void clip_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float low, float high)
{
    MAP(n, i)
        put(dx, i, get(x, i) > low && get(x, i) < high ? get(dy, i) : 0.0f);
}

void leaky_relu_forward(Stage *st, real *y, const real *x, long n, float slope)
{
    MAP(n, i)
        put(y, i, get(x, i) < 0 ? get(x, i) * slope : get(x, i));
}

void leaky_relu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float slope)
{
    MAP(n, i)
        put(dx, i, get(x, i) > 0 ? get(dy, i) : get(dy, i) * slope);
}

void elu_forward(Stage *st, real *y, const real *x, long n, float alpha)
{
    MAP(n, i)
        put(y, i, get(x, i) > 0 ? get(x, i) : alpha * exp_less_one(get(x, i)));
}

void elu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float alpha)
{
    MAP(n, i)
        put(dx, i, get(x, i) > 0 ? get(dy, i) : get(dy, i) * (alpha * fexp(get(x, i))));
}

/* The loss of a probability against 0 is the same function. */
void softplus_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, binary_loss(get(x, i), 0.0f));
}

void softplus_backward(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    MAP(n, i)
        put(dx, i, get(dy, i) * fsigmoid(get(x, i)));
}

/* HardSigmoid is a line of slope 1/6 between 0 at -3 and 1 at 3; HardSwish is x times that. */
static inline float ramp(float x)
{
    return x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : (x + 3.0f) / 6.0f;
}

void hard_sigmoid_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, ramp(get(x, i)));
}

void hard_sigmoid_backward(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    MAP(n, i)
        put(dx, i, get(x, i) > -3.0f && get(x, i) < 3.0f ? get(dy, i) / 6.0f : 0.0f);
}

void hard_swish_forward(Stage *st, real *y, const real *x, long n)
{
    MAP(n, i)
        put(y, i, get(x, i) * ramp(get(x, i)));
}

void hard_swish_backward(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    MAP(n, i) {
        float v = get(x, i);
        put(dx, i, v <= -3.0f ? 0.0f : v < 3.0f ? get(dy, i) * ((2.0f * v + 3.0f) / 6.0f) : get(dy, i));
    }
}
