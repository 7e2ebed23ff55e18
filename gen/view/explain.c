/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c: why a thing is in its place, and is kept, recomputed, moved or sent.
 *
 * A name is looked for among operators, tensors, inputs, gradients, parameters with their states, and blocks; a number among
 * the stages.  Two operators are the place between them.  Facts of the plan are read off it.  A question about another plan
 * (a result kept, a cut elsewhere) is answered by making that plan, with all else unchanged.
 */
#include "view.h"

typedef struct { FILE *f; const Plan *p; const Graph *g; } Topic;

static bool is_with(const Op *o, const char *name)
{
    return o->with && !strcmp(o->with, name);
}

/* The operator of that name, or with which fuse has joined it. */
static int forward_named(const Graph *g, const char *name)
{
    int o = 0;
    while (o < g->nf && strcmp(g->op.at[o].name, name) && !is_with(&g->op.at[o], name))
        o++;
    return o < g->nf ? o : -1;
}

/* Names of the calls from..to-1 that read tensor t, each once, at most so many. */
static const char *readers(const Plan *p, int t, int from, int to)
{
    enum { MOST = 4 };
    const Graph *g = p->g;
    const char *text = "", *last = "";
    int n = 0;
    for (int o = from; o < to; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind != ARG_READ || a->state || a->index != t || !strcmp(last, g->op.at[o].name))
                continue;
            last = g->op.at[o].name;
            if (n++ < MOST)
                text = strf("%s%s%s (stage %d)", text, n > 1 ? ", " : "", last, device_of(p, 0, o));
        }
    return n > MOST ? strf("%s and %d more", text, n - MOST) : n ? text : "nobody";
}

/* What the other plan pays, beside its step: other results, or bytes. */
static const char *in_return(const Plan *p, const Plan *other)
{
    /* What another plan of the same graph does not keep, and this one does. */
    enum { MOST = 4 };
    const char *text = "", *last = "";
    int n = 0;
    for (int t = 0; t < p->g->tensor.n && other->g->tensor.n == p->g->tensor.n; t++) {
        const Tensor *x = &p->g->tensor.at[t];
        if (x->kind != T_ACT || p->fate.at[t] != FATE_KEEP || other->fate.at[t] == FATE_KEEP)
            continue;
        if (strcmp(last, p->g->op.at[x->op].name) && n++ < MOST)
            text = strf("%s%s%s", text, n > 1 ? ", " : "", p->g->op.at[x->op].name);
        last = p->g->op.at[x->op].name;
    }
    const char *lost = n > MOST ? strf("%s and %d more", text, n - MOST) : text;
    int most = 0;
    if (*lost)
        return strf("; not kept in its place: %s", lost);
    for (int d = 1; d < p->devices; d++)
        if (other->dev.at[d].arena - p->dev.at[d].arena > other->dev.at[most].arena - p->dev.at[most].arena)
            most = d;
    Bytes more = other->dev.at[most].arena - p->dev.at[most].arena;
    if (more > 0)
        return strf("; the arena of stage %d would be %s larger", most, size_text(more));
    return other->step == p->step ? "; both plans are as good, and this one was found first" : "";
}

/* The same cuts with the results of an operator kept. */
static const char *if_kept(const Plan *p, int op)
{
    Model *with = COPY(p->m);
    Ints cuts = {0};
    with->plan.keep = with->plan.names = (Strs){0};
    APPEND(&with->plan.keep, p->m->plan.keep);
    *PUSH(&with->plan.keep) = p->g->op.at[op].name;
    for (int i = 0; i < p->m->plan.names.n; i++)
        if (strcmp(p->m->plan.names.at[i], p->g->op.at[op].name))
            *PUSH(&with->plan.names) = p->m->plan.names.at[i];
    part_cuts(p, &cuts);
    bool spent;
    Plan *failed = NULL, *other = search_again(p, with, &cuts, &failed, &spent);
    if (other)
        return strf("the step would %s%s%s", spent ? "at most " : "", other->step == p->step ? "be the same" :
                    strf("change by %+.3f ms", ms(other->step - p->step)), in_return(p, other));
    return failed && failed->shortfall.device >= 0 ? strf("stage %d would not fit", failed->shortfall.device) : "nothing fits";
}

static void print_result(FILE *f, const Plan *p, int t)
{
    static const char *const word[] = {[FATE_KEEP] = "kept", [FATE_RECOMPUTE] = "made again",
                                       [FATE_OFFLOAD] = "moved to the host"};
    const Graph *g = p->g;
    const Tensor *x = &g->tensor.at[t];
    int d = device_of(p, 0, x->op), flight = order_flight(p, p->chunk.at[x->op]);
    const char *back = readers(p, t, g->nf, g->nb);
    Fate fate = (Fate)p->fate.at[t];
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
        fprintf(f, "  were it kept, %s\n", if_kept(p, x->op));
}

/* What of the time of a call are messages to other devices of its stage. */
static const char *sum_text(const Plan *p, int device, int op)
{
    Ns waits = p->c->sums ? p->c->sums[p->c->of.at[device]][op] : 0;
    const Bytes sent = cost_team_bytes(p->m, p->g, &p->g->op.at[op]);
    return waits ? strf(" (%.3f ms of it swaps %s with its team)", ms(waits), size_text(sent)) : "";
}

static void print_times(FILE *f, const Plan *p, int op)
{
    static const char *const phase[] = {[PH_F] = "forward", [PH_I] = "input gradient", [PH_W] = "weight gradient"};
    const Graph *g = p->g;
    int d = device_of(p, 0, op);
    const char *comma = "";
    fprintf(f, "time    ");
    for (int o = 0; o < g->nb; o++)
        if (g->op.at[o].fwd == op) {
            fprintf(f, "%s%s %.3f ms%s", comma, phase[g->op.at[o].phase], ms(cost_op(p->c, d, o)), sum_text(p, d, o));
            comma = ", ";
        }
    fprintf(f, " a micro-batch (%s)\n", p->c->how);
}

/* ---- who moves it ---------------------------------------------------------------------------------------------------- */

/* Its messages in the first replica, each way once: "stage 0 to 1, 0.010 ms on the wire"; "" for none. */
static const char *sent(const Plan *p, int tensor, int state)
{
    const char *text = "";
    for (int d = 0; d < plan_stages(p); d++)
        for (int to = 0; to < plan_stages(p); to++) {
            const Action *found = NULL;
            for (int i = 0; i < p->dev.at[d].list.n && !found; i++) {
                const Action *k = &p->dev.at[d].list.at[i];
                bool it = k->kind == K_SEND && k->tensor == tensor && k->state == state && k->peer == to;
                found = it ? k : NULL;
            }
            if (found)
                text = strf("%s%sstage %d to %d, %.3f ms on the wire", text, *text ? "; " : "", d, to,
                            ms(cost_wire(p->c, d, to, found->bytes)));
        }
    return text;
}

/* Stages that have an action of this kind with this tensor. */
static const char *stages_with(const Plan *p, ActionKind kind, int tensor)
{
    const char *text = "";
    for (int d = 0; d < plan_stages(p); d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++)
            if (p->dev.at[d].list.at[i].kind == kind && p->dev.at[d].list.at[i].tensor == tensor) {
                text = strf("%s%s%d", text, *text ? ", " : "", d);
                break;
            }
    return text;
}

/* ---- what it may be ---------------------------------------------------------------------------------------------------- */

static bool explain_operator(const Topic *a, const char *what)
{
    const Plan *p = a->p;
    int op = forward_named(a->g, what);
    if (op < 0)
        return false;
    const Op *o = &a->g->op.at[op];
    int chunk = p->chunk.at[op], d = device_of(p, 0, op);
    if (o->with && *o->with)
        fprintf(a->f, "%s is one call with %s\n", what, is_with(o, what) ? o->name : o->with);
    fprintf(a->f, "%s  %s, %s:%d, operator %d of %d\nplace   stage %d (%s)", o->name, o->call,
            quote_terminal(diag_path(o->loc)), o->loc.line, op, a->g->nf, d, team_text(p->m, d));
    bool first = op == 0 || p->chunk.at[op - 1] != chunk, last = op + 1 < a->g->nf && p->chunk.at[op + 1] != chunk;
    fprintf(a->f, "%s\n", first ? ", the first of its chunk" : last ? ", the last of its chunk" : "");
    const char *team = divide_text(p->m, o->name);
    if (team)
        fprintf(a->f, "team    %s\n", team);
    print_times(a->f, p, op);
    for (int t = 0; t < a->g->tensor.n; t++)
        if (a->g->tensor.at[t].op == op)
            print_result(a->f, p, t);
    if (last)
        view_cut(a->f, p, op);
    return true;
}

static bool explain_input(const Topic *a, int t)
{
    const Tensor *x = &a->g->tensor.at[t];
    fprintf(a->f, "%s  input, %s %s, %s a micro-batch\n", x->name, type_name(x->type), shape_text(&x->shape),
            size_text(x->bytes));
    fprintf(a->f, "read    by %s\n", readers(a->p, t, 0, a->g->nf));
    fprintf(a->f, "place   stage %s, which loads it from the data: inputs are no messages\n", stages_with(a->p, K_LOAD, t));
    return true;
}

static bool explain_gradient(const Topic *a, int t)
{
    const Tensor *x = &a->g->tensor.at[t];
    const char *way = sent(a->p, t, -1);
    fprintf(a->f, "%s  gradient of %s, %s %s, %s a micro-batch\n", x->name, a->g->tensor.at[x->of].name, type_name(x->type),
            shape_text(&x->shape), size_text(x->bytes));
    fprintf(a->f, "made    by the backward of %s (stage %d): a gradient is made where the operator is that read the value\n",
            a->g->op.at[x->op].name, device_of(a->p, 0, x->op));
    fprintf(a->f, "read    by the backward of %s\n", readers(a->p, t, a->g->nf, a->g->nb));
    fprintf(a->f, "%s\n", *way ? strf("sent    %s", way) : "place   it stays on its stage, within one backward");
    return true;
}

static bool explain_tensor(const Topic *a, const char *what)
{
    int t = INDEX_OF(a->g->tensor.at, a->g->tensor.n, what);
    if (t < 0)
        return false;
    const Tensor *x = &a->g->tensor.at[t];
    if (x->kind == T_INPUT)
        return explain_input(a, t);
    if (x->kind == T_GRAD)
        return explain_gradient(a, t);
    fprintf(a->f, "%s  of operator %s\nplace   stage %d, where that is\n", x->name, a->g->op.at[x->op].name,
            device_of(a->p, 0, x->op));
    print_result(a->f, a->p, t);
    return true;
}

/* Bytes at the peak of a stage that belong to the states of `of`, by what they are. */
static void add_states(const Plan *p, int device, int of, Bytes *at)
{
    const Bytes *alive = mem_at_peak(p, device);
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->state >= 0 && (x->state == of || p->g->state.at[x->state].param == of))
            at[holding_of(p, x)] += alive[b];
    }
}

/* A parameter, by its own name or that of its gradient, copy or moments; or another state. */
static bool explain_state(const Topic *a, const char *what)
{
    const Graph *g = a->g;
    int named = INDEX_OF(g->state.at, g->state.n, what);
    if (named < 0)
        return false;
    int s = g->state.at[named].param >= 0 ? g->state.at[named].param : named;
    const State *x = &g->state.at[s];
    fprintf(a->f, "%s  %s, %s %s, %s\n", x->name, x->kind == S_PARAM ? "parameter" : "state of the step", type_name(x->type),
            shape_text(&x->shape), size_text(x->bytes));
    for (int o = 0; o < g->nf; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++)
            if (g->op.at[o].arg.at[i].state && g->op.at[o].arg.at[i].index == s)
                fprintf(a->f, "read    by %s (stage %d)\n", g->op.at[o].name, device_of(a->p, 0, o));
    if (x->bits)
        fprintf(a->f, "bits    %d a number, %s with their scales\n", x->bits, size_text(x[1].bytes));
    if (x->frozen)
        fprintf(a->f, "frozen  no gradient, no moments, no update\n");
    else if (x->kind == S_PARAM && x->group)
        fprintf(a->f, "rates   of train.optimizer.groups.%d\n", x->group - 1);
    if (x->kind == S_PARAM && !x->frozen)
        fprintf(a->f, "updated on stage %d, where %s is, the first that reads it\n", device_of(a->p, 0, x->op),
                g->op.at[x->op].name);
    if (*sent(a->p, -1, s))
        fprintf(a->f, "sent    %s, after each update\n", sent(a->p, -1, s));
    for (int d = 0; d < plan_stages(a->p); d++) {
        Bytes at[H_KINDS] = {0}, sum = 0;
        add_states(a->p, d, s, at);
        for (int k = 0; k < H_KINDS; k++)
            sum += at[k];
        if (sum == 0)
            continue;
        fprintf(a->f, "at the peak of stage %d%s\n", d, holdings_text(at));
    }
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */

static bool within(const char *block, const char *name)
{
    size_t n = strlen(block);
    return !strncmp(block, name, n) && name[n] == '.';
}

/* Bytes of a micro-batch by what becomes of them; those that no backward call reads apart. */
static void print_fates(FILE *f, const Plan *p, const char *block)
{
    enum { ALONE = FATE_OFFLOAD + 1, WAYS };
    static const char *const word[WAYS] = {[FATE_KEEP] = "kept", [FATE_RECOMPUTE] = "made again",
                                           [FATE_OFFLOAD] = "moved to the host", [ALONE] = "in forward alone"};
    const Graph *g = p->g;
    Bytes sum[WAYS] = {0};
    int count[WAYS] = {0};
    const int *back = graph_reads(g, g->nf, g->nb);
    const char *comma = "";
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        if (x->kind != T_ACT || !within(block, g->op.at[x->op].name))
            continue;
        int way = back[t] ? p->fate.at[t] : ALONE;
        sum[way] += x->bytes;
        count[way]++;
    }
    fprintf(f, "results");
    for (int k = 0; k < WAYS; k++)
        if (count[k] > 0) {
            fprintf(f, "%s %d %s, %s", comma, count[k], word[k], size_text(sum[k]));
            comma = ";";
        }
    fprintf(f, " (a micro-batch)\n");
}

static void print_block_stage(const Topic *a, const char *block, int d)
{
    const Graph *g = a->g;
    int n = 0;
    Ns forward = 0, backward = 0;
    Bytes at[H_KINDS] = {0};
    for (int o = 0; o < g->nb; o++) {
        if (device_of(a->p, 0, o) != d || !within(block, g->op.at[o].name))
            continue;
        n += o < g->nf;
        *(o < g->nf ? &forward : &backward) += cost_op(a->p->c, d, o);
    }
    if (n == 0)
        return;
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM && within(block, g->op.at[g->state.at[s].op].name))
            add_states(a->p, d, s, at);
    fprintf(a->f, "stage %d (%s)  %s, forward %.3f ms, backward %.3f ms a micro-batch (%s)\n  at its peak%s\n", d,
            a->p->m->devices.at[d].name, count_text(n, "operator"), ms(forward), ms(backward), a->p->c->how, holdings_text(at));
}

static bool explain_block(const Topic *a, const char *what)
{
    const Graph *g = a->g;
    int n = 0, first = -1, last = -1;
    for (int o = 0; o < g->nf; o++)
        if (within(what, g->op.at[o].name)) {
            n++;
            first = first < 0 ? o : first;
            last = o;
        }
    if (n == 0)
        return false;
    fprintf(a->f, "%s  block of %s, %d .. %d: %s .. %s\n", what, count_text(n, "operator"), first, last, g->op.at[first].name,
            g->op.at[last].name);
    for (int d = 0; d < plan_stages(a->p); d++)
        print_block_stage(a, what, d);
    print_fates(a->f, a->p, what);
    return true;
}

/* ---- cuts -------------------------------------------------------------------------------------------------------------- */

static const char *reason(const Plan *p, int at)
{
    const PlanSpec *m = &p->m->plan;
    const char *asked = match_any(&m->cut_after, p->g->op.at[at].name);
    return asked ? strf("{cut_after: %s} asks for it", asked)
        : m->cuts.n ? "plan.cuts says so" : strf("chosen by planner %s", p->m->plan.planner);
}

/* What goes over this place: results that forward reads on the other side, gradients that backward does. */
static void print_crossing(const Topic *a, const char *word, int at)
{
    const Graph *g = a->g;
    bool *across = alloc((size_t)g->tensor.n);
    const char *comma = "";
    for (int o = 0; o < g->nb; o++)
        for (EACH(const Arg, y, g->op.at[o].arg)) {
            const Tensor *x = y->kind == ARG_READ && !y->state ? &g->tensor.at[y->index] : NULL;
            if (x && x->op >= 0 && (x->kind == T_GRAD || o < g->nf))
                across[y->index] |= (g->op.at[x->op].fwd <= at) != (g->op.at[o].fwd <= at);
        }
    fprintf(a->f, "%s by", word);
    for (int t = 0; t < g->tensor.n; t++)
        if (across[t]) {
            fprintf(a->f, "%s %s %s", comma, g->tensor.at[t].name, size_text(g->tensor.at[t].bytes));
            comma = ",";
        }
    fprintf(a->f, "%s (a micro-batch)\n", *comma ? "" : " nothing");
}

static void print_side(const Topic *a, int d)
{
    StageSum s = view_stage(a->p, d);
    const DevicePlan *x = &a->p->dev.at[d];
    fprintf(a->f, "stage %d  %.3f ms a micro-batch, idle %.1f %% of the step; arena %s of %s\n", d,
            ms(s.forward + s.backward + s.again), 100.0 * (double)s.idle / (double)a->p->step, size_text(x->arena),
            size_text(x->limit));
}

static void print_cut(const Topic *a, int at)
{
    const Plan *p = a->p;
    int left = device_of(p, 0, at), right = device_of(p, 0, at + 1);
    fprintf(a->f, "cut after %d, %s, before %s: stage %d, then %d; %s\n", at, a->g->op.at[at].name, a->g->op.at[at + 1].name,
            left, right, reason(p, at));
    print_crossing(a, "crossed", at);
    print_side(a, left);
    if (right != left)
        print_side(a, right);
    view_cut(a->f, p, at);
}

static void print_no_cut(const Topic *a, int at)
{
    const Plan *p = a->p;
    const Op *o = &a->g->op.at[at];
    Ints cuts = {0};
    fprintf(a->f, "no cut between %s and %s: both are on stage %d\n", o->name, o[1].name, device_of(p, 0, at));
    print_crossing(a, "one would be crossed", at);
    bool runs = part_cuts(p, &cuts);
    for (int i = 0; runs && i < cuts.n; i++)
        if ((i == 0 || cuts.at[i - 1] < at) && (i + 1 == cuts.n || cuts.at[i + 1] > at)) {
            fprintf(a->f, "were the cut after %d, %s, here instead, and all others as they are: %s\n", cuts.at[i],
                    a->g->op.at[cuts.at[i]].name, view_moved(p, &cuts, i, at));
        }
}

static int explain_between(const Topic *a, const char *one, const char *two)
{
    int at = forward_named(a->g, one), next = forward_named(a->g, two);
    int low = at < next ? at : next;
    if (at >= 0 && at == next && strcmp(one, two)) {
        fprintf(a->f, "no cut between %s and %s: they are one call\n", one, two);
        return 0;
    }
    if (at < 0 || next < 0 || (at != next + 1 && next != at + 1)) {
        const char *why = at < 0 || next < 0 ? strf("no forward operator is named '%s'", at < 0 ? one : two)
            : strf("%s and %s are not adjacent", one, two);
        fprintf(stderr, "dpgen: %s: %s%s\n", quote_terminal(a->p->m->path), quote_terminal(why),
                at >= 0 && at + 1 < a->g->nf ? strf("; after %s comes %s", one, a->g->op.at[at + 1].name) : "");
        return EXIT_USAGE;
    }
    if (a->p->chunk.at[low] != a->p->chunk.at[low + 1])
        print_cut(a, low);
    else
        print_no_cut(a, low);
    return 0;
}

static bool explain_stage(const Topic *a, const char *what)
{
    char *end;
    long d = strtol(what, &end, 10);
    if (*end || !*what || d < 0 || d >= plan_stages(a->p))
        return false;
    view_one(a->f, a->p, (int)d);
    for (int o = 0; o + 1 < a->g->nf; o++)
        if (a->p->chunk.at[o] != a->p->chunk.at[o + 1] && (device_of(a->p, 0, o) == d || device_of(a->p, 0, o + 1) == d))
            print_cut(a, o);
    return true;
}

/* ---- by name ----------------------------------------------------------------------------------------------------------- */

static int unknown(const Topic *a, const char *what)
{
    const Graph *g = a->g;
    Strs names = {0};
    for (int o = 0; o < g->nf; o++) {
        *PUSH(&names) = g->op.at[o].name;
        for (const char *dot = strchr(g->op.at[o].name, '.'); dot; dot = strchr(dot + 1, '.'))
            *PUSH(&names) = strf("%.*s", (int)(dot - g->op.at[o].name), g->op.at[o].name);
    }
    for (int t = 0; t < g->tensor.n; t++)
        *PUSH(&names) = g->tensor.at[t].name;
    for (int s = 0; s < g->state.n; s++)
        *PUSH(&names) = g->state.at[s].name;
    const char *near = nearest(what, names.at, names.n);
    fprintf(stderr, "dpgen: %s: no operator, tensor, parameter, input, gradient, block or stage is named '%s'%s\n",
            quote_terminal(a->p->m->path), quote_terminal(what), near ? strf("; did you mean '%s'?", near) : "");
    return EXIT_USAGE;
}

int view_explain(FILE *f, const Plan *p, const char *what, const char *next)
{
    static bool (*const kinds[])(const Topic *, const char *) = {explain_operator, explain_tensor, explain_state, explain_block,
                                                               explain_stage};
    const Topic a = {f, p, p->g};
    if (next)
        return explain_between(&a, what, next);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i](&a, what))
            return 0;
    return unknown(&a, what);
}
