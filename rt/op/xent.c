/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropy: loss = the sum over rows of (lse - x[target]) / valid, with lse = log of the sum of e^x.  valid counts
 * the targets of the whole step that differ from `ignore`.  Micro-batches therefore add up to the mean over the step, however
 * many targets each of them holds.  A row with an ignored target has no loss and zero gradient; without any valid target the
 * loss is 0. Backward needs x and lse alone: dx = (e^(x - lse) - [target]) dloss / valid.
 *
 * With smoothing s the target is 1 - s in its own score and s/width in every score.  The loss of a row is lse - (1 - s)
 * x[target] - s average(x), and dx = (e^(x - lse) - (1 - s) [target] - s/width) dloss / valid.
 */
#include "xent.h"

/* Rows are added ascending, in double: one rounding at the end.  Their sums are made for ROWS of them at a time. */
void xent_smooth_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                         long rows, long width, long ignore, int count, float smooth)
{
    enum { ROWS = 256 };
    float scores[ROWS] = {0};
    double sum = 0, keep = 1 - (double)smooth, share = (double)smooth / (double)width;
    long block = block_of(st, width);
    for (long first = 0; first < rows; first += ROWS) {
        EACH(least(ROWS, rows) * width >= 1 << 14)
        for (long r = first; r < least(first + ROWS, rows); r++) {
            Scores s = row_sum(x + r * width, width, block);
            lse[r] = s.most + flog(s.sum);
            if (smooth != 0)
                scores[r - first] = row_total(x + r * width, width, block);
        }
        for (long r = first; r < least(first + ROWS, rows); r++)
            if (targets[r] != ignore)
                sum += (double)lse[r] - keep * (double)get(x, r * width + targets[r]) - share * (double)scores[r - first];
    }
    *loss = loss_mean(sum, vals, count);
}

void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long width, long ignore, int count)
{
    xent_smooth_forward(st, loss, lse, x, targets, vals, rows, width, ignore, count, 0);
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, 0, width, width, ignore);
}

/* The loss and its gradient, where backward follows at once. */
void xent_both(Stage *st, float *loss, float *lse, real *dx, const float *dloss, const real *x, const int32_t *targets,
               const Values *vals, long rows, long width, long ignore, int count)
{
    xent_forward(st, loss, lse, x, targets, vals, rows, width, ignore, count);
    xent_backward(st, dx, dloss, x, lse, targets, vals, rows, width, ignore, count);
}

void xent_smooth_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                          const Values *vals, long rows, long width, long ignore, int count, float smooth)
{
    scores_smooth_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, 0, width, width, ignore, smooth, width);
}
