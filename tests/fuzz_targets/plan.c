/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: a plan as text, beside the graph of a small model, and past every checker.
 */
#include "target.h"
#include "plan.h"
#include "small.h"

static void take(const uint8_t *data, size_t n)
{
    static const Overrides none;
    const Model *m = model(load_text("small.yaml", small_yaml, strlen(small_yaml)), "small.yaml", &none);
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g, m);
    const char *path = target_file(data, n);
    Plan *p = read_plan(path, g, NULL);
    if (p->devices > m->devices.n)
        return;
    p->m = m;
    p->c = cost(g, m, NULL);
    diag_blame(path);
    check_order(p);
    check_part(p);
    check_keep(p);
    check_comm(p);
    check_lower(p);
    check_mem(p);
    check_sim(p);
    print_plan(stderr, p, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
