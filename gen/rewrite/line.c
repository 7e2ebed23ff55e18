/* SPDX-License-Identifier: Apache-2.0
 *
 * line.c: from Model to Graph: the order of build, the rewrites and grad.
 *
 * divide wants sizes of the whole, which dumps, weights and the model's hash have; that stands behind the rewrites with other
 * bits.  graph_apart() has one device for a stage.  fp8 wants sizes; join_gelu, join_products and join_chains want bound calls.
 * join_gelu takes the Linear that fp8 leaves.  grad takes backward from the rows that they leave.  fuse joins neighbours of
 * both directions.
 */
#include "graph.h"

static void nobody(void *ctx, Graph *g, char letter)
{
    (void)ctx, (void)g, (void)letter;
}

Graph *graph_line(const Model *m, void (*seen)(void *ctx, Graph *g, char letter), void *ctx)
{
    Graph *g = build(m);
    seen = seen ? seen : nobody;
    seen(ctx, g, 'b');
    shape(g, m);
    fp8(g, m);
    join_gelu(g, m);
    join_products(g, m);
    bad_stop();
    seen(ctx, g, 's');
    prune(g, m);
    divide(g, m);
    join_chains(g, m);
    grad(g, m);
    bad_stop();
    join_parts(g);
    join_onto(g, m);
    seen(ctx, g, 'g');
    fuse(g, m);
    graph_uses(g);
    seen(ctx, g, 'f');
    return g;
}

Graph *graph_apart(const Model *m)
{
    Graph *g = build(m);
    shape(g, m);
    fp8(g, m);
    join_gelu(g, m);
    join_products(g, m);
    grad(g, m);
    return g;
}
