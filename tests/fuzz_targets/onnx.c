/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx: a graph of ONNX, and the model file and weights that are written of it.
 */
#include "target.h"
#include "gen/net/net.h"

static void take(const uint8_t *data, size_t n)
{
    Net g = {.path = "the file"};
    int result = onnx_read(&g, data, n);
    g.node = NULL;
    const char *path = target_file(data, n);
    net_write(&g, result, "cross-entropy", strf("%s.yaml", path));
    remove(strf("%s.yaml", path));
    remove(strf("%s.safetensors", path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
