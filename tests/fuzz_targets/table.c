/* SPDX-License-Identifier: Apache-2.0
 *
 * table: a schedule as a table.
 */
#include "target.h"
#include "model.h"

static void take(const uint8_t *data, size_t n)
{
    table_read(target_file(data, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
