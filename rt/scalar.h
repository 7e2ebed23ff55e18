/* SPDX-License-Identifier: Apache-2.0
 *
 * scalar.h: more functions of one number: of losses, activations, pictures and rates.
 */
#ifndef SCALAR_H
#define SCALAR_H
#include "curves.h"
#include "formula.h"

FN float gelu_tanh(float x)
{
    return x * fsigmoid(twice_u(x));
}

FN float slope_tanh(float x)
{
    return slope_by(x, fsigmoid(twice_u(x)));
}
FN float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + ferf(x * HALF));
}

FN float slope_erf(float x)
{
    float b = bounded(x);
    return 0.5f * (1.0f + ferf(x * HALF)) + b * DENSE * fexp(-0.5f * b * b);
}

/* log(1 + e^x) - x t.  The logarithm of u = 1 + e has lost digits of e, which are put back by e / (u - 1) (W. Kahan). */
FN float binary_loss(float x, float t)
{
    float e = fexp(x > 0 ? -x : x), u = 1.0f + e;
    float rest = u == 1.0f ? e : flog(u) * (e / (u - 1.0f));
    return (x > 0 ? x : 0.0f) - x * t + rest;
}

/* e^x - 1 for x up to 0.  Near 0 the difference has lost digits: there it is a series, whose next term is below 1e-9 of it. */
FN float exp_less_one(float x)
{
    float near = x * (1.0f + x / 2 * (1.0f + x / 3 * (1.0f + x / 4 * (1.0f + x / 5 * (1.0f + x / 6 * (1.0f + x / 7))))));
    return x > -0.25f ? near : fexp(x) - 1.0f;
}

/* A byte of a picture, as it is in a channel of that mean and deviation. */
FN float byte_number(unsigned char byte, float mean, float deviation)
{
    return ((float)byte / 255.0f - mean) / deviation;
}

/* Where gradients are `late` updates old: lr / late^q, q from 1 to 0 in `anneal` steps. */
FN float drift_rate(float lr, int64_t step, long late, long anneal)
{
    return late > 1 && step < anneal ? lr * fexp(((float)step / (float)anneal - 1.0f) * flog((float)late)) : lr;
}
#endif
