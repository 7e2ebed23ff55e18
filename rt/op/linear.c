/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear: y[rows out] = x[rows in] weight^T + bias, weight stored [out in].  dx = dy weight, dweight = dy^T x,
 * dbias the column sums of dy.  Each result is one ascending chain (gemm.h); the bias is added last.  A
 * micro-batch's weight gradient is summed from zero, then added to the accumulator.
 */
#include "gemm.h"

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out)
{
    (void)h;
    EACH(rows * in * out >= 1 << 16)
    for (long number = 0; number < task_count(rows, out); number++) {
        Task t = task_of(number, rows, out);
        float c[BLOCK * COLS], add[COLS] = {0};
        task_product(c, &t, view(x, in, 1), view(weight, 1, in), in);
        for (long j = 0; bias && j < t.n; j++)
            add[j] = get(bias, t.j + j);
        for (long i = 0; i < t.m; i++)
            for (long j = 0; j < t.n; j++)
                put(y, (t.i + i) * out + t.j + j, c[i * COLS + j] + add[j]);
    }
}

void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    (void)h;
    EACH(rows * in * out >= 1 << 16)
    for (long number = 0; number < task_count(rows, in); number++) {
        Task t = task_of(number, rows, in);
        float c[BLOCK * COLS];
        task_product(c, &t, view(dy, out, 1), view(weight, in, 1), out);
        for (long i = 0; i < t.m; i++)
            for (long j = 0; j < t.n; j++)
                put(dx, (t.i + i) * in + t.j + j, c[i * COLS + j]);
    }
}

static void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out)
{
    EACH(rows * out >= 1 << 15)
    for (long j = 0; j < out; j += 64) {
        float sum[64];
        long n = least(64, out - j);
        column_sums(sum, dy, rows, out, j, n);
        give(dbias + j, sum, n, acc);
    }
}

void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
                       long rows, long in, long out)
{
    (void)h;
    long tasks = dweight ? task_count(out, in) : 0;
    EACH(rows * in * out >= 1 << 16)
    for (long number = 0; number < tasks; number++) {
        Task t = task_of(number, out, in);
        float c[BLOCK * COLS];
        task_product(c, &t, view(dy, 1, out), view(x, in, 1), rows);
        for (long i = 0; i < t.m; i++)
            give(dweight + (t.i + i) * in + t.j, c + i * COLS, t.n, acc);
    }
    if (dbias)
        bias_gradient(st, dbias, dy, acc, rows, out);
}
