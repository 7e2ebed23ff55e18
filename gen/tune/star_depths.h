/* SPDX-License-Identifier: Apache-2.0
 *
 * star_depths.h: the depths of 1F1B*.
 */
#ifndef STAR_DEPTHS_H
#define STAR_DEPTHS_H
#include "plan.h"

typedef VEC(const Ints *) Depths;
/* At this period, from the loads of stages and the links between them in turn. */
void star_depths(const Ns *load, int stages, Ns period, int *depth);
/* Those worth a plan, from the loads of a finished one.  shallow: also some that hold less than 1F1B, for any loads. */
Depths star_tries(const Plan *p, bool shallow);
#endif
