/* SPDX-License-Identifier: Apache-2.0
 *
 * loss_sum.c: sums of losses with their factors.
 */
#include "kernel.h"

void loss_add_forward(Stage *st, float *y, const float *a, const float *b)
{
    (void)st;
    *y = *a + *b;
}

void loss_scale_forward(Stage *st, float *y, const float *x, float factor)
{
    (void)st;
    *y = *x * factor;
}
