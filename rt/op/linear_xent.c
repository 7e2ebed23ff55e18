/* SPDX-License-Identifier: Apache-2.0
 *
 * LinearCrossEntropy: SoftmaxCrossEntropy of the scores x[rows in] weight^T + bias, weight [out in].  At most `chunk` columns
 * of scores exist at a time, in scratch, narrowed as Linear narrows its result.
 *
 * Forward takes chunks ascending and keeps the lse of each row.  Backward recomputes the scores of a chunk, turns them into
 * their gradients in place, and gives the weight rows of the chunk theirs.  dx is one ascending chain over all of the
 * vocabulary (gemm.c), as in Linear.  Between chunks it rests as floats, in dx itself or in scratch, and it is narrowed
 * once.  Only the sums of exponentials (xent.h) therefore depend on the chunk.  With blocks (kernel.h) each has chunks, a pair
 * a row and a chain of dx of its own.  Subtrees wait in scratch: log2 of the blocks times 2 rows, or rows of dx, in floats.
 *
 * An evaluation with `top` makes the scores once more, and counts those in front of the target's.
 *
 * Chunked heads: P.-L. Hsu et al., Liger Kernel, 2024; E. Wijmans et al., Cut Your Losses in Large-Vocabulary Language
 * Models, 2024.  Cost: the product of forward a second time.
 */
#include "linear_xent.h"

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    (void)h;
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    scores_take(st, lse, sum, hit, x, weight, bias, targets, tmp, rows, in, out, chunk, 0, block_of(st, out));
    scores_loss(loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk,
                              long ignore, int count, long top)
{
    float *ahead = behind(tmp, rows * chunk), *hit = ahead + rows;      /* forward leaves it */
    linear_xent_forward(st, loss, lse, x, weight, bias, targets, tmp, vals, h, rows, in, out, chunk, ignore, count);
    if (!vals->eval)
        return;
    scores_before(st, ahead, hit, x, weight, bias, targets, tmp, rows, in, out, chunk, 0);
    scores_hits(vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)h;
    const int narrow = sizeof(real) != sizeof(float);
    float *more = behind(tmp, rows * chunk), *wide = narrow ? more : (float *)dx, *rest = narrow ? more + rows * in : more;
    scores_give(st, dx ? wide : NULL, rest, dweight, dbias, loss_share(dloss, vals, count), x, weight, bias, lse, targets, tmp,
                acc, rows, in, out, chunk, ignore, 0, block_of(st, out));
    if (dx && narrow)
        MAP(rows * in, i)
            put(dx, i, wide[i]);
}
