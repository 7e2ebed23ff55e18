/* SPDX-License-Identifier: Apache-2.0
 *
 * formula.h: the functions of one element that kernels of every target share, and their slopes.
 *
 * Gelu (D. Hendrycks, K. Gimpel, 2016).  Exact: y = x (1 + erf(x / sqrt 2)) / 2.  Approximation: y = x (1 + tanh u) / 2, with
 * u = sqrt(2/pi) (x + 0.044715 x^3).  It is computed as x / (1 + e^-2u), the same number.  That takes one exponential and one
 * division, and avoids the cancellation of 1 + tanh u at the left.
 */
#ifndef FORMULA_H
#define FORMULA_H
#include "fmath.h"

#define TWO_U  0x1.988454p+0f       /* 2 sqrt(2/pi) */
#define CUBE   0x1.6e4e26p-5f       /* 0.044715 */
#define HALF   0x1.6a09e6p-1f       /* 1/sqrt 2 */
#define DENSE  0x1.988454p-2f       /* 1/sqrt(2 pi) */

FN float twice_u(float x)
{
    return TWO_U * (x + CUBE * x * x * x);
}

FN float gelu_tanh(float x)
{
    return x * fsigmoid(twice_u(x));
}

FN float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + ferf(x * HALF));
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

/* Beyond 16 either slope is 0 or 1 to the last bit; the bound keeps 0 * infinity out.  The sigmoid or erf in it is the one that
 * the function itself has, so that who wants both makes it once. */
FN float bounded(float x)
{
    x = x > 16.0f ? 16.0f : x;
    return x < -16.0f ? -16.0f : x;
}

/* Where gradients are `late` updates old: lr / late^q, q from 1 to 0 in `anneal` steps. */
FN float drift_rate(float lr, int64_t step, long late, long anneal)
{
    return late > 1 && step < anneal ? lr * fexp(((float)step / (float)anneal - 1.0f) * flog((float)late)) : lr;
}

/* s: the sigmoid of twice_u(x) */
FN float slope_by(float x, float s)
{
    float b = bounded(x);
    return s + b * s * (1.0f - s) * TWO_U * (1.0f + 3.0f * CUBE * b * b);
}

FN float slope_tanh(float x)
{
    return slope_by(x, fsigmoid(twice_u(x)));
}

FN float slope_erf(float x)
{
    float b = bounded(x);
    return 0.5f * (1.0f + ferf(x * HALF)) + b * DENSE * fexp(-0.5f * b * b);
}
#endif
