/* SPDX-License-Identifier: Apache-2.0
 *
 * unpooled.h: the known height of an arena, for whoever shows a plan.
 */
#ifndef UNPOOLED_H
#define UNPOOLED_H
#include "plan.h"

/* Fills dev[].unpooled, the lowest known arena without pools (0: unknown), and dev[].proven: no arena is lower. */
void mem_unpooled(Plan *p);
const char *mem_proof(const DevicePlan *d);         /* the same as text */
#endif
