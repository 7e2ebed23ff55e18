/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.h: the choices of a planner that chooses fates itself.
 */
#ifndef CHOICES_H
#define CHOICES_H
#include "plan.h"

typedef struct {
    int *base;                  /* by tensor: its fate where the planner does nothing */
    bool *may;                  /* by tensor: forward makes it, backward reads it, and plan.recompute or plan.offload
                                   leave the choice */
    bool recompute, offload;    /* these fates are to be had */
} Choices;
Choices choices_of(const Plan *p);
#endif
