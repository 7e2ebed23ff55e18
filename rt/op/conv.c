/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv: images [batch height width in], weight [out in/groups kheight kwidth], y [batch yheight ywidth out].  Method and order:
 * convolve.c.
 */
#include "convolve.h"

void conv_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long batch, long height,
                  long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top,
                  long left, long dilate, long groups)
{
    (void)h;
    Conv v = {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups};
    convolve_on(st, y, x, weight, &(Made){0, bias, groups > 1 ? in / groups : block_of(st, in)}, &v);
}

void conv_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long batch, long height, long width,
                     long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left,
                     long dilate, long groups)
{
    (void)h;
    Conv v = {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups};
    convolve_back(st, dx, dy, weight, &(Made){0, 0, groups > 1 ? out / groups : block_of(st, out)}, &v);
}

void conv_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long batch,
                     long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth,
                     long stride, long top, long left, long dilate, long groups)
{
    (void)h;
    Conv v = {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups};
    if (dweight)
        convolve_weight(st, dweight, dy, x, acc, &v);
    if (dbias)
        bias_blocks(st, dbias, dy, acc, batch * yheight * ywidth, out, batch * yheight * ywidth);
}
