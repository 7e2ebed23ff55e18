/* SPDX-License-Identifier: Apache-2.0
 *
 * cast.c: copies of parameters in the compute type.
 */
#include "update.h"

void cast_forward(Stage *st, real *y, const float *x, long n)
{
    narrow(st, y, x, n);
}
