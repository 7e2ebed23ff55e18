/* SPDX-License-Identifier: Apache-2.0
 *
 * eight.h: numbers of 8 bits by their definition (P. Micikevicius et al., FP8 Formats for Deep Learning, 2022, table 1), in
 * double and by search, without looking at rt/fp8.h: five 0 is e4m3, 1 is e5m2.
 */
#ifndef EIGHT_H
#define EIGHT_H
#include <math.h>

/* Of a code without its sign: 1.m 2^(e - bias), or 0.m 2^(1 - bias) where e is 0. */
static inline double eight_value(int code, int five)
{
    int bits = five ? 2 : 3, bias = five ? 15 : 7, e = code >> bits, m = code & ((1 << bits) - 1);
    if (code > (five ? 0x7c : 0x7e))
        return NAN;
    if (five && code == 0x7c)
        return INFINITY;
    return e ? ldexp(1 + ldexp(m, -bits), e - bias) : ldexp(m, 1 - bias - bits);
}

static inline int eight_most(int five) { return five ? 0x7b : 0x7e; }

/* The nearest, of two as near the even one; the largest stands for all beyond it. */
static inline int eight_code(double x, int five)
{
    int low = 0, high = eight_most(five), sign = signbit(x) ? 128 : 0;
    x = fabs(x);
    if (!(x < INFINITY))
        return sign | 127;
    if (x >= eight_value(high, five))
        return sign | high;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(eight_value(middle, five) <= x ? &low : &high) = middle;
    }
    double to_low = x - eight_value(low, five), to_high = eight_value(high, five) - x;
    return sign | (to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high);
}

/* The bin of a largest magnitude, and the exponent of the scale: the largest power of two that keeps it in range. */
static inline int eight_bin(double most)
{
    int bin = 0;
    if (!(most > 0 && most < INFINITY))
        return -1;
    while (bin < 127 && most > ldexp(1.75, bin - 96))
        bin++;
    return bin;
}

static inline int eight_scale(double most, int five)
{
    int scale = 200;
    if (!(most > 0 && most < INFINITY))
        return 0;
    while (ldexp(most, scale) > eight_value(eight_most(five), five))
        scale--;
    return scale;
}

/* x as the factor of a product: rounded in units of 2^-scale. */
static inline double eight_rounded(double x, int scale, int five)
{
    int code = eight_code(ldexp(x, scale), five);
    return ldexp(eight_value(code & 127, five), -scale) * (code & 128 ? -1 : 1);
}
#endif
