/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_xent.h: the loops of LinearCrossEntropy over the vocabulary, whole, or the part of a device of a stage.  Column 0 of
 * a part is column `first` of the whole.
 */
#ifndef LINEAR_XENT_H
#define LINEAR_XENT_H
#include "gemm.h"
#include "xent_parts.h"

/* y[rows n], the scores from column `from` on */
static inline void chunk_scores(Stage *st, real *y, const real *x, const real *weight, const real *bias, long rows, long in,
                                long from, long n)
{
    product_to(st, y, view(x, in, 1), view(weight + from * in, 1, in), bias ? bias + from : NULL, rows, n, in, in);
}

/* Behind a block: the pairs of all rows, and their subtrees in `rest`. */
static inline void pairs_end(float *most, float *sum, Scores *rest, long rows, long number, int last)
{
    for (long r = 0; r < rows; r++) {
        Scores s = scores_end((Scores){most[r], sum[r]}, rest + r, rows, number, last);
        most[r] = s.most;
        sum[r] = s.sum;
    }
}

/* The same of n chains of dx. */
static inline void chains_end(Stage *st, float *to, float *rest, long n, long number, int last)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += SPAN)
        block_ends(to + i, rest + i, n, least(SPAN, n - i), number, last);
}

/* Largest scores, sums and the targets' scores of all rows, in blocks. */
static inline void scores_take(Stage *st, float *most, float *sum, float *hit, const real *x, const real *weight,
                               const real *bias, const int32_t *targets, void *tmp, long rows, long in, long out, long chunk,
                               long first, long block)
{
    Scores *rest = (Scores *)(hit + rows);
    for (long begin = 0, number = 0; begin < out; begin += block, number++) {
        long end = least(begin + block, out);
        for (long from = begin; from < end; from += chunk) {
            long n = least(chunk, end - from);
            chunk_scores(st, tmp, x, weight, bias, rows, in, from, n);
            scores_absorb(st, most, sum, hit, tmp, targets, rows, first + from, n, from == begin);
        }
        if (block < out)
            pairs_end(most, sum, rest, rows, number, end == out);
    }
}

/* ahead[rows]: so many of the scores come before the target's. */
static inline void scores_before(Stage *st, float *ahead, const float *hit, const real *x, const real *weight,
                                 const real *bias, const int32_t *targets, void *tmp, long rows, long in, long out, long chunk,
                                 long first)
{
    memset(ahead, 0, (size_t)rows * sizeof *ahead);
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        chunk_scores(st, tmp, x, weight, bias, rows, in, from, n);
        scores_ahead(st, ahead, hit, tmp, targets, rows, first + from, n, n);
    }
}

/* Gradients of weight and bias; wide[rows in], unless NULL, that of x in f32. */
static inline void scores_give(Stage *st, float *wide, float *rest, float *dweight, float *dbias, float factor, const real *x,
                               const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                               int acc, long rows, long in, long out, long chunk, long ignore, long first, long block)
{
    for (long begin = 0, number = 0; begin < out; begin += block, number++) {
        long end = least(begin + block, out);
        for (long from = begin; from < end; from += chunk) {
            long n = least(chunk, end - from);
            chunk_scores(st, tmp, x, weight, bias, rows, in, from, n);
            scores_back(st, tmp, tmp, lse, targets, factor, rows, first + from, n, n, ignore, 0, 1);
            if (dweight)
                product_give(st, dweight + from * in, view(tmp, 1, n), view(x, in, 1), acc, n, in, rows, rows);
            if (dbias)
                bias_blocks(st, dbias + from, tmp, acc, rows, n, rows);
            if (wide)
                products(st, (Result){wide, in, 1, from == begin ? STORE : GO_ON, NULL}, view(tmp, n, 1),
                         view(weight + from * in, in, 1), (Several){1, 0, 0}, rows, in, n, n, 1);
        }
        if (wide && block < out)
            chains_end(st, wide, rest, rows * in, number, end == out);
    }
}
#endif
