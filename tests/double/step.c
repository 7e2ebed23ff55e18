/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: tells the double that steps have begun, between a stage's source and rt/cuda/feed.c.  A folder built by its own
 * Makefile does without.
 */
#include "rt/rt.h"
#include "double.h"

void run_step_begin(Stage *st, Values *vals);

void step_begin(Stage *st, Values *vals)
{
    double_in_steps = 1;
    run_step_begin(st, vals);
}
