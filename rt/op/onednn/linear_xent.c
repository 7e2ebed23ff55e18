/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_xent.c: the products of LinearCrossEntropy by oneDNN, chunk by chunk as in rt/op/linear_xent.c, rows by xent_parts.h.
 *
 * Entries of the library are chosen as in linear.c: scores prepared, with the bias inside; the two gradients by the BLAS
 * entry in f32, prepared in bf16.  dx is accumulated by the products, in f32; the library may add what was there before or
 * after a sum, as shape and instruction set say.
 */
#include "../xent_parts.h"
#include "product.h"

/* Of a chunk, and of a last one that is shorter: scores without and with a bias; bf16: gradients written and added to. */
typedef struct { Product *scores[2], *weight[2], *x[2]; } Chunk;
typedef struct { Chunk whole, rest; } Head;

static const int bf16 = sizeof(real) != sizeof(float);

static Recipe to_scores(int bias, long rows, long in, long n)
{
    return (Recipe){ .batch = 1, .m = rows, .n = n, .k = in, .tb = 1, .bias = bias };
}

static Recipe to_weight(int acc, long rows, long in, long n)
{
    return (Recipe){ .batch = 1, .m = n, .n = in, .k = rows, .ta = 1, .wide = 1, .acc = acc, .pack = 1 };
}

static Recipe to_x(int acc, long rows, long in, long n)
{
    return (Recipe){ .batch = 1, .m = rows, .n = in, .k = n, .wide = 1, .acc = acc };
}

static void open_chunk(Stage *st, Chunk *c, int backward, long rows, long in, long n)
{
    for (int i = 0; i < 2; i++) {
        c->scores[i] = product_open(st, to_scores(i, rows, in, n));
        if (backward && bf16) {
            c->weight[i] = product_open(st, to_weight(i, rows, in, n));
            c->x[i] = product_open(st, to_x(i, rows, in, n));
        }
    }
}

static void open_head(Stage *st, int h, int backward, long rows, long in, long out, long chunk)
{
    Head *e = st->handle[h] = handle_alloc(sizeof *e);
    open_chunk(st, &e->whole, backward, rows, in, chunk);
    if (out % chunk)
        open_chunk(st, &e->rest, backward, rows, in, out % chunk);
}

void open_linear_xent_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)ignore, (void)count;
    open_head(st, h, 0, rows, in, out, chunk);
}

void open_linear_xent_hits_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long top)
{
    (void)ignore, (void)count, (void)top;
    open_head(st, h, 0, rows, in, out, chunk);
}

void open_linear_xent_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)ignore, (void)count;
    open_head(st, h, 1, rows, in, out, chunk);
}

/* y[rows n], the scores from column `from` on */
static void scores(Stage *st, const Chunk *c, real *y, const real *x, const real *weight, const real *bias, long in, long from)
{
    product_run(st, c->scores[bias != NULL], y, x, weight + from * in, bias ? bias + from : NULL);
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk,
                         long ignore, int count)
{
    const Head *e = st->handle[h];
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        scores(st, n < chunk ? &e->rest : &e->whole, tmp, x, weight, bias, in, from);
        scores_absorb(st, lse, sum, hit, tmp, targets, rows, from, n, from == 0);
    }
    scores_loss(loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk,
                              long ignore, int count, long top)
{
    const Head *e = st->handle[h];
    float *ahead = behind(tmp, rows * chunk), *hit = ahead + rows;
    linear_xent_forward(st, loss, lse, x, weight, bias, targets, tmp, vals, h, rows, in, out, chunk, ignore, count);
    if (!vals->eval)
        return;
    memset(ahead, 0, (size_t)rows * sizeof *ahead);
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from);
        scores(st, n < chunk ? &e->rest : &e->whole, tmp, x, weight, bias, in, from);
        scores_ahead(st, ahead, hit, tmp, targets, rows, from, n, n);
    }
    scores_hits(vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    const Head *e = st->handle[h];
    float factor = loss_share(dloss, vals, count), *wide = bf16 ? behind(tmp, rows * chunk) : (float *)dx;
    for (long from = 0; from < out; from += chunk) {
        long n = least(chunk, out - from), at = from * in;
        const Chunk *c = n < chunk ? &e->rest : &e->whole;
        scores(st, c, tmp, x, weight, bias, in, from);
        scores_back(st, tmp, tmp, lse, targets, factor, rows, from, n, n, ignore, 0, 1);
        if (dbias)
            bias_blocks(st, dbias + from, tmp, acc, rows, n, rows);
        if (dweight && bf16)
            product_run(st, c->weight[acc], dweight + at, tmp, x, NULL);
        else if (dweight)
            product_f32(st, to_weight(acc, rows, in, n), dweight + at, tmp, (const float *)x);
        if (dx && bf16)
            product_run(st, c->x[from > 0], wide, tmp, weight + at, NULL);
        else if (dx)
            product_f32(st, to_x(from > 0, rows, in, n), wide, tmp, (const float *)weight + at);
    }
    if (dx && bf16)
        MAP(rows * in, i)
            put(dx, i, wide[i]);
}
