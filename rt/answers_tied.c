/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_tied.c: sums of gradients of tied parameters, and norms in blocks.
 */
#include "answers.h"

static Answer tie_g(const Call *c, long i) { return exact(old(c, "g", i) + old(c, "other", i)); }

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

static const Known known[] = {
    {"tie_add", "g", "g=n other=n", tie_g, 0, 0}, {"norm_blocks", "blocks", "blocks=first+1 g=n", block_norms, 0, 0},
    {"norm_sum", "norm", "norm=index+1 blocks=first+n", block_sum, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_tied = {known};
