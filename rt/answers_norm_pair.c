/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_norm_pair.c: norms with the sum in front of them, and with the Linear whose gradient follows theirs.
 */
#include "answers_norm.h"

/* Of a Linear that the norm's operand is a sum with: from dx as the same call has made it. */
static Answer linear_dproduct(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = {0, 0};
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, made(c, "dx", r * out + i / in) * old(c, "factor", r * in + i % in));
#ifdef TF32
    a.terms += 0x1p-10 / F32_SUM * a.terms;     /* as product() has it */
#endif
    return a;
}

static Answer linear_dsum(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, made(c, "dx", r * of(c, "out") + i));
    return a;
}

#define NORM_LINEAR "x=rows*out dx=rows*out dy=rows*out onto=rows*out factor=rows*in mean=rows rstd=rows weight=out " \
    "dweight=out dbias=out dsum=out dproduct=out*in"

static const Known known[] = {
    {"add_layernorm_forward", "sum", NORM, sum_y, 0, 0}, {"add_layernorm_forward", "y", NORM, layernorm_y, 0, 0},
    {"add_layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"add_layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0},
    {"layernorm_linear_backward", "dx", NORM_LINEAR, norm_dx, 0, 0},
    {"layernorm_linear_backward", "dweight", NORM_LINEAR, norm_dweight, 0, 0},
    {"layernorm_linear_backward", "dbias", NORM_LINEAR, norm_dbias, 0, 0},
    {"layernorm_linear_backward", "dproduct", NORM_LINEAR, linear_dproduct, 0, 0},
    {"layernorm_linear_backward", "dsum", NORM_LINEAR, linear_dsum, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_norm_pair = {known};
