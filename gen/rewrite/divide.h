/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.h: which operators the devices of a stage share, and along what (divide.c).
 */
#ifndef DIVIDE_H
#define DIVIDE_H
#include "build/axes.h"

typedef struct {
    int devices;
    int64_t blocks;             /* of the model: sums are cut so, and a device has whole ones */
    int *axis;                  /* by forward operator: of its row; -1: each device makes all of it */
    int64_t *outer;             /* by tensor: so many stretches, each in `devices` contiguous parts; 0: whole */
    int64_t *of_state;          /* by state: the same */
    const char **why;           /* by forward operator that could begin a region: why there is none; NULL */
    Bytes forward, backward;    /* of results, and of gradients of operands, that are sums over the devices */
} Divide;
/* needs a Graph behind shape; fills *to. */
void divide_find(const Graph *g, int devices, Divide *to);
#endif
