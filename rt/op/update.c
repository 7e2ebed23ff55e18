/* SPDX-License-Identifier: Apache-2.0
 *
 * update.c: the norm of gradients.
 *
 * The norm: each parameter gives the sum of its squares in double, in at most 256 blocks of a length that follows
 * from n alone, each by 16 lanes, blocks added ascending; partials of all parameters are added ascending.  factor
 * = min(1, limit / (norm + 1e-6)).  The norm of the whole gradient is reported in vals; those of single parameters
 * (vals: 0) are not.
 */
#include "update.h"

static double squares(const float *g, long n)
{
    double lane[LANES] = {0};
    squares_add(lane, g, n);
    return squares_end(lane);
}

void norm_blocks(Stage *st, double *blocks, const float *g, long n, long each, long first)
{
    EACH(n >= 1 << 15)
    for (long b = 0; b < ceil_div(n, each); b++)
        blocks[first + b] = squares(g + b * each, least(each, n - b * each));
}

void norm_sum(Stage *st, double *norm, const double *blocks, long n, long first, long index)
{
    (void)st;
    double sum = 0;
    for (long b = 0; b < n; b++)
        sum += blocks[first + b];
    norm[index] = sum;
}

void norm_partial(Stage *st, double *norm, const float *g, long n, long index)
{
    double part[BLOCKS];
    long each = norm_each(n);
    norm_blocks(st, part, g, n, each, 0);
    norm_sum(st, norm, part, ceil_div(n, each), 0, index);
}

void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit)
{
    (void)st;
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += norm[i];
    double root = dsqrt(sum), factor = (double)limit / (root + 1e-6);
    *clip = factor < 1 ? (float)factor : 1.0f;
    if (vals)
        vals->norm = root;
}
