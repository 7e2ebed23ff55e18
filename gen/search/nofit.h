/* SPDX-License-Identifier: Apache-2.0
 *
 * nofit.h: the answer when no plan fits.  It needs whoever plans, so it is called by main.c and calls back.
 */
#ifndef NOFIT_H
#define NOFIT_H
#include "plan.h"

/* Plan a variant of the model; need: what its worst device lacks memory for, when it does not fit. */
typedef bool (*WouldFit)(void *ctx, const Model *m, Bytes *need);
/* failed: the last plan tried, NULL if there was none to try.  Ends with status 4. */
void nofit(const Plan *failed, WouldFit would_fit, void *ctx) NORETURN;
#endif
