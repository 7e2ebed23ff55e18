/* SPDX-License-Identifier: Apache-2.0
 *
 * bottleneck.h: plan.objective bottleneck.
 */
#ifndef BOTTLENECK_H
#define BOTTLENECK_H
#include "foreign.h"
#include "downset.h"

/* Orders the nodes by the best chain of stages and sets plan.cuts.  fails: err() where the plan asks for something else. */
void bottleneck(Foreign *f, Model *m, ForeignChain *c);
void bottleneck_text(FILE *out, const ForeignChain *c); /* a line of the plan */
#endif
