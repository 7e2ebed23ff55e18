/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_point.h: sizes of a convolution, and those that conv.c leaves to conv_point.c.
 */
#ifndef CONV_POINT_H
#define CONV_POINT_H
#include "../../rt.h"

typedef struct {
    long batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups;
} Conv;

typedef enum { FORWARD, BACKWARD_X, BACKWARD_W } Direction;

/* It is made as a product. */
int point_takes(const Conv *v, Direction to);
/* At open. */
void point_open_forward(Stage *st, int h, const Conv *v);
void point_open_backward_x(Stage *st, int h, const Conv *v);
void point_open_backward_w(Stage *st, int h, const Conv *v);
/* In a step: as the calls of conv.c. */
void point_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, const Conv *v);
void point_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, const Conv *v);
void point_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, const Conv *v);
#endif
