/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_unary.c: functions of one number but GELU, element by element.
 */
#include "answers.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static Answer relu_y(const Call *c, long i) { return exact(fmax(old(c, "x", i), 0)); }
static Answer relu_dx(const Call *c, long i) { return exact(old(c, "y", i) > 0 ? old(c, "dy", i) : 0); }

static Answer silu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return near(x * sigmoid(x), x);
}

static Answer silu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), s = sigmoid(x), d = old(c, "dy", i);
    return near(d * (s + x * s * (1 - s)), d * (1 + fabs(x)));
}

static Answer tanh_y(const Call *c, long i) { return near(tanh(old(c, "x", i)), 1); }
static Answer sigmoid_y(const Call *c, long i) { return near(sigmoid(old(c, "x", i)), 1); }

static Answer tanh_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * (1 - y * y), d * (1 + y * y));
}

static Answer sigmoid_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * y * (1 - y), d);
}

static Answer clip_y(const Call *c, long i)
{
    return exact(fmin(fmax(old(c, "x", i), number_of(c, "low")), number_of(c, "high")));
}

static Answer clip_dx(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x > number_of(c, "low") && x < number_of(c, "high") ? old(c, "dy", i) : 0);
}

static Answer leaky_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x < 0 ? x * number_of(c, "slope") : x);
}

static Answer leaky_dx(const Call *c, long i)
{
    return exact(old(c, "dy", i) * (old(c, "x", i) > 0 ? 1 : number_of(c, "slope")));
}

static Answer elu_y(const Call *c, long i)
{
    double x = old(c, "x", i), y = x > 0 ? x : number_of(c, "alpha") * expm1(x);
    return near(y, y);
}

static Answer elu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), y = old(c, "dy", i) * (x > 0 ? 1 : number_of(c, "alpha") * exp(x));
    return near(y, y);
}

static Answer softplus_y(const Call *c, long i)
{
    double x = old(c, "x", i), y = fmax(x, 0) + log1p(exp(-fabs(x)));
    return near(y, y);
}

static Answer softplus_dx(const Call *c, long i)
{
    double y = old(c, "dy", i) / (1 + exp(-old(c, "x", i)));
    return near(y, y);
}

static double ramp(double x) { return fmin(fmax(x / 6 + 0.5, 0), 1); }
static Answer ramp_y(const Call *c, long i) { return near(ramp(old(c, "x", i)), 1); }
static Answer ramp_dx(const Call *c, long i) { return exact(fabs(old(c, "x", i)) < 3 ? old(c, "dy", i) / 6 : 0); }
static Answer swish_y(const Call *c, long i) { return near(old(c, "x", i) * ramp(old(c, "x", i)), old(c, "x", i)); }

static Answer swish_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    return near(d * (x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1), d);
}

#define ELEMENT "y=n x=n a=n b=n dx=n dy=n targets=n dtargets=n loss=1 dloss=1"

static const Known known[] = {
    {"relu_forward", "y", ELEMENT, relu_y, 0, 0}, {"relu_backward", "dx", ELEMENT, relu_dx, 0, 0},
    {"silu_forward", "y", ELEMENT, silu_y, 0, 0}, {"silu_backward", "dx", ELEMENT, silu_dx, 0, 0},
    {"tanh_forward", "y", ELEMENT, tanh_y, 0, 0}, {"tanh_backward", "dx", ELEMENT, tanh_dx, 0, 0},
    {"sigmoid_forward", "y", ELEMENT, sigmoid_y, 0, 0}, {"sigmoid_backward", "dx", ELEMENT, sigmoid_dx, 0, 0},
    {"clip_forward", "y", ELEMENT, clip_y, 0, 0}, {"clip_backward", "dx", ELEMENT, clip_dx, 0, 0},
    {"leaky_relu_forward", "y", ELEMENT, leaky_y, 0, 0}, {"leaky_relu_backward", "dx", ELEMENT, leaky_dx, 0, 0},
    {"elu_forward", "y", ELEMENT, elu_y, 0, 0}, {"elu_backward", "dx", ELEMENT, elu_dx, 0, 0},
    {"softplus_forward", "y", ELEMENT, softplus_y, 0, 0}, {"softplus_backward", "dx", ELEMENT, softplus_dx, 0, 0},
    {"hard_sigmoid_forward", "y", ELEMENT, ramp_y, 0, 0}, {"hard_sigmoid_backward", "dx", ELEMENT, ramp_dx, 0, 0},
    {"hard_swish_forward", "y", ELEMENT, swish_y, 0, 0}, {"hard_swish_backward", "dx", ELEMENT, swish_dx, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_unary = {known};
