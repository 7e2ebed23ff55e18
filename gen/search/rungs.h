/* SPDX-License-Identifier: Apache-2.0
 *
 * rungs.h: any plan that fits.
 */
#ifndef RUNGS_H
#define RUNGS_H
#include "options.h"

/* Under these limits, or under smaller ones, which no larger limit loses; NULL: none was found. */
Plan *rungs_any(const Options *x, const Model *m);
#endif
