/* SPDX-License-Identifier: Apache-2.0
 *
 * fmath.h: elementary functions with the same bits everywhere.
 *
 * Problem.  libm is part of the result: two versions of one library return different last bits.  These functions
 * use only + - * / sqrt and integer operations, each of which IEEE 754 defines to the bit, in the order written.
 * They are free of branches, so that loops over them are vectorised at any width, which changes no bit either.
 * Conditions: no contraction (-ffp-contract=off), no -ffast-math, float evaluated as float; docs/bits.md.
 *
 * Method.  Argument reduction, then a polynomial.  Its coefficients come from interpolation at the Chebyshev nodes
 * of the reduced interval (within a few per cent of the best polynomial), rounded to float; the error of each is
 * noted where it stands.  exp reduces by n ln 2 with ln 2 in two parts (W. Cody, W. Waite, Software Manual for the
 * Elementary Functions, 1980); rounding to an integer by adding 1.5 * 2^23.  log runs in double: it is called once
 * a row.
 *
 * Accuracy (tests/unit_math.c): exp 1.02, log 0.51, tanh 1.3, erf 1.3, sigmoid 2.2 units in the last place.
 * Not handled: rounding modes other than to nearest; flush to zero.  NaN gives NaN, its sign and payload are not fixed.
 */
#ifndef FMATH_H
#define FMATH_H
#include <float.h>
#include "real.h"

#if defined FLT_EVAL_METHOD && FLT_EVAL_METHOD != 0
#error "float must be evaluated as float: on 32-bit x86 add -msse2 -mfpmath=sse, on s390x -fexcess-precision=fast"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math changes results: leave it out"
#endif

#define F_INFINITY bits_float(0x7f800000)

/* Roots are correctly rounded by IEEE 754.  With -fno-math-errno each is one instruction, of machines that have it.  For those
 * without a mathematical library it is made bit by bit, of integers: the largest r with r^2 <= x, of 55 bits, the last one odd
 * where something is left, so that the rounding of r is that of the root (Knuth, The Art of Computer Programming 2, 4.2.1). */
#if !defined __STDC_HOSTED__ || __STDC_HOSTED__ || defined __SSE2__ || defined __aarch64__
enum { HAS_ROOT = 8 };          /* of so many bytes at most */
#elif defined __riscv_flen
enum { HAS_ROOT = __riscv_flen / 8 };
#elif defined __ARM_FP
enum { HAS_ROOT = __ARM_FP & 8 ? 8 : __ARM_FP & 4 };
#else
enum { HAS_ROOT = 0 };
#endif
FN double dsqrt_bits(double x)
{
    union { double f; uint64_t u; } b = {x};
    if (!(x > 0) || b.u >> 52 == 0x7ff)
        return x == 0 || x > 0 ? x : x - x + (double)bits_float(0x7fc00000);
    int e = (int)(b.u >> 52);
    uint64_t m = b.u & 0xfffffffffffffu, r = 0, left = 0;
    for (m |= e ? (uint64_t)1 << 52 : 0, e += !e; m >> 52 == 0; e--)
        m <<= 1;
    e -= 1075;                          /* x = m 2^e */
    m <<= e & 1;
    e -= e & 1;
    for (int i = 0; i < 55; i++) {      /* m 2^56 has 110 bits at most: two at a time, those of m first */
        left = left << 2 | (i < 27 ? m >> (52 - 2 * i) & 3 : 0);
        uint64_t next = r << 2 | 1;
        r <<= 1;
        if (left >= next)
            left -= next, r |= 1;
    }
    b.u = (uint64_t)(e / 2 - 28 + 1023) << 52;
    return (double)(int64_t)(r | (left != 0)) * b.f;
}

FN double dsqrt(double x)
{
    return HAS_ROOT >= 8 ? __builtin_sqrt(x) : dsqrt_bits(x);
}

FN float fsqrt(float x)
{
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x);
#else
    /* Rounded twice: exact for roots, as 53 >= 2 * 24 + 2 bits (S. Figueroa, When is double rounding innocuous?, 1995). */
    return HAS_ROOT >= 4 ? __builtin_sqrtf(x) : (float)dsqrt_bits((double)x);
#endif
}

FN float frsqrt(float x)
{
    return 1.0f / fsqrt(x);
}

#ifndef EXP2                    /* where a machine has 2^x itself, e^x is made of it: op/cuda/kernel.h */
/* e^x is p 2^i; the last bits of *magic are i, and p is the series of what is left of x. */
FN float exp_rest(float x, float *magic)
{
    *magic = x * 0x1.715476p+0f + 0x1.8p23f;
    float n = *magic - 0x1.8p23f, r = x - n * 0x1.62e4p-1f;     /* 15 bits: n times it is exact */
    return r - n * 0x1.7f7d1cp-20f;
}

FN float exp_series(float r)
{
    /* e^r = 1 + r + r^2 p(r), |r| <= ln 2 / 2: relative error 1.1e-8 */
    float p = 0x1.6d113cp-10f;
    p = p * r + 0x1.120ba2p-7f;
    p = p * r + 0x1.55551ap-5f;
    p = p * r + 0x1.5554dcp-3f;
    p = p * r + 0.5f;
    return p * (r * r) + r + 1.0f;
}

FN float exp_low(float x)
{
    return x < -104.0f ? -104.0f : x;       /* e^-104 rounds to 0 */
}

FN float exp_high(float x)
{
    return x > 89.0f ? 89.0f : x;           /* e^89 is infinity */
}

FN float exp_end(float p, float magic)
{
    /* 2^i in two factors: i lies in -150 .. 128, and only the last product may round */
    int32_t i = (int32_t)(float_bits(magic) - 0x4b400000u), half = i >> 1;
    float s = bits_float((uint32_t)(half + 127) << 23), t = bits_float((uint32_t)(i - half + 127) << 23);
    return p * s * t;
}

FN float fexp(float x)
{
    float magic, r = exp_rest(exp_high(exp_low(x)), &magic);
    return exp_end(exp_series(r), magic);
}
#endif

/* Natural logarithm in double, for x > 0 and normal: error about 1e-16.  x = 2^e m, m in [1/sqrt 2, sqrt 2);
 * log m = 2 artanh(s), s = (m - 1) / (m + 1), a series in s^2 <= 0.0295. */
FN double dlog(double x)
{
    union { double f; uint64_t u; } b = {x};
    uint64_t shifted = b.u - 0x3fe6a09e667f3bcdu;
    int64_t e = (int64_t)(shifted >> 52) - (int64_t)(shifted >> 63) * 4096;
    b.u -= (uint64_t)e << 52;
    double s = (b.f - 1.0) / (b.f + 1.0), q = s * s, sum = 0;
    for (int k = 21; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * q;
    return 2.0 * (s + s * sum) + (double)e * 0x1.62e42fefa39efp-1;
}

FN float flog(float x)
{
    if (x > 0 && x < F_INFINITY)
        return (float)dlog(x);              /* a subnormal float is a normal double */
    return x == 0 ? -F_INFINITY : x > 0 ? x : x - x + bits_float(0x7fc00000);
}
#endif
