/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_table.c: tables of rows.
 */
#include "answers.h"

static Answer embedding_y(const Call *c, long i)
{
    long width = of(c, "width");
    return exact(old(c, "weight", (long)old(c, "ids", i / width) * width + i % width));
}

static Answer embedding_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long width = of(c, "width");
    for (long t = 0; t < of(c, "n"); t++)
        if ((long)old(c, "ids", t) == i / width)
            plus(&a, old(c, "dy", t * width + i % width));
    return a;
}

static Answer position_y(const Call *c, long i)
{
    return exact(old(c, "x", i) + old(c, "weight", i % (of(c, "seq") * of(c, "width"))));
}

static Answer position_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long used = of(c, "seq") * of(c, "width");
    for (long b = 0; b < of(c, "batch") && i < used; b++)
        plus(&a, old(c, "dy", b * used + i));
    return a;
}

#define TABLE "y=n*width ids=n weight=rows*width dweight=rows*width dy=n*width"
#define PLACE "y=batch*seq*width x=batch*seq*width weight=seq*width dweight=rows*width dy=batch*seq*width"

static const Known known[] = {
    {"embedding_forward", "y", TABLE, embedding_y, 0, 0}, {"embedding_backward", "dweight", TABLE, embedding_dweight, 0, 0},
    {"position_forward", "y", PLACE, position_y, 0, 0}, {"position_backward", "dweight", PLACE, position_dweight, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_table = {known};
