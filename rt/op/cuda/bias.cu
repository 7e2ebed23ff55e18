/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias gradient of Linear: sums over rows, columns.h.  Where a norm may make them, in its order (norm.h).
 */
#include "bias.h"
#include "columns.h"

void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out)
{
    Gradient end{{dbias, 0, 0}, acc};
    if (!HOLDS(out) || TEAM_OF(out) != WARP) {
        column_sums(st, Plain{dy}, end, rows, out);
        return;
    }
    Columns c = held_columns(workspace_room(st), rows, out);
    size_t scratch = columns_scratch(c, 1);
    column_sums_in(st, Plain{dy}, end, c, scratch ? (float *)workspace_of(st, scratch) : 0, 0);
}
