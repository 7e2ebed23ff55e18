/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropy: loss = the sum over rows of (lse - x[target]) / valid, lse = log of the sum of e^x, where
 * valid counts the targets of the whole step that differ from `ignore`: so micro-batches add up to the mean over
 * the step, however many each of them holds.  A row whose target is ignored has no loss and zero gradient; without
 * any valid target the loss is 0. lse is all that backward needs beside x: dx = (e^(x - lse) - [target]) dloss /
 * valid.
 */
#include "kernel.h"

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
    *loss = vals->valid[count] ? (float)(sum / (double)vals->valid[count]) : 0.0f;
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    float factor = vals->valid[count] ? *dloss / (float)vals->valid[count] : 0.0f;
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * width;
        real *to = dx + r * width;
        if (targets[r] == ignore || factor == 0.0f) {
            memset(to, 0, (size_t)width * sizeof *to);
            continue;
        }
        float shift = lse[r];
        for (long i = 0; i < width; i++)
            put(to, i, fexp(get(row, i) - shift) * factor);
        put(to, targets[r], (fexp(get(row, targets[r]) - shift) - 1.0f) * factor);
    }
}
