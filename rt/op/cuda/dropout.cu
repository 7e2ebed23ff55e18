/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout: rt/op/dropout.c, with the same factors (philox.h).  A thread takes groups of 8 elements of one sample: two
 * blocks of Philox.  Its ten rounds are twenty wide products an element, so this runs below the speed of memory.
 */
#include "kernel.h"
#include "drop.h"

enum { GROUP = 8 };

static __global__ void dropout(real *y, const real *x, const real *onto, const Values *vals, long first, long batch,
                               long per, float drop, int64_t site)
{
    long groups = (per + GROUP - 1) / GROUP;
    bool off = vals->eval != 0;
    Drop d = drop_of(vals, 0, drop, site);
    GRID(g, batch * groups) {
        long sample = quotient(g, groups), i = (g - sample * groups) * GROUP;
        int step = per % WIDE == 0 && i + GROUP <= per ? 0 : 1;
        float v[GROUP];
        d.sample = (uint32_t)(first + sample);
        take(v, x + sample * per, i, per, step);
        for (int j = 0; j < GROUP && !off; j += 4) {
            Philox r = drop_block(&d, i / 4 + j / 4);
            for (int k = 0; k < 4; k++)
                v[j + k] *= drop_factor(&d, r.v[k]);
        }
        if (onto)
            add(v, onto + sample * per, i, per, step);
        leave(y + sample * per, v, i, per, step);
    }
}

void dropout_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
                     long per, float drop, int64_t site)
{
    LAUNCH(dropout, blocks_for(batch * ceil_div(per, GROUP)), (unsigned)BLOCK, st, y, x, onto, vals, (long)mb * batch,
           batch, per, drop, site);
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

void dropout_shared_forward(Stage *st, real *y, const real *x, const Values *vals, int mb, long batch, long outer, long mid,
                            long inner, float drop, int64_t site)
{
    LAUNCH(dropout_along, blocks_for(batch * outer * inner), (unsigned)BLOCK, st, y, x, vals, (long)mb * batch, batch, outer,
           mid, inner, drop, site);
}
