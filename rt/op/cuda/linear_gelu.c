/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_gelu.c: a Linear with its Gelu inside, and the gradient of both (linear.c), where cublasLt has such a product; else in
 * two calls, and one rounding more.
 */
#include "element.h"
#include "product.h"

enum { APART, APART_BIASED, INSIDE, INSIDE_BIASED };

void open_linear_gelu_forward(Stage *st, int h, long rows, long in, long out)
{
    static const int epilogues[] = { [APART] = EPILOGUE_NONE, [APART_BIASED] = EPILOGUE_BIAS, [INSIDE] = EPILOGUE_GELU,
                                     [INSIDE_BIASED] = EPILOGUE_GELU_BIAS };
    for (int part = APART; part <= INSIDE_BIASED; part++)
        product_open(st, h, part, (Recipe){ .call = "linear_gelu_forward", .batch = 1, .m = rows, .n = out, .k = in, .tb = 1,
                                            .epilogue = epilogues[part] });
}

void linear_gelu_forward(Stage *st, real *y, real *pre, const real *x, const real *weight, const real *bias, int h, long rows,
                         long in, long out)
{
    (void)in;
    int inside = bias ? INSIDE_BIASED : INSIDE;
    if (product_there(st, h, inside)) {
        product_gelu(st, h, inside, y, x, weight, bias, pre);
        return;
    }
    product_run(st, h, bias ? APART_BIASED : APART, pre, x, weight, bias, 0);
    gelu_forward(st, y, pre, rows * out, 1);
}

void open_linear_gelu_backward(Stage *st, int h, long rows, long in, long out)
{
    Recipe r = { .call = "linear_gelu_backward", .batch = 1, .m = rows, .n = in, .k = out };
    product_open(st, h, APART, r);
    r.epilogue = EPILOGUE_SLOPE;
    product_open(st, h, INSIDE, r);
}

void linear_gelu_backward(Stage *st, real *dpre, const real *dy, const real *weight, const real *pre, int h, long rows, long in,
                          long out)
{
    (void)out;
    if (product_there(st, h, INSIDE)) {
        product_gelu(st, h, INSIDE, dpre, dy, weight, NULL, pre);
        return;
    }
    product_run(st, h, APART, dpre, dy, weight, NULL, 0);
    gelu_backward(st, dpre, dpre, pre, rows * in, 1);
}
