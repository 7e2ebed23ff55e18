/* SPDX-License-Identifier: Apache-2.0
 *
 * nofit.c: a plan that does not fit is an answer.
 *
 *     gpt2.yaml: no plan fits 4 devices of 24.00 GiB
 *       stage 2 needs 25.10 GiB at call 118 of its step (h.7.attn, backward): 1.10 GiB too much
 *         states 3.20 GiB; h.7.qkv 3 x 2.00 GiB (gpt2.yaml:47); h.7.att 3 x 1.00 GiB (gpt2.yaml:48)
 *       the other stages need 22.41 GiB, 23.02 GiB, -, 20.80 GiB
 *       tried and fits: --limit 25704MiB; --recompute full; --set train.batch.micro=2 (another numeric key)
 *
 *   needs   the last failed plan, and someone who plans variants
 *   fills   nothing: it prints to standard error and ends with status 4
 *
 * What a remedy promises has been planned whole, packing and all, and is printed as the option that asks for it.  A
 * remedy that was not solved, or does not fit, is not printed.  The limit is that of the plan of least bytes (least.c), so it
 * does not depend on the one that was asked.  More stages, other schedules, recomputation and smaller micro-batches are tried
 * one by one, and if none of them helps alone, recomputation together with each.
 *
 * If planning failed before there was an arena, the cut that lacks least is carried through to mem here, so that the
 * report can name calls and buffers.  Graphs of more than OPS_HUGE operators are not: their layouts take minutes.
 *
 * Cost: all remedies share FIRST_WORK, counted in calls replayed and runs met, and LEAST_STEPS of placement; budgets.h.
 * A question past its own part takes the first choices that fit.  Remedies without a turn are named as not tried.
 */
#include "view.h"

/* ---- the plan that failed ---------------------------------------------------------------------------------------- */

/* As far as mem, copies to the host in such a hurry. */
static Plan *packed(const Plan *failed, CopySlack slack)
{
    Plan *p = alloc(sizeof *p), with = *failed;
    with.ask.choice.copy_slack = slack;
    memset(&with.dev, 0, sizeof with.dev);
    for (int d = 0; d < failed->devices; d++) {
        DevicePlan stripped = failed->dev.at[d];
        stripped.list = stripped.eval = (Actions){0};
        *PUSH(&with.dev) = stripped;
    }
    *p = with;
    if (comm(p) || lower(p))
        return NULL;
    mem(p);
    return p;
}

static int worst_device(const Plan *p)
{
    int worst = 0;
    for (int d = 1; d < p->devices; d++)
        if (p->dev.at[d].arena - p->dev.at[d].limit > p->dev.at[worst].arena - p->dev.at[worst].limit)
            worst = d;
    return worst;
}

static Bytes lacks(const Plan *p)
{
    const DevicePlan *d = &p->dev.at[worst_device(p)];
    return d->arena - d->limit;
}

/* As far as mem, with the fates, and the hurry of what is offloaded, that need least. */
static Plan *finished(const Plan *failed)
{
    Plan *with = COPY(failed), *best = NULL;
    if (failed->routine.n > 0)
        return with;
    if (failed->chunk.n != failed->g->op.n || failed->g->nf > OPS_HUGE)
        return NULL;
    if (keep(with))
        return NULL;
    for (CopySlack slack = COPY_SLACK_ALL; slack <= COPY_SLACK_NONE && (!best || best->host.n > 0); slack++) {
        Plan *p = packed(with, slack);
        if (p && (!best || lacks(p) < lacks(best)))
            best = p;
    }
    return best;
}

static const char *call_text(const Plan *p, int device, int tick)
{
    static const char *const phase[] = {"forward", "backward", "backward", "update"};
    const Actions *list = &p->dev.at[device].list;
    for (EACH(const Action, k, *list)) {
        if (k->routine < 0)
            continue;
        const Routine *r = &p->routine.at[k->routine];
        if (tick < k->tick || tick >= k->tick + r->call.n)
            continue;
        const Call *c = &r->call.at[tick - k->tick];
        const Op *o = &p->g->op.at[c->op];
        return strf(" (%s, %s)", o->name, c->again ? "made again" : phase[o->phase]);
    }
    return "";
}

enum { SHOWN = 4 };

/* The largest buffers alive at the fullest call, after the states. */
static void print_alive(const Plan *p, int device)
{
    Bytes *alive = mem_at_peak(p, device);
    fprintf(stderr, "    states %s", size_text(p->dev.at[device].state));
    for (int shown = 0; shown < SHOWN; shown++) {
        int best = -1;
        for (int b = 0; b < p->buf.n; b++)
            if (p->buf.at[b].tensor >= 0 && alive[b] > (best < 0 ? 0 : alive[best]))
                best = b;
        if (best < 0)
            break;
        const Buf *x = &p->buf.at[best];
        const Tensor *t = &p->g->tensor.at[x->tensor];
        const Bytes copies = alive[best] / aligned(x->bytes);
        fprintf(stderr, "; %s ", t->name);
        if (copies > 1)
            fprintf(stderr, "%lld x ", (long long)copies);
        fprintf(stderr, "%s (%s:%d)", size_text(x->bytes), quote_terminal(diag_path(t->loc)), t->loc.line);
        alive[best] = 0;
    }
    fputc('\n', stderr);
}

static void print_failed(const Plan *p)
{
    int d = worst_device(p);
    const DevicePlan *x = &p->dev.at[d];
    fprintf(stderr, "  stage %d needs %s at call %d of its step%s", d, size_text(x->arena), x->peak,
            call_text(p, d, x->peak));
    if (x->arena > x->limit)
        fprintf(stderr, ": %s too much\n", size_text(x->arena - x->limit));
    else                        /* this very plan fits when all is dropped; what was asked for does not */
        fprintf(stderr, " with everything dropped\n");
    print_alive(p, d);
    const char *what;
    Bytes beside = view_beside(p, d, &what);
    if (beside > 0)
        fprintf(stderr, "  %s of stage %d take %s of its device beside that%s\n", what, d, size_text(beside),
                strstr(what, "messages") ? strf(" (transport %s)", p->m->plan.transport) : "");
    if (p->devices == 1)
        return;
    fprintf(stderr, "  the stages need");
    for (int i = 0; i < p->devices; i++)
        fprintf(stderr, "%s %s", i ? "," : "", size_text(p->dev.at[i].arena));
    fprintf(stderr, "; %s of it states\n", size_text(x->state));
}

/* ---- remedies ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const Options *x;
    const Model *m;
    int found;
    Ask budget;                 /* of all remedies together */
    bool late;                  /* a question was not asked: that is spent */
    const char *untried;
} Doctor;

static Model *variant(const Model *m)
{
    Model *v = COPY(m);
    memset(&v->devices, 0, sizeof v->devices);
    APPEND(&v->devices, m->devices);
    return v;
}

/* home: nothing is copied to the host. */
static bool fits_as(Doctor *x, const Model *v, bool home)
{
    Bytes need;
    if (!purse_left(x->budget.work) || !purse_left(x->budget.trials)) {
        x->late = true;
        return false;
    }
    const Ask one = {.choice.no_offload = home, .work = purse_new(x->budget.work, QUESTION_WORK), .trials = x->budget.trials};
    return search_fits(x->x, v, &one, &need);
}

/* The question without copies costs a tenth of the work. */
static bool fits(Doctor *x, const Model *v)
{
    return (v->plan.offload == OFFLOAD_AUTO && fits_as(x, v, true)) || fits_as(x, v, false);
}

static void promise(Doctor *x, const char *what)
{
    busy_end();             /* the rest of the line is written behind this */
    fprintf(stderr, "%s %s", x->found++ ? ";" : "  tried and fits:", what);
}

static bool helps(Doctor *x, const Model *v, const char *what)
{
    bool fitting = fits(x, v);
    if (fitting)
        promise(x, what);
    return fitting;
}

static const char *exact_size(Bytes n)
{
    static const char *const unit[] = {"", "KiB", "MiB", "GiB"};
    int u = 0;
    while (u < 3 && n % 1024 == 0) {
        n /= 1024;
        u++;
    }
    return strf("%lld%s", (long long)n, unit[u]);
}

/* What max_memory forbids */
static void try_constraint(Doctor *x)
{
    Model *v = variant(x->m);
    bool lowered = false;
    for (EACH(Device, k, v->devices)) {
        lowered |= k->without > 0;
        k->memory = k->without ? k->without : k->memory;
        k->without = 0;
    }
    if (lowered)
        helps(x, v, "plan.constraints without max_memory");
}

/* Up to a few thousandths, so that the number is short. */
static bool try_limit(Doctor *x, const Plan *failed)
{
    Bytes least = failed->shortfall.least, step = 1024;
    if (!least && purse_left(x->budget.work))
        least = least_limit(x->x, x->m);
    while (step * 4096 < least)
        step *= 2;
    if (least > 0)
        promise(x, strf("--limit %s", exact_size((least + step - 1) / step * step)));
    return least > 0;
}

static void try_stages(Doctor *x)
{
    int from = x->m->plan.stages_max + 1, n = x->m->devices.n;
    if (x->m->plan.cuts.n || x->m->plan.map.n || x->m->plan.widths.n)
        return;
    for (int stages = from; stages * x->m->plan.replicas <= n || stages < from + 4; stages++) {
        Model *v = variant(x->m);
        while (v->devices.n < stages * x->m->plan.replicas)
            *PUSH(&v->devices) = x->m->devices.at[n - 1];
        v->plan.stages_min = v->plan.stages_max = stages;
        const char *like = x->m->devices.at[n - 1].name;
        const char *where = stages * x->m->plan.replicas > n ? strf(" (on as many devices like %s)", like) : "";
        if (helps(x, v, strf("--stages %d%s", stages, where)))
            return;
    }
}

/* First zb* for what has weight gradients apart: gpipe and 1f1b are slower. */
static void try_schedule(Doctor *x)
{
    const Schedule *asked = schedule_of(x->m->plan.schedule);
    bool any = schedule_open(x->m->plan.schedule);
    for (int first = asked->split; first >= 0 && !any; first--)
        for (const Schedule *k = schedules; k->name; k++) {
            Model *v = variant(x->m);
            v->plan.schedule = k->name;
            if (first == (asked->split && k->split && k->depths) && !k->async && k != asked &&
                helps(x, v, strf(strchr(k->name, '*') ? "--schedule '%s'" : "--schedule %s", k->name)))
                return;
        }
}

/* Fewer micro-batches in flight. */
static void try_warmup(Doctor *x)
{
    Model *v = variant(x->m);
    v->plan.warmup = WARMUP_A;
    if (x->m->plan.warmup == WARMUP_B)
        helps(x, v, "--set plan.warmup=A");
}

/* Norms and residuals of a part of the rows alone. */
static void try_positions(Doctor *x)
{
    Model *v = variant(x->m);
    v->plan.positions = POSITIONS_DIVIDED;
    if (x->m->plan.tensor > 1 && x->m->plan.positions == POSITIONS_WHOLE)
        helps(x, v, "--set plan.positions=divided");
}

/* The same samples in smaller pieces, at most half as large each time: other sums, so another numeric key. */
static void try_batch(Doctor *x, bool drop)
{
    for (int64_t batch = x->m->train.batch / 2; batch > 0; batch /= 2) {
        Model *v = variant(x->m);
        while (x->m->train.global % batch)
            batch--;
        v->train.batch = batch;
        v->train.micro = x->m->train.global / batch;
        if (drop) {
            v->plan.recompute = RECOMPUTE_FULL;
            v->plan.names = (Strs){NULL, 0, 0};
        }
        if (helps(x, v, strf("%s--set train.batch.micro=%lld (another numeric key)", drop ? "--recompute full " : "",
                             (long long)batch)))
            return;
    }
}

static void try_smaller(Doctor *x)
{
    try_batch(x, false);
}

static void try_smallest(Doctor *x)
{
    try_batch(x, true);
}

static void try_recompute(Doctor *x)
{
    static const struct { Recompute how; const char *name; } ways[] = {
        {RECOMPUTE_AUTO, "auto"}, {RECOMPUTE_FULL, "full"}};
    for (int i = 0; i < 2; i++) {
        Model *v = variant(x->m);
        v->plan.recompute = ways[i].how;
        v->plan.names = (Strs){NULL, 0, 0};         /* the option would replace the list */
        if (x->m->plan.recompute != RECOMPUTE_FULL && x->m->plan.recompute != ways[i].how &&
            helps(x, v, strf("--recompute %s", ways[i].name)))
            return;
    }
}

/* One remedy; without work left it is named. */
static void try_one(Doctor *x, const char *name, void (*try)(Doctor *x))
{
    int before = x->found;
    x->late = false;
    try(x);
    if (x->late && x->found == before)
        x->untried = x->untried ? strf("%s, %s", x->untried, name) : name;
}

static void try_remedies(Doctor *x, const Plan *failed)
{
    x->untried = try_limit(x, failed) ? NULL : "a larger limit";
    try_one(x, "plan.constraints without max_memory", try_constraint);
    int before = x->found;
    try_one(x, "--recompute", try_recompute);
    try_one(x, "--set plan.positions", try_positions);
    try_one(x, "--schedule", try_schedule);
    try_one(x, "--set plan.warmup", try_warmup);
    try_one(x, "--stages", try_stages);
    try_one(x, "train.batch.micro", try_smaller);
    if (x->found == before && !x->untried)
        try_one(x, "--recompute full with a smaller train.batch.micro", try_smallest);
    if (x->found)
        fputc('\n', stderr);
    else if (!x->untried)
        fprintf(stderr,
                "  no larger limit, more stages, recomputation or smaller micro-batch that was tried fits either\n");
    if (x->untried)
        fprintf(stderr, "  not tried, or not to the end: %s\n", x->untried);
}

/* ---- no cut at all ----------------------------------------------------------------------------------------------- */

/* Without element i of a list of patterns: does that help? */
static void try_without(Doctor *x, const char *key, size_t list)
{
    const Strs *all = (const Strs *)((const char *)&x->m->plan + list);
    for (int i = 0; i < all->n; i++) {
        Model *v = variant(x->m);
        Strs *rest = (Strs *)((char *)&v->plan + list);
        *rest = (Strs){NULL, 0, 0};
        for (int k = 0; k < all->n; k++)
            if (k != i)
                *PUSH(rest) = all->at[k];
        helps(x, v, strf("plan.constraints without {%s: %s}", key, all->at[i]));
    }
}

/* Fewer stages, the most that fit: a lower minimum alone would let the planner choose. */
static void try_fewer(Doctor *x, int from)
{
    for (int stages = from; stages > 0 && !x->m->plan.cuts.n && !x->m->plan.map.n; stages--) {
        Model *v = variant(x->m);
        v->plan.stages_min = v->plan.stages_max = stages;
        if (helps(x, v, strf("--stages %d", stages)))
            return;
    }
}

static void no_cut_at_all(const Plan *p, Doctor *x)
{
    int most = p->g->nf, n = plan_chunks(p);
    const char *part = p->chunks > 1 ? "chunk" : "stage";
    if (n > most)
        fprintf(stderr, "  the model has %d operator%s, so it has at most %d %s%s; %d are asked for\n", most,
                most > 1 ? "s" : "", most, part, most > 1 ? "s" : "", n);
    else
        fprintf(stderr, "  schedule %s, %d operator%s and plan.constraints leave no cut into %d %s%s\n", p->schedule,
                p->g->nf, p->g->nf > 1 ? "s" : "", n, part, n > 1 ? "s" : "");
    try_fewer(x, n > most ? most / p->chunks : plan_stages(p) - 1);
    try_without(x, "cut_after", offsetof(PlanSpec, cut_after));
    try_without(x, "no_cut", offsetof(PlanSpec, no_cut));
    Model *v = variant(x->m);
    memset(&v->plan.same_stage, 0, sizeof v->plan.same_stage);
    if (x->m->plan.same_stage.n)
        helps(x, v, "plan.constraints without same_stage");
    if (n < most)
        try_stages(x);
    if (x->found)
        fputc('\n', stderr);
    exit(EXIT_NOFIT);
}

/* ---- a host that is full --------------------------------------------------------------------------------------------- */

static void no_host(const Plan *p, Doctor *x)
{
    int host = p->shortfall.host - 1;
    const char *comma = "";
    fprintf(stderr, "  host %d would hold %s of offloaded tensors, and section hosts gives it %s: ", host,
            size_text(p->shortfall.need), size_text(p->m->host_memory));
    for (int d = 0; d < p->devices; d++)
        if (host_of_device(p, d) == host && p->dev.at[d].host > 0) {
            fprintf(stderr, "%sstage %d %s", comma, d, size_text(p->dev.at[d].host));
            comma = ", ";
        }
    fputc('\n', stderr);
    Model *v = variant(x->m);
    for (Bytes ask = p->shortfall.need, most = 2 * ask; ask <= most; ask += most / 16) { /* with room, the cuts are others */
        v->host_memory = ask;
        if (helps(x, v, strf("--set hosts.offload=%s", exact_size(ask))))
            break;
    }
    v = variant(x->m);
    v->plan.disk = true;
    helps(x, v, "plan.offload: {to: disk, ...}");
    v = variant(x->m);
    v->plan.offload = OFFLOAD_NONE;
    v->plan.away = (Strs){NULL, 0, 0};
    helps(x, v, "--offload none");
    try_recompute(x);
    try_stages(x);
    if (x->found)
        fputc('\n', stderr);
    exit(EXIT_NOFIT);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static void print_head(const Plan *p)
{
    const Model *m = p->m;
    Bytes least = m->devices.at[0].memory, most = least;
    for (int d = 1; d < m->devices.n; d++) {
        least = m->devices.at[d].memory < least ? m->devices.at[d].memory : least;
        most = m->devices.at[d].memory > most ? m->devices.at[d].memory : most;
    }
    fprintf(stderr, "%s: no plan fits %d device%s of %s", quote_terminal(m->path), p->devices, p->devices > 1 ? "s" : "",
            size_text(least));
    if (most > least)
        fprintf(stderr, " to %s", size_text(most));
    for (int d = 0; d < m->devices.n; d++)
        if (m->devices.at[d].without) {
            fprintf(stderr, " (by max_memory in plan.constraints)");
            break;
        }
    fprintf(stderr, "  [%s, %lld micro-batches of %lld]\n", p->schedule, (long long)p->g->micro,
            (long long)p->g->batch);
    Bytes over = states_over(p->g, m, plan_stages(p));
    if (over > 0)
        fprintf(stderr, "  nothing can fit: the states of the model alone take %s more than these devices have together\n",
                size_text(over));
    else if (p->shortfall.open)
        fprintf(stderr, "  the search gave up: cuts that may fit were not laid out\n");
    if (m->device_order != ORDER_CHOSEN)
        return;
    fprintf(stderr, "  nor in another device order that was tried; what follows is of the order");
    for (int d = 0; d < p->devices; d++)
        fprintf(stderr, " %s", m->devices.at[d].name);
    fprintf(stderr, "\n");
}

/* With the device that lacks most, where no cut was laid out. */
static Plan *blamed(const Plan *last)
{
    Plan with = *last;
    with.ask.work = purse_new(NULL, QUESTION_WORK);
    with.ask.trials = purse_new(NULL, LAYOUT_STEPS);
    Plan *failed = COPY(&with);
    if (plan_chunks(failed) && failed->chunk.n == 0)
        part_blame(failed);
    return failed;
}

Bytes nofit_lacks(const Plan *last, int *device)
{
    Plan *failed = blamed(last);
    const Shortfall *why = &failed->shortfall;
    Plan *p = why->device < 0 || why->host ? NULL : finished(failed);
    *device = p ? worst_device(p) : why->host ? -1 : why->device;
    return p ? lacks(p) : *device >= 0 ? why->need - failed->dev.at[*device].limit : 0;
}

void nofit(const Options *options, const Plan *last)
{
    if (!last)
        fail(EXIT_NOFIT, "there is no plan to try: no micro-batch size, stage count and schedule go together");
    Plan *failed = blamed(last);
    const int64_t work = failed->g->nf > OPS_HUGE ? 0 : FIRST_WORK;
    Doctor x = {.x = options, .m = failed->m,
                .budget = {.work = purse_new(NULL, work), .trials = purse_new(NULL, LEAST_STEPS)}};
    busy_end();
    fflush(stdout);
    print_head(failed);
    if (plan_chunks(failed) == 0 || (failed->shortfall.device < 0 && failed->chunk.n == 0))
        no_cut_at_all(failed, &x);
    if (failed->shortfall.host)
        no_host(failed, &x);
    Room *lists = mem_room(), *room = mem_in(lists);       /* nobody reads them behind this */
    Plan *p = finished(failed);
    if (p)
        print_failed(p);
    else
        fprintf(stderr, "  stage %d needs at least %s\n", failed->shortfall.device, size_text(failed->shortfall.need));
    mem_in(room);
    mem_drop(lists);
    busy_with("no plan fits; trying others");
    try_remedies(&x, failed);
    busy_end();
    exit(EXIT_NOFIT);
}
