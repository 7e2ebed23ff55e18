/* SPDX-License-Identifier: Apache-2.0
 *
 * floor.h: what a run costs at least, in constant time.
 */
#ifndef FLOOR_H
#define FLOOR_H
#include "walk.h"

typedef struct Floor Floor;
/* base: fate by tensor without a choice; may: MAY_DROP, MAY_SEND beside. */
Floor *floor_open(const Plan *p, const Live *live, const int *base, const char *may);
/* Forward and backward of one micro-batch are never less; INT64_MAX: it is proven not to fit. */
Ns floor_time(const Floor *x, int first, int last, int chunk, Bytes limit);
/* Bytes that forward saves for backward where every tensor has the fate it has without a choice, at least; and what a run
 * needs at least that saves so many.  Neither is less for a run around this one. */
Bytes floor_kept(const Floor *x, int first, int last);
Bytes floor_need(const Floor *x, int first, int last, int chunk, Bytes saved);
#endif
