/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_element.c: what goes element by element.
 */
#include "answers.h"
#include <string.h>
#include "philox.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static Answer relu_y(const Call *c, long i) { return exact(fmax(old(c, "x", i), 0)); }
static Answer relu_dx(const Call *c, long i) { return exact(old(c, "y", i) > 0 ? old(c, "dy", i) : 0); }

static const double root_2_pi = 0.79788456080286535588, cubic = 0.044715, root_half = 0.70710678118654752440,
    density = 0.39894228040143267794;

static Answer gelu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    double t = of(c, "tanh") ? tanh(root_2_pi * (x + cubic * x * x * x)) : erf(x * root_half);
    return near(0.5 * x * (1 + t), x);
}

static Answer gelu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    double t = of(c, "tanh") ? tanh(root_2_pi * (x + cubic * x * x * x)) : erf(x * root_half);
    double slope = of(c, "tanh") ? 0.5 * (1 - t * t) * root_2_pi * (1 + 3 * cubic * x * x) : density * exp(-0.5 * x * x);
    return near(d * (0.5 * (1 + t) + x * slope), d * (1 + fabs(x)));
}

static Answer silu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return near(x * sigmoid(x), x);
}

static Answer silu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), s = sigmoid(x), d = old(c, "dy", i);
    return near(d * (s + x * s * (1 - s)), d * (1 + fabs(x)));
}

static Answer tanh_y(const Call *c, long i) { return near(tanh(old(c, "x", i)), 1); }
static Answer sigmoid_y(const Call *c, long i) { return near(sigmoid(old(c, "x", i)), 1); }

static Answer tanh_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * (1 - y * y), d * (1 + y * y));
}

static Answer sigmoid_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * y * (1 - y), d);
}

static Answer clip_y(const Call *c, long i)
{
    return exact(fmin(fmax(old(c, "x", i), number_of(c, "low")), number_of(c, "high")));
}

static Answer clip_dx(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x > number_of(c, "low") && x < number_of(c, "high") ? old(c, "dy", i) : 0);
}

static Answer leaky_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x < 0 ? x * number_of(c, "slope") : x);
}

static Answer leaky_dx(const Call *c, long i)
{
    return exact(old(c, "dy", i) * (old(c, "x", i) > 0 ? 1 : number_of(c, "slope")));
}

static Answer elu_y(const Call *c, long i)
{
    double x = old(c, "x", i), y = x > 0 ? x : number_of(c, "alpha") * expm1(x);
    return near(y, y);
}

static Answer elu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), y = old(c, "dy", i) * (x > 0 ? 1 : number_of(c, "alpha") * exp(x));
    return near(y, y);
}

static Answer softplus_y(const Call *c, long i)
{
    double x = old(c, "x", i), y = fmax(x, 0) + log1p(exp(-fabs(x)));
    return near(y, y);
}

static Answer softplus_dx(const Call *c, long i)
{
    double y = old(c, "dy", i) / (1 + exp(-old(c, "x", i)));
    return near(y, y);
}

static double ramp(double x) { return fmin(fmax(x / 6 + 0.5, 0), 1); }
static Answer ramp_y(const Call *c, long i) { return near(ramp(old(c, "x", i)), 1); }
static Answer ramp_dx(const Call *c, long i) { return exact(fabs(old(c, "x", i)) < 3 ? old(c, "dy", i) / 6 : 0); }
static Answer swish_y(const Call *c, long i) { return near(old(c, "x", i) * ramp(old(c, "x", i)), old(c, "x", i)); }

static Answer swish_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    return near(d * (x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1), d);
}

static Answer copy_y(const Call *c, long i) { return exact(old(c, "x", i)); }

static Answer dropout_y(const Call *c, long i)
{
    long per = of(c, "per");
    double drop = number_of(c, "drop");
    float factor = 1;
    Drop d = drop_of(c->vals, of(c, "mb") * of(c, "batch") + i / per, (float)drop, part_of(c, "site")->given.i);
    if (drop != 0 && !c->vals->eval)
        drop_factors(&factor, &d, i % per, 1);
    return exact(old(c, "x", i) * factor);
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
#define ELEMENT "y=n x=n a=n b=n dx=n dy=n targets=n dtargets=n loss=1 dloss=1"

static const Known known[] = {
    {"relu_forward", "y", ELEMENT, relu_y, 0, 0}, {"relu_backward", "dx", ELEMENT, relu_dx, 0, 0},
    {"gelu_forward", "y", ELEMENT, gelu_y, 0, 0}, {"gelu_backward", "dx", ELEMENT, gelu_dx, 0, 0},
    {"silu_forward", "y", ELEMENT, silu_y, 0, 0}, {"silu_backward", "dx", ELEMENT, silu_dx, 0, 0},
    {"tanh_forward", "y", ELEMENT, tanh_y, 0, 0}, {"tanh_backward", "dx", ELEMENT, tanh_dx, 0, 0},
    {"sigmoid_forward", "y", ELEMENT, sigmoid_y, 0, 0}, {"sigmoid_backward", "dx", ELEMENT, sigmoid_dx, 0, 0},
    {"clip_forward", "y", ELEMENT, clip_y, 0, 0}, {"clip_backward", "dx", ELEMENT, clip_dx, 0, 0},
    {"leaky_relu_forward", "y", ELEMENT, leaky_y, 0, 0}, {"leaky_relu_backward", "dx", ELEMENT, leaky_dx, 0, 0},
    {"elu_forward", "y", ELEMENT, elu_y, 0, 0}, {"elu_backward", "dx", ELEMENT, elu_dx, 0, 0},
    {"softplus_forward", "y", ELEMENT, softplus_y, 0, 0}, {"softplus_backward", "dx", ELEMENT, softplus_dx, 0, 0},
    {"hard_sigmoid_forward", "y", ELEMENT, ramp_y, 0, 0}, {"hard_sigmoid_backward", "dx", ELEMENT, ramp_dx, 0, 0},
    {"hard_swish_forward", "y", ELEMENT, swish_y, 0, 0}, {"hard_swish_backward", "dx", ELEMENT, swish_dx, 0, 0},
    {"scale_forward", "y", ELEMENT, scale_y, 0, 0}, {"add_forward", "y", ELEMENT, sum_y, 0, 0},
    {"grad_add", "y", ELEMENT, sum_y, 0, 0}, {"copy_forward", "y", ELEMENT, copy_y, 0, 0},
    {"cast_forward", "y", ELEMENT, copy_y, 0, 0},
    {"dropout_forward", "y", "y=batch*per x=batch*per onto=batch*per", dropout_y, 0, 0},
    {"round_forward", "code", FEW, round_code, 0, 0}, {"unpack_forward", "y", FEW, unpack_y, 0, 0},
    {"round_both_forward", "code", FEW, round_code, 0, 0}, {"round_both_backward", "dx", FEW, round_dx, 0, 0},
    {"unpack_both_forward", "y", FEW, unpack_y, 0, 0}, {"unpack_both_backward", "dcode", FEW, unpack_dcode, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_element = {known};
