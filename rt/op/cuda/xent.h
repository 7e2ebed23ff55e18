/* SPDX-License-Identifier: Apache-2.0
 *
 * xent.h: what LinearCrossEntropy does with the scores of a chunk, and a stage of several devices with a part of them, which is
 * no library product: xent.cu; rt/op/xent.h says the same for processors.
 */
#ifndef CUDA_XENT_H
#define CUDA_XENT_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Scores: rows that are `pitch` apart, of each the columns from .. from+n-1 of all. */
typedef struct { const real *at; long pitch, from, n; } ScoreRows;

/* Takes scores of each row in: the largest score so far, the sum of e^(score - it), and the score of the target.  begin: they
 * are the first. */
void scores_absorb(Stage *st, float *most, float *sum, float *hit, ScoreRows x, const int32_t *targets, long rows, int begin);
/* What each device has taken in of its part becomes that of the whole. */
void scores_team(Stage *st, float *most, float *sum, float *hit, long rows);
/* From what the chunks of each row have left: lse, in place of `most`, and the loss. */
void scores_loss(Stage *st, float *loss, float *most, const float *sum, const float *hit, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count);
/* The same with `smooth` of a target shared out over all `whole` scores of a row, which add up to scores[r]. */
void scores_smooth_loss(Stage *st, float *loss, float *most, const float *sum, const float *hit, const float *scores,
                        const int32_t *targets, const Values *vals, long rows, long ignore, int count, float smooth,
                        long whole);
/* share times the sum of each row's scores. */
void scores_sum(Stage *st, float *to, ScoreRows x, long rows, float share);
void scores_smooth_back(Stage *st, real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                        const Values *vals, long rows, long ignore, int count, float smooth, long whole);
/* dx = (e^(x - lse) - [target]) dloss / valid, rows as far apart as those of x, and 0 behind them; it may be x itself. */
void scores_back(Stage *st, real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count);
/* aim: the target's score of each row, by a sum of its own, 0 where the target is not among words first .. first+out-1; nothing
 * is ahead of it.  In an evaluation, as the next two. */
void scores_aim(Stage *st, float *aim, float *ahead, const real *x, const real *weight, const real *bias,
                const int32_t *targets, const Values *vals, long rows, long in, long first, long out);
/* ahead += other scores that come before the target's: larger ones, and equal ones in front of it. */
void scores_ahead(Stage *st, float *ahead, const float *aim, ScoreRows x, const int32_t *targets, const Values *vals,
                  long rows);
void scores_hits(Stage *st, Values *vals, const float *ahead, const int32_t *targets, long rows, long ignore, long top);
void scores_narrow(Stage *st, real *to, const float *from, long n);
#ifdef __cplusplus
}
#endif
#endif
