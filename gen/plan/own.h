/* SPDX-License-Identifier: Apache-2.0
 *
 * own.h: what a planner may choose that chooses fates itself.
 */
#ifndef OWN_H
#define OWN_H
#include "../dpgen.h"

typedef struct {
    int *base;                  /* by tensor: its fate where the planner does nothing */
    bool *may;                  /* by tensor: forward makes it, backward reads it, and plan.recompute or plan.offload
                                   leave the choice */
    bool recompute, offload;    /* these fates are to be had */
} Own;
Own own_of(const Plan *p);
#endif
