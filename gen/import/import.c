/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c: dpgen import of a file that holds a graph, ONNX or a program of PyTorch.
 */
#include "net.h"

bool net_knows(const char *path)
{
    return text_without(path, ".onnx") || text_without(path, ".pt2");
}

int net_import(const char *path, const char *out, const char *loss, const char *shape)
{
    size_t n;
    if (shape && text_without(path, ".pt2"))
        fail(EXIT_USAGE, "import: --shape is for .onnx; the sizes of a .pt2 are those of the x that it was exported with");
    Net g = {.path = path, .shape = shape};
    const unsigned char *at = file_map(path, EXIT_USAGE, &n);
    int result = text_without(path, ".pt2") ? pt2_read(&g, at, n) : onnx_read(&g, at, n);
    g.node = NULL;
    net_write(&g, result, loss, out);
    return 0;
}
