/* SPDX-License-Identifier: Apache-2.0
 *
 * degrees.h: plan.tensor: auto, the number of devices of a stage.
 */
#ifndef DEGREES_H
#define DEGREES_H
#include "search.h"

/* The plan of the stages, and devices of each, that have the shortest step, by a search in full.  Its note tells what other
 * numbers come to. */
Plan *degrees_search(SearchOf *full, const Options *x, const Model *m, const Ask *ask, Plan **failed);
#endif
