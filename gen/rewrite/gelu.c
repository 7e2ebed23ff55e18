/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu.c: a Gelu between two Linear goes into their products.
 *
 * Problem: on GPUs a Gelu reads and writes memory for arithmetic that a product could do before it stores its result.
 *
 * Method.  Linear, Gelu (tanh), Linear, where nothing else reads what is between them, become LinearGelu and GeluLinear
 * (ops.def).  The first product stores the operand of the Gelu and its result.  The second takes both; its backward call makes
 * the gradient of the operand.  So cuts, fates and messages need not know.
 *
 *   bits     not those of three calls: the Gelu takes sums that are not rounded yet.  The calls are part of the numeric key.
 *   plans    the result of the Gelu can be made again only by the whole product; a cut between the two sends both tensors.
 *   fp8      products with factors of 8 bits have no Gelu inside: the pass fp8 comes first.
 *   names    an operator that a pattern in the section plan names stays separate, as in fuse.c.
 *
 * needs   bound forward calls.  fills  row, in, out, calls.  keeps  every parameter and its order.  fails  with err() where
 * kernels are not those of GPUs.  Not handled: f32, and rows that are no multiple of 16 bytes, since the library takes neither.
 */
#include "rewrite.h"

static bool between(const Graph *g, const PlanSpec *p, const int *reads, const int *reader, const Op *gelu)
{
    int x = gelu->in.at[0], y = gelu->out.at[0], from = g->tensor.at[x].op;
    if (from < 0 || reads[x] != 1 || reads[y] != 1 || y == g->loss || !attr_int(gelu, "tanh"))
        return false;
    const Op *a = &g->op.at[from], *b = &g->op.at[reader[y]];
    return match_is(a, "Linear") && match_is(b, "Linear") && attr_int(a, "out") % 8 == 0 &&
           !match_apart(p, gelu, a) && !match_apart(p, a, gelu);
}

void join_gelu(Graph *g, const Model *m)
{
    if (m->plan.fuse != FUSE_MOST)
        return;
    if (!on_gpus(m))
        err(m->plan.loc, "fuse: auto", "only kernels for GPUs have products with a Gelu inside");
    int *reader = alloc(sizeof *reader * (size_t)g->tensor.n), *reads = match_reads(g, reader), *into = match_all(g);
    for (int i = 0; i < g->op.n && g->compute == BF16; i++)
        if (match_is(&g->op.at[i], "Gelu") && between(g, &m->plan, reads, reader, &g->op.at[i])) {
            const Op *gelu = &g->op.at[i];
            int x = gelu->in.at[0], y = gelu->out.at[0];
            Op *a = &g->op.at[g->tensor.at[x].op], *b = &g->op.at[reader[y]];
            a->row = row_find("LinearGelu");
            a->with = gelu->name;
            a->out.n = 0;
            *PUSH(&a->out) = y;
            *PUSH(&a->out) = x;
            g->tensor.at[y].op = g->tensor.at[x].op;
            b->row = row_find("GeluLinear");
            *PUSH(&b->in) = x;
            bind_forward(g, a);
            bind_forward(g, b);
            into[i] = g->tensor.at[g->op.at[i].out.at[0]].op;
        }
    match_drop(g, into);
}
