/* SPDX-License-Identifier: Apache-2.0
 *
 * index: index.json of a checkpoint.  Its reader is of one file, so that is taken whole.
 */
#define RUNTIME
#include "target.h"
#include "rt/ckpt_load.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Index x = EMPTY;
    parse_index(&x, "index.json", (const char *)data, n);
    for (int i = 0; i < x.entries; i++)
        free(x.entry[i].name);
    free(x.entry);
    free(x.part);
    return 0;
}
