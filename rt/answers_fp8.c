/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_fp8.c: Linear with factors of 8 bits.
 */
#include "answers.h"
#include "fp8.h"

static Answer linear_dbias(const Call *c, long i)
{
    return column(part_of(c, "dy"), i, of(c, "out"), of(c, "rows"));
}

/* of: dy that goes through a Gelu first. */
typedef struct { const Operand *p; int scale; Fp8 type; const Call *of; } Eight;

static float eight_real(const Eight *f, long i)
{
    float v = (float)old_at(f->p, i);
    if (f->of) {
        real to;
        put(&to, 0, (float)(v * gelu_slope(old(f->of, "pre", i), of(f->of, "tanh"))));
        v = get(&to, 0);
    }
    return v;
}

/* That dy; what other calls have is as it is. */
static Answer sloped_dbias(const Call *c, long i)
{
    Eight dy = {part_of(c, "dy"), 0, E5M2, c};
    Answer a = {0, 0};
    for (long j = 0; j < of(c, "rows"); j++)
        plus(&a, eight_real(&dy, j * of(c, "out") + i));
    rounded(&a);
    return a;
}

static float eight_most(const Eight *f, long n)
{
    float most = 0;
    for (long i = 0; f->of && i < n; i++)
        most = fmaxf(most, fabsf(eight_real(f, i)));
    return f->of ? most : (float)f->p->most;
}

static Eight eight(const Call *c, const char *name, int which)
{
    const Operand *p = part_of(c, name), *amax = part_of(c, "amax");
    Fp8 type = which == FP8_DY ? E5M2 : E4M3;
    int bin = FP8_BINS - 1;
    while (bin >= 0 && !(old_at(amax, which * FP8_BINS + bin) > 0))
        bin--;
    Eight f = {p, 0, type, which == FP8_DY && part_of(c, "pre") ? c : NULL};
    f.scale = fp8_scale(bin < 0 ? fp8_bin(eight_most(&f, of(c, "rows") * of(c, "out"))) : bin, type);
    return f;
}

static Eight of_x(const Call *c) { return eight(c, "x", FP8_X); }
static Eight of_weight(const Call *c) { return eight(c, "weight", FP8_WEIGHT); }
static Eight of_dy(const Call *c) { return eight(c, "dy", FP8_DY); }

static double eight_at(const Eight *f, long i)
{
    return ldexp((double)fp8_float(float_fp8((float)ldexp((double)eight_real(f, i), f->scale), f->type), f->type), -f->scale);
}

static Answer eight_dot(Eight a, long a0, long as, Eight b, long b0, long bs, long n)
{
    Answer sum = {0, 0};
    for (long j = 0; j < n; j++)
        plus(&sum, eight_at(&a, a0 + j * as) * eight_at(&b, b0 + j * bs));
    return sum;
}

static Answer linear_fp8_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = eight_dot(of_x(c), i / out * in, 1, of_weight(c), i % out * in, 1, in);
    plus(&a, old_of(c, "bias", i % out));
    return a;
}

static Answer linear_fp8_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    return eight_dot(of_dy(c), i / in * out, 1, of_weight(c), i % in, in, out);
}

static Answer linear_fp8_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    return eight_dot(of_dy(c), i / in, of(c, "out"), of_x(c), i % in, in, of(c, "rows"));
}

/* One more in the bin of each tensor's largest; the weight is counted in the first micro-batch alone.  Behind the counts: 0. */
static Answer linear_fp8_damax(const Call *c, long i)
{
    static const char *const tensors[] = {[FP8_X] = "x", [FP8_WEIGHT] = "weight", [FP8_DY] = "dy"};
    long which = i / FP8_BINS;
    if (which >= FP8_TENSORS || (which == FP8_WEIGHT && of(c, "acc")))
        return (Answer){0, 0};
    Eight f = eight(c, tensors[which], (int)which);
    return (Answer){fp8_bin(eight_most(&f, of(c, "rows") * of(c, "out"))) == i % FP8_BINS, 0};
}

static Answer aged(const Call *c, long i)
{
    double before = old(c, "amax", i);
    return (Answer){old(c, "seen", i) > 0 ? number_of(c, "history") : before > 0 ? before - 1 : 0, 0};
}

#define LINEAR "y=rows*out x=rows*in weight=out*in bias=out dy=rows*out dx=rows*in dweight=out*in dbias=out"
#define EIGHT LINEAR " amax=384 damax=768"
#define SLOPED EIGHT " pre=rows*out"

static const Known known[] = {
    {"linear_fp8_forward", "y", EIGHT, linear_fp8_y, 0, 0}, {"linear_fp8_backward_x", "dx", EIGHT, linear_fp8_dx, 0, 0},
    {"linear_fp8_backward_w", "dweight", EIGHT, linear_fp8_dweight, 0, 0},
    {"linear_fp8_backward_w", "dbias", EIGHT, linear_dbias, 0, 0},
    {"linear_fp8_backward_w", "damax", EIGHT, linear_fp8_damax, 768, 0},
    {"linear_fp8_backward", "dx", EIGHT, linear_fp8_dx, 0, 0},
    {"linear_fp8_backward", "dweight", EIGHT, linear_fp8_dweight, 0, 0},
    {"linear_fp8_backward", "dbias", EIGHT, linear_dbias, 0, 0},
    {"linear_fp8_backward", "damax", EIGHT, linear_fp8_damax, 768, 0},
    {"gelu_linear_fp8_backward", "dx", SLOPED, linear_fp8_dx, 0, 0},
    {"gelu_linear_fp8_backward", "dweight", SLOPED, linear_fp8_dweight, 0, 0},
    {"gelu_linear_fp8_backward", "dbias", SLOPED, sloped_dbias, 0, 0},
    {"gelu_linear_fp8_backward", "damax", SLOPED, linear_fp8_damax, 768, 0},
    {"fp8_track", "amax", "amax=n seen=n", aged, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_fp8 = {known};
