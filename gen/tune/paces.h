/* SPDX-License-Identifier: Apache-2.0
 *
 * paces.h: the lead and the lag of each device of zb*.
 */
#ifndef PACES_H
#define PACES_H
#include "plan.h"

/* Those with the shortest step under the cuts of a plan with one chunk a device.  False: those of the plan are. */
bool paces_of(const Plan *p, const Bytes *limit, Ints *lead, Ints *lag);
#endif
