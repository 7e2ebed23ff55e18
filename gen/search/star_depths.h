/* SPDX-License-Identifier: Apache-2.0
 *
 * star_depths.h: the depths of 1F1B*.
 */
#ifndef STAR_DEPTHS_H
#define STAR_DEPTHS_H
#include "plan.h"

/* Loads of a plan, of stages and the links between them in turn; periods at which depths change, ascending, with room for
 * (2 stages - 1) stages of them; depths at a period. */
void star_loads(const Plan *p, Ns *load);
int  star_periods(const Ns *load, int stages, Ns *period);
void star_depths(const Ns *load, int stages, Ns period, int *depth);
#endif
