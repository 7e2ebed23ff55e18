/* SPDX-License-Identifier: Apache-2.0
 *
 * LinearCrossEntropy: SoftmaxCrossEntropy of the scores x[rows in] weight^T + bias, weight [out in].  At most `chunk` columns
 * of scores exist at a time, in scratch, narrowed as Linear narrows its result.
 *
 * Forward takes chunks ascending and keeps the lse of each row.  Backward recomputes the scores of a chunk, turns them into
 * their gradients in place, and gives the weight rows of the chunk theirs.  dx is one ascending chain over all of the
 * vocabulary (gemm.h), as in Linear.  Between chunks it rests as floats, in dx itself or in scratch, and it is narrowed
 * once.  Only the sums of exponentials (xent.h) therefore depend on the chunk.
 *
 * An evaluation with `top` makes the scores once more, and counts those in front of the target's.
 *
 * Chunked heads: P.-L. Hsu et al., Liger Kernel, 2024; E. Wijmans et al., Cut Your Losses in Large-Vocabulary Language
 * Models, 2024.  Cost: the product of forward a second time.
 */
#include "gemm.h"
#include "xent.h"

/* y[rows n], the scores from column `from` on */
static void scores(Stage *st, real *y, const real *x, const real *weight, const real *bias, long rows, long in, long from,
                   long n)
{
    product_to(st, y, view(x, in, 1), view(weight + from * in, 1, in), bias ? bias + from : NULL, rows, n, in);
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    (void)h;
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        scores(st, tmp, x, weight, bias, rows, in, from, n);
        scores_absorb(st, lse, sum, hit, tmp, targets, rows, from, n);
    }
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
    memset(ahead, 0, (size_t)rows * sizeof *ahead);
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        scores(st, tmp, x, weight, bias, rows, in, from, n);
        scores_ahead(st, ahead, hit, tmp, targets, rows, from, n);
    }
    scores_hits(vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)h;
    const int narrow = sizeof(real) != sizeof(float);
    float factor = loss_share(dloss, vals, count), *wide = narrow ? behind(tmp, rows * chunk) : (float *)dx;
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        scores(st, tmp, x, weight, bias, rows, in, from, n);
        scores_back(st, tmp, tmp, lse, targets, factor, rows, from, n, ignore);
        if (dweight)
            product_give(st, dweight + from * in, view(tmp, 1, n), view(x, in, 1), acc, n, in, rows);
        if (dbias)
            bias_gradient(st, dbias + from, tmp, acc, rows, n);
        if (dx)
            product_on(st, wide, view(tmp, n, 1), view(weight + from * in, in, 1), from == 0, rows, in, n);
    }
    if (dx && narrow)
        MAP(rows * in, i)
            put(dx, i, wide[i]);
}
