/* SPDX-License-Identifier: Apache-2.0
 *
 * Round: numbers in 8, 6, 4 or 2 bits, with one scale a record.  A record is a row, or the whole value.  What is packed is the
 * value that a device keeps or sends; unpack makes it wide again.  Layout and rule of a record: ../few.h.
 *
 * The scale is that of the largest magnitude.  A code is x / scale, rounded to the nearest whole number, ties to even.  Where
 * `drop` is 1 it is one of the two around it, the upper one with the probability that makes the mean right (S. Gupta et al.,
 * Deep Learning with Limited Numerical Precision, 2015).  Draws are Philox numbers of the element's place.  An evaluation
 * draws nothing.
 */
#include "kernel.h"
#include "../few.h"

enum { GROUPS = 64 };           /* that one task packs */

/* The scale of a record, its first word. */
static void scale_record(int32_t *code, const real *x, long width, int bits)
{
    float most = 0;
    for (long from = 0; from < width; from += SPAN) {
        float wide[SPAN];
        long n = least(SPAN, width - from);
        for (long i = 0; i < n; i++)
            wide[i] = get(x, from + i);
        float part = largest_of(wide, n);
        most = part <= most ? most : part;      /* a NaN stays: it is not below anything */
        if (part != part)
            break;
    }
    float scale = scale_of(most, few_levels(bits));
    memcpy(code, &scale, sizeof scale);
}

/* What a task rounds: n elements from number `first` of the micro-batch on, whose samples have `per` of them each. */
typedef struct { const Values *vals; int drawn; long sample, per; int64_t site; int bits; float scale; } Rounding;

static void codes_of(int32_t *code, const real *x, const Rounding *r, long first, long n)
{
    const int levels = few_levels(r->bits), words = r->bits / 2;
    long block = -1;
    Philox draw = {{0}};
    for (long from = 0; from < n; from += FEW_GROUP, code += words) {
        uint32_t u[FEW_GROUP] = {0}, word[FEW_WORDS];
        for (long i = 0; i < least(FEW_GROUP, n - from); i++) {
            long e = first + from + i, at = e % r->per;
            if (r->drawn && (block != e / r->per * r->per + at / 4)) {
                Drop d = drop_of(r->vals, r->sample + e / r->per, 0, r->site);
                draw = philox((Philox){{(uint32_t)(at / 4), d.sample, d.step[0], d.step[1]}}, d.key[0], d.key[1]);
                block = e / r->per * r->per + at / 4;
            }
            u[i] = r->drawn ? few_drawn(get(x, from + i), r->scale, levels, draw.v[at % 4])
                : few_near(get(x, from + i), r->scale, levels);
        }
        few_pack(word, u, r->bits);
        memcpy(code, word, (size_t)words * sizeof *word);
    }
}

void round_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width,
                   long words, int bits, float drop, int64_t site)
{
    enum { TASK = GROUPS * FEW_GROUP };
    const Rounding all = {vals, drop != 0 && !vals->eval, mb * batch, rows * width / batch, site, bits, 0};
    const long parts = ceil_div(width, TASK);
    EACH(rows * width >= 1 << 14)
    for (long row = 0; row < rows; row++)
        scale_record(code + row * words, x + row * width, width, bits);
    EACH(rows * width >= 1 << 14)
    for (long task = 0; task < rows * parts; task++) {
        long row = task / parts, from = task % parts * TASK, first = row * width + from;
        Rounding r = all;
        memcpy(&r.scale, code + row * words, sizeof r.scale);
        codes_of(code + row * words + 1 + from / FEW_GROUP * (bits / 2), x + first, &r, first, least(TASK, width - from));
    }
}

void unpack_forward(Stage *st, real *y, const int32_t *code, long rows, long width, long words, int bits)
{
    const long groups = ceil_div(width, FEW_GROUP);
    EACH(rows * width >= 1 << 14)
    for (long row = 0; row < rows; row++) {
        float scale;
        memcpy(&scale, code + row * words, sizeof scale);
        for (long g = 0; g < groups; g++) {
            uint32_t word[FEW_WORDS], u[FEW_GROUP];
            memcpy(word, code + row * words + 1 + g * (bits / 2), (size_t)bits / 2 * sizeof *word);
            few_unpack(u, word, bits);
            for (long i = 0; i < FEW_GROUP && g * FEW_GROUP + i < width; i++)
                put(y, row * width + g * FEW_GROUP + i, few_value(u[i], scale, few_levels(bits)));
        }
    }
}

/* ---- the same, where the gradient is rounded on its way back --------------------------------------------------------- */

void round_both_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width,
                        long words, int bits, int back, long back_words, float drop, int64_t site)
{
    (void)back, (void)back_words;
    round_forward(st, code, x, vals, mb, batch, rows, width, words, bits, drop, site);
}

void round_both_backward(Stage *st, real *dx, const int32_t *dcode, long rows, long width, long back_words, int back)
{
    unpack_forward(st, dx, dcode, rows, width, back_words, back);
}

void unpack_both_forward(Stage *st, real *y, const int32_t *code, long batch, long rows, long width, long words, int bits,
                         int back, long back_words, float drop, int64_t site)
{
    (void)batch, (void)back, (void)back_words, (void)drop, (void)site;
    unpack_forward(st, y, code, rows, width, words, bits);
}

void unpack_both_backward(Stage *st, int32_t *dcode, const real *dy, const Values *vals, int mb, long batch, long rows,
                          long width, long back_words, int back, float drop, int64_t site)
{
    round_forward(st, dcode, dy, vals, mb, batch, rows, width, back_words, back, drop, site);
}
