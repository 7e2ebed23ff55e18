/* SPDX-License-Identifier: Apache-2.0
 *
 * madpipe.h: MadPipe chooses the number of pieces of the model, and the device that holds several, before any list is made.
 */
#ifndef MADPIPE_H
#define MADPIPE_H
#include "plan.h"

typedef struct {
    Ints map;                   /* device of each piece */
    Ints cuts;                  /* last forward operator of each piece but the last */
    Ints flight;                /* micro-batches that 1F1B* stores there */
    int devices;                /* that hold a piece */
    Ns period;                  /* of one micro-batch, by the program */
} MadPipe;
/* p has graph, costs, model, schedule and devices, but no list.  False: no answer was found. */
bool madpipe(const Plan *p, const Bytes *limit, MadPipe *answer);
#endif
