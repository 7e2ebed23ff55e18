/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_cache.h: the memory shared by all plans of one candidate.  Each plan is made by trial, and a trial before has met most
 * of it.
 */
#ifndef TRIAL_CACHE_H
#define TRIAL_CACHE_H
#include "place.h"

/* Finds a layout of the same items, with pools numbered as here.  False: the items are new. */
bool seen_layout(Mem *m, Layout *layout);
void seen_keep_layout(const Mem *m, const Layout *layout);
#endif
