/* SPDX-License-Identifier: Apache-2.0
 *
 * least.h: the plan of least bytes.
 */
#ifndef LEAST_H
#define LEAST_H
#include "options.h"

/* The least --limit under which a plan was found; 0: none was.  It does not depend on the memory of m's devices. */
Bytes least_limit(const Options *x, const Model *m);
/* The plan of least bytes if it fits m's devices; NULL: it does not.  Unequal devices keep the proportions of their memory.
 * least: as Shortfall.least. */
Plan *least_plan(const Options *x, const Model *m, Bytes *least);
#endif
