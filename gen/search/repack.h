/* SPDX-License-Identifier: Apache-2.0
 *
 * repack.h: plans that are too large once packed.
 */
#ifndef REPACK_H
#define REPACK_H
#include "options.h"

typedef struct {
    const Options *x;
    const Graph *g;
    const Cost *c;
    const Model *m;
    int stages;
    const char *schedule;
    Hurry hurry;
    const char *key;            /* numeric_key() */
    struct Seen *seen;          /* mem/trial_cache.h */
} Asked;

/* Every pass once under soft limits, one a stage; cuts: NULL for those of the planner.  why as run() of passes.h. */
Plan *pass(const Asked *asked, const Ints *cuts, const Bytes *limit, int *why);
/* The cuts of a plan whose arenas are too large, with other fates; NULL: none was found.  limit: of each stage, what the plan
 * was made under; then what would have been right. */
Plan *repack(const Asked *asked, const Plan *was, Bytes *limit);
/* A plan that exact made and that is slower than it expected: the same, or a better one whose cuts are near. */
Plan *polish(const Asked *asked, Plan *best);
#endif
