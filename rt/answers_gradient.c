/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_gradient.c: norms of gradients.
 */
#include "answers.h"

static Answer partial_norm(const Call *c, long i)
{
    Answer a = {0, 0};
    if (i != of(c, "index"))
        return exact(old(c, "norm", i));
    for (long j = 0; j < of(c, "n"); j++)
        plus(&a, old(c, "g", j) * old(c, "g", j));
    return a;
}

static Answer total_clip(const Call *c, long i)
{
    double sum = 0;
    (void)i;
    for (long j = 0; j < of(c, "count"); j++)
        sum += old(c, "norm", j);
    double factor = number_of(c, "limit") / (sqrt(sum) + 1e-6);
    return exact(fmin(factor, 1));
}

static const Known known[] = {
    {"norm_partial", "norm", "norm=index+1 g=n", partial_norm, 0, 0},
    {"norm_total", "clip", "clip=1 norm=count", total_clip, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_gradient = {known};
