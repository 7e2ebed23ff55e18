/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_gradient.c: norms of gradients, sums of tied ones, largest values.
 */
#include "answers.h"

static Answer tie_g(const Call *c, long i) { return exact(old(c, "g", i) + old(c, "other", i)); }

static Answer partial_norm(const Call *c, long i)
{
    Answer a = {0, 0};
    if (i != of(c, "index"))
        return exact(old(c, "norm", i));
    for (long j = 0; j < of(c, "n"); j++)
        plus(&a, old(c, "g", j) * old(c, "g", j));
    return a;
}

/* Of the elements of one block. */
static Answer block_norms(const Call *c, long i)
{
    Answer a = {0, 0};
    long each = of(c, "each"), from = (i - of(c, "first")) * each, until = from + each < of(c, "n") ? from + each : of(c, "n");
    if (i < of(c, "first"))
        return exact(old(c, "blocks", i));
    for (; from < until; from++)
        plus(&a, old(c, "g", from) * old(c, "g", from));
    return a;
}

static Answer block_sum(const Call *c, long i)
{
    Answer a = {0, 0};
    if (i != of(c, "index"))
        return exact(old(c, "norm", i));
    for (long j = 0; j < of(c, "n"); j++)
        plus(&a, old(c, "blocks", of(c, "first") + j));
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

static Answer aged(const Call *c, long i)
{
    double before = old(c, "amax", i);
    return (Answer){old(c, "seen", i) > 0 ? number_of(c, "history") : before > 0 ? before - 1 : 0, 0};
}

#define ELEMENT "g=n other=n p=n c=n m=n v=n clip=1 to=n newer=n older=n old=n centre=n"

static const Known known[] = {
    {"tie_add", "g", ELEMENT, tie_g, 0, 0}, {"norm_partial", "norm", "norm=index+1 g=n", partial_norm, 0, 0},
    {"norm_blocks", "blocks", "blocks=first+1 g=n", block_norms, 0, 0},
    {"norm_sum", "norm", "norm=index+1 blocks=first+n", block_sum, 0, 0},
    {"norm_total", "clip", "clip=1 norm=count", total_clip, 0, 0}, {"fp8_track", "amax", "amax=n seen=n", aged, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_gradient = {known};
