/* SPDX-License-Identifier: Apache-2.0
 *
 * rewrite.h: Graph to Graph: what rewrites share, and reverse mode.
 */
#ifndef REWRITE_H
#define REWRITE_H
#include "build/build.h"

/* ---- grad.c: what grad.c, update.c and positions.c share; nobody else includes it ---------------------------------- */
/* A name that no tensor and no state has, not even as a C identifier: `name`, with `_` behind it until it is free. */
const char *grad_name(Names *taken, const char *name);
/* Appends moments, the norm and every operator of PH_U. */
void update(Graph *g, const Model *m, Names *taken);

/* ---- match.c: what rewrites of a Graph share: to find operators, and to take some away ----------------------------- */
bool match_is(const Op *o, const char *name);       /* of that row */
/* By tensor: how often an operator reads it, and, unless NULL, which one does last. */
int *match_reads(const Graph *g, int *reader);
/* Does the section plan say something of o that would not hold of the other operator? */
bool match_apart(const PlanSpec *p, const Op *o, const Op *other);
int *match_all(const Graph *g);                     /* by operator: itself; for match_drop */
/* Operators that another one does the work of, and their results, go away; into: by operator the one, mostly itself. */
void match_drop(Graph *g, const int *into);
#endif
