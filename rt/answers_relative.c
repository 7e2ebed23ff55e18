/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_relative.c: the bias of T5 by relative places.
 */
#include "answers.h"

/* The buckets of T5, from their formula: docs/operators.md. */
static long bucket(const Call *c, long ahead)
{
    long both = of(c, "both"), per = of(c, "buckets") / (both ? 2 : 1), exact = per / 2;
    long base = both && ahead > 0 ? per : 0, n = ahead < 0 ? -ahead : both ? ahead : 0;
    if (n < exact)
        return base + n;
    double share = log((double)n / (double)exact) / log(number_of(c, "distance") / (double)exact);
    long i = (long)floor(share * (double)(per - exact) + 1e-9);
    return base + exact + (i < per - exact ? i : per - exact - 1);
}

static Answer relative_y(const Call *c, long i)
{
    long query = of(c, "query"), key = of(c, "key");
    return exact(old(c, "weight", bucket(c, i % key - i / key % query) * of(c, "heads") + i / key / query));
}

static Answer relative_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long heads = of(c, "heads"), query = of(c, "query"), key = of(c, "key");
    for (long j = 0; j < query * key; j++)
        if (bucket(c, j % key - j / key) == i / heads)
            plus(&a, old(c, "dy", i % heads * query * key + j));
    return a;
}

#define RELATIVE "y=heads*query*key dy=heads*query*key weight=buckets*heads dweight=buckets*heads"

static const Known known[] = {
    {"relative_bias_forward", "y", RELATIVE, relative_y, 0, 0},
    {"relative_bias_backward", "dweight", RELATIVE, relative_dweight, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_relative = {known};
