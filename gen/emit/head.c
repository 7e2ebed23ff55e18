/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c: the comment at the top of stageN.c: what the stage is, from plan facts, and what stands below, counted as it
 * was printed.
 */
#include "stage.h"
#include "mem/mem.h"

static Ns time_of(const Stager *w, ActionKind kind)
{
    Ns ns = 0;
    for (EACH(const Routine, x, w->p->routine))
        for (int i = 0; x->device == w->device && !x->eval && i < x->call.n; i++) {
            bool again = x->call.at[i].again;
            if (kind == K_R ? again : x->kind == kind && !again)
                ns += line_time(w->p, x, i);
        }
    return ns;
}

enum { WIDTH = 126 };

static void print_words(FILE *f, const char *title, const Strs *word)
{
    int at = fprintf(f, " *   %-9s", title);
    for (int i = 0; i < word->n; i++) {
        const char *text = strf(" %s%s", word->at[i], i + 1 < word->n ? "," : "");
        if (at + (int)strlen(text) > WIDTH)
            at = fprintf(f, "\n *            ") - 1;
        at += fprintf(f, "%s", text);
    }
    fprintf(f, "\n");
}

static void print_covers(const Stager *w)
{
    const Graph *g = w->p->g;
    int n = 0, top = 0, bottom = 0;
    for (int o = 0; o < g->nf; o++) {
        if (!runs_on(w->p, o, w->device))
            continue;
        const Op *op = &g->op.at[o];
        n++;
        if (op->loc.line > 0 && (top == 0 || op->loc.line < top))
            top = op->loc.line;
        if (op->loc.line > bottom)
            bottom = op->loc.line;
    }
    Strs word = {0};
    *PUSH(&word) = strf("model.yaml:%d-%d", top, bottom);
    for (const char *text = quote_comment(covers_text(w->p, w->device)), *end = text; *text; text = *end ? end + 2 : end) {
        end = strstr(text, ", ") ? strstr(text, ", ") : text + strlen(text);
        *PUSH(&word) = strf("%.*s", (int)(end - text), text);
    }
    *PUSH(&word) = strf("%d of %d forward operators", n, g->nf);
    print_words(w->f, "covers", &word);
}

static void print_policy(const Stager *w)
{
    const Plan *p = w->p;
    int kept = 0, again = 0, away = 0;
    Bytes bytes = 0, there = 0;
    for (EACH(const Buf, x, p->buf)) {
        if (x->device != w->device || x->tensor < 0 || x->eval)
            continue;
        kept += x->birth == AT_F && x->death >= AT_B && x->death <= AT_W;
        if (x->origin == REMADE && p->fate.at[x->tensor] == FATE_RECOMPUTE) {
            again++;
            bytes += x->bytes;
        }
        if (x->origin == FETCHED) {
            away++;
            there += x->bytes;
        }
    }
    fprintf(w->f, " *   policy    keep %d", kept);
    if (again)
        fprintf(w->f, ", recompute %d (frees %s a micro-batch)", again, size_text(bytes));
    if (away)
        fprintf(w->f, ", offload %d (%s a micro-batch; %s of the host's %s)", away, size_text(there),
                size_text(p->dev.at[w->device].host), p->m->plan.disk ? "disk" : "memory");
    fprintf(w->f, "\n");
}

/* ---- what stands below ------------------------------------------------------------------------------------------- */

static void print_contents(const Stager *w)
{
    const Plan *p = w->p;
    Strs routine = {0}, call = {0};
    for (int r = 0; r < p->routine.n; r++)
        if (p->routine.at[r].device == w->device && w->routine[r])
            *PUSH(&routine) = w->routine[r];
    for (int i = 0; i < w->rt.n; i++)
        if (w->rt.at[i].calls)
            *PUSH(&call) = strf("%s %d", w->rt.at[i].name, w->rt.at[i].calls);
    if (routine.n)
        print_words(w->f, "routines", &routine);
    print_words(w->f, "made", &call);
}

/* Where to begin to read. */
static void print_reading(const Stager *w)
{
    const DevicePlan *d = &w->p->dev.at[w->device];
    const char *list = order_overlap(w->p) > 0 ? strf("stage%d_prologue_0, _period_0 and _epilogue_0", w->device)
                                               : strf("stage%d_step", w->device);
    fprintf(w->f, " *   order     %s, near the end: %s from top to bottom; a routine stands above "
            "its callers\n", list, count_text(d->list.n, "action"));
    fprintf(w->f, " *   names     stage%d.h: a number for every name, with bytes, shape and owner\n"
            " *   calls     results come first; a label is the parameter's name in rt.h, and stands before literals and before "
            "what is\n *             read and written or added to; :N is the line of model.yaml\n", w->device);
}

void head_print(Stager *w, FILE *f)
{
    const Plan *p = w->p;
    const DevicePlan *d = &p->dev.at[w->device];
    const char *how = p->c->how;
    int stage = plan_stage(p, w->device), flight = 0;
    for (int c = 0; c < plan_chunks(p); c++)
        flight += plan_holds(p, w->device, c) ? order_flight(p, c) : 0;
    const char *replica = !plan_uneven(p) ? strf(", replica %d of %d", plan_replica(p, w->device), plan_replicas(p))
                          : strf(", copy %d of %d", plan_copy(p, w->device, stage), plan_copies(p, stage));
    w->f = f;
    fprintf(f, "/* " EMIT_TAG "\n"
            " * %s, stage %d of %d%s.  Generated by dpgen %s: edit the model, not this file.\n", quote_comment(p->g->name),
            stage, plan_stages(p), plan_replicas(p) > 1 ? replica : "", DPGEN_VERSION);
    print_covers(w);
    fprintf(f, " *   schedule  %s, %s of %" PRId64 ", %d in flight here\n", order_name(p),
            count_text(plan_uneven(p) ? plan_share_of(p, stage) : plan_micro(p) * plan_ways(p), "micro-batch"), p->g->batch,
            flight);
    fprintf(f, " *   time      forward %.3f ms, backward %.3f ms, recompute %.3f ms per micro-batch (%s)\n",
            (double)time_of(w, K_F) / 1e6, (double)(time_of(w, K_B) + time_of(w, K_I) + time_of(w, K_W)) / 1e6,
            (double)time_of(w, K_R) / 1e6, how);
    fprintf(f, " *   memory    arena %s, limit %s, lower bound %s at call %d\n", size_text(d->arena), size_text(d->limit),
            size_text(d->bound), d->peak);
    fprintf(f, " *   packing   %s\n", mem_proof(d));
    print_policy(w);
    print_reading(w);
    print_contents(w);
    fprintf(f, " * This file is the output of a program: it belongs to whoever made it, without conditions. */\n");
    fprintf(f, "#include \"job.h\"\n#include \"stage%d.h\"\n", w->device);
}
