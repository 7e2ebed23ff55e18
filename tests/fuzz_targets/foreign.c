/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign: a graph that another system has profiled, in both forms, to a graph.
 */
#include "target.h"
#include "plan.h"
#include "profiled/foreign.h"

static void take(const uint8_t *data, size_t n)
{
    static const Overrides none;
    const char *path = target_file(data, n);
    if (!foreign_is(path))
        return;
    Foreign *f = foreign_read(path);
    foreign_graph(f, model(foreign_model(path, f->name, f->batch, f->micro, 1, f->optimizer, f->devices), path, &none));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
