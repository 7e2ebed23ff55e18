/* SPDX-License-Identifier: Apache-2.0
 *
 * run(): the list of passes.  This file is the architecture: text becomes Node becomes Model becomes Graph;
 * the Graph is const from there on, and each later pass fills its own fields of a Plan.  A checker runs after every pass.
 *
 * Three loops stand here in sight: over candidates (micro-batch, devices, schedule), the best by simulation wins; over soft
 * limits, when packing needs more than the partition expected, at most four rounds; and over remedies, when nothing fits.
 */
#include "options.h"
#include "emit/emit.h"
#include "pack/pack.h"
#include "plan/madpipe.h"
#include "plan/nofit.h"
#include "plan/planner.h"
#include "view/view.h"
#include "lower/version.h"
#include "sched/star.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

static bool wants(const Options *x, char letter)
{
    return x->dump && strchr(x->dump, letter);
}

/* One dump alone is what --from reads; several are told apart by a line before each. */
static void dump_head(const Options *x, const char *pass)
{
    if (x->dump[1])
        printf("> after %s:\n", pass);
}

static void dump_graph(const Options *x, const Graph *g, char letter)
{
    for (int i = 0; dumps[i].pass; i++)
        if (dumps[i].letter == letter && wants(x, letter)) {
            dump_head(x, dumps[i].pass);
            print_graph(stdout, g);
        }
}

static void dump_plan(const Options *x, const Plan *p, char letter)
{
    for (int i = 0; dumps[i].pass; i++)
        if (dumps[i].letter == letter && wants(x, letter)) {
            dump_head(x, dumps[i].pass);
            print_plan(stdout, p, letter == 'a' ? 0 : letter);
        }
}

/* Is the file of --from a plan?  Else it is a graph. */
static bool is_plan(const char *path)
{
    char line[16] = "";
    FILE *f = path ? fopen(path, "r") : NULL;
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    return !strncmp(line, "dpgen-plan ", 11);
}

/* ---- the line, first half: text to const Graph ------------------------------------------------------------------- */

static Graph *graph_of(const Options *x, const Model *m)
{
    if (x->foreign) {
        Graph *g = foreign_graph(x->foreign, m);
        dump_graph(x, g, 'f');
        return g;
    }
    if (x->from && !is_plan(x->from)) {
        Graph *g = read_graph(x->from);
        dump_graph(x, g, 'f');
        return g;
    }
    Graph *g = build(m);
    dump_graph(x, g, 'b');
    shape(g, m);
    bad_stop();
    dump_graph(x, g, 's');
    grad(g, m);
    bad_stop();
    dump_graph(x, g, 'g');
    fuse(g);
    check_graph(g);
    dump_graph(x, g, 'f');
    return g;
}

/* ---- the line, second half: one Plan ----------------------------------------------------------------------------- */

static const char *numeric_key(const Graph *g, const Model *m)
{
    const Device *d = &m->devices.at[0];
    bool portable = !strcmp(d->kernels, "portable");
    return strf("model=%.16s train=%.16s batch=%" PRId64 " micro=%" PRId64 " groups=%" PRId64 " compute=%s target=%s"
                " kernels=%s%s", model_hash(g), train_hash(g, m), g->batch, g->micro, g->groups, type_name(g->compute), d->kind,
                d->kernels, portable ? "" : strf(" threads=%d isa=%s", d->threads, d->isa));
}

static Plan *new_plan(const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule)
{
    Plan *p = alloc(sizeof *p);
    int devices = stages * m->plan.replicas;
    *p = (Plan){.g = g, .c = c, .m = m, .schedule = schedule, .devices = devices, .chunks = m->plan.chunks,
                .replicas = m->plan.replicas > 1 ? m->plan.replicas : 0};
    for (int d = 0; d < devices; d++) {
        *PUSH(&p->dev) = (DevicePlan){.device = d, .limit = m->devices.at[d].memory};
    }
    p->key = numeric_key(g, m);
    return p;
}

/* Every pass once, under soft limits; 0, or the reason why not, with nofit_device and nofit_need. */
static int run(const Options *x, Plan *p, const Bytes *limit)
{
    if (order(p))
        return 1;
    check_order(p);
    dump_plan(x, p, 'o');
    if (part(p, limit))
        return 1;
    check_part(p);
    version_ties(p);
    if (*version_rule(p))
        p->key = strf("%s versions=%s", p->key, version_rule(p));
    dump_plan(x, p, 'p');
    if (keep(p))
        return 1;
    check_keep(p);
    dump_plan(x, p, 'k');
    if (comm(p))
        return 1;
    check_comm(p);
    dump_plan(x, p, 'c');
    if (lower(p))
        return 1;
    check_lower(p);
    dump_plan(x, p, 'l');
    int over = mem(p);
    check_mem(p);
    dump_plan(x, p, 'm');
    if (over)
        return p->nofit_host ? 3 : 2;
    sim(p);
    check_sim(p);
    dump_plan(x, p, 't');
    return 0;
}

/* A plan from a file: every checker, no pass. */
static Plan *plan_from(const Options *x, const Model *m)
{
    const Graph *g = graph_of(x, m);
    Plan *p = read_plan(x->from, g);
    p->m = m;
    p->c = cost_shared(cost(g, m, x->times), m, p->devices);
    if (p->devices > m->devices.n)
        fail(EXIT_MODEL, "%s is for %d devices, %s has %d", x->from, p->devices, m->path, m->devices.n);
    diag_blame(x->from);
    check_order(p);
    check_part(p);
    check_keep(p);
    check_comm(p);
    check_lower(p);
    check_mem(p);
    if (p->step == 0)           /* a plan whose times were taken out has those of the costs at hand */
        sim(p);
    check_sim(p);
    mem_measure(p);
    diag_blame(NULL);
    return p;
}

enum { ROUNDS = 4 };            /* of feeding back what packing adds */

/* A stage has the least memory that any of its replicas has. */
static Bytes *least_memory(const Model *m, int stages)
{
    int devices = stages * m->plan.replicas;
    Bytes *limit = alloc(sizeof *limit * (size_t)devices);
    for (int d = 0; d < devices; d++)
        limit[d] = m->devices.at[d].memory;
    for (int d = devices - 1; d >= stages; d--)
        limit[d - stages] = limit[d] < limit[d - stages] ? limit[d] : limit[d - stages];
    return limit;
}

static Plan *plan_under(const Options *x, const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule,
                        Hurry hurry)
{
    Bytes *limit = least_memory(m, stages);
    Plan *p = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        p = new_plan(g, c, m, stages, schedule);
        p->hurry = hurry;
        int why = run(x, p, limit);
        if (why == 0)
            return p;
        if (why != 2)
            break;
        for (int d = 0; d < p->devices; d++) {
            Bytes over = p->dev.at[d].arena - m->devices.at[d].memory, *most = &limit[plan_stage(p, d)];
            Bytes ask = over > 0 ? keep_need(p, plan_stage(p, d)) - over : *most;
            *most = over > 0 && (d < stages || ask < *most) ? ask : *most;
        }
    }
    p->step = 0;
    return p;
}

/* What is offloaded gets into a hurry only where that is what makes the plan fit. */
static Plan *plan_once(const Options *x, const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule)
{
    Plan *first = plan_under(x, g, c, m, stages, schedule, HURRY_NONE);
    for (Hurry hurry = HURRY_NEXT; first->step == 0 && first->host.n > 0 && !first->nofit_host && hurry <= HURRY_NOW; hurry++) {
        Plan *p = plan_under(x, g, c, m, stages, schedule, hurry);
        if (p->step > 0)
            return p;
    }
    if (first->step > 0 || first->chunk.n == 0 || m->plan.soon)
        return first;
    Model *soon = alloc(sizeof *soon);      /* the fastest were too tight to pack: one with room may not be */
    *soon = *m;
    soon->plan.soon = true;
    Plan *p = plan_under(x, g, c, soon, stages, schedule, HURRY_NONE);
    p->m = m;
    return p->step > 0 ? p : first;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

typedef struct { const Options *x; const Model *m; Plan *best, *failed; const char *refused; } Search;

/* Faster; as fast and smaller. */
static bool better(const Plan *a, const Plan *b)
{
    Bytes x = 0, y = 0;
    for (int d = 0; d < a->devices; d++)
        x += a->dev.at[d].arena;
    for (int d = 0; d < b->devices; d++)
        y += b->dev.at[d].arena;
    return a->step != b->step ? a->step < b->step : x < y;
}

/* MadPipe chooses how many chunks there are and on which device, so it is asked before any list is made; NULL: it has no
 * answer.  After it, its map and cuts stand as if the model file said them. */
static const Model *mapped(const Graph *g, const Cost *c, const Model *m, int *stages, const char *schedule, const char **note)
{
    Plan *p = new_plan(g, c, m, *stages, schedule);
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    MadPipe found;
    for (int d = 0; d < p->devices; d++)
        limit[d] = m->devices.at[d].memory;
    if (strcmp(m->plan.planner, "madpipe") || m->plan.map.n || m->plan.cuts.n)
        return m;
    if (m->plan.chunks > 1 || m->plan.replicas > 1)
        err(m->plan.loc, NULL, "planner madpipe chooses the chunks; plan.chunks and plan.replicas are not for it");
    if (!madpipe(p, limit, &found))
        return NULL;
    Model *with = alloc(sizeof *with);
    *with = *m;
    with->plan.map = found.map;
    with->plan.cuts = found.cuts;
    with->plan.chunks = found.map.n - found.devices + 1;        /* one device alone has several */
    with->plan.stages_min = with->plan.stages_max = *stages = found.devices;
    *note = strf("%d pieces; a period of %.3f ms by MadPipe's program and 1F1B*", found.map.n, (double)found.period / 1e6);
    return with;
}

/* `exact` judges by a preview, and packing may undo what it chose: the plans of its rivals are laid out too. */
static Plan *beside_rivals(const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule, Plan *best)
{
    Options quiet = {0};
    Plan *own = best;
    bool asked = !strcmp(m->plan.planner, "exact") && !m->plan.soon && !m->plan.cuts.n && m->plan.chunks == 1;
    for (const Planner *k = planners; k->name && asked; k++) {
        if (g->nf > k->rival)
            continue;
        Model *with = alloc(sizeof *with);
        *with = *m;
        with->plan.planner = k->name;
        Plan *p = plan_once(&quiet, g, c, with, stages, schedule);
        if (p->step == 0 || (best->step > 0 && !better(p, best)))
            continue;
        p->m = m;
        p->note = strf("as %s cuts", k->name);
        p->bound = own->step > 0 ? own->bound : 0;
        p->space = own->space;
        best = p;
    }
    return best;
}

static void try_plan(Search *s, const Graph *g, const Cost *c, int stages, const char *schedule)
{
    const char *note = NULL;
    const Model *m = mapped(g, c, s->m, &stages, schedule, &note);
    Model *exact = alloc(sizeof *exact);
    *exact = *s->m;
    exact->plan.planner = "exact";
    Plan *p = plan_once(s->x, g, c, m ? m : exact, stages, schedule);
    if (!m || note)
        p->note = note;
    p->step = m ? p->step : 0;          /* else it was asked for the report alone */
    p = beside_rivals(g, c, s->m, stages, schedule, p);
    if (p->step == 0)
        s->failed = p;
    else if (!s->best || better(p, s->best))
        s->best = p;
}

enum { PERIODS = 8 };           /* that 1f1b* tries */

/* The loads of a plan tell which depths a period needs, a plan with those depths has other loads: from 1F1B's own depths, or
 * one micro-batch in flight where those do not fit, to the first few periods that make a difference, shortest first. */
static void try_star(Search *s, const Graph *g, const Cost *c, int stages)
{
    const Model *was = s->m;
    Model *with = alloc(sizeof *with);
    Ns *load = alloc(sizeof *load * (size_t)(2 * stages)), *period = alloc(sizeof *period * (size_t)(2 * stages * stages + 1));
    *with = *was;
    s->m = with;
    try_plan(s, g, c, stages, "1f1b*");
    if (!s->best) {
        for (int d = 0; d < stages; d++)
            *PUSH(&with->plan.depth) = 1;
        try_plan(s, g, c, stages, "1f1b*");
    }
    int n = 0;
    if (s->best && plan_stages(s->best) == stages) {
        star_loads(s->best, load);
        n = star_periods(load, stages, period);
    }
    const Ints *last = &with->plan.depth;
    for (int i = 0, tried = 0; i < n && tried < PERIODS; i++) {
        Ints depth = {alloc(sizeof(int) * (size_t)stages), stages, stages};
        star_depths(load, stages, period[i], depth.at);
        if (last->n == stages && !memcmp(last->at, depth.at, sizeof(int) * (size_t)stages))
            continue;
        with = alloc(sizeof *with);
        *with = *was;
        with->plan.depth = depth;
        last = &with->plan.depth;
        s->m = with;
        try_plan(s, g, c, stages, "1f1b*");
        tried++;
    }
    s->m = was;
}

static void try_graph(Search *s, const Model *m)
{
    const Graph *g = graph_of(s->x, m);
    const Cost *c = cost(g, m, s->x->times);
    check_cost(g, c);
    bool any = !strcmp(m->plan.schedule, "auto");       /* of those that train alike: the synchronous ones */
    for (int stages = m->plan.stages_min; stages <= m->plan.stages_max; stages++) {
        const Cost *shared = cost_shared(c, m, stages * m->plan.replicas);
        for (const Schedule *k = schedules; k->name; k++) {
            const char *why = order_refuses(g, m, k, stages);
            if (!why && k->async && m->plan.replicas > 1)
                why = "its replicas are not built; set plan.replicas to 1, or take a synchronous schedule";
            bool asked = any ? !k->async && strcmp(k->name, "1f1b*") : !strcmp(m->plan.schedule, k->name);
            if (asked && why)
                s->refused = strf("schedule %s: %s", k->name, why);
            else if (asked && !strcmp(k->name, "1f1b*"))
                try_star(s, g, shared, stages);
            else if (asked)
                try_plan(s, g, shared, stages, k->name);
        }
    }
}

static bool single(const Model *m)
{
    return m->train.batch > 0 && m->plan.stages_min == m->plan.stages_max && strcmp(m->plan.schedule, "auto");
}

/* What -d asks for, of a finished plan. */
static void dump(const Options *x, const Plan *p)
{
    graph_of(x, p->m);
    for (int i = 0; dumps[i].pass; i++)
        dump_plan(x, p, dumps[i].letter);
}

/* The best plan of all candidates; failed is set when there is none.  A single one is dumped pass by pass, so that it is
 * seen how far it came; of several only the best. */
static Plan *search(const Options *x, const Model *m, Plan **failed)
{
    Options quiet = *x;
    quiet.dump = NULL;
    Search s = {.x = single(m) ? x : &quiet, .m = m};
    if (m->train.batch > 0) {
        try_graph(&s, m);
    } else {
        for (int64_t b = 1; b <= m->train.global; b *= 2) {     /* micro: auto */
            Model *with = alloc(sizeof *with);
            *with = *m;
            with->train.batch = b;
            with->train.micro = m->train.global / b;
            if (m->train.global % b || with->train.micro % m->train.groups)
                continue;
            s.m = with;
            try_graph(&s, with);
        }
    }
    if (!s.best && !s.failed && s.refused)
        err(m->plan.loc, NULL, "%s", s.refused);
    *failed = s.failed;
    if (s.best && single(m))
        dump_plan(x, s.best, 'a');
    else if (s.best && x->dump)
        dump(x, s.best);
    return s.best;
}

typedef struct { const Options *x; const Model *m; Plan *best, *failed; } Trial;

static void try_search(void *ctx)
{
    Trial *t = ctx;
    t->best = search(t->x, t->m, &t->failed);
}

/* What views call back. */
static Plan *plan_of(void *ctx, const Model *m, Plan **failed)
{
    const Options *x = ctx;
    Options quiet = {.times = x->times, .from = x->from, .foreign = x->foreign};
    Trial t = {&quiet, m, NULL, NULL};
    bool model = diag_accepts(try_search, &t);
    *failed = model ? t.failed : NULL;
    return model ? t.best : NULL;
}

/* What nofit() calls back: would this variant of the model fit?  It may be no model at all: with a smaller micro-batch the
 * shapes of one that says 4 where it means B no longer agree. */
static bool would_fit(void *ctx, const Model *m, Bytes *need)
{
    Model *soon = alloc(sizeof *soon);
    Plan *failed = NULL, *best;
    *soon = *m;
    soon->plan.soon = true;
    best = plan_of(ctx, soon, &failed);
    *need = !best && failed ? failed->nofit_need : 0;
    return best;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

static int check_model(const Options *x, const Model *m)
{
    const Graph *g = graph_of(x, m);
    if (!x->dump)
        graph_totals(stdout, g);
    return 0;
}

/* A planner that is no proof has no plan: that is no answer for the model if exact has one. */
static void blame_planner(const Options *x, const Model *m, const Plan *failed)
{
    Model with = *m;
    Plan *ignored;
    with.plan.planner = "exact";
    const char *note = failed && failed->note ? failed->note : NULL;
    if (strcmp(m->plan.planner, "exact") && plan_of((void *)(uintptr_t)x, &with, &ignored))
        fail(EXIT_RUN, "planner %s has no plan that can be built%s%s; there is one: --planner exact", m->plan.planner,
             note ? ": " : "", note ? note : "");
}

static Plan *plan_or_stop(const Options *x, const Model *m)
{
    if (is_plan(x->from))
        return plan_from(x, m);
    Plan *failed = NULL, *p = search(x, m, &failed);
    if (!p)
        blame_planner(x, m, failed);
    if (!p)
        nofit(failed, would_fit, (void *)(uintptr_t)x);
    return p;
}

static int plan_model(const Options *x, const Model *m)
{
    const Plan *p = plan_or_stop(x, m);
    if (x->dump)
        return 0;
    if (x->json)
        emit_plan_json(stdout, p);
    else
        view_plan(stdout, p, is_plan(x->from) ? NULL : plan_of, (void *)(uintptr_t)x);
    if (!x->json && x->chain.prefixes)
        bottleneck_text(stdout, &x->chain);
    return 0;
}

static int explain_model(const Options *x, const Model *m)
{
    return view_explain(stdout, plan_or_stop(x, m), x->what, plan_of, (void *)(uintptr_t)x);
}

/* Nobody has measured this model here.  It is planned by estimates first, so that what fits nowhere is said at once; then
 * measured, and planned again until the micro-batch that is chosen is one that was measured. */
static Plan *plan_measured(const Options *x, const Model *m)
{
    Options with = *x;
    const char *file = profile_name(m);
    Plan *p = plan_or_stop(x, m);
    out_check(x->out);
    fprintf(stderr, "dpgen: there is no %s: measuring this machine once (--estimate does without)\n", file);
    with.times = profile_measure(m, file);
    for (int round = 0; round < ROUNDS; round++) {
        profile_write(with.times, file);
        p = plan_or_stop(&with, m);
        if (profile_has(with.times, p->g->batch))
            break;
        profile_measure_more(with.times, m, p->g->batch, file);
    }
    fprintf(stderr, "dpgen: wrote %s: later runs take their times from it\n", file);
    return p;
}

static int compare_model(const Options *x, const Model *m)
{
    return view_compare(x, m, plan_of, (void *)(uintptr_t)x);
}

static int generate(const Options *x, const Model *m)
{
    const Device *d = &m->devices.at[0];
    if (!strcmp(d->kind, "cuda"))
        err(d->loc, "kind: cpu, or --pace", "devices of kind cuda can be planned for, and not yet generated");
    if (!m->data.format && !x->dump && strcmp(d->kind, "paced"))
        fail(EXIT_MODEL, "%s has no section data: there is nothing to train on", m->path);
    bool measure = !x->times && !x->estimate && !x->dump && !x->from && !profile_cannot(m);
    const Plan *p = measure ? plan_measured(x, m) : plan_or_stop(x, m);
    if (x->dump)
        return 0;
    if (p->g->timed)
        fail(EXIT_MODEL, "%s: a graph of another system has times and bytes, and no kernels: it can be planned, not generated",
             x->from);
    emit(p, x->out, x->prefix ? x->prefix : "train");
    view_table(stdout, p);
    printf("wrote %s: make -C %s\n", x->out, x->out);
    return 0;
}

/* dpgen profile */
static int measure_model(const Options *x, const Model *m)
{
    const char *file = x->out ? x->out : profile_name(m), *why = profile_cannot(m);
    if (why)
        fail(EXIT_MODEL, "%s cannot be measured: %s", m->path, why);
    graph_of(x, m);
    Profile *f = profile_measure(m, file);
    profile_write(f, file);
    printf("wrote %s\n", file);
    return 0;
}

/* A file that was named, or the one beside the model; NULL: estimates. */
static Profile *times_of(const Options *x, const Model *m)
{
    const char *beside = profile_name(m);
    if (x->profile)
        return profile_open(x->profile, m, x->elsewhere);
    if (x->estimate || x->from || profile_cannot(m) || access(beside, F_OK) != 0)
        return NULL;
    return profile_open(beside, m, x->elsewhere);
}

/* ---- options that change the model --------------------------------------------------------------------------------- */

/* A paced job computes nothing: no data, no evaluation, no checkpoints, and threads that all run in one process. */
static void pace(Model *m, bool all)
{
    for (int d = 0; all && d < m->devices.n; d++)
        m->devices.at[d].kind = "paced";
    if (strcmp(m->devices.at[0].kind, "paced"))
        return;
    m->data = m->eval = (DataSet){0};
    m->ckpt = (CkptSpec){0};
    if (strcmp(m->plan.transport, "local"))
        err(m->plan.loc, "transport: local", "paced stages share one process");
}

/* The model file; without one, what a graph needs besides itself. */
static Node *root_of(Options *x)
{
    if (x->from && foreign_is(x->from))
        x->foreign = foreign_read(x->from);
    if (x->file)
        return load(x->file);
    if (is_plan(x->from))
        fail(EXIT_USAGE, "%s is a plan, and needs the model file that it was made for", x->from);
    const Foreign *f = x->foreign;
    if (f)
        return foreign_model(x->from, f->name, f->batch, f->micro, 1, f->optimizer);
    const Graph *g = read_graph(x->from);
    return foreign_model(x->from, g->name, g->batch, g->micro, g->groups, "sgd");
}

static void set_objective(Options *x, Model *m)
{
    if (!strcmp(m->plan.objective, "step_time"))
        return;
    if (!x->foreign)
        err(m->plan.loc, "step_time", "objective bottleneck reorders the graph: it is for graphs of other systems, see --from");
    bottleneck(x->foreign, m, &x->chain);
}

int main(int argc, char **argv)
{
    atexit(mem_free_all);
    if (argc > 1 && !strcmp(argv[1], "pack"))
        return pack_command(argc - 2, argv + 2);
    Options x = options(argc, argv);
    Node *root = root_of(&x);
    if (x.devices)
        override_devices(root, x.devices);
    Model *m = model(root, x.file ? x.file : x.from, &x.over);
    bad_stop();
    set_objective(&x, m);
    pace(m, x.pace);
    static const struct { const char *name; int (*run)(const Options *x, const Model *m); } verb[] = {
        {"check", check_model}, {"plan", plan_model}, {"explain", explain_model},
        {"compare", compare_model}, {"profile", measure_model}};
    if (!x.verb || (strcmp(x.verb, "check") && strcmp(x.verb, "profile")))
        x.times = times_of(&x, m);
    for (size_t i = 0; x.verb && i < sizeof verb / sizeof *verb; i++)
        if (!strcmp(x.verb, verb[i].name))
            return verb[i].run(&x, m);
    return generate(&x, m);
}
