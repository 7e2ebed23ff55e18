/* SPDX-License-Identifier: Apache-2.0
 *
 * index: index.json of a checkpoint.  Its reader is of one file, so that is taken whole.
 */
#define RUNTIME
#include "target.h"
#include "rt/ckpt_load.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Index x = {.step = -1, .batch = -1, .micro = -1, .groups = -1};
    parse_index(&x, "index.json", (const char *)data, n);
    close_index(&x);
    return 0;
}
