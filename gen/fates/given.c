/* SPDX-License-Identifier: Apache-2.0
 *
 * given.c: the fates that the model file gives, before any planner chooses.
 *
 *   none    backward finds everything that it reads
 *   full    backward makes everything again, from data, parameters and the tensors that its chunk received
 *   list    the results of the named operators are dropped; under plan.offload they go to the host
 *   auto    a planner chooses; it begins with the fates given here
 *
 * An operator that is named for two of drop, offload and keep is an error of the model file.  A tensor that no backward call
 * reads is dropped in all but `none`: dropping it costs nothing.
 */
#include "fates.h"

/* By forward operator: does one of the patterns name it? */
static bool *named(const Plan *p, const Strs *patterns, const char *key)
{
    const Graph *g = p->g;
    bool *hit = alloc((size_t)g->nf);
    const char **names = alloc(sizeof *names * (size_t)g->nf);
    for (int o = 0; o < g->nf; o++)
        names[o] = g->op.at[o].name;
    for (int i = 0; i < patterns->n; i++) {
        bool any = false;
        for (int o = 0; o < g->nf; o++)
            if (match(patterns->at[i], names[o]))
                any = hit[o] = true;
        if (!any)
            bad(mark_of(p->m, patterns->at[i], p->m->plan.loc), did_you_mean(patterns->at[i], names, g->nf, NULL),
                "%s: no operator is named '%s'", key, patterns->at[i]);
    }
    return hit;
}

static bool *read_by_backward(const Graph *g)
{
    bool *read = alloc((size_t)g->tensor.n);
    for (int o = g->nf; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->kind == ARG_READ && !a->state)
                read[a->index] = true;
    return read;
}

/* A result has one fate: dropped, offloaded or kept.  An error if the file names it for two. */
static void check_apart(const Plan *p, const char *key, const Strs *patterns, const char *other, const Strs *others)
{
    for (int o = 0; o < p->g->nf; o++)
        for (int i = 0; i < patterns->n; i++)
            for (int k = 0; match(patterns->at[i], p->g->op.at[o].name) && k < others->n; k++) {
                if (!match(others->at[k], p->g->op.at[o].name))
                    continue;
                Loc at = mark_of(p->m, others->at[k], p->m->plan.loc);
                bad(mark_of(p->m, patterns->at[i], p->m->plan.loc), "name it once",
                    "%s: '%s' names %s, as '%s' does in %s, %s:%d:%d", key, patterns->at[i], p->g->op.at[o].name,
                    others->at[k], other, diag_path(at), at.line, at.col);
                return;
            }
}

int *keep_fates(const Plan *p, bool cheap)
{
    const Graph *g = p->g;
    const PlanSpec *spec = &p->m->plan;
    int *fate = alloc(sizeof *fate * (size_t)g->tensor.n);      /* FATE_KEEP */
    bool *held = named(p, &spec->keep, "plan.constraints: keep");
    bool *dropped = named(p, &spec->names, "plan.recompute");
    bool *away = named(p, &spec->away, "plan.offload");
    bool *read = read_by_backward(g);
    check_apart(p, "plan.offload", &spec->away, "plan.recompute", &spec->names);
    check_apart(p, "plan.offload", &spec->away, "plan.constraints: keep", &spec->keep);
    bad_stop();
    bool all = spec->recompute == RECOMPUTE_FULL || (spec->recompute == RECOMPUTE_AUTO && cheap);
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        if (x->kind != T_ACT || x->op < 0 || x->op >= g->nf || held[x->op])
            continue;
        if (away[x->op])
            fate[t] = FATE_OFFLOAD;
        else if (cheap && spec->offload == OFFLOAD_AUTO && spec->recompute == RECOMPUTE_NONE)
            fate[t] = read[t] ? FATE_OFFLOAD : FATE_KEEP;
        else if (spec->recompute != RECOMPUTE_NONE)
            fate[t] = all || dropped[x->op] || !read[t] ? FATE_RECOMPUTE : FATE_KEEP;
    }
    return fate;
}
