/* SPDX-License-Identifier: Apache-2.0
 *
 * begin.h: start values of parameters, for the program and for the library.
 */
#ifndef BEGIN_H
#define BEGIN_H
#include "job.h"

/* JOB_ZEROS ...; normal: mean, deviation; uniform: from, to; sines: theta, less.  width: of the last axis. */
typedef struct { int kind; double a, b; long width; const float *values; } Start;
/* Elements first .. first+n-1 of the parameter, first even. */
void start_fill(float *x, const char *name, const Start *s, uint64_t seed, long first, long n);
#endif
