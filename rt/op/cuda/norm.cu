/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNorm and RMSNorm: formulas as in rt/op/norm.c.  A row is read as often as there are sums over it; but for the first
 * time it comes from the cache.  Gradients of weights: columns.h, both sums in one pass.
 */
#include "columns.h"

/* How a row is taken: as u = (x - mean) rstd; RMSNorm has mean 0. */
template <int TEAM> FN float row_mean(const real *x, long width, int step)
{
    float sum = 0;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x, i, width, step);
        for (int j = 0; j < WIDE; j++)
            sum += v[j];
    }
    return team_sum<TEAM>(sum) / (float)width;
}

template <int TEAM> FN float row_rstd(const real *x, float mean, long width, int step, float eps)
{
    float sum = 0;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x, i, width, step, mean);
        for (int j = 0; j < WIDE; j++)
            sum += (v[j] - mean) * (v[j] - mean);
    }
    return frsqrt(team_sum<TEAM>(sum) / (float)width + eps);
}

template <int TEAM>
static __global__ void norm_rows(real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                                 long rows, long width, float eps)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    float m = mean ? row_mean<TEAM>(x + r * width, width, step) : 0.0f;
    float s = row_rstd<TEAM>(x + r * width, m, width, step, eps);
    ROW(i, TEAM, step, width) {
        float v[WIDE], w[WIDE], b[WIDE];
        take(v, x + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++)
            b[j] = 0;
        if (bias)
            take(b, bias, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = (v[j] - m) * s * w[j] + b[j];
        leave(y + r * width, v, i, width, step);
    }
    if (threadIdx.x % TEAM == 0) {
        rstd[r] = s;
        if (mean)
            mean[r] = m;
    }
}

/* dx = rstd (g - mean(g) - u mean(g u)), g = dy weight; without `mean` the second term is left out. */
template <int TEAM>
static __global__ void norm_rows_back(real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                                      const float *rstd, const real *onto, long rows, long width)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    float m = mean ? mean[r] : 0.0f, s = rstd[r], sum = 0, product = 0, u[WIDE], g[WIDE], w[WIDE];
    ROW(i, TEAM, step, width) {
        take(u, x + r * width, i, width, step);
        take(g, dy + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++) {
            sum += g[j] * w[j];
            product += g[j] * w[j] * ((u[j] - m) * s);
        }
    }
    sum = mean ? team_sum<TEAM>(sum) / (float)width : 0.0f;
    product = team_sum<TEAM>(product) / (float)width;
    ROW(i, TEAM, step, width) {
        take(u, x + r * width, i, width, step);
        take(g, dy + r * width, i, width, step);
        take(w, weight, i, width, step);
        for (int j = 0; j < WIDE; j++)
            u[j] = s * (g[j] * w[j] - sum - (u[j] - m) * s * product);
        if (onto)
            add(u, onto + r * width, i, width, step);
        leave(dx + r * width, u, i, width, step);
    }
}

struct NormTerm {
    enum { SUMS = 2 };
    const real *dy, *x;
    const float *mean, *rstd;
    FIELD void at(float (&v)[2][WIDE], long row, long i, long width, int step) const
    {
        float m = mean ? mean[row] : 0.0f, s = rstd[row], u[WIDE];
        take(u, x + row * width, i, width, step);
        take(v[1], dy + row * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            v[0][j] = v[1][j] * ((u[j] - m) * s);
    }
};

void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    LAUNCH_ROWS(norm_rows, rows, width, st, y, mean, rstd, x, weight, bias, rows, width, eps);
}

void layernorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                          const float *rstd, const real *onto, long rows, long width)
{
    LAUNCH_ROWS(norm_rows_back, rows, width, st, dx, dy, x, weight, mean, rstd, onto, rows, width);
}

void layernorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                          const float *rstd, int acc, long rows, long width)
{
    column_sums(st, NormTerm{dy, x, mean, rstd}, Gradient{{dweight, dbias}, acc}, rows, width);
}

void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
                     float eps)
{
    LAUNCH_ROWS(norm_rows, rows, width, st, y, (float *)0, rstd, x, weight, (const float *)0, rows, width, eps);
}

void rmsnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
                        const real *onto, long rows, long width)
{
    LAUNCH_ROWS(norm_rows_back, rows, width, st, dx, dy, x, weight, (const float *)0, rstd, onto, rows, width);
}

void rmsnorm_backward_w(Stage *st, float *dweight, const real *dy, const real *x, const float *rstd, int acc,
                        long rows, long width)
{
    column_sums(st, NormTerm{dy, x, 0, rstd}, Gradient{{dweight, 0}, acc}, rows, width);
}
