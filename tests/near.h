/* SPDX-License-Identifier: Apache-2.0
 *
 * near.h: the need that replay/walk.c gives for each stage of a plan, against the live bytes that mem found.
 */
#include "world.h"
#include "fates/fates.h"

typedef struct { double most, more; char where[256]; } Worst;      /* too small by; with offload, too large by */

static const Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g, m);
    check_graph(g);
    return g;
}

static void compare_stages(const Plan *p, Worst *w)
{
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    Prices *x = prices_open(p, price_whole(p, limit));
    for (int s = 0, first = 0; s < p->devices; first = last_of(p, s++) + 1) {
        Price price = price_with(x, first, last_of(p, s), s, p->fate.at);
        Bytes bound = p->dev.at[s].bound;
        const char *hurry = price.offloaded ? ((const char *[]){"", " soon", " now"})[p->ask.choice.copy_slack] : "";
        double far = (double)(price.need - bound) / (double)bound;
        if (price.offloaded && far > 0) {
            w->more = far > w->more ? far : w->more;
            continue;
        }
        if (llabs(price.need - bound) > 64 && (far < 0 ? -far : far) > w->most) {       /* 64: one alignment */
            w->most = far < 0 ? -far : far;
            snprintf(w->where, sizeof w->where, "%s %d stages, recompute %d%s%s, stage %d: %lld for %lld", order_name(p),
                     p->devices, p->m->plan.recompute, price.offloaded ? ", offload" : "", hurry, s, (long long)price.need,
                     (long long)bound);
        }
    }
}
