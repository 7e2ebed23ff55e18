/* SPDX-License-Identifier: Apache-2.0
 *
 * xent_smooth.h: SoftmaxCrossEntropy with smoothing s: the target is 1 - s in its own score and s/width in every score.  The
 * loss of a row is lse - (1 - s) x[target] - s average(x), and dx = (e^(x - lse) - (1 - s) [target] - s/width) dloss / valid.
 */
#ifndef XENT_SMOOTH_H
#define XENT_SMOOTH_H
#include "xent.h"

/* The sum of a row's scores, of no scores -0: nothing is added then. */
static inline float row_total(const real *x, long width, long block)
{
    float all = -0.0f, rest[LEVELS];
    for (long from = 0, number = 0; from < width; from += block, number++) {
        SUM_OF(all, least(block, width - from), i, get(x, from + i));
        block_ends(&all, rest, 1, 1, number, from + block >= width);
    }
    return all;
}
#endif
