/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_random.c: dropout, and numbers that are rounded at random into few bits.
 */
#include "answers.h"
#include <string.h>
#include "philox.h"

/* x, by the factor of draw `e` of all samples, each of which has `per`. */
static Answer dropped(const Call *c, long i, long e, long per)
{
    double drop = number_of(c, "drop");
    float factor = 1;
    Drop d = drop_of(c->vals, of(c, "mb") * of(c, "batch") + e / per, (float)drop, part_of(c, "site")->given.i);
    if (drop != 0 && !c->vals->eval)
        drop_factors(&factor, &d, e % per, 1);
    return exact(old(c, "x", i) * factor);
}

static Answer dropout_y(const Call *c, long i) { return dropped(c, i, i, of(c, "per")); }

/* Element i of [batch outer mid inner]; draws are [batch outer inner]. */
static Answer dropout_shared_y(const Call *c, long i)
{
    long inner = of(c, "inner");
    return dropped(c, i, i / inner / of(c, "mid") * inner + i % inner, of(c, "outer") * inner);
}

/* ---- few bits (few.h): a word of a record, and a number of one ------------------------------------------------------- */

typedef struct { const Call *c; const char *x; long words, bits, levels, width; } Few;      /* x: its operand */

static Few few_of(const Call *c, const char *x, const char *words, const char *bits)
{
    return (Few){c, x, of(c, words), of(c, bits), (1L << (of(c, bits) - 1)) - 1, of(c, "width")};
}

static double few_scale(const Few *f, long row)
{
    double most = 0, unit;
    int exponent;
    for (long i = 0; i < f->width; i++)
        most = fmax(most, fabs(old(f->c, f->x, row * f->width + i)));
    most = (float)(most / (double)f->levels);
    frexp(most, &exponent);
    unit = ldexp(1, exponent - 16 > -141 ? exponent - 16 : -141);
    return ceil(most / unit) * unit;
}

static uint32_t few_code(const Few *f, long e, double scale)
{
    const Call *c = f->c;
    long per = of(c, "rows") * f->width / of(c, "batch"), k = e % per, most = f->levels;
    double at = scale > 0 ? (float)(old(c, f->x, e) / scale) : 0, low = floor(at), code = nearbyint(at);
    if (number_of(c, "drop") != 0 && !c->vals->eval) {
        Drop d = drop_of(c->vals, of(c, "mb") * of(c, "batch") + e / per, 0, part_of(c, "site")->given.i);
        Philox r = philox((Philox){{(uint32_t)(k / 4), d.sample, d.step[0], d.step[1]}}, d.key[0], d.key[1]);
        code = low + ((double)(r.v[k % 4] >> 8) * 0x1p-24 < (double)(float)(at - low));
    }
    return (uint32_t)(most + (long)fmin(fmax(code, (double)-most), (double)most));
}

static Answer packed(const Few f, long i)
{
    long row = i / f.words, word = i % f.words - 1;
    double scale = few_scale(&f, row);
    float first = (float)scale;
    uint32_t u = 0;
    int32_t whole;
    if (word < 0)
        memcpy(&u, &first, sizeof u);
    for (long b = 0; word >= 0 && b < 32; b++) {
        long e = (word * 32 + b) / f.bits;
        if (e < f.width)
            u |= (few_code(&f, row * f.width + e, scale) >> (word * 32 + b) % f.bits & 1) << b;
    }
    memcpy(&whole, &u, sizeof whole);
    return exact(whole);
}

static Answer unpacked(const Few f, long i)
{
    long at = i / f.width * f.words, from = i % f.width * f.bits, code = 0;
    int32_t first = (int32_t)old(f.c, f.x, at);
    float scale;
    memcpy(&scale, &first, sizeof scale);
    for (long b = 0; b < f.bits; b++)
        code |= (long)((uint32_t)(int32_t)old(f.c, f.x, at + 1 + (from + b) / 32) >> (from + b) % 32 & 1) << b;
    return exact((double)(code - f.levels) * (double)scale);
}

static Answer round_code(const Call *c, long i) { return packed(few_of(c, "x", "words", "bits"), i); }
static Answer round_dx(const Call *c, long i) { return unpacked(few_of(c, "dcode", "back_words", "back"), i); }
static Answer unpack_y(const Call *c, long i) { return unpacked(few_of(c, "code", "words", "bits"), i); }
static Answer unpack_dcode(const Call *c, long i) { return packed(few_of(c, "dy", "back_words", "back"), i); }

#define FEW "code=rows*words x=rows*width y=rows*width dcode=rows*back_words dx=rows*width dy=rows*width"

static const Known known[] = {
    {"dropout_forward", "y", "y=batch*per x=batch*per onto=batch*per", dropout_y, 0, 0},
    {"dropout_shared_forward", "y", "y=batch*outer*mid*inner x=batch*outer*mid*inner onto=batch*outer*mid*inner",
     dropout_shared_y, 0, 0},
    {"round_forward", "code", FEW, round_code, 0, 0}, {"unpack_forward", "y", FEW, unpack_y, 0, 0},
    {"round_both_forward", "code", FEW, round_code, 0, 0}, {"round_both_backward", "dx", FEW, round_dx, 0, 0},
    {"unpack_both_forward", "y", FEW, unpack_y, 0, 0}, {"unpack_both_backward", "dcode", FEW, unpack_dcode, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_random = {known};
