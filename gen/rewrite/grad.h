/* SPDX-License-Identifier: Apache-2.0
 *
 * grad.h: what grad.c, update.c and positions.c share; nobody else includes it.
 */
#ifndef GRAD_H
#define GRAD_H
#include "build/build.h"

/* A name that no tensor and no state has, not even as a C identifier: `name`, with `_` behind it until it is free. */
const char *grad_name(Names *taken, const char *name);
/* Appends moments, the norm and every operator of PH_U. */
void update(Graph *g, const Model *m, Names *taken);
#endif
