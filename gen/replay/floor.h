/* SPDX-License-Identifier: Apache-2.0
 *
 * floor.h: a lower bound of the cost of a run, in constant time.
 */
#ifndef FLOOR_H
#define FLOOR_H
#include "walk.h"

typedef struct Floor Floor;
/* base: fate by tensor without a choice; may: the other fates allowed, MAY_DROP and MAY_SEND. */
Floor *floor_open(const Plan *p, const Live *live, const int *base, const char *may);
/* A lower bound of forward and backward of one micro-batch; INT64_MAX: the run is proven not to fit. */
Ns floor_time(const Floor *x, int first, int last, int chunk, Bytes limit);
/* The time around a chunk in which its copies must pass.  warm: forwards before its first backward, as many backwards after its
 * last forward, and never more in flight; 0: the list is another. */
typedef struct {
    Ns window;                  /* from its first forward to the end of its last backward */
    Ns forward, right;          /* one of its forwards; the way of a micro-batch behind it, to the end and back */
    int64_t m;
    int warm;
} Passage;
/* The same where its device waits for others meanwhile. */
Ns floor_within(const Floor *x, int first, int last, int chunk, Bytes limit, const Passage *k);
/* Lower bounds: of the bytes that forward saves for backward under the fates without a choice, and of the need of a run that
 * saves so many.  Neither is less for a run around this one. */
Bytes floor_kept(const Floor *x, int first, int last);
Bytes floor_need(const Floor *x, int first, int last, int chunk, Bytes saved);
#endif
