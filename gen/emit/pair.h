/* SPDX-License-Identifier: Apache-2.0
 *
 * pair.h: two calls that are printed as one: pair.c.
 */
#ifndef PAIR_H
#define PAIR_H
#include "plan.h"

typedef struct {
    const char *both;
    const char *word[19];       /* arguments; with a 2 or 3 in front, the second or third call's */
    bool early;                 /* a call between the two stands behind them, not in front */
    bool three;                 /* the second is one of a pair, and that is part of it */
} EmitPair;
/* Of a routine: the pair of the first of `calls` and the next, second 1, or the one behind that, second 2; NULL: none. */
const EmitPair *pair_of(const Plan *p, const Routine *r, const Call *c, int calls, int *second);
const char *pair_call(int pair);                     /* of call_pairs: the one call */
int pair_word(const Op *o, const char *word);       /* the argument that its row calls so */
/* How far behind its buffer a scratch begins: the first result of call c has what it would begin with. */
Bytes pair_skip(const Plan *p, const EmitPair *pair, const Call *c, const char *word);
#endif
