/* SPDX-License-Identifier: Apache-2.0
 *
 * MeanSquaredError.  It is divided by its elements and by the micro-batches of the step.  It is summed in double, in at most
 * 256 blocks of a length that follows from n alone; blocks are independent results that threads may split, and are added
 * ascending.
 */
#include "kernel.h"

enum { BLOCKS = 256 };

void mse_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n)
{
    double part[BLOCKS], sum = 0;
    long each = n / BLOCKS + 1;
    EACH(n >= 1 << 15)
    for (long b = 0; b < BLOCKS; b++) {
        part[b] = 0;
        for (long i = b * each; i < least(b * each + each, n); i++) {
            double d = (double)get(x, i) - (double)get(targets, i);
            part[b] += d * d;
        }
    }
    for (long b = 0; b < BLOCKS; b++)
        sum += part[b];
    *loss = (float)(sum / ((double)n * vals->micro));
}

static void mse_one(Stage *st, real *to, const real *a, const real *b, long n, float factor)
{
    MAP(n, i)
        put(to, i, (get(a, i) - get(b, i)) * factor);
}

void mse_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets,
                  const Values *vals, long n)
{
    float factor = (float)(2.0 * (double)*dloss / ((double)n * vals->micro));
    if (dx)
        mse_one(st, dx, x, targets, n, factor);
    if (dtargets)
        mse_one(st, dtargets, targets, x, n, factor);
}
