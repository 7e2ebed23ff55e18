/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_element.c: sums and GELU, element by element.
 */
#include "answers.h"

static Answer gelu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return near(0.5 * x * (1 + gelu_share(x, of(c, "tanh"))), x);
}

static Answer gelu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    return near(d * gelu_slope(x, of(c, "tanh")), d * (1 + fabs(x)));
}

static Answer copy_y(const Call *c, long i) { return exact(old(c, "x", i)); }

#define ELEMENT "y=n x=n a=n b=n dx=n dy=n targets=n dtargets=n loss=1 dloss=1"

static const Known known[] = {
    {"gelu_forward", "y", ELEMENT, gelu_y, 0, 0}, {"gelu_backward", "dx", ELEMENT, gelu_dx, 0, 0},
    {"scale_forward", "y", ELEMENT, scale_y, 0, 0}, {"add_forward", "y", ELEMENT, sum_y, 0, 0},
    {"grad_add", "y", ELEMENT, sum_y, 0, 0}, {"copy_forward", "y", ELEMENT, copy_y, 0, 0},
    {"cast_forward", "y", ELEMENT, copy_y, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_element = {known};
