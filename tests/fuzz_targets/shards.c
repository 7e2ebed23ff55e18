/* SPDX-License-Identifier: Apache-2.0
 *
 * shards: model.safetensors.index.json of published weights.  Its reader is of one file, so that is taken whole.
 */
#define RUNTIME
#include "target.h"
#include "rt/weights.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Weights x = {.path = "build"};
    x.index = target_file(data, n);
    read_index(&x);
    weights_close(&x);
    return 0;
}
