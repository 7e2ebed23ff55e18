/* SPDX-License-Identifier: Apache-2.0
 *
 * curves.h: the sigmoid, the hyperbolic tangent and the error function; conditions, method and accuracy: fmath.h.
 */
#ifndef CURVES_H
#define CURVES_H
#include "fmath.h"

FN float fsigmoid(float x)
{
    return 1.0f / (1.0f + fexp(-x));
}

#ifndef EXP2
/* Of |x| <= 87, or a NaN: 2^i is a number. */
FN float exp_near_end(float p, float magic)
{
    return p * bits_float((float_bits(magic) - 0x4b400000u + 127) << 23);
}

FN float fexp_near(float x)
{
    float magic, r = exp_rest(x, &magic);
    return exp_near_end(exp_series(r), magic);
}
#endif

/* r >= 0 with the sign of x, that of zero too. */
FN float signed_as(float r, float x)
{
    return bits_float(float_bits(r) | (float_bits(x) & 0x80000000u));
}

FN float ftanh(float x)
{
    float a = bits_float(float_bits(x) & 0x7fffffffu), z = x * x;
    /* |x| < 0.625: x + x^3 p(x^2), relative error 4.3e-9 */
    float p = 0x1.2c83cp-9f;
    p = p * z - 0x1.116a16p-7f;
    p = p * z + 0x1.64a976p-6f;
    p = p * z - 0x1.ba08c4p-5f;
    p = p * z + 0x1.1110eap-3f;
    p = p * z - 0x1.555556p-2f;
    float small = a + a * z * p, large = 1.0f - 2.0f / (fexp(2.0f * a) + 1.0f);
    return signed_as(a < 0.625f ? small : large, x);
}

/* erf in steps, for loops over rows take one at a time.  Half of the series of erf near 0, and of that of -log erfc of a, which
 * is |x|, at most 4; that logarithm; and erf itself, where `far` is one less the exponential of it. */
FN float erf_bounded(float x)
{
    float a = bits_float(float_bits(x) & 0x7fffffffu);
    return a > 4.0f ? 4.0f : a;             /* erf(4) rounds to 1 */
}

FN float erf_half(float a)
{
    /* 1 <= |x| <= 4: 1 - exp(-q(|x|)), q = -log erfc: error 9e-9 */
    float q = -0x1.b90e7ap-20f;
    q = q * a + 0x1.83402p-15f;
    q = q * a - 0x1.394e9ap-11f;
    q = q * a + 0x1.381f9ap-8f;
    return q * a - 0x1.b0fd8cp-6f;
}

FN float erf_power(float q, float a)
{
    q = q * a + 0x1.c2eacp-4f;
    q = q * a + 0x1.437e6cp-1f;
    q = q * a + 0x1.2156d2p+0f;
    return q * a - 0x1.4e0356p-12f;
}

FN float erf_near(float x)
{
    /* |x| < 1: x + x p(x^2), relative error 7e-9 */
    float z = x * x, p = 0x1.4a569p-14f;
    p = p * z - 0x1.a45088p-11f;
    p = p * z + 0x1.541270p-8f;
    return p * z - 0x1.b7fabap-6f;
}

FN float erf_end(float x, float a, float p, float far)
{
    float z = x * x;
    p = p * z + 0x1.ce2d10p-4f;
    p = p * z - 0x1.81273ep-2f;
    p = p * z + 0x1.06eba8p-3f;
    return signed_as(a < 1.0f ? a + a * p : far, x);
}

FN float ferf(float x)
{
    float a = erf_bounded(x);
    return erf_end(x, a, erf_near(x), 1.0f - fexp_near(-erf_power(erf_half(a), a)));
}
#endif
