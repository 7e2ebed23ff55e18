/* SPDX-License-Identifier: Apache-2.0
 *
 * LinearCrossEntropy: SoftmaxCrossEntropy of the scores x[rows in] weight^T + bias, weight [out in].  At most `chunk` columns
 * of scores exist at a time, in scratch, narrowed as Linear narrows its result.
 *
 * Forward takes chunks ascending and keeps the lse of each row.  Backward recomputes the scores of a chunk, turns them into
 * their gradients in place, and gives the weight rows of the chunk theirs.  dx is one ascending chain over all of the
 * vocabulary (gemm.h), as in Linear.  Between chunks it rests as floats, in dx itself or in scratch, and it is narrowed
 * once.  Only the sums of exponentials (xent.h) therefore depend on the chunk.  With blocks (kernel.h) each has chunks, a pair
 * a row and a chain of dx of its own.  Subtrees wait in scratch: log2 of the blocks times 2 rows, or rows of dx, in floats.
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
    product_to(st, y, view(x, in, 1), view(weight + from * in, 1, in), bias ? bias + from : NULL, rows, n, in, in);
}

/* Behind a block: the pairs of all rows, and their subtrees in `rest`. */
static void pairs_end(float *most, float *sum, Scores *rest, long rows, long number, int last)
{
    for (long r = 0; r < rows; r++) {
        Scores s = scores_end((Scores){most[r], sum[r]}, rest + r, rows, number, last);
        most[r] = s.most;
        sum[r] = s.sum;
    }
}

/* The same of n chains of dx. */
static void chains_end(Stage *st, float *to, float *rest, long n, long number, int last)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += SPAN)
        block_ends(to + i, rest + i, n, least(SPAN, n - i), number, last);
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    (void)h;
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    Scores *rest = (Scores *)(hit + rows);
    long block = block_of(st, out);
    for (long begin = 0, number = 0; begin < out; begin += block, number++) {
        long end = least(begin + block, out);
        for (long from = begin; from < end; from += chunk) {
            long n = least(chunk, end - from);
            scores(st, tmp, x, weight, bias, rows, in, from, n);
            scores_absorb(st, lse, sum, hit, tmp, targets, rows, from, n, from == begin);
        }
        if (block < out)
            pairs_end(lse, sum, rest, rows, number, end == out);
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
    float factor = loss_share(dloss, vals, count), *more = behind(tmp, rows * chunk);
    float *wide = narrow ? more : (float *)dx, *rest = narrow ? more + rows * in : more;
    long block = block_of(st, out);
    for (long begin = 0, number = 0; begin < out; begin += block, number++) {
        long end = least(begin + block, out);
        for (long from = begin; from < end; from += chunk) {
            long n = least(chunk, end - from);
            scores(st, tmp, x, weight, bias, rows, in, from, n);
            scores_back(st, tmp, tmp, lse, targets, factor, rows, from, n, ignore);
            if (dweight)
                product_give(st, dweight + from * in, view(tmp, 1, n), view(x, in, 1), acc, n, in, rows, rows);
            if (dbias)
                bias_gradient(st, dbias + from, tmp, acc, rows, n);
            if (dx)
                product_on(st, wide, view(tmp, n, 1), view(weight + from * in, in, 1), from == begin, rows, in, n);
        }
        if (dx && block < out)
            chains_end(st, wide, rest, rows * in, number, end == out);
    }
    if (dx && narrow)
        MAP(rows * in, i)
            put(dx, i, wide[i]);
}
