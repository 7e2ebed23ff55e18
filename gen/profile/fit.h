/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.h: the times of all calls from a few that were measured.
 */
#ifndef FIT_H
#define FIT_H
#include "bench.h"
#include "cost/prof.h"

typedef struct {
    const Bench *all;
    Bench few;                  /* the calls that are measured */
    Ns *work;                   /* by call of `all`: the estimate of it */
    Ints sorted;                /* calls by kernel, then work */
    int *why;                   /* by call: FIT_NONE, FIT_USED, FIT_JUDGED */
} Fit;
enum { FIT_NONE, FIT_USED, FIT_JUDGED };

Fit *fit_of(const Bench *all);
void fit_fill(const Fit *f, Profile *p);            /* rows of the others, and on stderr what the fit is worth */
#endif
