/* SPDX-License-Identifier: Apache-2.0
 *
 * output.c: a value leaves the job, to whoever asked for it (serve/serve.c).
 */
#include "kernel.h"

void output_put(Stage *st, const real *x, const Values *vals, int mb, int output, long n)
{
    if (st->put)
        st->put(st, x, vals, mb, output, n);
}
