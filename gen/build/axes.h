/* SPDX-License-Identifier: Apache-2.0
 *
 * axes.h: along what an operator may be divided (axes.c).
 */
#ifndef AXES_H
#define AXES_H
#include "graph.h"

/* The axes of a row's operands, parameters and results, in their order and in that of memory; lists 0: it has no parts. */
enum { MOST_AXES = 16, AXES_DIMS = 6, AXES_LISTS = 12, AXES_PRODUCTS = 2 };
/* An attribute, a letter, an expression; whole: never divided.  several: a part has more than one.  by: its parts go with those
 * of axis by - 1, and the data say how long they are; 0: they are equal. */
typedef struct { char name[40]; bool whole, several; int by; } RowAxis;
typedef struct { int n, dim[AXES_DIMS]; } AxisList;         /* numbers of axes */
typedef struct {
    int axes, lists, products;
    RowAxis axis[MOST_AXES];
    AxisList list[AXES_LISTS];
    struct { char attr[40]; AxisList of; } product[AXES_PRODUCTS];      /* an attribute that is a product of axes */
} RowAxes;
RowAxes row_axes(const Row *r);
/* The row of a part of it along that axis; -1: the row itself does. */
int row_part(const Row *r, const char *axis);
/* Has the row dimensions whose parts go with those of the axis? */
bool axis_leads(const RowAxes *a, int axis);
/* Of such a row: bytes that a device swaps at each level of the tree in its call of a phase, an expression; "": none. */
const char *row_swaps(const Row *part, Phase phase);
/* Elements along an axis, and of an operand, where of() gives those of an attribute, or -1; -1: it gives too few. */
int64_t axis_size(const RowAxes *a, int axis, int64_t (*of)(const void *ctx, const char *attr), const void *ctx);
int64_t dims_size(const RowAxes *a, const AxisList *d, int64_t (*of)(const void *ctx, const char *attr), const void *ctx);
#endif
