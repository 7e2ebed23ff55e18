/* SPDX-License-Identifier: Apache-2.0
 *
 * xent.h: the rows of scores of SoftmaxCrossEntropy: of each the largest score and the sum of e^(score - that).
 *
 * The vocabulary may be divided among devices, so a row is cut into blocks (kernel.h).  Each has such a pair, and the tree
 * merges two pairs: both sums are scaled to the larger score, and added.
 */
#ifndef XENT_H
#define XENT_H
#include "kernel.h"

/* A row's largest score in some columns, and the sum of e^(score - that). */
typedef struct { float most, sum; } Scores;

static inline Scores scores_merge(Scores a, Scores b)
{
    float top = a.most > b.most ? a.most : b.most, shift = top == -F_INFINITY ? 0.0f : top;
    return (Scores){top, a.sum * fexp(a.most - shift) + b.sum * fexp(b.most - shift)};
}

/* As block_ends: of the pair of a block, whose subtrees are `step` apart. */
static inline Scores scores_end(Scores s, Scores *rest, long step, long number, int last)
{
    int level = 0;
    for (; block_takes(number, level, last); level++)
        s = number >> level & 1 ? scores_merge(rest[level * step], s) : s;
    if (!last)
        rest[level * step] = s;
    return s;
}

static inline Scores block_sum(const real *x, long n)
{
    Scores s = {.most = row_max(x, n)};
    float shift = s.most == -F_INFINITY ? 0.0f : s.most;
    SUM_OF(s.sum, n, i, fexp(get(x, i) - shift));
    return s;
}

static inline Scores row_sum(const real *x, long width, long block)
{
    Scores all = {-F_INFINITY, 0}, rest[LEVELS];            /* of no scores too */
    for (long from = 0, number = 0; from < width; from += block, number++)
        all = scores_end(block_sum(x + from, least(block, width - from)), rest, 1, number, from + block >= width);
    return all;
}

/* The logarithm of the sum of e^score, of each row. */
static inline void row_logs(Stage *st, float *lse, const real *x, long rows, long width)
{
    EACH(rows * width >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        Scores s = row_sum(x + r * width, width, block_of(st, width));
        lse[r] = s.most + flog(s.sum);
    }
}

/* dx = (e^(x - lse) - share - hit [target]) factor; it may be x itself.  Rows are `step` apart, and 0 behind the n scores. */
static inline void scores_back(Stage *st, real *dx, const real *x, const float *lse, const int32_t *targets, float factor,
                               long rows, long from, long n, long step, long ignore, float share, float hit)
{
    EACH(rows * n >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * step;
        real *to = dx + r * step;
        if (targets[r] == ignore || factor == 0.0f) {
            memset(to, 0, (size_t)step * sizeof *to);
            continue;
        }
        long target = targets[r] - from;
        int here = target >= 0 && target < n;
        float shift = lse[r], score = here ? get(row, target) : 0.0f;
        for (long i = 0; i < n; i++)
            put(to, i, (fexp(get(row, i) - shift) - share) * factor);
        if (here)
            put(to, target, (fexp(score - shift) - share - hit) * factor);
        memset(to + n, 0, (size_t)(step - n) * sizeof *to);
    }
}

/* What the gradient of a row is multiplied by. */
static inline float loss_share(const float *dloss, const Values *vals, int count)
{
    return vals->valid[count] ? *dloss / (float)vals->valid[count] : 0.0f;
}

/* A sum of losses as its part of the mean over the step. */
static inline float loss_mean(double sum, const Values *vals, int count)
{
    return vals->valid[count] ? (float)(sum / (double)vals->valid[count]) : 0.0f;
}
#endif
