/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.h: cuts of a chain made better by moving border units to the neighbouring stage.
 */
#ifndef MOVES_H
#define MOVES_H
#include "plan.h"

typedef struct { Bytes over; Ns time; } Burden;     /* of a stage: bytes over its limit, 0 if it fits; then its time */
typedef struct {
    int units, stages;
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    Burden (*burden)(void *ctx, int first, int last, int stage);
    void *ctx;
} Moves;
Burden moves_worst(const Moves *m, const int *last);
void moves_improve(const Moves *m, int *last);      /* last unit of each stage: a partition in, one no worse out */
#endif
