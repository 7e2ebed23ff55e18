/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.h: the cheapest fates of the tensors of one run, under a limit.
 */
#ifndef FATES_H
#define FATES_H
#include "replay/walk.h"

typedef struct Hunt Hunt;       /* room to search in: opened once, used for many runs */
Hunt *fates_open(Live *live, const char *may);      /* by tensor */
/* By tensor: the fates that plan.recompute, plan.offload and {keep: ...} allow.  base: the fates without a choice. */
char *fates_may(const Plan *p, const int *base);

/* fate, by tensor of the run: on entry the fates that may not change, on return the answer.  Other tensors do not matter.
 * A need over the limit: nothing fits, and this is the least that was found. */
Load fates_choose(Hunt *h, int first, int last, int chunk, Bytes limit, int *fate);
#endif
