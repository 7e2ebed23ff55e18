/* SPDX-License-Identifier: Apache-2.0
 *
 * offers.h: rows of schedules.def and numbers of devices of a stage, tried beside the plan at hand.
 */
#ifndef OFFERS_H
#define OFFERS_H
#include "list.h"
#include "search.h"

/* The best of all rows, from the best plan of gpipe and 1f1b on: that plan, if no row has a better one. */
Plan *offer_rows(const Search *s, Plan *best);
/* The plan of the stages, and devices of each, that have the shortest step, by a search in full.  Its note tells what other
 * numbers come to. */
Plan *offer_degrees(SearchOf *full, const Options *x, const Model *m, const Ask *ask, Plan **failed);
#endif
