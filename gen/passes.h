/* SPDX-License-Identifier: Apache-2.0
 *
 * passes.h: the passes as two lines, from a model to its graph and from a graph to a plan.
 */
#ifndef PASSES_H
#define PASSES_H
#include "options.h"

/* Is the file of --from a plan?  Else it is a graph. */
bool is_plan(const char *path);
/* What --from names, or what the model says. */
Graph *graph_of(const Options *x, const Model *m);
/* The one-device program that a plan is judged by: its graph with nothing joined.  A graph of --from that is not the
 * model's stays as it is. */
void print_reference(FILE *f, const Options *x, const Plan *p);
/* Every pass once, under target limits.  If no plan was made, shortfall says what is missing: OVER_DEVICE and OVER_HOST
 * mean that an arena is too large once packed. */
Verdict run(const Options *x, Plan *p, const Bytes *limit);
/* The lists of a finished plan, its routines, addresses and times, once more under another Ask; its order, cuts and fates. */
Plan *run_again(const Options *x, const Plan *of, const Ask *ask, Verdict *why);
/* Its cuts and fates with the lists of the same graph with more micro-batches. */
Plan *run_longer(const Options *x, const Plan *of, const Graph *g, const Cost *c, const Model *m, Verdict *why);
/* Frees the lists and prices of a plan that nobody asks for any more: what comm, lower, mem and sim have made, but for sums by
 * device. */
void plan_drop(Plan *p);
/* Among the devices of another order, the one that is k. */
const Device *same_device(const Model *m, const Device *k);
/* A finished plan under the memory limits of a model with the same devices, none of them smaller. */
Plan *under_limits(const Plan *of, const Model *m);
/* The model with these of its devices first: device i does stage i. */
Model *ordered(const Model *m, int stages, const int *device);
/* A plan from a file: every checker, no pass. */
Plan *plan_from(const Options *x, const Model *m);
/* After which pass, by letter; 'a' is everything. */
void dump_plan(const Options *x, const Plan *p, char letter);
#endif
