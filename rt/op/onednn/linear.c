/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: y[rows out] = x[rows in] weight[out in]^T + bias, and its two gradients, by oneDNN.
 *
 * Type and direction alone decide which entry of the library does which product, never a timing at run time.  The choice was
 * made at the shapes of GPT-2 124M on cores with AVX-512 (bench/gpt2-step prints the table for any machine):
 *
 *              f32                                         bf16
 *   forward    prepared, plain layout, bias inside         the same
 *   dx         BLAS entry: the prepared product with a     prepared, plain layout
 *              plain weight has weak spots for large k
 *   dweight    BLAS entry: the prepared one is slow at     prepared, x packed first: x is small, and the plain layout
 *              the width of a vocabulary                   is slow at the width of a vocabulary
 *
 * Weights are not packed.  Each is read only once in each direction between two updates, so packing costs more than it saves.
 *
 * The bias gradient is a sum over rows in ascending order for each column; threads split the columns.
 */
#include "../kernel.h"
#include "product.h"

typedef struct { Product *plain, *biased; } Forward;
typedef struct { Product *write, *add; } Gradient;

static const int bf16 = sizeof(real) != sizeof(float);

void open_linear_forward(Stage *st, int h, long rows, long in, long out)
{
    Forward *f = st->handle[h] = handle_alloc(sizeof *f);
    Recipe r = { .batch = 1, .m = rows, .n = out, .k = in, .tb = 1 };
    f->plain = product_open(st, r);
    r.bias = 1;
    f->biased = product_open(st, r);
}

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows,
                    long in, long out)
{
    const Forward *f = st->handle[h];
    (void)rows, (void)in, (void)out;
    product_run(st, bias ? f->biased : f->plain, y, x, weight, bias);
}

static Recipe to_x(long rows, long in, long out)
{
    return (Recipe){ .batch = 1, .m = rows, .n = in, .k = out };
}

void open_linear_backward_x(Stage *st, int h, long rows, long in, long out)
{
    if (bf16)
        st->handle[h] = product_open(st, to_x(rows, in, out));
}

void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    if (!dx)
        return;
    if (bf16)
        product_run(st, st->handle[h], dx, dy, weight, NULL);
    else
        product_f32(st, to_x(rows, in, out), (float *)dx, (const float *)dy, (const float *)weight);
}

/* Whole on a device: the product adds in an order of its own, whatever is packed. */
void open_linear_pieces_backward_x(Stage *st, int h, long rows, long in, long out, long pieces)
{
    (void)pieces;
    open_linear_backward_x(st, h, rows, in, out);
}

void linear_pieces_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out,
                              long pieces)
{
    (void)pieces;
    linear_backward_x(st, dx, dy, weight, h, rows, in, out);
}

static Recipe to_weight(int acc, long rows, long in, long out)
{
    return (Recipe){ .batch = 1, .m = out, .n = in, .k = rows, .ta = 1, .wide = 1, .acc = acc, .pack = 1 };
}

void open_linear_backward_w(Stage *st, int h, long rows, long in, long out)
{
    if (!bf16)
        return;
    Gradient *g = st->handle[h] = handle_alloc(sizeof *g);
    g->write = product_open(st, to_weight(0, rows, in, out));
    g->add = product_open(st, to_weight(1, rows, in, out));
}

void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
                       long rows, long in, long out)
{
    if (dbias)
        bias_blocks(st, dbias, dy, acc, rows, out, rows);
    if (!dweight)
        return;
    const Gradient *g = st->handle[h];
    if (bf16)
        product_run(st, acc ? g->add : g->write, dweight, dy, x, NULL);
    else
        product_f32(st, to_weight(acc, rows, in, out), dweight, (const float *)dy, (const float *)x);
}
