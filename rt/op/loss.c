/* SPDX-License-Identifier: Apache-2.0
 *
 * loss.c: the report of a loss, and where its gradient begins.
 */
#include "kernel.h"

void loss_report(Stage *st, const float *x, Values *vals, int acc)
{
    vals->loss = (acc ? vals->loss : 0) + (double)*x;
    if (!st->loss)
        return;
    st->losses = acc ? st->losses : 0;
    st->loss[(vals->step & 1) * st->room + st->losses++] = *x;
}

void loss_seed(Stage *st, float *y)
{
    (void)st;
    *y = 1.0f;
}
