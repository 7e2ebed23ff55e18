/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.h: the sums over the experts of a token, and gradients of one, for one device (experts.c) and for devices that have
 * whole experts (experts_team.c).  Ascending choices of a token.
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

/* The gradients of rows first .. end-1, which x and dx have, and of their shares; dy has a row for each `top` of n. */
static inline void share_back(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share,
                              const int32_t *slot, long n, long top, long width, long first, long end)
{
    EACH(n * width >= 1 << 14)
    for (long i = 0; i < n; i++) {
        const long at = (slot[i] - first) * width;
        const real *d = dy + i / top * width;
        float sum, part = get(share, i);
        if (slot[i] < first || slot[i] >= end)
            continue;
        SUM_OF(sum, width, k, get(d, k) * get(x, at + k));
        if (dshare)
            put(dshare, i, sum);
        for (long k = 0; dx && k < width; k++)
            put(dx, at + k, part * get(d, k));
    }
}
#endif
