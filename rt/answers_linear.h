/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_linear.h: products of Linear, for answers_linear.c and answers_linear_pair.c.
 */
#ifndef ANSWERS_LINEAR_H
#define ANSWERS_LINEAR_H
#include "answers.h"

static inline Answer linear_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = product(part_of(c, "x"), i / out * in, 1, part_of(c, "weight"), i % out * in, 1, in);
    plus(&a, old_of(c, "bias", i % out));
    return a;
}

static inline Answer linear_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    return product(part_of(c, "dy"), i / in * out, 1, part_of(c, "weight"), i % in, in, out);
}

#define LINEAR "y=rows*out x=rows*in weight=out*in bias=out dy=rows*out dx=rows*in dweight=out*in dbias=out"
#endif
