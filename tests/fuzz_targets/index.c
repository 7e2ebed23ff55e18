/* SPDX-License-Identifier: Apache-2.0
 *
 * index: index.json of a checkpoint.  Its reader is of one file, so that is taken whole.
 */
#define RUNTIME
#include "target.h"
#include "rt/ckpt_load.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const Job job;
    Index x = {.path = "index.json", .list = {.job = &job, .path = "build", .index = "index.json"},
               .step = -1, .batch = -1, .micro = -1, .groups = -1};
    parse_index(&x, (const char *)data, n);
    weights_close(&x.list);
    return 0;
}
