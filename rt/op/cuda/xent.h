/* SPDX-License-Identifier: Apache-2.0
 *
 * xent.h: what LinearCrossEntropy does with the scores of a chunk, columns from .. from+n-1, which is no library product:
 * xent.cu; rt/op/xent.h says the same for processors.
 */
#ifndef CUDA_XENT_H
#define CUDA_XENT_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Takes a chunk of each row in: the largest score so far, the sum of e^(score - it), and the score of the target. */
void scores_absorb(Stage *st, float *most, float *sum, float *hit, const real *x, const int32_t *targets, long rows, long from,
                   long n);
/* From what the chunks of each row have left: lse, in place of `most`, and the loss. */
void scores_loss(Stage *st, float *loss, float *most, const float *sum, const float *hit, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count);
/* dx = (e^(x - lse) - [target]) dloss / valid; it may be x itself. */
void scores_back(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                 const Values *vals, long rows, long from, long n, long ignore, int count);
/* aim: the target's score of each row, by a sum of its own; nothing is ahead of it.  In an evaluation, as the next two. */
void scores_aim(Stage *st, float *aim, float *ahead, const real *x, const real *weight, const real *bias,
                const int32_t *targets, const Values *vals, long rows, long in, long out);
/* ahead += other scores of the chunk that come before the target's: larger ones, and equal ones in front of it. */
void scores_ahead(Stage *st, float *ahead, const float *aim, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long from, long n);
void scores_hits(Stage *st, Values *vals, const float *ahead, const int32_t *targets, long rows, long ignore, long top);
void scores_narrow(Stage *st, real *to, const float *from, long n);
#ifdef __cplusplus
}
#endif
#endif
