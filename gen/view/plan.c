/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: the chosen plan as text that a person understands.
 *
 * Planners of the field print cuts and a predicted time, and leave their users to ask why.  Here each stage shows its
 * operators, the contents of its memory at the peak, limit and slack, its times and its idle share.  `dpgen explain` asks what
 * a cut would cost one place earlier or later, all others unchanged: planned again, not guessed.
 */
#include "view.h"
#include "list/transport.h"
#include "mem/mem.h"

const char *view_width(const Model *m, int n)
{
    int t = m->plan.tensor;
    return t > 1 ? strf("%s of %d devices", count_text(n, "stage"), t) : strf("%d devices", n);
}

Bytes view_beside(const Plan *p, int device, const char **what)
{
    Bytes all = p->m->devices.at[device].memory - p->dev.at[device].limit, landing = transport_landing(p, device);
    *what = landing == all ? "data to come" : landing ? "messages and data to come" : "messages";
    return all;
}

void view_one(FILE *f, const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    StageSum s = view_stage(p, device);
    const char *what;
    Bytes beside = view_beside(p, device, &what);
    const char *rank = d->entry && transport_of(p->m)->ranks ? strf(", rank %d", emit_rank(p, device)) : "";
    fprintf(f, "stage %d  %s (%s%s), %s, %d in flight\n", device, covers_text(p, device),
            team_text(p->m, device), rank, count_text(s.ops, "operator"), s.flight);
    fprintf(f, "  time    forward %.3f ms, backward %.3f ms, recompute %.3f ms a micro-batch; idle %.1f %% of the step\n",
            ms(s.forward), ms(s.backward), ms(s.again), p->step ? 100.0 * (double)s.idle / (double)p->step : 0.0);
    fprintf(f, "  memory  arena %s of %s%s, slack %s, lower bound %s (+%.1f %%)%s\n", size_text(d->arena), size_text(d->limit),
            p->g->team ? " on each device" : "", size_text(d->limit - d->arena), size_text(d->bound),
            100.0 * (double)(d->arena - d->bound) / (double)d->bound,
            beside > 0 ? strf(", %s beside it for %s", size_text(beside), what) : "");
    fprintf(f, "  packing %s\n  at peak%s\n  policy  keep %d", mem_proof(d), holdings_text(s.at_peak), s.kept);
    if (s.dropped)
        fprintf(f, ", recompute %d (%s a micro-batch)", s.dropped, size_text(s.dropped_bytes));
    if (s.moved)
        fprintf(f, ", offload %d (%s a micro-batch)", s.moved, size_text(s.moved_bytes));
    fprintf(f, "\n");
}

/* ---- neighbouring cuts --------------------------------------------------------------------------------------------- */

const char *view_moved(const Plan *p, const Ints *cuts, int i, int at)
{
    bool crosses = (i > 0 && at <= cuts->at[i - 1]) || (i + 1 < cuts->n && at >= cuts->at[i + 1]);
    if (at < 0 || at + 1 >= p->g->nf || crosses)
        return "no operator is left";
    Ints moved = {0};
    for (int c = 0; c < cuts->n; c++)
        *PUSH(&moved) = c == i ? at : cuts->at[c];
    bool spent;
    Plan *failed = NULL, *other = search_again(p, p->m, &moved, &failed, &spent);
    bool stuck = !other && failed && failed->shortfall.stuck;
    int over = other || !failed ? -1 : failed->shortfall.device;
    return other ? strf("%s%+.3f ms", spent ? "at most " : "", ms(other->step - p->step)) : stuck ? "waits for ever" :
        spent ? "no plan in the work allowed" : over >= 0 ? strf("stage %d does not fit", over) : "not allowed";
}

void view_cut(FILE *f, const Plan *p, int at)
{
    Ints cuts = {0};
    bool runs = part_cuts(p, &cuts);
    for (int i = 0; runs && i < cuts.n; i++)
        if (cuts.at[i] == at)
            fprintf(f, "the step, were this cut one operator earlier: %s, or later: %s; all others as they are\n",
                    view_moved(p, &cuts, i, at - 1), view_moved(p, &cuts, i, at + 1));
}

static const char *shape_of_plan(const Plan *p)
{
    const char *width = plan_replicas(p) > 1 && !plan_uneven(p) ? strf("%d replicas of ", plan_replicas(p)) : "";
    return strf("%s, %s%s%s, %s of %" PRId64, order_name(p), width, count_text(plan_stages(p), "stage"), team_shape(p),
                count_text(p->g->micro, "micro-batch"), p->g->batch);
}

/* Stages down, copies of the model across: who computes their micro-batches. */
static void view_copies(FILE *f, const Plan *p)
{
    int wide = 9;
    for (int d = 0; d < p->devices; d++) {
        int n = (int)strlen(team_text(p->m, d));
        wide = n > wide ? n : wide;
    }
    fprintf(f, "  %5s", "stage");
    for (int q = 0; q < plan_rows(p); q++)
        fprintf(f, "  %-*s", wide, strf("copy %d", q));
    fprintf(f, "  a device's micro-batches\n");
    for (int s = 0; s < plan_stages(p); s++) {
        fprintf(f, "  %5d", s);
        for (int q = 0; q < plan_rows(p); q++)
            fprintf(f, "  %-*s", wide, team_text(p->m, plan_home(p, q, s)));
        fprintf(f, "  %d\n", plan_share_of(p, s));
    }
}

/* Stages down, their devices across. */
static void view_grid(FILE *f, const Plan *p)
{
    int wide = 9, host = 0;
    for (int i = 0; i < p->devices * p->g->team; i++) {
        const char *at = host_text(p->m, i / p->g->team);
        int n = (int)strlen(team_member(p->m, i / p->g->team, i % p->g->team)->name), m = at ? (int)strlen(at) + 2 : 0;
        wide = n > wide ? n : wide;
        host = m > host ? m : host;
    }
    if (!p->g->team)
        return;
    fprintf(f, "  %5s", "stage");
    for (int k = 0; k < p->g->team; k++)
        fprintf(f, "  %-*s", wide, strf("shard %d", k));
    fprintf(f, "  %-*s%s\n", host, host ? "host" : "", "a device sends the others, a step");
    for (int d = 0; d < p->devices; d++) {
        fprintf(f, "  %5s", list_name(p, d));
        for (int k = 0; k < p->g->team; k++)
            fprintf(f, "  %-*s", wide, team_member(p->m, d, k)->name);
        fprintf(f, "  %-*s%s\n", host, host ? host_text(p->m, d) : "", size_text(team_sent(p, d)));
    }
}

static void view_stream(FILE *f, const Plan *p)
{
    const StreamTimes t = stream_times(p);
    if (infers(p->m))
        fprintf(f, "  stream  %.1f samples/s, a micro-batch each %.3f ms; the first one's result after %.3f ms\n",
                t.period ? (double)p->g->batch * 1e9 / (double)t.period : 0, ms(t.period), ms(t.latency));
}

void view_plan(FILE *f, const Plan *p)
{
    Proof known = plan_proof(p);
    double rate = p->step ? (double)(p->g->batch * p->g->micro) * 1e9 / (double)p->step : 0;
    fprintf(f, "%s: %s, planner %s\n", p->g->name, shape_of_plan(p), p->m->plan.planner);
    fprintf(f, "predicted step %.3f ms (%s), %.1f samples/s", ms(p->step), p->c->how, rate);
    if (known.bound > 0)
        fprintf(f, "; no plan is faster than %.3f ms: gap %.1f %%", ms(known.bound),
                100.0 * (double)(p->step - known.bound) / (double)known.bound);
    fprintf(f, "\n  %s   %s\n", known.bound > 0 ? "bound" : "space", known.space ? known.space : "none");
    if (known.note)
        fprintf(f, "  note    %s\n", known.note);
    if (p->m->train.fp8)
        fprintf(f, "  fp8     %s\n", fp8_text(p->g));
    view_stream(f, p);
    if (plan_uneven(p))
        view_copies(f, p);
    view_grid(f, p);
    for (int d = 0; d < plan_stages(p); d++)        /* of the first replica; the others are like it */
        view_one(f, p, d);
    view_rounds(f, p);
    Ints cuts = {0};            /* as --cuts takes them */
    bool runs = part_cuts(p, &cuts);
    if (runs && cuts.n)
        fprintf(f, "cuts    by operator; dpgen explain says what one costs elsewhere\n");
    for (int i = 0; runs && i < cuts.n; i++)
        fprintf(f, "  after %d, %s\n", cuts.at[i], p->g->op.at[cuts.at[i]].name);
}

/* One line a stage. */
void view_table(FILE *f, const Plan *p)
{
    Proof known = plan_proof(p);
    fprintf(f, "%s: %s; predicted step %.3f ms (%s)\n", p->g->name, shape_of_plan(p), ms(p->step), p->c->how);
    fprintf(f, "  %5s  %9s  %-40s  %-11s  %-11s  %-6s  %-11s  %s\n",
           "stage", "operators", "first .. last", "arena", "bound", "gap", "limit", "busy");
    for (int d = 0; d < p->devices; d++) {
        int n = 0;
        for (int o = 0; o < p->g->nf; o++)
            n += runs_on(p, o, d);
        const DevicePlan *x = &p->dev.at[d];
        fprintf(f, "  %5s  %9d  %-40s  %-11s  %-11s  %4.1f %%  %-11s  %5.1f %%\n", list_name(p, d), n,
               covers_text(p, d), size_text(x->arena), size_text(x->bound),
               100.0 * (double)(x->arena - x->bound) / (double)x->bound, size_text(x->limit),
               p->step ? 100.0 * (double)x->busy / (double)p->step : 0.0);
    }
    if (known.bound > 0)
        fprintf(f, "  no plan is faster than %.3f ms: gap %.1f %% (%s)%s%s\n", ms(known.bound),
               100.0 * (double)(p->step - known.bound) / (double)known.bound, known.space ? known.space : "",
               known.note ? "; " : "", known.note ? known.note : "");
    if (p->m->train.fp8)
        fprintf(f, "  in fp8: %s\n", fp8_text(p->g));
    view_stream(f, p);
    view_grid(f, p);
}
