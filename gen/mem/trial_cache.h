/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_cache.h: what the plans of one candidate share: each is made by trial, and most of it has been met in a trial before.
 */
#ifndef SEEN_H
#define SEEN_H
#include "place.h"

typedef struct Seen Seen;
Seen *seen_new(void);
/* A layout of the same items; its pools are numbered as here.  False: they are new. */
bool seen_layout(Mem *m, Layout *layout);
void seen_keep_layout(const Mem *m, const Layout *layout);
/* A plan with the same cuts and fates, and why run() refused it, 0: it did not; NULL: it is new. */
const Plan *seen_plan(const Plan *p, int *why);
void seen_keep_plan(const Plan *p, int why);
#endif
