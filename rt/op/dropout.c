/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout (N. Srivastava et al., 2014), inverted: what is kept is divided by 1 - drop, so that evaluation is a
 * copy.  The mask is a function of the element's place (philox.h); forward and backward are the same call.
 */
#include "kernel.h"
#include "../philox.h"

enum { ROW = 1024 };

/* Part `part` of each of `pieces`, of so many parts. */
static void drop_part(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per,
                      long pieces, long part, long parts, float drop, int64_t site)
{
    if (drop == 0 || vals->eval) {
        if (!onto)
            memcpy(y, x, (size_t)(batch * per) * sizeof *y);
        else
            MAP(batch * per, i)
                put(y, i, get(onto, i) + get(x, i));
        return;
    }
    long run = per / pieces, rows = ceil_div(run, ROW);
    EACH(batch * per >= 1 << 14)
    for (long task = 0; task < batch * pieces * rows; task++) {
        long sample = task / rows / pieces, piece = task / rows % pieces, from = task % rows * ROW, n = least(ROW, run - from);
        Drop d = drop_of(vals, mb * batch + sample, drop, site);
        float factor[ROW];
        drop_factors(factor, &d, (piece * parts + part) * run + from, n);
        for (long i = sample * per + piece * run + from, j = 0; j < n; i++, j++)
            put(y, i, added(onto, i, get(x, i) * factor[j]));
    }
}

void dropout_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                     long per, float drop, int64_t site)
{
    drop_part(st, y, x, onto, vals, mb, batch, per, 1, 0, 1, drop, site);
}

/* Of the devices of a stage each has a part of each piece. */
void dropout_part_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                          long per, long pieces, float drop, int64_t site)
{
    drop_part(st, y, x, onto, vals, mb, batch, per, pieces, st->team ? st->shard : 0, st->team ? st->shards : 1, drop, site);
}

/* Of the devices of a stage each has n elements, in one piece of all samples. */
void dropout_rows_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per,
                          long n, float drop, int64_t site)
{
    const long first = st->shard * n;
    if (drop == 0 || vals->eval) {
        drop_part(st, y, x, onto, vals, mb, 1, n, 1, 0, 1, drop, site);
        return;
    }
    EACH(n >= 1 << 14)
    for (long task = 0; task < ceil_div(n, ROW); task++) {
        long i = task * ROW, end = least(i + ROW, n);
        while (i < end) {
            long at = (first + i) % per, k = least(end - i, per - at);
            Drop d = drop_of(vals, mb * batch + (first + i) / per, drop, site);
            float factor[ROW];
            drop_factors(factor, &d, at, k);
            for (long j = 0; j < k; j++, i++)
                put(y, i, added(onto, i, get(x, i) * factor[j]));
        }
    }
}

/* One draw for the elements of an axis in the middle: x[batch outer mid inner], and what is drawn is numbered over
 * [outer inner] in each sample. */
void dropout_shared_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                            long outer, long mid, long inner, float drop, int64_t site)
{
    if (drop == 0 || vals->eval) {
        drop_part(st, y, x, onto, vals, mb, batch, outer * mid * inner, 1, 0, 1, drop, site);
        return;
    }
    long parts = ceil_div(inner, ROW);
    EACH(batch * outer * mid * inner >= 1 << 14)
    for (long task = 0; task < batch * outer * parts; task++) {
        long row = task / parts, from = task % parts * ROW, n = least(ROW, inner - from), first = row * mid * inner + from;
        Drop d = drop_of(vals, mb * batch + row / outer, drop, site);
        float factor[ROW];
        drop_factors(factor, &d, row % outer * inner + from, n);
        if (inner == 1)                 /* a draw is that of a whole row */
            for (long i = first; i < first + mid; i++)
                put(y, i, added(onto, i, get(x, i) * factor[0]));
        else
            for (long i = first; i < first + mid * inner; i += inner)
                for (long j = 0; j < n; j++)
                    put(y, i + j, added(onto, i + j, get(x, i + j) * factor[j]));
    }
}
