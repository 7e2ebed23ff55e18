/* SPDX-License-Identifier: Apache-2.0
 *
 * capuchin.h: the memory plan of one stage in the order of Capuchin.
 */
#ifndef CAPUCHIN_H
#define CAPUCHIN_H
#include "fates/fates.h"
#include "planner.h"

typedef struct Capuchin Capuchin;
/* period: time between two micro-batches.  The stages are not known yet, so it is their mean. */
Capuchin *capuchin_open(const Question *q, Ns period);
/* Fates of the tensors that first..last make go into `fate`; others stay.  Returns the price of the stage with them. */
Price capuchin(Capuchin *x, int first, int last, int chunk, int *fate);
#endif
