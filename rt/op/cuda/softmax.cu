/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax over rows, and SoftmaxCrossEntropy: formulas and ignored rows as in rt/op/softmax.c and xent.c.  The largest
 * element and the sum of exponentials are made in one pass (kernel.h); probabilities are never stored.
 *
 * The losses of rows are added in double by one block, in the order of a row's sum; a micro-batch has few thousand.
 */
#include "kernel.h"

template <int TEAM> FN Online row_online(const real *x, long width, int step)
{
    Online o = {-F_INFINITY, 0.0f};
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x, i, width, step, -F_INFINITY);
        absorb(&o, v);
    }
    return team_online<TEAM>(o);
}

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

template <int TEAM> static __global__ void xent_rows(float *lse, const real *x, long rows, long width)
{
    long r = ROW_OF(TEAM);
    if (r >= rows)
        return;
    Online o = row_online<TEAM>(x + r * width, width, row_step(width, TEAM));
    if (threadIdx.x % TEAM == 0)
        lse[r] = o.most + flog(o.sum);
}

static __global__ void xent_total(float *loss, const float *lse, const real *x, const int32_t *targets, const Values *vals,
                                  long rows, long width, long ignore, int count)
{
    double sum = 0;
    for (long r = threadIdx.x; r < rows; r += BLOCK)
        if (targets[r] != ignore)
            sum += (double)lse[r] - (double)one(x, r * width + targets[r]);
    sum = team_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        *loss = vals->valid[count] ? (float)(sum / (double)vals->valid[count]) : 0.0f;
}

template <int TEAM>
static __global__ void xent_rows_back(real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                                      const Values *vals, long rows, long width, long ignore, int count)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    long target = targets[r];
    float factor = vals->valid[count] && target != ignore ? *dloss / (float)vals->valid[count] : 0.0f, shift = lse[r];
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++) {
            float p = fexp(v[j] - shift);
            p = i + j * (step ? step : 1) == target ? p - 1.0f : p;
            v[j] = factor == 0.0f ? 0.0f : p * factor;
        }
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

void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long width, long ignore, int count)
{
    LAUNCH_ROWS(xent_rows, rows, width, st, lse, x, rows, width);
    LAUNCH(xent_total, 1u, (unsigned)BLOCK, st, loss, (const float *)lse, x, targets, vals, rows, width, ignore, count);
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    LAUNCH_ROWS(xent_rows_back, rows, width, st, dx, dloss, x, lse, targets, vals, rows, width, ignore, count);
}
