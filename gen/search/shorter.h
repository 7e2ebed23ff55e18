/* SPDX-License-Identifier: Apache-2.0
 *
 * shorter.h: a step of very many micro-batches, searched as a shorter one.
 */
#ifndef SHORTER_H
#define SHORTER_H
#include "passes.h"

/* The same model with as many micro-batches as its search needs, or so many times as many; m itself, where that is nearly all
 * of them.  spare: that part of each memory is left free; 0: none. */
const Model *shorter(const Options *x, const Model *m, int times, int spare);
/* Does each chunk hold as many micro-batches at once in the longer step, of so many more a replica? */
bool shorter_is_alike(const Graph *g, const Cost *c, const Model *m, int64_t more, int stages, const Schedule *k);
/* The plan of the shorter step as one of `full`; NULL: it does not fit, and the longer step has to be searched. */
Plan *lengthened(const Options *x, const Model *full, const Plan *p);
#endif
