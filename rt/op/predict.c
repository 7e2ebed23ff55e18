/* SPDX-License-Identifier: Apache-2.0
 *
 * predict.c: weights that are predicted: newer + ahead (newer - older); `to` may be `older`.
 */
#include "kernel.h"

void predict(Stage *st, float *to, const float *newer, const float *older, long ahead, long n)
{
    float times = (float)ahead;
    MAP(n, i)
        to[i] = newer[i] + times * (newer[i] - older[i]);
}
