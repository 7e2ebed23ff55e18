/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8.h: numbers of 8 bits, and the scales that bring a tensor into their range.
 *
 * e4m3 has 4 bits of exponent and 3 of mantissa, up to 448; e5m2 5 and 2, up to 57344 (P. Micikevicius et al., FP8 Formats for
 * Deep Learning, 2022).  Narrowing is to nearest, ties to even; beyond the largest number it is that number.  Infinity and NaN
 * become NaN, so that neither is lost.
 *
 * A scale is a power of two, so that scaling rounds nothing.  Both largest numbers are 1.75 times a power of two.  So one
 * bin of a tensor's largest magnitude gives the scale of either format: bin b is (1.75 2^(b-97), 1.75 2^(b-96)], with
 * everything smaller in the first and everything larger in the last.
 *
 * What a step has seen of a tensor are counts of bins, one a micro-batch.  Counts are added, which is exact and has no
 * order, in the same accumulators as running statistics are.  The history says of each bin for how many steps it still
 * counts.  The scale of a step is that of the largest such bin: the maximum over FP8_HISTORY steps.  With no history, in the
 * first step, it is that of the tensor itself.  Hence it depends on the micro-batch and on earlier steps alone, never on
 * the plan.
 */
#ifndef FP8_H
#define FP8_H
#include "real.h"

enum { FP8_BINS = 128, FP8_TENSORS = 3, FP8_HISTORY = 1024, FP8_MULTIPLE = 16 };
enum { FP8_X, FP8_WEIGHT, FP8_DY };             /* tensors of a history, FP8_BINS each */
typedef enum { E4M3, E5M2 } Fp8;

/* Scratch behind the factors: three units, then for each of six maxima what FP8_PIECES blocks have found. */
enum { FP8_PIECES = 1024, FP8_UNITS = 64, FP8_ROOM = FP8_UNITS + 6 * FP8_PIECES * (int)sizeof(float) };

FN uint8_t float_fp8(float x, Fp8 type)
{
    const int bits = type == E4M3 ? 3 : 2, bias = type == E4M3 ? 7 : 15, cut = 23 - bits;
    const uint32_t most = type == E4M3 ? 0x7e : 0x7b, u = float_bits(x) & 0x7fffffff, sign = float_bits(x) >> 24 & 0x80;
    uint32_t code;
    if (u >= 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    if (u < (uint32_t)(128 - bias) << 23) {     /* below the least normal number: units of 2^(1-bias-bits), by adding one */
        float one = bits_float((uint32_t)(127 + 24 - bias - bits) << 23);
        code = float_bits(bits_float(u) + one) - float_bits(one);
    } else {
        code = ((u + (1u << (cut - 1)) - 1 + (u >> cut & 1)) >> cut) - ((uint32_t)(127 - bias) << bits);
    }
    return (uint8_t)(sign | (code > most ? most : code));
}

FN float fp8_float(uint8_t c, Fp8 type)
{
    const int bits = type == E4M3 ? 3 : 2, bias = type == E4M3 ? 7 : 15;
    uint32_t m = c & 0x7f, u = (m << (23 - bits)) + ((uint32_t)(127 - bias) << 23);
    if (m > (type == E4M3 ? 0x7eu : 0x7cu))
        u = 0x7fc00000;
    else if (type == E5M2 && m == 0x7c)
        u = 0x7f800000;
    else if (m >> bits == 0)
        u = float_bits((float)m * bits_float((uint32_t)(128 - bias - bits) << 23));
    return bits_float(u | (uint32_t)(c & 0x80) << 24);
}

FN float fp8_power(int n)
{
    return bits_float((uint32_t)(127 + n) << 23);
}

/* Of a largest magnitude; -1: it is 0, infinite or NaN, which says nothing. */
FN int fp8_bin(float most)
{
    uint32_t u = float_bits(most) & 0x7fffffff;
    int bin = (int)(u >> 23) - 127 + ((u & 0x7fffff) > 0x600000) + 96;
    if (u == 0 || u >= 0x7f800000)
        return -1;
    return bin < 0 ? 0 : bin < FP8_BINS ? bin : FP8_BINS - 1;
}

/* What a tensor of that bin is multiplied with, as an exponent of two. */
FN int fp8_scale(int bin, Fp8 type)
{
    return bin < 0 ? 0 : (type == E4M3 ? 8 : 15) - (bin - 96);
}
#endif
