/* SPDX-License-Identifier: Apache-2.0
 *
 * graph: a graph as text.
 */
#include "target.h"
#include "plan.h"

static void take(const uint8_t *data, size_t n)
{
    print_graph(stderr, read_graph(target_file(data, n)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
