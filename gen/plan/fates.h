/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.h: the cheapest fates of the tensors of one run, under a limit.
 */
#ifndef FATES_H
#define FATES_H
#include "live.h"

typedef struct {
    Live *live;
    int first, last, chunk;
    Bytes limit;
    const bool *may;            /* by tensor: may be dropped */
    int *fate;                  /* by tensor; of the run: what is given where nothing may change, then the answer */
    Load load;                  /* answer; load.need > limit: nothing fits, and this is the least that was found */
} Choice;
void fates_choose(Choice *c);
#endif
