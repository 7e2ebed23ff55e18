/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.h: weights that do not learn, in 8 or 4 bits a number.
 *
 * 8 bits: a row of the matrix has one scale and a whole number from -127 to 127 for each element (T. Dettmers et al.,
 * LLM.int8(), 2022).  4 bits: 64 elements in the order of memory, whatever rows they are in, have one scale, their largest
 * magnitude, and each the place of a number in a table: NF4 (T. Dettmers et al., QLoRA, 2023, appendix E), whose 16 numbers
 * are quantiles of a normal distribution.
 *
 * A record is a scale, a float, and the codes behind it: of a row, or of 64 elements.  So each row, and each block, is read in
 * one go, and the whole is one stretch of memory.
 *
 * What is made wide and narrowed again has the same bytes, so that files hold floats and nothing is lost by them.  For 8 bits
 * that asks for a scale of 16 significant bits: then each product of scale and code is exact.  For 4 bits the largest element
 * is the scale itself, and its code that of 1 or -1.
 *
 * A number that is not finite makes all of its record NaN.
 */
#ifndef QUANTIZE_H
#define QUANTIZE_H
#include <stddef.h>
#include <string.h>
#include "real.h"

enum { NF4_BLOCK = 64, NF4_BYTES = 4 + NF4_BLOCK / 2 };

/* Elements of a record, and its bytes. */
FN long quantized_each(int bits, long width) { return bits == 8 ? width : NF4_BLOCK; }
FN long quantized_record(int bits, long width) { return bits == 8 ? 4 + width : NF4_BYTES; }

FN long quantized_bytes(int bits, long rows, long width)
{
    return bits == 8 ? rows * (4 + width) : (rows * width + NF4_BLOCK - 1) / NF4_BLOCK * NF4_BYTES;
}

FN float nf4_value(int code)
{
    static const float value[16] = {
        -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
        -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
        0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};
    return value[code];
}

/* The nearest one; half way between two it is the smaller. */
FN int nf4_code(float x)
{
    int code = 0;
    for (int step = 8; step; step /= 2) {
        int above = code + step;
        code = x > (nf4_value(above - 1) + nf4_value(above)) / 2 ? above : code;
    }
    return code;
}

/* The largest magnitude; NaN if there is one, infinity likewise. */
FN float largest_of(const float *x, long n)
{
    uint32_t most = 0;
    for (long i = 0; i < n; i++) {
        uint32_t u = float_bits(x[i]) & 0x7fffffff;
        most = u > most ? u : most;
    }
    return bits_float(most < 0x7f800000 ? most : 0x7fc00000);
}

/* A whole number, ties to even, of |x| < 2^22. */
FN int whole_of(float x)
{
    const float shift = 0x1.8p23f;
    return (int)(float_bits(x + shift) - float_bits(shift));
}

/* Of codes from -levels to levels: rounded up to 16 significant bits, so that its products with them are exact.  NaN stays. */
FN float scale_of(float most, int levels)
{
    return bits_float((float_bits(most / (float)levels) + 0xff) & ~(uint32_t)0xff);
}

/* A record of n elements; of 4 bits the last one may have fewer than its room. */
FN void quantize_record(unsigned char *to, int bits, const float *x, long n)
{
    float most = largest_of(x, n), scale = most;
    unsigned char *code = to + sizeof scale;
    if (bits == 8)
        scale = scale_of(most, 127);
    memcpy(to, &scale, sizeof scale);
    memset(code, 0, (size_t)(bits == 8 ? n : NF4_BLOCK / 2));
    for (long i = 0; i < n; i++) {
        float part = scale > 0 ? x[i] / scale : 0;
        if (bits == 8)
            code[i] = (unsigned char)(scale > 0 ? whole_of(part) : 0);
        else
            code[i / 2] |= (unsigned char)(nf4_code(part) << i % 2 * 4);
    }
}

/* Elements from `first` on, which may begin and end within records. */
FN void quantized_read(float *to, const unsigned char *from, int bits, long width, long first, long n)
{
    long each = quantized_each(bits, width), record = quantized_record(bits, width);
    while (n > 0) {
        const unsigned char *at = from + first / each * record, *code = at + sizeof(float);
        long begin = first % each, k = each - begin < n ? each - begin : n;
        float scale;
        memcpy(&scale, at, sizeof scale);
        if (bits == 8)
            for (long i = 0; i < k; i++)
                to[i] = (float)(signed char)code[begin + i] * scale;
        else
            for (long i = 0; i < k; i++)
                to[i] = nf4_value(code[(begin + i) / 2] >> (begin + i) % 2 * 4 & 15) * scale;
        to += k;
        first += k;
        n -= k;
    }
}
#endif
