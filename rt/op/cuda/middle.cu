/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands that are repeated over axes in the middle, and a parameter that is the same for every sample: rt/op/middle.c.
 * Sums over mid: a block's where inner is 1, as kernel.h says, otherwise columns.h in one chunk, as in reduce.cu.
 */
#include "columns.h"

typedef float (*Pair)(float a, float b);

FN float middle_sum(float a, float b) { return a + b; }
FN float middle_product(float a, float b) { return a * b; }

template <Pair F> static __global__ void map_middle(real *y, const real *a, const real *b, long n, long mid, long inner)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        take(v, a, i, n, step);
        for (int j = 0; j < WIDE; j++) {
            long at = i + j < n ? i + j : i, row = quotient(at, inner);
            v[j] = F(v[j], one(b, quotient(row, mid) * inner + at - row * inner));
        }
        leave(y, v, i, n, step);
    }
}

template <Pair F>
static void middle(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    long n = outer * mid * inner;
    LAUNCH((map_middle<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, a, b, n, mid, inner);
}

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
    middle<middle_sum>(st, y, a, b, outer, mid, inner);
}

void mul_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner)
{
    middle<middle_product>(st, y, a, b, outer, mid, inner);
}

void mul_middle_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long outer, long mid,
                         long inner)
{
    if (da)
        middle<middle_product>(st, da, dy, b, outer, mid, inner);
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
