/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_xent.c: LinearCrossEntropy chunk by chunk as in rt/op/linear_xent.c, products by cublasLt, rows by xent.cu.
 *
 * The scores of a chunk are narrowed as those of Linear are.  The gradients of weight and x are f32 and accumulated by the
 * products: the sum of a chunk first, then what was there, chunks ascending.
 */
#include "../../real.h"
#include "../../team.h"
#include "bias.h"
#include "product.h"
#include "xent.h"

/* Products of a chunk, and again, KINDS further, of a last one that is shorter. */
enum { PLAIN, BIASED, TO_WEIGHT, TO_X, KINDS };

static const int bf16 = sizeof(real) != sizeof(float);

static void open_chunk(Stage *st, int h, int part, const char *call, int backward, long rows, long in, long n)
{
    Recipe r = { .call = call, .batch = 1, .m = rows, .n = n, .k = in, .tb = 1 };
    product_open(st, h, part + PLAIN, r);
    r.epilogue = EPILOGUE_BIAS;
    product_open(st, h, part + BIASED, r);
    if (!backward)
        return;
    product_open(st, h, part + TO_WEIGHT, (Recipe){ .call = call, .batch = 1, .m = n, .n = in, .k = rows, .ta = 1, .wide = 1 });
    product_open(st, h, part + TO_X, (Recipe){ .call = call, .batch = 1, .m = rows, .n = in, .k = n, .wide = 1 });
}

/* Of each chunk of the `out` words that the device has. */
static void open_head(Stage *st, int h, const char *call, int backward, long rows, long in, long out, long chunk)
{
    if (out >= chunk)
        open_chunk(st, h, 0, call, backward, rows, in, chunk);
    if (out % chunk)
        open_chunk(st, h, KINDS, call, backward, rows, in, out % chunk);
}

void open_linear_xent_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)ignore, (void)count;
    open_head(st, h, "linear_xent_forward", 0, rows, in, out, chunk);
}

void open_linear_xent_hits_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long top)
{
    (void)ignore, (void)count, (void)top;
    open_head(st, h, "linear_xent_hits_forward", 0, rows, in, out, chunk);
}

void open_linear_xent_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)ignore, (void)count;
    open_head(st, h, "linear_xent_backward", 1, rows, in, out, chunk);
}

void open_linear_xent_part_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count,
                                   long whole)
{
    (void)ignore, (void)count;
    open_head(st, h, "linear_xent_part_forward", 0, rows, in, part_here(st, out, whole), chunk);
}

void open_linear_xent_part_hits_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count,
                                        long top, long whole)
{
    (void)ignore, (void)count, (void)top;
    open_head(st, h, "linear_xent_part_hits_forward", 0, rows, in, part_here(st, out, whole), chunk);
}

void open_linear_xent_part_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count,
                                    long whole)
{
    (void)ignore, (void)count;
    open_head(st, h, "linear_xent_part_backward", 1, rows, in, part_here(st, out, whole), chunk);
}

/* y[rows n], the scores from column `from` on */
static void scores(Stage *st, int h, int part, real *y, const real *x, const real *weight, const real *bias, long in, long from)
{
    product_run(st, h, part + (bias ? BIASED : PLAIN), y, x, weight + from * in, bias ? bias + from : 0, 0);
}

/* What all heads read; the device has words first .. first+out-1. */
typedef struct {
    const real *x, *weight, *bias;
    const int32_t *targets;
    void *tmp;
    int h;
    long rows, in, first, out, chunk;
} Head;

/* Of the words here the largest score of each row, the sum, the target's score; ahead NULL: hits are not wanted. */
static void take_scores(Stage *st, const Head *k, float *lse, float *sum, float *hit, float *ahead, const float *aim,
                        const Values *vals)
{
    if (k->out == 0)
        scores_absorb(st, lse, sum, hit, (ScoreRows){k->tmp, 0, k->first, 0}, k->targets, k->rows, 1);
    for (long from = 0; from < k->out; from += k->chunk) {
        long n = k->out - from < k->chunk ? k->out - from : k->chunk;
        ScoreRows here = {k->tmp, n, k->first + from, n};
        scores(st, k->h, n < k->chunk ? KINDS : 0, k->tmp, k->x, k->weight, k->bias, k->in, from);
        scores_absorb(st, lse, sum, hit, here, k->targets, k->rows, from == 0);
        if (ahead)
            scores_ahead(st, ahead, aim, here, k->targets, vals, k->rows);
    }
}

/* Gradients of the words here, and what they add to that of x: `wide`, NULL: it is not wanted. */
static void give_scores(Stage *st, const Head *k, float *wide, float *dweight, float *dbias, const float *dloss,
                        const float *lse, const Values *vals, int acc, long ignore, int count)
{
    for (long from = 0; from < k->out; from += k->chunk) {
        long n = k->out - from < k->chunk ? k->out - from : k->chunk;
        int part = n < k->chunk ? KINDS : 0;
        scores(st, k->h, part, k->tmp, k->x, k->weight, k->bias, k->in, from);
        scores_back(st, k->tmp, dloss, (ScoreRows){k->tmp, n, k->first + from, n}, lse, k->targets, vals, k->rows, ignore,
                    count);
        if (dweight)
            product_run(st, k->h, part + TO_WEIGHT, dweight + from * k->in, k->tmp, k->x, 0, acc);
        if (dbias)
            bias_gradient(st, dbias + from, k->tmp, acc, k->rows, n);
        if (wide)
            product_run(st, k->h, part + TO_X, wide, k->tmp, k->weight + from * k->in, 0, from > 0);
    }
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    take_scores(st, &(Head){x, weight, bias, targets, tmp, h, rows, in, 0, out, chunk}, lse, sum, hit, NULL, NULL, vals);
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk,
                              long ignore, int count, long top)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows, *aim = hit + rows, *ahead = aim + rows;
    scores_aim(st, aim, ahead, x, weight, bias, targets, vals, rows, in, 0, out);
    take_scores(st, &(Head){x, weight, bias, targets, tmp, h, rows, in, 0, out, chunk}, lse, sum, hit, ahead, aim, vals);
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    float *wide = bf16 ? behind(tmp, rows * chunk) : (float *)dx;
    give_scores(st, &(Head){x, weight, bias, targets, tmp, h, rows, in, 0, out, chunk}, dx ? wide : NULL, dweight, dbias, dloss,
                lse, vals, acc, ignore, count);
    if (dx && bf16)
        scores_narrow(st, dx, wide, rows * in);
}

/* ---- a stage of several devices shares the vocabulary (rt/op/linear_xent_part.c) ---------------------------------------- */

void linear_xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out,
                              long chunk, long ignore, int count, long whole)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    Head here = {x, weight, bias, targets, tmp, h, rows, in, st->shard * out, part_here(st, out, whole), chunk};
    take_scores(st, &here, lse, sum, hit, NULL, NULL, vals);
    scores_team(st, lse, sum, hit, rows);
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_part_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                                   const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out,
                                   long chunk, long ignore, int count, long top, long whole)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows, *aim = hit + rows, *ahead = aim + rows;
    Head here = {x, weight, bias, targets, tmp, h, rows, in, st->shard * out, part_here(st, out, whole), chunk};
    fill_zero(st, aim, 2 * rows * (long)sizeof *aim);           /* in a step nobody aims */
    scores_aim(st, aim, ahead, x, weight, bias, targets, vals, rows, in, here.first, here.out);
    if (st->team)
        st->team->sum(st, aim, rows);                           /* on one device alone it is not 0 */
    take_scores(st, &here, lse, sum, hit, ahead, aim, vals);
    scores_team(st, lse, sum, hit, rows);
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
    if (st->team)
        st->team->sum(st, ahead, rows);                         /* numbers below 2^24: exact */
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}

void linear_xent_part_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                               const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                               const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore,
                               int count, long whole)
{
    float *wide = bf16 ? behind(tmp, rows * chunk) : (float *)dx;
    Head here = {x, weight, bias, targets, tmp, h, rows, in, st->shard * out, part_here(st, out, whole), chunk};
    give_scores(st, &here, dx ? wide : NULL, dweight, dbias, dloss, lse, vals, acc, ignore, count);
    if (dweight && !acc && here.out < out)
        fill_zero(st, dweight + here.out * in, (out - here.out) * in * (long)sizeof *dweight);
    if (dbias && !acc && here.out < out)
        fill_zero(st, dbias + here.out, (out - here.out) * (long)sizeof *dbias);
    if (dx && here.out == 0)
        fill_zero(st, wide, rows * in * (long)sizeof *wide);
    if (dx && st->team)
        st->team->sum(st, wide, rows * in);
    if (dx && bf16)
        scores_narrow(st, dx, wide, rows * in);
}
