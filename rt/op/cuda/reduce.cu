/* SPDX-License-Identifier: Apache-2.0
 *
 * Sum and Mean over the middle axis of x[outer mid inner].  With inner = 1 a row is summed as kernel.h says, otherwise
 * each x[mid inner] as columns.h says, in one chunk: a result depends on its own sample alone.  Weak where outer x inner
 * is small and mid large: then few blocks work.
 */
#include "columns.h"
#include "repeat.h"

template <int TEAM> static __global__ void reduce_rows(real *y, const real *x, long rows, long width, float factor)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    float sum = 0;
    if (r >= rows)
        return;
    ROW(i, TEAM, step, width) {
        float v[WIDE];
        take(v, x + r * width, i, width, step);
        for (int j = 0; j < WIDE; j++)
            sum += v[j];
    }
    sum = team_sum<TEAM>(sum);
    if (threadIdx.x % TEAM == 0)
        set(y, r, sum * factor);
}

void reduce_forward(Stage *st, real *y, const real *x, long outer, long mid, long inner, float factor)
{
    if (inner == 1)
        LAUNCH_ROWS(reduce_rows, outer, mid, st, y, x, outer, mid, factor);
    else
        column_sums(st, Plain{x}, Narrow{y, factor}, mid, inner, outer);
}

void reduce_backward(Stage *st, real *dx, const real *dy, const real *onto, long outer, long mid, long inner, float factor)
{
    repeat<scaled>(st, dx, 0, dy, outer, mid, inner, factor);
    if (onto)
        repeat<pair_sum>(st, dx, onto, dx, outer * mid, 1, inner);
}
