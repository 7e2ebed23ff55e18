/* SPDX-License-Identifier: Apache-2.0
 *
 * optimal.h: the lists of `optimal`.
 */
#ifndef OPTIMAL_H
#define OPTIMAL_H
#include "plan.h"

typedef VEC(const Plan *) Plans;
/* Lists with a shorter step than those of p, under its cuts, by stage; NULL: none was found.  from: plans to begin with. */
const Actions *lists_of(const Plan *p, const Bytes *limit, const Plans *from);
/* Proven: with these cuts under these limits no lists and no fates have a shorter step. */
Ns lists_bound(const Plan *p, const Bytes *limit);
#endif
