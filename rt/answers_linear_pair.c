/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_linear_pair.c: Linear with GELU or Add, and of several pieces.
 */
#include "answers_linear.h"

static Answer linear_add_y(const Call *c, long i)
{
    Answer a = linear_y(c, i);
    plus(&a, old_of(c, "skip", i));
    return a;
}

static double half_gelu(double x) { return 0.5 + 0.5 * tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)); }

static Answer linear_gelu_y(const Call *c, long i)
{
    Answer a = linear_y(c, i);
    return (Answer){a.value * half_gelu(a.value), 1.13 * a.terms};
}

static Answer linear_gelu_dpre(const Call *c, long i)
{
    Answer a = linear_dx(c, i);
    double x = old_of(c, "pre", i), h = half_gelu(x), inner = 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x);
    return (Answer){a.value * (h + 2 * x * h * (1 - h) * inner), 1.13 * a.terms + fabs(a.value * x)};
}

static const Known known[] = {
    {"linear_gelu_forward", "pre", LINEAR " pre=rows*out", linear_y, 0, 0},
    {"linear_add_forward", "y", LINEAR " skip=rows*out", linear_add_y, 0, 0},
    {"linear_add_backward_x", "dx", LINEAR " onto=rows*in", linear_dx, 0, 0},
    {"linear_pieces_backward_x", "dx", LINEAR, linear_dx, 0, 0},
    {"linear_gelu_forward", "y", LINEAR " pre=rows*out", linear_gelu_y, 0, 1},
    {"linear_gelu_backward", "dpre", LINEAR " pre=rows*in dpre=rows*in", linear_gelu_dpre, 0, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_linear_pair = {known};
