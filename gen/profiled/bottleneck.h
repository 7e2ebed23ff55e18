/* SPDX-License-Identifier: Apache-2.0
 *
 * bottleneck.h: plan.objective bottleneck.
 */
#ifndef BOTTLENECK_H
#define BOTTLENECK_H
#include "foreign.h"

/* Orders the nodes by the best chain of stages, and sets plan.cuts and plan.stages.  kind: of each device, those of one kind
 * are alike; then the chain chooses devices too.  NULL: they do stages as they come.  fails: err() where the plan asks for
 * something else. */
void bottleneck(Foreign *f, const Graph *g, Model *m, const Cost *c, const int *kind, ForeignChain *chain);
/* Are stages to have widths? */
bool widths_open(const Foreign *f, const Model *m);
Widths widths_of(const Foreign *f, const Model *m);
void bottleneck_text(FILE *out, const ForeignChain *c); /* a line of the plan */
#endif
