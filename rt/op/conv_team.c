/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv that the devices of a stage share by channels (docs/width.md).  Channels of y: a device has rows of the weight, and its
 * blocks of dx.  Channels of x: it has those of each row of the weight, and its blocks of y.  The other calls are those of Conv
 * on the part: a gradient of the weight is a sum over pixels, which all devices have.
 */
#include "convolve.h"
#include "linear_team.h"

/* Finished sums of all devices, with the bias, as convolve() has them: -0 becomes 0. */
static void put_sums(Stage *st, real *y, const real *bias, void *tmp, long pixels, long n)
{
    const float *sum = close_sums(st, y, tmp, pixels * n);
    EACH(pixels * n >= 4 * SPAN)
    for (long i = 0; i < pixels; i++)
        for (long j = 0; j < n; j++)
            put(y, i * n + j, sum[i * n + j] + (bias ? get(bias, j) : 0.0f));
}

void conv_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, long batch,
                       long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth,
                       long stride, long top, long left, long dilate, long groups)
{
    Conv v = {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups};
    convolve_on(st, y, x, weight, &(Made){room_of(y, tmp), 0, block_of_part(st, in)}, &v);
    put_sums(st, y, bias, tmp, batch * yheight * ywidth, out);
}

void conv_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, long batch, long height,
                             long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride,
                             long top, long left, long dilate, long groups)
{
    Conv v = {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups};
    convolve_back(st, dx, dy, weight, &(Made){room_of(dx, tmp), 0, block_of_part(st, out)}, &v);
    put_sums(st, dx, NULL, tmp, batch * height * width, in);
}
