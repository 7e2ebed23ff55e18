/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropy: loss = the sum over rows of (lse - x[target]) / valid, with lse = log of the sum of e^x.  valid counts
 * the targets of the whole step that differ from `ignore`.  Micro-batches therefore add up to the mean over the step, however
 * many targets each of them holds.  A row with an ignored target has no loss and zero gradient; without any valid target the
 * loss is 0. Backward needs x and lse alone: dx = (e^(x - lse) - [target]) dloss / valid.
 */
#include "xent.h"

/* Rows are added ascending, in double: one rounding at the end. */
void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long width, long ignore, int count)
{
    double sum = 0;
    row_logs(st, lse, x, rows, width);
    for (long r = 0; r < rows; r++)
        if (targets[r] != ignore)
            sum += (double)lse[r] - (double)get(x, r * width + targets[r]);
    *loss = loss_mean(sum, vals, count);
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, 0, width, width, ignore, 0, 1);
}
