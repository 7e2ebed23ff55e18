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
/* The same where its device waits for others meanwhile, and the link to the host has so long for each micro-batch. */
Ns floor_within(const Floor *x, int first, int last, int chunk, Bytes limit, Ns span);
/* Lower bounds: of the bytes that forward saves for backward under the fates without a choice, and of the need of a run that
 * saves so many.  Neither is less for a run around this one. */
Bytes floor_kept(const Floor *x, int first, int last);
Bytes floor_need(const Floor *x, int first, int last, int chunk, Bytes saved);
#endif
