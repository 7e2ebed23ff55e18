/* SPDX-License-Identifier: Apache-2.0
 *
 * depthwise.c of a job that has no convolution of single channels: convolve.c makes all of them.
 */
#include "depthwise.h"

bool is_depthwise(const Conv *v)
{
    (void)v;
    return false;
}

void depth_convolve(Stage *st, real *y, const real *x, const real *weight, const real *bias, const Conv *v, int back)
{
    (void)st, (void)y, (void)x, (void)weight, (void)bias, (void)v, (void)back;
}

void depth_gradient(Stage *st, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    (void)st, (void)dweight, (void)dy, (void)x, (void)acc, (void)v;
}
