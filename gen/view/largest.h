/* SPDX-License-Identifier: Apache-2.0
 *
 * largest.h: the largest micro-batch that a planner can plan.
 */
#ifndef LARGEST_H
#define LARGEST_H
#include "plan.h"

enum { LARGEST_AFTER = 8 };     /* so many larger ones are shown to fail */
typedef struct {
    int64_t b;                  /* largest that fits and is worth it: a sample takes at most twice the best; 0: none fits */
    int64_t any;                /* largest that fits */
    int64_t best;               /* of those tried, where a sample takes least */
    Ns at_b, at_any, at_best;   /* of a thousand samples */
    int tried;
} Largest;
/* ns of a thousand samples at micro-batch b; 0: it does not fit */
typedef Ns (*LargestProbe)(void *ctx, int64_t b);
Largest largest(LargestProbe probe, void *ctx, int64_t most, int64_t hint); /* hint: a size to try as well, or 0 */
#endif
