/* SPDX-License-Identifier: Apache-2.0
 *
 * part.c: did part and keep answer the question?  Nothing here calls the code that made the answer.
 *
 * Method: cuts and homes are read off the graph, slow and plain, once a plan.
 *
 * Cost: operands times chunks.
 * Not handled: whether the bound is a bound.  check_sim checks that, because it knows the step.
 */
#include "plan.h"

static int chunk_of(const Plan *p, int op)
{
    return p->chunk.at[op];
}

/* ---- part -------------------------------------------------------------------------------------------------------- */

static void check_rest(const Plan *p)
{
    const Graph *g = p->g;
    for (int o = g->nf; o < g->nb; o++)
        if (chunk_of(p, o) != chunk_of(p, g->op.at[o].fwd))
            die("check_part: a backward operator of %s is not in its chunk", g->op.at[o].name);
    for (int o = g->nb; o < g->op.n; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            bool writes = a->state && (a->kind == ARG_UPDATE || a->kind == ARG_WRITE)
                && g->state.at[a->index].kind == S_PARAM;
            if (writes && chunk_of(p, o) != chunk_of(p, g->state.at[a->index].op))
                die("check_part: %s is updated away from its first use", g->state.at[a->index].name);
            bool blocks = a->state && g->state.at[a->index].kind == S_BLOCKS;
            for (int s = 0; blocks && s < g->state.n; s++)
                if (g->state.at[s].kind == S_PARAM && !strcmp(g->state.at[s].name, g->op.at[o].name) &&
                    chunk_of(p, o) != chunk_of(p, g->state.at[s].op))
                    die("check_part: the squares of %s are added away from its gradient", g->state.at[s].name);
        }
}

void check_part(const Plan *p)
{
    if (p->chunk.n != p->g->op.n)
        die("check_part: %d of %d operators have a chunk", p->chunk.n, p->g->op.n);
    const Graph *g = p->g;
    const Ints *cuts = plan_cuts(p);
    for (int o = 0, last = -1; o < g->nf; o++) {
        int c = chunk_of(p, o);
        if (c != last && c != last + 1)
            die("check_part: %s is in chunk %d, the operator before it in %d", g->op.at[o].name, c, last);
        if (c > last && o > 0 && cuts->n && cuts->at[c - 1] != o - 1)
            die("check_part: a cut after operator %d, which was not asked for", o - 1);
        last = c;
    }
    if (chunk_of(p, g->nf - 1) != plan_chunks(p) - 1)
        die("check_part: %d chunks, not %d", chunk_of(p, g->nf - 1) + 1, plan_chunks(p));
    check_rest(p);
}

/* ---- keep -------------------------------------------------------------------------------------------------------- */

void check_keep(const Plan *p)
{
    const Graph *g = p->g;
    const PlanSpec *spec = &p->m->plan;
    if (p->fate.n != g->tensor.n)
        die("check_keep: %d fates for %d tensors", p->fate.n, g->tensor.n);
    for (int i = 0; i < p->fate.n; i++) {
        const Tensor *t = &g->tensor.at[i];
        if (p->fate.at[i] == FATE_KEEP)
            continue;
        bool away = p->fate.at[i] == FATE_OFFLOAD;
        if (!away && p->fate.at[i] != FATE_RECOMPUTE)
            die("check_keep: %s is neither kept, made again nor offloaded", t->name);
        if (t->kind != T_ACT || t->op < 0 || t->op >= g->nf || match_any(&spec->keep, g->op.at[t->op].name)
            || (away ? spec->offload == OFFLOAD_NONE : spec->recompute == RECOMPUTE_NONE))
            die("check_keep: %s is %s, but must be kept", t->name, away ? "offloaded" : "dropped");
        if (spec->offload == OFFLOAD_LIST && away != (match_any(&spec->away, g->op.at[t->op].name) != NULL))
            die("check_keep: %s is %s against plan.offload", t->name, away ? "offloaded" : "not offloaded");
    }
}
