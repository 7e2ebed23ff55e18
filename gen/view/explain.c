/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c: why this operator is where it is, and why its results are kept, made again or moved.
 *
 * For each result: its bytes, who reads it, its fate, and the price of the alternatives; for one that is not kept, the plan
 * is made again with it kept and all cuts as they are, and the answer is that plan's step or what does not fit.
 */
#include "view.h"
#include "../emit/emit.h"
#include <inttypes.h>
#include <string.h>

static double ms(Ns ns)
{
    return (double)ns / 1e6;
}

/* The forward operator that is named, or that makes the tensor that is named; -1: none, and the nearest names are told. */
static int find(const Plan *p, const char *what)
{
    const Graph *g = p->g;
    Strs names = {0};
    for (int o = 0; o < g->nf; o++) {
        if (!strcmp(g->op.at[o].name, what))
            return o;
        *PUSH(&names) = g->op.at[o].name;
    }
    for (int t = 0; t < g->tensor.n; t++)
        if (!strcmp(g->tensor.at[t].name, what) && g->tensor.at[t].op >= 0 && g->tensor.at[t].op < g->nf)
            return g->tensor.at[t].op;
    const char *near = nearest(what, names.at, names.n);
    fprintf(stderr, "dpgen: %s: no operator or tensor is named '%s'%s\n", p->m->path, what,
            near ? strf("; did you mean '%s'?", near) : "");
    return -1;
}

/* Names of the calls from..to-1 that read tensor t, each once, at most so many. */
static const char *readers(const Plan *p, int t, int from, int to)
{
    enum { MOST = 4 };
    const Graph *g = p->g;
    const char *text = "", *last = "";
    int n = 0;
    for (int o = from; o < to; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind != ARG_READ || a->state || a->index != t || !strcmp(last, g->op.at[o].name))
                continue;
            last = g->op.at[o].name;
            if (n++ < MOST)
                text = strf("%s%s%s (stage %d)", text, n > 1 ? ", " : "", last, device_of(p, o));
        }
    return n > MOST ? strf("%s and %d more", text, n - MOST) : n ? text : "nobody";
}

static int chunk_flight(const Plan *p, int op)
{
    return order_flight(p, p->chunk.at[op]);
}

/* The same cuts with the results of an operator kept. */
static const char *if_kept(const Plan *p, int op, PlanOf plan_of, void *ctx)
{
    Model *with = alloc(sizeof *with);
    *with = *p->m;
    with->plan.schedule = p->schedule;
    with->plan.stages_min = with->plan.stages_max = plan_stages(p);
    with->plan.keep = with->plan.names = (Strs){0};
    with->plan.cuts = (Ints){0};
    for (int i = 0; i < p->m->plan.keep.n; i++)
        *PUSH(&with->plan.keep) = p->m->plan.keep.at[i];
    *PUSH(&with->plan.keep) = p->g->op.at[op].name;
    for (int i = 0; i < p->m->plan.names.n; i++)
        if (strcmp(p->m->plan.names.at[i], p->g->op.at[op].name))
            *PUSH(&with->plan.names) = p->m->plan.names.at[i];
    part_cuts(p, &with->plan.cuts);
    Plan *failed = NULL, *other = plan_of(ctx, with, &failed);
    if (other)
        return strf("the step would change by %+.3f ms", ms(other->step - p->step));
    return failed && failed->nofit_device >= 0 ? strf("stage %d would not fit", failed->nofit_device) : "nothing fits";
}

static void print_result(FILE *f, const Plan *p, int t, PlanOf plan_of, void *ctx)
{
    static const char *const word[] = {[FATE_KEEP] = "kept", [FATE_RECOMPUTE] = "made again",
                                       [FATE_OFFLOAD] = "moved to the host"};
    const Graph *g = p->g;
    const Tensor *x = &g->tensor.at[t];
    int d = device_of(p, x->op), flight = chunk_flight(p, x->op);
    const char *back = readers(p, t, g->nf, g->nb);
    Fate fate = (Fate)p->fate.at[t * p->variants];
    fprintf(f, "result %s: %s %s, %s\n  read forward by %s\n  read backward by %s\n", x->name, type_name(x->type),
            shape_text(&x->shape), size_text(x->bytes), readers(p, t, 0, g->nf), back);
    if (!strcmp(back, "nobody")) {
        fprintf(f, "  no backward call reads it: it lives in forward alone%s\n",
                fate == FATE_RECOMPUTE ? ", and is made again where a rebuild needs it" : "");
        return;
    }
    fprintf(f, "  %s; keeping it holds %s (%d in flight), making it again costs %.3f ms a micro-batch, "
            "moving it %.3f ms on the host link, out and in\n", word[fate], size_text(x->bytes * flight), flight,
            ms(cost_op(p->c, d, x->op)), ms(2 * cost_host(p->c, d, x->bytes)));
    if (fate != FATE_KEEP)
        fprintf(f, "  were it kept, %s\n", if_kept(p, x->op, plan_of, ctx));
}

static void print_times(FILE *f, const Plan *p, int op)
{
    static const char *const phase[] = {[PH_F] = "forward", [PH_I] = "input gradient", [PH_W] = "weight gradient"};
    const Graph *g = p->g;
    int d = device_of(p, op);
    const char *comma = "";
    fprintf(f, "time    ");
    for (int o = 0; o < g->nb; o++)
        if (g->op.at[o].fwd == op) {
            fprintf(f, "%s%s %.3f ms", comma, phase[g->op.at[o].phase], ms(cost_op(p->c, d, o)));
            comma = ", ";
        }
    fprintf(f, " a micro-batch (%s)\n", p->c->how);
}

int view_explain(FILE *f, const Plan *p, const char *what, PlanOf plan_of, void *ctx)
{
    int op = find(p, what);
    if (op < 0)
        return EXIT_USAGE;
    const Op *o = &p->g->op.at[op];
    int chunk = p->chunk.at[op], d = device_of(p, op);
    fprintf(f, "%s  %s, %s:%d, operator %d of %d\nplace   stage %d (%s)", o->name, o->call, diag_path(o->loc), o->loc.line, op,
            p->g->nf, d, p->m->devices.at[d].name);
    bool first = op == 0 || p->chunk.at[op - 1] != chunk, last = op + 1 < p->g->nf && p->chunk.at[op + 1] != chunk;
    fprintf(f, "%s\n", first ? ", the first of its chunk" : last ? ", the last of its chunk" : "");
    print_times(f, p, op);
    for (int t = 0; t < p->g->tensor.n; t++)
        if (p->g->tensor.at[t].op == op)
            print_result(f, p, t, plan_of, ctx);
    if (last)
        view_cuts(f, p, op, plan_of, ctx);
    return 0;
}
