/* SPDX-License-Identifier: Apache-2.0
 *
 * drop.h: the factors of dropout (philox.h) as threads need them: four elements at a time.
 */
#ifndef DROP_H
#define DROP_H
#include "../../philox.h"

/* The words of elements 4 block .. 4 block + 3. */
FN Philox drop_block(const Drop *d, long block)
{
    Philox c;
    c.v[0] = (uint32_t)block, c.v[1] = d->sample, c.v[2] = d->step[0], c.v[3] = d->step[1];
    return philox(c, d->key[0], d->key[1]);
}

FN float drop_factor(const Drop *d, uint32_t word)
{
    return word >= d->threshold ? d->keep : 0.0f;
}

/* Of elements e .. e+3, wherever e lies. */
FN void drop_four(float (&to)[4], const Drop *d, long e)
{
    Philox r = drop_block(d, e / 4);
    int from = (int)(e & 3);
    if (from == 0) {
        for (int j = 0; j < 4; j++)
            to[j] = drop_factor(d, r.v[j]);
        return;
    }
    Philox next = drop_block(d, e / 4 + 1);
    for (int j = 0; j < 4; j++) {
        uint32_t word = 0;
        for (int k = 0; k < 4; k++) {           /* a choice, not an index: words stay in registers */
            word = from + j == k ? r.v[k] : word;
            word = from + j == k + 4 ? next.v[k] : word;
        }
        to[j] = drop_factor(d, word);
    }
}

/* Word `which` of a block: a choice, not an index, which keeps words in registers. */
FN uint32_t word_of(const Philox &r, int which)
{
    uint32_t low = which & 1 ? r.v[1] : r.v[0], high = which & 1 ? r.v[3] : r.v[2];
    return which & 2 ? high : low;
}

FN float drop_one(const Drop *d, long e)
{
    Philox r = drop_block(d, e / 4);
    return drop_factor(d, word_of(r, (int)(e & 3)));
}

/* Of elements e and e+1. */
FN void drop_two(float (&to)[2], const Drop *d, long e)
{
    Philox r = drop_block(d, e / 4);
    to[0] = drop_factor(d, word_of(r, (int)(e & 3)));
    to[1] = (e & 3) == 3 ? drop_one(d, e + 1) : drop_factor(d, word_of(r, (int)(e & 3) + 1));
}
#endif
