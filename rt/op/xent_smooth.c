/* SPDX-License-Identifier: Apache-2.0
 *
 * xent_smooth.c: SoftmaxCrossEntropy with smoothing (xent_smooth.h), in the order of xent.c.
 */
#include "xent_smooth.h"

void xent_smooth_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                         long rows, long width, long ignore, int count, float smooth)
{
    enum { ROWS = 256 };
    float scores[ROWS] = {0};
    double sum = 0, keep = 1 - (double)smooth, share = (double)smooth / (double)width;
    row_logs(st, lse, x, rows, width);
    for (long first = 0; first < rows; first += ROWS) {
        EACH(least(ROWS, rows) * width >= 1 << 14)
        for (long r = first; r < least(first + ROWS, rows); r++)
            scores[r - first] = row_total(x + r * width, width, block_of(st, width));
        for (long r = first; r < least(first + ROWS, rows); r++)
            if (targets[r] != ignore)
                sum += (double)lse[r] - keep * (double)get(x, r * width + targets[r]) - share * (double)scores[r - first];
    }
    *loss = loss_mean(sum, vals, count);
}

void xent_smooth_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                          const Values *vals, long rows, long width, long ignore, int count, float smooth)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, 0, width, width, ignore,
                smooth / (float)width, 1.0f - smooth);
}
