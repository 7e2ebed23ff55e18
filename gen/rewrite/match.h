/* SPDX-License-Identifier: Apache-2.0
 *
 * match.h: what rewrites of a Graph share: to find operators, and to take some away.
 */
#ifndef MATCH_H
#define MATCH_H
#include "build/build.h"

bool match_is(const Op *o, const char *name);       /* of that row */
/* By tensor: how often an operator reads it, and, unless NULL, which one does last. */
int *match_reads(const Graph *g, int *reader);
/* Does the section plan say something of o that would not hold of the other operator? */
bool match_apart(const PlanSpec *p, const Op *o, const Op *other);
int *match_all(const Graph *g);                     /* by operator: itself; for match_drop */
/* Operators that another one does the work of, and their results, go away; into: by operator the one, mostly itself. */
void match_drop(Graph *g, const int *into);
#endif
