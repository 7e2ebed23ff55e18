/* SPDX-License-Identifier: Apache-2.0
 *
 * trial_cache.h: what the plans of one candidate share: each is made by trial, and most of it has been met in a trial before.
 */
#ifndef SEEN_H
#define SEEN_H
#include "place.h"

/* A layout of the same items; its pools are numbered as here.  False: they are new. */
bool seen_layout(Mem *m, Layout *layout);
void seen_keep_layout(const Mem *m, const Layout *layout);
#endif
