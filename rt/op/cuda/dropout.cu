/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: rt/op/dropout.c, with the same factors (philox.h).  A thread takes groups of 8 elements of one sample: two
 * blocks of Philox.  Its ten rounds are twenty wide products an element, so this runs below the speed of memory.
 */
#include "kernel.h"
#include "drop.h"
#include "repeat.h"

enum { GROUP = 8 };

/* Rows of `run` elements, `pieces` of each sample; of a piece of the whole it is part `shard` of so many. */
struct Pieces { long run, pieces, shard, shards; };

static __global__ void dropout(real *y, const real *x, const real *onto, const Values *vals, long first, long batch,
                               Pieces p, float drop, int64_t site)
{
    long groups = (p.run + GROUP - 1) / GROUP;
    bool off = vals->eval != 0 || drop == 0;
    Drop d = drop_of(vals, 0, drop, site);
    GRID(g, batch * p.pieces * groups) {
        long row = quotient(g, groups), i = (g - row * groups) * GROUP, sample = quotient(row, p.pieces);
        long e = ((row - sample * p.pieces) * p.shards + p.shard) * p.run + i;
        int step = p.run % WIDE == 0 && i + GROUP <= p.run ? 0 : 1;
        float v[GROUP], factor[4];
        d.sample = (uint32_t)(first + sample);
        take(v, x + row * p.run, i, p.run, step);
        for (int j = 0; j < GROUP && !off; j += 4) {
            drop_four(factor, &d, e + j);
            for (int k = 0; k < 4; k++)
                v[j + k] *= factor[k];
        }
        if (onto)
            add(v, onto + row * p.run, i, p.run, step);
        leave(y + row * p.run, v, i, p.run, step);
    }
}

static void drop_parts(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, Pieces p,
                       float drop, int64_t site)
{
    LAUNCH(dropout, blocks_for(batch * p.pieces * ceil_div(p.run, GROUP)), (unsigned)BLOCK, st, y, x, onto, vals,
           (long)mb * batch, batch, p, drop, site);
}

void dropout_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                     long per, float drop, int64_t site)
{
    drop_parts(st, y, x, onto, vals, mb, batch, Pieces{per, 1, 0, 1}, drop, site);
}

/* Of the devices of a stage each has a part of each piece. */
void dropout_part_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                          long per, long pieces, float drop, int64_t site)
{
    Pieces p = {per / pieces, pieces, st->team ? (long)st->shard : 0, st->team ? (long)st->shards : 1};
    drop_parts(st, y, x, onto, vals, mb, batch, p, drop, site);
}

/* n elements of all samples, from `begin` on, each `per` long: a group of four may have two of them. */
static __global__ void dropout_rows(real *y, const real *x, const real *onto, const Values *vals, long first, long begin,
                                    long n, Divisor per, float drop, int64_t site)
{
    bool off = vals->eval != 0 || drop == 0;
    Drop d = drop_of(vals, 0, drop, site);
    GROUPS(i, step, 4, n) {
        float v[4], factor[4];
        long at = begin + i, sample = quotient(at, per), e = at - sample * per.by;
        d.sample = (uint32_t)(first + sample);
        take(v, x, i, n, (int)step);
        if (!off && e + 4 <= per.by)
            drop_four(factor, &d, e);
        for (int j = 0; j < 4 && !off && e + 4 > per.by; j++) {
            long other = quotient(at + j, per);
            d.sample = (uint32_t)(first + other);
            factor[j] = drop_one(&d, at + j - other * per.by);
        }
        for (int j = 0; j < 4 && !off; j++)
            v[j] *= factor[j];
        if (onto)
            add(v, onto, i, n, (int)step);
        leave(y, v, i, n, (int)step);
    }
}

/* Of the devices of a stage each has n elements, in one piece of all samples. */
void dropout_rows_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per,
                          long n, float drop, int64_t site)
{
    LAUNCH(dropout_rows, blocks_for(ceil_div(n, 4)), (unsigned)BLOCK, st, y, x, onto, vals, (long)mb * batch,
           (st->team ? (long)st->shard : 0) * n, n, divisor_of(per), drop, site);
}

/* One draw for the elements of an axis in the middle: x[batch outer mid inner], drawn over [outer inner] of each sample.  A
 * thread has a draw, and walks along mid. */
static __global__ void dropout_along(real *y, const real *x, const Values *vals, long first, long batch, long outer, long mid,
                                     long inner, float drop, int64_t site)
{
    long per = outer * inner;
    bool off = vals->eval != 0 || drop == 0;
    Drop d = drop_of(vals, 0, drop, site);
    GRID(i, batch * per) {
        long sample = quotient(i, per), e = i - sample * per, row = quotient(i, inner), j = i - row * inner;
        d.sample = (uint32_t)(first + sample);
        float factor = off ? 1.0f : drop_one(&d, e);
        for (long m = 0; m < mid; m++) {
            long at = (row * mid + m) * inner + j;
            set(y, at, one(x, at) * factor);
        }
    }
}

void dropout_shared_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                            long outer, long mid, long inner, float drop, int64_t site)
{
    LAUNCH(dropout_along, blocks_for(batch * outer * inner), (unsigned)BLOCK, st, y, x, vals, (long)mb * batch, batch, outer,
           mid, inner, drop, site);
    if (onto)
        repeat<pair_sum>(st, y, onto, y, batch * outer * mid, 1, inner);
}
