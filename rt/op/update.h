/* SPDX-License-Identifier: Apache-2.0
 *
 * update.h: what the files of optimisers share.  Masters, gradients and moments are f32.  `clip` is the factor of gradient
 * clipping, multiplied into g as it is read; the gradient itself stays as it is.
 */
#ifndef UPDATE_H
#define UPDATE_H
#include "kernel.h"

static inline void narrow(Stage *st, real *c, const float *p, long n)
{
    MAP(n, i)
        put(c, i, p[i]);
}
#endif
