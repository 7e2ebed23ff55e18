/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv that the devices of a stage share by channels, on GPUs: rt/op/conv_team.c says who has what.  Sums that are
 * not closed are f32, by our own kernels, whatever has the other convolutions.
 */
#include "../../team.h"
#include "conv_own.h"
#include "kernel.h"
#include "sums.h"

void conv_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    float *sum = tmp ? (float *)tmp : (float *)(void *)y;
    conv_own_rows(st, sum, x, weight, &v);
    if (st->team)
        st->team->sum(st, sum, batch * yheight * ywidth * out);
    sums_put(st, y, sum, bias, batch * yheight * ywidth, out);
}

void conv_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    float *sum = tmp ? (float *)tmp : (float *)(void *)dx;
    conv_own_columns(st, sum, dy, weight, &v);
    if (st->team)
        st->team->sum(st, sum, batch * height * width * in);
    sums_put(st, dx, sum, 0, batch * height * width, in);
}
