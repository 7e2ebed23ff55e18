/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias gradient of Linear: sums over rows, columns.h.
 */
#include "bias.h"
#include "columns.h"

void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out)
{
    column_sums(st, Plain{dy}, Gradient{{dbias, 0}, acc}, rows, out);
}
