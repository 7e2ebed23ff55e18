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
