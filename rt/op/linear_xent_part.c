/* SPDX-License-Identifier: Apache-2.0
 *
 * LinearCrossEntropy whose vocabulary the devices of a stage share (docs/width.md).  A device has rows of the weight, and its
 * blocks of each sum over the vocabulary.  Forward swaps three numbers a row and level: the largest score, the sum of
 * exponentials, the score of the target.  The gradient of x is a sum in f32 (team.h); those of weight and bias are its own.
 */
#include "linear_xent.h"

static void close_scores(Stage *st, float *lse, float *sum, float *hit, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, long rows, long in, long out, long chunk, long whole)
{
    memset(hit, 0, (size_t)rows * sizeof *hit);
    for (long r = 0; r < rows; r++) {           /* of no scores */
        lse[r] = -F_INFINITY;
        sum[r] = 0;
    }
    scores_take(st, lse, sum, hit, x, weight, bias, targets, tmp, rows, in, part_here(st, out, whole), chunk, st->shard * out,
                block_of_part(st, out));
    scores_team(st, lse, sum, hit, rows);
}

void linear_xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out,
                              long chunk, long ignore, int count, long whole)
{
    (void)h;
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    close_scores(st, lse, sum, hit, x, weight, bias, targets, tmp, rows, in, out, chunk, whole);
    scores_loss(loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_part_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                                   const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out,
                                   long chunk, long ignore, int count, long top, long whole)
{
    float *ahead = behind(tmp, rows * chunk), *hit = ahead + rows;      /* forward leaves it */
    linear_xent_part_forward(st, loss, lse, x, weight, bias, targets, tmp, vals, h, rows, in, out, chunk, ignore, count,
                             whole);
    if (!vals->eval)
        return;
    scores_before(st, ahead, hit, x, weight, bias, targets, tmp, rows, in, part_here(st, out, whole), chunk,
                  st->shard * out);
    if (st->team)
        st->team->sum(st, ahead, rows);                                 /* numbers below 2^24: exact */
    scores_hits(vals, ahead, targets, rows, ignore, top);
}

void linear_xent_part_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                               const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                               const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore,
                               int count, long whole)
{
    (void)h;
    const int narrow = sizeof(real) != sizeof(float);
    float *more = behind(tmp, rows * chunk), *wide = narrow ? more : (float *)dx, *rest = narrow ? more + rows * in : more;
    long here = part_here(st, out, whole);
    scores_give(st, dx ? wide : NULL, rest, dweight, dbias, loss_share(dloss, vals, count), x, weight, bias, lse, targets, tmp,
                acc, rows, in, here, chunk, ignore, st->shard * out, block_of_part(st, out));
    if (dweight && !acc)
        memset(dweight + here * in, 0, (size_t)((out - here) * in) * sizeof *dweight);
    if (dbias && !acc)
        memset(dbias + here, 0, (size_t)(out - here) * sizeof *dbias);
    if (dx && here == 0)
        fill_nothing(wide, rows * in);
    if (dx && st->team)
        st->team->sum(st, wide, rows * in);
    if (dx && narrow)
        MAP(rows * in, i)
            put(dx, i, wide[i]);
}
