/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: the verbs.  The passes stand in passes.c, the search for the best plan in search.c.
 */
#include "cost/prof.h"
#include "huggingface/hf.h"
#include "mem/mem.h"
#include "tokens/command.h"
#include "view/view.h"
#include "rt/mapped.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <unistd.h>

#ifndef COMMIT
#define COMMIT ""              /* the Makefile knows it */
#endif

enum { LEAST_ARCH = 80 };

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

static int check_model(const Options *x, const Model *m)
{
    const Graph *g = graph_of(x, m), *part = g;
    Model whole = *m;
    whole.plan.tensor = 1;
    bool both = g->team && !x->from && !x->dump;
    if (both)
        g = graph_of(x, &whole);            /* of the model, not of one device of several */
    if (x->parameters)
        weights_print(stdout, m, g);
    else if (!x->dump)
        graph_totals(stdout, g);
    if (both && !x->parameters)
        team_totals(stdout, m, part);
    return 0;
}

static Plan *plan_or_stop(const Options *x, const Model *m)
{
    busy_with("planning");
    Plan *failed = NULL, *p = is_plan(x->from) ? plan_from(x, m) : search(x, m, &failed);
    busy_heeds(false);
    if (!p && busy_stopped())
        fail(EXIT_STOPPED, "interrupted before there was a plan");
    if (!p) {
        /* A planner that is no proof has no plan: that is no answer for the model if exact has one. */
        Ask ask = {.choice.planner = planners->name, .effort.first_fit = true};
        Plan *ignored;
        const char *note = failed ? plan_proof(failed).note : NULL;
        if (!planner_named(m->plan.planner)->complete && search_with(x, m, &ask, &ignored))
            fail(EXIT_RUN, "planner %s has no plan that can be built%s%s; there is one: --planner %s", m->plan.planner,
                 note ? ": " : "", note ? note : "", ask.choice.planner);
    }
    if (!p && failed && failed->shortfall.stuck)
        fail(EXIT_NOFIT, "%s", failed->shortfall.stuck);
    if (!p)
        nofit(x, failed);
    mem_unpooled(p);
    busy_end();
    return p;
}

static int plan_model(const Options *x, const Model *m)
{
    busy_heeds(true);
    const Plan *p = plan_or_stop(x, m);
    int status = busy_stopped() ? EXIT_STOPPED : 0;
    if (status)
        fprintf(stderr, "dpgen: interrupted: this is the best plan so far; the search was not at its end\n");
    if (x->dump)
        return status;
    if (x->json)
        emit_plan_json(stdout, p);
    else
        view_plan(stdout, p);
    if (!x->json && x->chain.prefixes)
        bottleneck_text(stdout, &x->chain);
    return status;
}

static int explain_model(const Options *x, const Model *m)
{
    return view_explain(stdout, plan_or_stop(x, m), x->what, x->next);
}

/* Nobody has measured this model here: it is measured, and planned until the micro-batch that is chosen was measured. */
static Plan *plan_measured(const Options *x, const Model *m)
{
    Options with = *x;
    const char *file = profile_name(m);
    Plan *p = NULL;
    out_check(x->out);
    profile_begin(file);
    bool there = access(file, F_OK) == 0;           /* another dpgen may have measured in between */
    const char *other = there ? profile_other_model(file, m) : NULL;
    if (other)
        fprintf(stderr, "dpgen: %s was measured with %s: measuring again (--estimate does without); it becomes %s~\n",
                quote_terminal(file), other, quote_terminal(file));
    else if (!there)
        fprintf(stderr, "dpgen: there is no %s: measuring this machine once (--estimate does without)\n", quote_terminal(file));
    with.times = there && !other ? profile_open(file, m, x->elsewhere) : profile_measure(m, file, false);
    if (other && rename(file, strf("%s~", file)) != 0)
        fail(EXIT_RUN, "cannot rename %s: %s", quote_terminal(file), strerror(errno));
    file_rewrites(file);
    for (int round = 0; round < ROUNDS; round++) {
        profile_write(with.times, file);
        p = plan_or_stop(&with, m);
        if (profile_has(with.times, p->g->batch))
            break;
        profile_measure_more(with.times, m, p->g->batch, file);
    }
    profile_end();
    if (!there || other)
        fprintf(stderr, "dpgen: wrote %s: later runs take their times from it\n", quote_terminal(file));
    return p;
}

/* What can be planned for, and not run. */
static void check_cuda(const Model *m)
{
    for (EACH(const Device, d, m->devices)) {
        if (!d->arch)
            err(d->loc, "such as arch: sm_90", "'%s' has no 'arch': kernels are compiled for one", d->name);
        if (atoi(d->arch + 3) < LEAST_ARCH)
            err(d->loc, "--pace, to run the plan without computing", "'%s' is %s, and products and attention in bf16 need "
                "sm_%d: it can be planned for, and not generated", d->name, d->arch, LEAST_ARCH);
        if (strcmp(d->arch, m->devices.at[0].arch))
            err(d->loc, m->devices.at[0].arch, "'%s' has another arch than '%s': the bits of a job depend on it", d->name,
                m->devices.at[0].name);
    }
    if (transport_of(m)->cpus)
        err(m->plan.loc, "transport: local, or nccl", "messages between GPUs do not go over %s", m->plan.transport);
    if (m->plan.disk)
        err(m->plan.loc, "offload: auto", "a GPU offloads to the host's memory, not to a file");
}

/* cuDNN copies images into the workspace, with channels up to a multiple of 8.  It is in the numeric key: the user chooses. */
static void warn_workspace(const Plan *p)
{
    const Device *d = &p->m->devices.at[0];
    Bytes most = 0, few = 8 << 20;
    for (int o = 0; o < p->g->op.n && on_gpus(p->m); o++) {
        Bytes images = cost_images(p->m, p->g, &p->g->op.at[o]);
        most = images > most ? images : most;
    }
    long long want = (most + few + (1 << 20) - 1) >> 20;
    if (most && want << 20 > d->workspace)
        fprintf(stderr, "dpgen: cuDNN has tensor cores for the images of %s with a workspace of %lldMiB, and it is %s: "
                "--set devices.0.workspace=%lldMiB is faster; the bits are others\n", p->g->name, want,
                size_text(d->workspace), want);
}

/* A job may run elsewhere, so a file that is not here is no mistake. */
static void warn_file(const Model *m, const DataSet *d, const char *pattern)
{
    glob_t found = {0};
    if (pattern && access(pattern, F_OK) != 0 && glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        warn(mark_of(m, pattern, d->loc), "no file matches '%s' here: a job looks for it in the folder where it is started",
             pattern);
    globfree(&found);
}

static void warn_data(const Model *m)
{
    const DataSet *sets[] = {&m->data, &m->eval};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < sets[k]->files.n; i++)
            warn_file(m, sets[k], sets[k]->files.at[i]);
        for (int i = 0; i < sets[k]->path.n; i++)
            warn_file(m, sets[k], sets[k]->path.at[i]);
    }
}

/* Sums in blocks are an order of additions, and a library has its own: it adds up one block of each sum.  Paced devices do not
 * add at all.  Parameters of several replicas meet in the memory of hosts. */
static void check_blocks(const Model *m)
{
    const Device *d = &m->devices.at[0];
    const bool open = m->plan.tensor_auto && m->train.blocks > 1;
    if (!library_of(d)->anywhere && (open || m->train.blocks != m->plan.tensor))
        err(m->train.blocks_at, open ? strf("plan.tensor: %d", (int)m->train.blocks)
                                     : strf("train.blocks: %d, another numeric key", m->plan.tensor),
            "train.blocks: %lld, plan.tensor: %s, and %s up one block of each sum: it can be planned for, and not generated",
            (long long)m->train.blocks, open ? "auto" : strf("%d", m->plan.tensor),
            on_gpus(m) ? "a GPU adds" : strf("kernels: %s add", d->kernels));
    if (!library_of(d)->anywhere && m->plan.positions == POSITIONS_EVERYWHERE)
        err(m->plan.positions_at, "plan.positions: divided", "plan.positions: everywhere, and %s a product of some rows in "
            "another order than one of all: it can be planned for, and not generated",
            on_gpus(m) ? "a GPU adds up" : strf("kernels: %s add up", d->kernels));
    if ((m->plan.tensor > 1 || m->plan.tensor_auto) && target_of(d)->paced)
        err(m->plan.tensor_at, "plan.tensor: 1", "plan.tensor: %s, and '%s' is paced, which adds over no devices: it can be "
            "planned for, and not generated", m->plan.tensor_auto ? "auto" : strf("%d", m->plan.tensor), d->name);
    if (m->plan.widths.n && schedule_of(m->plan.schedule)->async && on_gpus(m))
        err(m->plan.widths_at, "schedule: 1f1b", "plan.widths, and schedule %s: losses of two steps that overlap are not kept "
            "apart on GPUs: it can be planned for, and not generated", m->plan.schedule);
    if (m->train.shard == SHARD_PARAMETERS && on_gpus(m))
        err(m->plan.replicas_at, "train.shard: gradients", "train.shard: parameters, and files take a parameter whole, which "
            "the GPUs of several replicas do not hand on: it can be planned for, and not generated");
}

/* What rt/library/ can do without a runtime. */
static void check_library(const Model *m, const Plan *p)
{
    const Device *d = &m->devices.at[0];
    const char *why = NULL;
    if (target_of(d)->paced || on_gpus(m) || !library_of(d)->anywhere)
        why = strf("kind: cpu and kernels: portable, and '%s' is of kind %s with kernels %s", d->name, d->kind, d->kernels);
    else if (m->quantize.bits)
        why = "weights with all their bits; leave out section quantize";
    else if (p && p->g->team)
        why = strf("stages of one device each, and this plan has %d devices in a stage; --set plan.tensor=1", p->g->team);
    else if (p && plan_uneven(p))
        why = "stages in as many copies each; delete plan.widths, or take plan.replicas";
    else if (p && (order_overlap(p) > 0 || p->host.n > 0))
        why = "steps that neither overlap nor move tensors to the host; --schedule 1f1b, --offload none";
    if (why)
        fail(EXIT_MODEL, "%s: --library takes %s", m->path, why);
}

static bool learns(const Graph *g)
{
    for (EACH(const State, s, g->state))
        if (s->kind == S_PARAM && !s->tracked && !s->frozen)
            return true;
    return false;
}

static int generate(const Options *x, const Model *m)
{
    const Device *d = &m->devices.at[0];
    check_blocks(m);
    if (x->library)
        check_library(m, NULL);
    if (on_gpus(m))
        check_cuda(m);
    else if (m->train.tf32 || m->train.fp8)
        err(d->loc, strf("compute: %s, or devices of kind: cuda", type_name(m->train.compute)),
            "products in %s are those of GPUs, and '%s' is of kind %s", compute_word(&m->train), d->name, d->kind);
    else if (transport_of(m)->gpus)
        err(m->plan.loc, "transport: mpi", "messages over %s are between GPUs; '%s' is of kind %s", m->plan.transport, d->name,
            d->kind);
    if (!m->data.format && !x->dump && !target_of(d)->paced && !x->library && !infers(m))
        fail(EXIT_MODEL, "%s has no section data: there is nothing to train on", m->path);
    bool measure = !x->times && !x->estimate && !x->dump && !x->from && !profile_cannot(m);
    const Plan *p = plan_or_stop(x, m);         /* by estimates, if it is measured: what fits nowhere is said at once */
    if (x->dump)
        return 0;
    if (!infers(m) && !p->g->timed && !learns(p->g))
        err(m->loss_loc, "give the graph a line with weights, such as Linear; a job that only serves has --mode infer",
            "no line of the graph has a parameter that learns: there is nothing to train");
    if (p->g->timed)
        fail(EXIT_MODEL, "%s: a graph of another system has times and bytes, and no kernels: it can be planned, not generated",
             x->from);
    if (measure)
        p = plan_measured(x, m);
    /* A profile measures stages beside each other, and not how long one waits for a core that another has. */
    long cores = sysconf(_SC_NPROCESSORS_ONLN), threads = (long)cost_threads(p->m, p->devices);
    if (p->c->profile && !transport_of(p->m)->ranks && threads > cores && !p->m->cores)
        fprintf(stderr, "dpgen: stages: %d, threads: %ld, cores of this machine: %ld; steps take longer than predicted; "
                "hosts: {cores: %ld} prices it\n", p->devices, threads, cores, cores);
    const Device *first = &m->devices.at[0];
    const char *missing = !on_gpus(m) && !target_of(first)->paced && first->isa ? machine_lacks(first->isa) : NULL;
    if (missing)
        fprintf(stderr, "dpgen: kernels are compiled for isa %s, and this machine has %s: a job ends here with "
                "status %d; --set devices.0.isa=%s makes one that runs\n", first->isa, missing, EXIT_MACHINE, missing);
    warn_workspace(p);
    const char *slow = NULL;
    for (int o = 0; o < p->g->op.n && on_gpus(p->m); o++)
        if (cost_unproven(p->m, p->g, &p->g->op.at[o]))
            slow = p->g->op.at[o].call;
    if (slow)
        fprintf(stderr, "dpgen: cuDNN is not proven to give the same bits in every run on %s: %s and its like are our own "
                "kernels, right and slower\n", p->m->devices.at[0].arch, slow);
    if (x->library)
        check_library(m, p);
    else if (!target_of(d)->paced)
        warn_data(m);
    Text reference;
    print_reference(text_open(&reference), x, p);
    text_close(&reference);
    const EmitAs as = {x->prefix ? x->prefix : x->library ? api_name(m->name)
                       : infers(m) ? "serve" : "train", x->library, !x->unproved};
    diag_blame(x->from);        /* a graph that somebody has changed may be of what no folder proves */
    const char *sum = emit(p, x->out, &as, &reference);
    view_table(stdout, p);
    const char *team = p->g->team ? strf(", %s%s", count_text(plan_stages(p), "stage"), team_shape(p)) : "";
    printf("wrote %s%s: make -C %s\nits MANIFEST has SHA-256 %s\n", quote_terminal(x->out), team,
           quote_terminal(quote_shell(x->out)), sum);
    return 0;
}

/* dpgen profile */
static int measure_model(const Options *x, const Model *m)
{
    const char *file = x->out ? x->out : profile_name(m), *why = profile_cannot(m);
    if (why)
        fail(EXIT_MODEL, "%s cannot be measured: %s", m->path, why);
    if (x->fit && on_gpus(m))
        fail(EXIT_MODEL, "%s: products of a GPU have algorithms that are found by measuring each; leave out --fit", m->path);
    if (on_gpus(m))
        check_cuda(m);
    graph_of(x, m);
    profile_begin(file);
    Profile *f = profile_measure(m, file, x->fit);
    profile_write(f, file);
    profile_end();
    printf("wrote %s%s\n", quote_terminal(file),
           m->plan.tensor > 1 ? strf(": calls of one of %d devices of a stage", m->plan.tensor) : "");
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
    if (!x->verb && !x->dump && profile_other_model(beside, m))
        return NULL;            /* the plain command has made it, and makes another */
    return profile_open(beside, m, x->elsewhere);
}

/* ---- options that change the model --------------------------------------------------------------------------------- */

/* A paced job computes nothing: no data, no evaluation, no checkpoints, and threads that all run in one process. */
static void pace(Model *m, bool all)
{
    for (int d = 0; all && d < m->devices.n; d++)
        m->devices.at[d].kind = "paced";
    if (!target_of(&m->devices.at[0])->paced)
        return;
    m->data = m->eval = (DataSet){0};
    m->ckpt = (CkptSpec){0};
    if (transport_of(m)->ranks)
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
        return foreign_model(x->from, f->name, f->batch, f->micro, 1, f->optimizer, f->devices);
    const Graph *g = read_graph(x->from);
    return foreign_model(x->from, g->name, g->batch, g->micro, g->groups, "sgd", NULL);
}

static Model *set_objective(Options *x, Model *m)
{
    if (m->plan.objective == STEP_TIME || widths_open(x->foreign, m))
        return m;
    if (!x->foreign)
        err(m->plan.loc, "step_time", "this objective reorders the graph: it is for graphs of other systems, see --from");
    const Graph *g = foreign_graph(x->foreign, m);
    const Cost *c = cost(g, m, NULL);
    bool free = m->device_order == ORDER_FREE;
    bottleneck(x->foreign, g, m, c, free ? kinds_of(m, c).of : NULL, &x->chain);
    return free ? ordered(m, x->chain.stages, x->chain.device) : m;
}

int main(int argc, char **argv)
{
    atexit(mem_free_all);
    signal(SIGXFSZ, SIG_IGN);           /* a file that is too large is an error of write(), with a message */
    mapped_watch("dpgen");
    options_answer(argc, argv, COMMIT);
    static const struct { const char *name; int (*run)(int argc, char **argv); } alone[] = {
        {"pack", pack_command}, {"tokens", tokens_command}, {"new", new_command}, {"import", import_command},
        {"export", export_command}};
    int of = argc > 1 ? INDEX_OF(alone, sizeof alone / sizeof *alone, argv[1]) : -1;
    if (of >= 0)
        options_end(alone[of].run(argc - 2, argv + 2));
    Options x = options(argc, argv);
    const char *wrote = !x.verb ? NULL : !strcmp(x.verb, "report") ? report_measured(x.file, x.trace, x.out)
        : !strcmp(x.verb, "metrics") ? metrics_tensorboard(x.file, x.tensorboard) : NULL;
    if (wrote) {
        printf("wrote %s\n", wrote);
        return 0;
    }
    Node *root = root_of(&x);
    if (x.devices)
        override_devices(root, x.devices);
    Model *m = model(root, x.file ? x.file : x.from, &x.over);
    m->options = options_model(&x);
    bad_stop();
    m = set_objective(&x, m);
    pace(m, x.pace);
    if (x.library && !m->eval.format && !infers(m))           /* its outputs are those of an evaluation */
        m->eval = (DataSet){.format = "caller", .batches = m->plan.replicas > 1 ? m->plan.replicas : 1};
    static const struct { const char *name; int (*run)(const Options *x, const Model *m); const char *compared; } verb[] = {
        {"check", check_model, NULL}, {"plan", plan_model, NULL}, {"explain", explain_model, NULL},
        {"compare", view_compare, "planners"}, {"schedules", view_schedules, "schedules"}, {"profile", measure_model, NULL}};
    if (!x.verb || (strcmp(x.verb, "check") && strcmp(x.verb, "profile")))
        x.times = times_of(&x, m);
    int v = x.verb ? INDEX_OF(verb, sizeof verb / sizeof *verb, x.verb) : -1;
    if (widths_open(x.foreign, m))
        options_end(view_widths(&x, m));
    if (v >= 0 && verb[v].compared && is_plan(x.from))
        fail(EXIT_USAGE, "%s is a plan, and %s are compared by plans of their own", x.from, verb[v].compared);
    options_end(v < 0 ? generate(&x, m) : verb[v].run(&x, m));
}
