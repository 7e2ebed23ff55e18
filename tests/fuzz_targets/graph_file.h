/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_file.h: reads a graph of another program, and writes the model file and the weights of it.
 */
#include "target.h"
#include "gen/import/net.h"

static inline void take_graph(int (*read)(Net *g, const unsigned char *data, size_t n), const uint8_t *data, size_t n)
{
    Net g = {.path = "the file"};
    int result = read(&g, data, n);
    g.node = NULL;
    const char *path = target_file(data, n);
    net_write(&g, result, "cross-entropy", strf("%s.yaml", path));
    remove(strf("%s.yaml", path));
    remove(strf("%s.safetensors", path));
}
