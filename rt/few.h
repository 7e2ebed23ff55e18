/* SPDX-License-Identifier: Apache-2.0
 *
 * few.h: values of the model in 8, 6, 4 or 2 bits a number, for rt/op/round.c and its double for GPUs.
 *
 * A record is a scale, a float in a word of 32 bits, and codes behind it: 16 of them in bits/2 words, the first one in the
 * lowest bits.  The last group of 16 may be filled up with zeros.  So records, and groups, begin at words.
 *
 * A code is a whole number from -L to L, L = 2^(bits-1) - 1, and is stored as that plus L.  The scale is the one of quantize.h:
 * max |x| / L, rounded up to 16 significant bits, so that each product of scale and code is exact.  A number that is not finite
 * makes all of its record NaN.
 */
#ifndef FEW_H
#define FEW_H
#include "philox.h"
#include "quantize.h"

enum { FEW_GROUP = 16, FEW_WORDS = FEW_GROUP / 4 };     /* a group has so many words at most */

FN int few_levels(int bits) { return (1 << (bits - 1)) - 1; }

/* Of a record of so many numbers. */
FN int64_t few_words(int64_t width, int64_t bits) { return 1 + (width + FEW_GROUP - 1) / FEW_GROUP * (bits / 2); }

/* The nearest one; ties to even. */
FN uint32_t few_near(float x, float scale, int levels)
{
    return (uint32_t)((scale > 0 ? whole_of(x / scale) : 0) + levels);
}

/* One of the two around x / scale: the upper one if the upper 24 bits of `word`, as a fraction, are below what is over. */
FN uint32_t few_drawn(float x, float scale, int levels, uint32_t word)
{
    float at = scale > 0 ? x / scale : 0, low = (float)(int)at;
    low = low > at ? low - 1 : low;
    int code = (int)low + ((float)(word >> 8) * 0x1p-24f < at - low);
    code = code > levels ? levels : code < -levels ? -levels : code;        /* a subnormal scale may be too small */
    return (uint32_t)(code + levels);
}

FN float few_value(uint32_t code, float scale, int levels)
{
    return (float)((int)code - levels) * scale;
}

FN void few_pack(uint32_t *to, const uint32_t *code, int bits)
{
    uint64_t some = 0;
    int have = 0, n = 0;
    for (int i = 0; i < FEW_GROUP; i++) {
        some |= (uint64_t)code[i] << have;
        have += bits;
        if (have >= 32) {
            to[n++] = (uint32_t)some;
            some >>= 32;
            have -= 32;
        }
    }
}

FN void few_unpack(uint32_t *code, const uint32_t *from, int bits)
{
    uint64_t some = 0;
    int have = 0, n = 0;
    for (int i = 0; i < FEW_GROUP; i++) {
        if (have < bits) {
            some |= (uint64_t)from[n++] << have;
            have += 32;
        }
        code[i] = (uint32_t)some & ((1u << bits) - 1);
        some >>= bits;
        have -= bits;
    }
}
#endif
