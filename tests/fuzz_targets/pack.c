/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: a packing instance.  Its reader is of one file, so that is taken whole.
 */
#include "target.h"
#include "gen/pack/file.c"

static void take(const uint8_t *data, size_t n)
{
    Csv c = {0};
    read_csv(&c, target_file(data, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
