/* SPDX-License-Identifier: Apache-2.0
 *
 * BinaryCrossEntropy of scores x before a sigmoid and targets t: the mean of log(1 + e^x) - x t, which is max(x, 0) - x t +
 * log(1 + e^-|x|), so that no exponential is too large.  dx = sigmoid(x) - t, dtargets = -x, each by dloss and the share of
 * an element.
 *
 * The loss is summed in double, in at most 256 blocks of a length that follows from n alone; blocks are added ascending.
 */
#include "kernel.h"
#include "../scalar.h"

enum { BLOCKS = 256 };

void bce_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n)
{
    double part[BLOCKS], sum = 0;
    long each = n / BLOCKS + 1;
    EACH(n >= 1 << 13)
    for (long b = 0; b < BLOCKS; b++) {
        part[b] = 0;
        for (long i = b * each; i < least(b * each + each, n); i++)
            part[b] += (double)binary_loss(get(x, i), get(targets, i));
    }
    for (long b = 0; b < BLOCKS; b++)
        sum += part[b];
    *loss = (float)(sum / ((double)n * vals->micro));
}

void bce_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets,
                  const Values *vals, long n)
{
    float factor = (float)((double)*dloss / ((double)n * vals->micro));
    if (dx)
        MAP(n, i)
            put(dx, i, (fsigmoid(get(x, i)) - get(targets, i)) * factor);
    if (dtargets)
        MAP(n, i)
            put(dtargets, i, -get(x, i) * factor);
}
