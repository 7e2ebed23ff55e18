/* SPDX-License-Identifier: Apache-2.0
 *
 * buckets.h: exchanges of replicas that begin while backward goes on.
 */
#ifndef BUCKETS_H
#define BUCKETS_H
#include "candidate.h"

/* The best plan of a candidate once more, with pieces, if that could beat a step; 0: its own.  True: it has another plan. */
bool buckets_try(Candidate *k, Ns best);
/* What a plan with pieces says of itself. */
void buckets_note(const Plan *p, Proof *proof);
#endif
