/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands that are repeated over axes in the middle, and a parameter that is the same for every sample: rt/op/middle.c.
 * Sums over mid: a block's where inner is 1, as kernel.h says, otherwise columns.h in one chunk, as in reduce.cu.
 */
#include "columns.h"
#include "repeat.h"

template <int TEAM> static __global__ void product_rows(real *y, const real *a, const real *b, long rows, long width)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    float sum = 0;
    if (r >= rows)
        return;
    ROW(i, TEAM, step, width) {
        float v[WIDE], w[WIDE];
        take(v, a + r * width, i, width, step);
        take(w, b + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            sum += v[j] * w[j];
    }
    sum = team_sum<TEAM>(sum);
    if (threadIdx.x % TEAM == 0)
        set(y, r, sum);
}

void add_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    repeat<pair_sum>(st, y, a, b, outer, mid, inner);
}

void mul_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    repeat<pair_product>(st, y, a, b, outer, mid, inner);
}

void mul_middle_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long outer, long mid,
                         long inner)
{
    if (da)
        repeat<pair_product>(st, da, dy, b, outer, mid, inner);
    if (db && inner == 1)
        LAUNCH_ROWS(product_rows, outer, mid, st, db, dy, a, outer, mid);
    else if (db)
        column_sums(st, Product{dy, a}, Narrow{db, 1.0f}, mid, inner, outer);
}

static __global__ void repeat_weight(real *y, const real *weight, long batch, long n)
{
    GRID(i, n)
        for (long s = 0; s < batch; s++)
            y[s * n + i] = weight[i];
}

void parameter_forward(Stage *st, real *y, const real *weight, long batch, long n)
{
    LAUNCH(repeat_weight, blocks_for(n), (unsigned)BLOCK, st, y, weight, batch, n);
}

void parameter_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long n)
{
    column_sums(st, Plain{dy}, Gradient{{dweight, 0}, acc}, batch, n);
}
