/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu_erf.c of a job in which tanh makes each Gelu: nobody calls it.
 */
#include "gelu_erf.h"

void erf_gelu(real *restrict y, const real *restrict x, long n)
{
    (void)y, (void)x, (void)n;
    __builtin_trap();
}

void erf_gelu_back(real *dx, const real *dy, const real *x, long n)
{
    (void)dx, (void)dy, (void)x, (void)n;
    __builtin_trap();
}
