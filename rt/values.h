/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h: the numbers of one step, and start values of parameters, for the program and for the library.
 */
#ifndef VALUES_H
#define VALUES_H
#include <stdbool.h>
#include "job.h"

/* Those of its parameter groups too, which lie behind the first. */
void values_fill(Values *v, const Job *job, int64_t step, bool eval);

uint64_t name_key(const char *name, uint64_t from);     /* from: 0, or what distinguishes names that are the same */
/* JOB_ZEROS ...; normal: mean, deviation; uniform: from, to; sines: theta, less.  width: of the last axis. */
typedef struct { int kind; double a, b; long width; const float *values; } Start;
/* Elements first .. first+n-1 of the parameter, first even. */
void start_fill(float *x, const char *name, const Start *s, uint64_t seed, long first, long n);
#endif
