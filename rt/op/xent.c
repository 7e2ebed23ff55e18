/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropy: loss = the sum over rows of (lse - x[target]) / valid, with lse = log of the sum of e^x.  valid counts
 * the targets of the whole step that differ from `ignore`.  Micro-batches therefore add up to the mean over the step, however
 * many targets each of them holds.  A row with an ignored target has no loss and zero gradient; without any valid target the
 * loss is 0. Backward needs x and lse alone: dx = (e^(x - lse) - [target]) dloss / valid.
 */
#include "xent.h"

void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long width, long ignore, int count)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        float most = row_max(row, width), sum;
        SUM_OF(sum, width, i, fexp(get(row, i) - most));
        lse[r] = most + flog(sum);
    }
    double sum = 0;                         /* ascending over rows, in double: one rounding at the end */
    for (long r = 0; r < rows; r++)
        if (targets[r] != ignore)
            sum += (double)lse[r] - (double)get(x, r * width + targets[r]);
    *loss = loss_mean(sum, vals, count);
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, 0, width, ignore);
}

/* A score is ahead of the target's if it is larger, or equal and before it, or not a number. */
void hit_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore, long top)
{
    long hits = 0, counted = 0;
    (void)st;
    for (long r = 0; vals->eval && r < rows; r++) {
        const real *row = x + r * width;
        long ahead = 0, target = targets[r];
        if (target == ignore)
            continue;
        for (long i = 0; i < width; i++)
            ahead += !(get(row, i) <= get(row, target)) || (i < target && get(row, i) == get(row, target));
        hits += ahead < top;
        counted++;
    }
    vals->hits = counted ? (float)hits / (float)counted : 0.0f;
}
