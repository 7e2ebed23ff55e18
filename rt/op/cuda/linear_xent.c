/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_xent.c: LinearCrossEntropy chunk by chunk as in rt/op/linear_xent.c, products by cublasLt, rows by xent.cu.
 *
 * The scores of a chunk are narrowed as those of Linear are.  The gradients of weight and x are f32 and accumulated by the
 * products: the sum of a chunk first, then what was there, chunks ascending.
 */
#include "../../real.h"
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

static void open_head(Stage *st, int h, const char *call, int backward, long rows, long in, long out, long chunk)
{
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

/* y[rows n], the scores from column `from` on */
static void scores(Stage *st, int h, int part, real *y, const real *x, const real *weight, const real *bias, long in, long from)
{
    product_run(st, h, part + (bias ? BIASED : PLAIN), y, x, weight + from * in, bias ? bias + from : 0, 0);
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        scores(st, h, n < chunk ? KINDS : 0, tmp, x, weight, bias, in, from);
        scores_absorb(st, lse, sum, hit, tmp, targets, rows, from, n);
    }
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk,
                              long ignore, int count, long top)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows, *aim = hit + rows, *ahead = aim + rows;
    scores_aim(st, aim, ahead, x, weight, bias, targets, vals, rows, in, out);
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        scores(st, h, n < chunk ? KINDS : 0, tmp, x, weight, bias, in, from);
        scores_absorb(st, lse, sum, hit, tmp, targets, rows, from, n);
        scores_ahead(st, ahead, aim, tmp, targets, vals, rows, from, n);
    }
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    float *wide = bf16 ? behind(tmp, rows * chunk) : (float *)dx;
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        int part = n < chunk ? KINDS : 0;
        scores(st, h, part, tmp, x, weight, bias, in, from);
        scores_back(st, tmp, dloss, tmp, lse, targets, vals, rows, from, n, ignore, count);
        if (dweight)
            product_run(st, h, part + TO_WEIGHT, dweight + from * in, tmp, x, 0, acc);
        if (dbias)
            bias_gradient(st, dbias + from, tmp, acc, rows, n);
        if (dx)
            product_run(st, h, part + TO_X, wide, tmp, weight + from * in, 0, from > 0);
    }
    if (dx && bf16)
        scores_narrow(st, dx, wide, rows * in);
}
