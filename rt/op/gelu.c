/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu, exact or by tanh: rt/formula.h.
 */
#include "kernel.h"
#include "../formula.h"

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    if (tanh)
        MAP(n, i)
            put(y, i, gelu_tanh(get(x, i)));
    else
        MAP(n, i)
            put(y, i, gelu_erf(get(x, i)));
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    if (tanh)
        MAP(n, i)
            put(dx, i, get(dy, i) * slope_tanh(get(x, i)));
    else
        MAP(n, i)
            put(dx, i, get(dy, i) * slope_erf(get(x, i)));
}
