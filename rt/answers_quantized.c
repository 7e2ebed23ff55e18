/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_quantized.c: Linear with weights of few bits.
 */
#include "answers.h"
#include "quantize.h"

/* A weight of few bits: kernels for processors alone have it, so that it is read where it lies. */
static double few_at(const Call *c, long i)
{
    float wide;
    real x;
    quantized_read(&wide, part_of(c, "weight")->given.p, (int)of(c, "bits"), of(c, "in"), i, 1);
    put(&x, 0, wide);
    return get(&x, 0);
}

static Answer few_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = {0, 0};
    for (long j = 0; j < in; j++)
        plus(&a, old(c, "x", i / out * in + j) * few_at(c, i % out * in + j));
    plus(&a, old_of(c, "bias", i % out));
    return a;
}

static Answer few_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = {0, 0};
    for (long j = 0; j < out; j++)
        plus(&a, old(c, "dy", i / in * out + j) * few_at(c, j * in + i % in));
    return a;
}

#define QUANTIZED "y=rows*out x=rows*in bias=out dy=rows*out dx=rows*in"

static const Known known[] = {
    {"linear_quantized_forward", "y", QUANTIZED, few_y, 0, 0}, {"linear_quantized_backward_x", "dx", QUANTIZED, few_dx, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_quantized = {known};
