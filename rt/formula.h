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

/* Beyond 16 either slope is 0 or 1 to the last bit; the bound keeps 0 * infinity out.  The sigmoid or erf in it is the one that
 * the function itself has, so that who wants both makes it once. */
FN float bounded(float x)
{
    x = x > 16.0f ? 16.0f : x;
    return x < -16.0f ? -16.0f : x;
}

/* s: the sigmoid of twice_u(x) */
FN float slope_by(float x, float s)
{
    float b = bounded(x);
    return s + b * s * (1.0f - s) * TWO_U * (1.0f + 3.0f * CUBE * b * b);
}
#endif
