/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over rows: the formula as in rt/op/softmax.c.  The largest element and the sum of exponentials are made in one pass
 * (kernel.h).
 */
#include "kernel.h"

template <int TEAM> static __global__ void softmax_rows(real *y, const real *x, long rows, long width)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    Online o = row_online<TEAM>(x + r * width, width, step);
    float over = 1.0f / o.sum;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = fexp(v[j] - o.most) * over;
        leave(y + r * width, v, i, width, step);
    }
}

template <int TEAM>
static __global__ void softmax_rows_back(real *dx, const real *dy, const real *y, long rows, long width)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    float sum = 0, v[WIDE], d[WIDE];
    ROW(i, TEAM, step, width) {
        take(v, y + r * width, i, width, step);
        take(d, dy + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            sum += d[j] * v[j];
    }
    sum = team_sum<TEAM>(sum);
    ROW(i, TEAM, step, width) {
        take(v, y + r * width, i, width, step);
        take(d, dy + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = v[j] * (d[j] - sum);
        leave(dx + r * width, v, i, width, step);
    }
}

void softmax_forward(Stage *st, real *y, const real *x, long rows, long width)
{
    LAUNCH_ROWS(softmax_rows, rows, width, st, y, x, rows, width);
}

void softmax_backward(Stage *st, real *dx, const real *dy, const real *y, long rows, long width)
{
    LAUNCH_ROWS(softmax_rows_back, rows, width, st, dx, dy, y, rows, width);
}
