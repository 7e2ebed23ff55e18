/* SPDX-License-Identifier: Apache-2.0
 *
 * hits.c: how many targets of an evaluation are among the best scores.
 */
#include "kernel.h"

/* A score is ahead of the target's if it is larger, or equal and before it, or not a number. */
void hit_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore, long top)
{
    (void)st;
    vals->hits = 0;
    for (long r = 0; vals->eval && r < rows; r++) {
        const real *row = x + r * width;
        long ahead = 0, target = targets[r];
        if (target == ignore)
            continue;
        for (long i = 0; i < width; i++)
            ahead += !(get(row, i) <= get(row, target)) || (i < target && get(row, i) == get(row, target));
        vals->hits += ahead < top;
    }
}
