/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.h: the sums over the experts of a token, for one device (experts.c) and for devices that have whole experts
 * (experts_team.c).  Ascending choices of a token.
 */
#ifndef EXPERTS_H
#define EXPERTS_H
#include "kernel.h"

/* dx[r] = sum of dy[slot[r j]] */
static inline void add_choices(Stage *st, real *dx, const real *dy, const int32_t *slot, long rows, long top, long width)
{
    EACH(rows * top * width >= 1 << 14)
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < width; i++) {
            float sum = 0;
            for (long j = 0; j < top; j++)
                sum += get(dy, slot[r * top + j] * width + i);
            put(dx, r * width + i, sum);
        }
}

/* y[r] = sum of share[r j] x[slot[r j]] */
static inline void add_shares(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, long rows, long top,
                              long width)
{
    EACH(rows * top * width >= 1 << 14)
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < width; i++) {
            float sum = 0;
            for (long j = 0; j < top; j++)
                sum += get(share, r * top + j) * get(x, slot[r * top + j] * width + i);
            put(y, r * width + i, sum);
        }
}
#endif
