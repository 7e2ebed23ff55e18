/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h: the numbers of one step, for the program and for the library.
 */
#ifndef VALUES_H
#define VALUES_H
#include <stdbool.h>
#include "job.h"

/* Those of its parameter groups too, which lie behind the first. */
void values_fill(Values *v, const Job *job, int64_t step, bool eval);
#endif
