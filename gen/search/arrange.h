/* SPDX-License-Identifier: Apache-2.0
 *
 * arrange.h: which device does which stage, where devices.order is free.
 */
#ifndef ARRANGE_H
#define ARRANGE_H
#include "planner.h"

typedef struct {                /* devices of one kind could change places and no plan would notice */
    int n;                      /* kinds */
    int devices;
    int *of;                    /* by device: its kind */
    int *count, *first;         /* by kind: its devices; one of them */
} Kinds;
Kinds kinds_of(const Model *m, const Cost *c);

typedef struct { int *device; Ns least; } DeviceOrder; /* by stage; no plan of it has a shorter step */
typedef VEC(DeviceOrder) Orders;
/* Every different order of so many devices, the given one first; false: there are more than `most`, and these are some. */
bool orders_all(const Kinds *k, int stages, int most, Orders *all);
/* Those of a few that come from `order` by exchanging two stages, or a stage and a device left out. */
void orders_near(const Kinds *k, int stages, const int *order, Orders *all);

/* The longest stage of a micro-batch is never shorter than this, in any order, under any cut: by base times and by states,
 * which must fit; INT64_MAX: they never do; 0: there are too many kinds to say.  order, by stage: one that comes so near. */
Ns orders_longest(const Kinds *k, const Plan *p, const char *cut, int *order);
/* What this order's step takes at least; contiguous: one run a stage, as its list has it. */
Ns order_least(const Question *q, bool contiguous);
#endif
