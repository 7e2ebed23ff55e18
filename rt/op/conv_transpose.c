/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvTranspose: x[batch height width in] is spread over y[batch yheight ywidth out], weight [in out/groups kheight kwidth].
 * It is the gradient of a convolution of y that makes x, and its own gradient is that convolution.  Method, order: convolve.c.
 */
#include "convolve.h"

/* The convolution the other way: of y, which is the larger one. */
#define OTHER_WAY {batch, yheight, ywidth, out, height, width, in, kheight, kwidth, stride, top, left, dilate, groups}

void conv_transpose_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, long batch, long height,
                            long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride,
                            long top, long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    convolve_back(st, y, x, weight, &(Made){0, bias, in / groups}, &v);
}

void conv_transpose_backward_x(Stage *st, real *dx, const real *dy, const real *weight, long batch, long height, long width,
                               long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top,
                               long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    convolve_on(st, dx, dy, weight, &(Made){0, 0, out / groups}, &v);
}

void conv_transpose_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int acc, long batch,
                               long height, long width, long in, long yheight, long ywidth, long out, long kheight,
                               long kwidth, long stride, long top, long left, long dilate, long groups)
{
    Conv v = OTHER_WAY;
    if (dweight)
        convolve_weight(st, dweight, x, dy, acc, &v);
    if (dbias)
        bias_blocks(st, dbias, dy, acc, batch * yheight * ywidth, out, batch * yheight * ywidth);
}
