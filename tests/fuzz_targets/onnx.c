/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx: a graph of ONNX, and the model file and weights that are written of it.
 */
#include "graph_file.h"

static void take(const uint8_t *data, size_t n) { take_graph(onnx_read, data, n); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
