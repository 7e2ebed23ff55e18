/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.h: which operators the devices of a stage share, and along what (divide.c).
 */
#ifndef DIVIDE_H
#define DIVIDE_H
#include "build/axes.h"

/* So many stretches, each in contiguous parts, one a device; 0: whole.  uneven: the length of the axis, if the blocks do not
 * divide it; else 0.  rows: the data say how many of so many rows a device has, `most` at most; 0: parts are equal. */
typedef struct { int64_t outer, uneven, rows, most; } Cut;
typedef struct {
    int devices;
    bool experts;               /* whole ones, with plan.experts: devices; else a part of each */
    bool everywhere;            /* plan.positions: products have rows too, and all of their weights */
    int64_t blocks;             /* of the model: sums are cut so, and a device has whole ones */
    int *axis;                  /* by forward operator: of its row; -1: each device makes all of it */
    Cut *of, *of_state;         /* by tensor; by state */
    const char **why;           /* by forward operator that could begin a region: why there is none; NULL */
    Bytes forward, backward;    /* of results, and of gradients of operands, that are sums over the devices */
} Divide;
/* needs a Graph behind shape; fills *to. */
void divide_find(const Graph *g, int devices, const PlanSpec *p, Divide *to);
/* Of the whole tensor: what a device has room for, cut so. */
void divide_shape(const Divide *d, Cut c, Shape *s, Bytes *bytes);
/* Elements in front of an axis in an operand; 0: the operand has it not.  And what the operand is, by its number in the row's
 * axes: a tensor, a state; -1: absent. */
int64_t divide_front(const Op *o, const RowAxes *a, int list, int axis);
int divide_thing(const Op *o, const Row *r, int list);
/* What a device has room for of so many: whole blocks of them. */
int64_t divide_room(const Divide *d, int64_t n);
/* positions.c: by forward operator the axis of its rows, -1: each device has all of them; how many rows are cut, together with
 * those of its neighbours; and why not.  Then the same in the Graph.  False: there are none. */
typedef struct { int axis; int64_t rows; const char *why; } RowCut;
RowCut *positions_find(const Graph *g, const Divide *d);
bool positions(Graph *g, const Divide *d);
#endif
