/* SPDX-License-Identifier: Apache-2.0
 *
 * tie.c: sums of gradients of tied parameters.
 */
#include "kernel.h"

void tie_add(Stage *st, float *g, const float *other, long n)
{
    MAP(n, i)
        g[i] += other[i];
}
