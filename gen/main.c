/* SPDX-License-Identifier: Apache-2.0
 *
 * Options, and run(): the list of passes.  This file is the architecture: text becomes Node becomes Model becomes Graph;
 * the Graph is const from there on, and each later pass fills its own fields of a Plan.  A checker runs after every pass.
 *
 * Three loops stand here in sight: over candidates (micro-batch, devices, schedule), the best by simulation wins; over soft
 * limits, when packing needs more than the partition expected, at most four rounds; and over remedies, when nothing fits.
 */
#include "dpgen.h"
#include "emit/emit.h"
#include "plan/nofit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *verb, *file, *out, *from, *dump, *profile, *prefix, *devices;
    Overrides over;
    bool json, estimate, pace;
} Options;

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

static const struct { char letter; const char *pass, *what; } dumps[] = {
    {'b', "build",  "forward operators, blocks and repeats expanded"},
    {'s', "shape",  "shapes, types, bytes, states"},
    {'g', "grad",   "backward and update operators"},
    {'f', "fuse",   "fusion groups: the const Graph"},
    {'o', "order",  "computations of each device"},
    {'p', "part",   "operator -> chunk"},
    {'k', "keep",   "tensor -> keep or recompute"},
    {'c', "comm",   "the whole action lists"},
    {'l', "lower",  "routines, buffers, pools"},
    {'m', "mem",    "offsets and owner intervals"},
    {'t', "sim",    "predicted times"},
    {'a', "all",    "the whole plan, for --from"},
};
enum { NDUMP = sizeof dumps / sizeof *dumps };

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
    for (int i = 0; i < NDUMP; i++)
        if (dumps[i].letter == letter && wants(x, letter)) {
            dump_head(x, dumps[i].pass);
            print_graph(stdout, g);
        }
}

static void dump_plan(const Options *x, const Plan *p, char letter)
{
    for (int i = 0; i < NDUMP; i++)
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

static Plan *new_plan(const Graph *g, const Cost *c, const Model *m, int devices, const char *schedule)
{
    Plan *p = alloc(sizeof *p);
    *p = (Plan){.g = g, .c = c, .m = m, .schedule = schedule, .devices = devices, .chunks = m->plan.chunks};
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
        return 2;
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
    p->c = cost(g, m, x->profile);
    if (p->devices > m->devices.n)
        fail(EXIT_MODEL, "%s is for %d devices, %s has %d", x->from, p->devices, m->path, m->devices.n);
    diag_blame(x->from);
    check_order(p);
    check_part(p);
    check_keep(p);
    check_comm(p);
    check_lower(p);
    check_mem(p);
    check_sim(p);
    mem_measure(p);
    diag_blame(NULL);
    return p;
}

enum { ROUNDS = 4 };            /* of feeding back what packing adds */

static Plan *plan_once(const Options *x, const Graph *g, const Cost *c, const Model *m, int devices, const char *schedule)
{
    Bytes *limit = alloc(sizeof *limit * (size_t)devices);
    for (int d = 0; d < devices; d++)
        limit[d] = m->devices.at[d].memory;
    Plan *p = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        p = new_plan(g, c, m, devices, schedule);
        int why = run(x, p, limit);
        if (why == 0)
            return p;
        if (why == 1)
            break;
        for (int d = 0; d < devices; d++)
            if (p->dev.at[d].arena > m->devices.at[d].memory)
                limit[d] = keep_need(p, d) - (p->dev.at[d].arena - m->devices.at[d].memory);
    }
    p->step = 0;
    return p;
}

/* recompute: auto decides from estimates and may miss what fits: with all of it recomputed the plan is another one.  What is
 * proven of it there, that no cut is faster, is not proven of auto: its bound is that of the best cut without limits. */
static Plan *plan_full(const Options *x, const Graph *g, const Cost *c, const Model *m, int devices, const char *schedule)
{
    Model *with = alloc(sizeof *with);
    *with = *m;
    with->plan.recompute = RECOMPUTE_FULL;
    Plan *p = plan_once(x, g, c, with, devices, schedule), *free = new_plan(g, c, m, devices, schedule);
    Bytes *none = alloc(sizeof *none * (size_t)devices);
    for (int d = 0; d < devices; d++)
        none[d] = INT64_MAX / 2;
    if (p->step == 0 || order(free) || part(free, none))
        return NULL;
    p->m = m;
    p->bound = free->bound;
    p->space = free->space;
    return p;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

typedef struct { const Options *x; const Model *m; Plan *best, *failed; } Search;

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

static void try_plan(Search *s, const Graph *g, const Cost *c, int devices, const char *schedule)
{
    Plan *p = plan_once(s->x, g, c, s->m, devices, schedule), *full = NULL;
    if (p->step == 0 && s->m->plan.recompute == RECOMPUTE_AUTO)
        full = plan_full(s->x, g, c, s->m, devices, schedule);
    if (full)
        p = full;
    if (p->step > 0)
        dump_plan(s->x, p, 'a');
    if (p->step == 0)
        s->failed = p;
    else if (!s->best || better(p, s->best))
        s->best = p;
}

static void try_graph(Search *s, const Model *m)
{
    const Graph *g = graph_of(s->x, m);
    const Cost *c = cost(g, m, s->x->profile);
    check_cost(g, c);
    bool any = !strcmp(m->plan.schedule, "auto");
    for (int devices = m->plan.stages_min; devices <= m->plan.stages_max; devices++)
        for (const Schedule *k = schedules; k->name; k++)
            if (any || !strcmp(m->plan.schedule, k->name))
                try_plan(s, g, c, devices, k->name);
}

/* The best plan of all candidates; failed is set when there is none. */
static Plan *search(const Options *x, const Model *m, Plan **failed)
{
    Search s = {.x = x, .m = m};
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
    *failed = s.failed;
    return s.best;
}

typedef struct { const Options *x; const Model *m; Plan *best, *failed; } Trial;

static void try_search(void *ctx)
{
    Trial *t = ctx;
    t->best = search(t->x, t->m, &t->failed);
}

/* What nofit() calls back: would this variant of the model fit?  It may be no model at all: with a smaller micro-batch the
 * shapes of one that says 4 where it means B no longer agree. */
static bool would_fit(void *ctx, const Model *m, Bytes *need)
{
    Options quiet = {.profile = ((const Options *)ctx)->profile};
    Trial t = {&quiet, m, NULL, NULL};
    bool model = diag_accepts(try_search, &t);
    *need = model && !t.best && t.failed ? t.failed->nofit_need : 0;
    return model && t.best;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

static int check_model(const Options *x, const Model *m)
{
    const Graph *g = graph_of(x, m);
    if (!x->dump)
        graph_totals(stdout, g);
    return 0;
}

static void print_table(const Plan *p)
{
    printf("%s: %s, %d stage(s), %" PRId64 " micro-batches of %" PRId64 "; predicted step %.3f ms (%s)\n", p->g->name,
           p->schedule, p->devices, p->g->micro, p->g->batch, (double)p->step / 1e6, p->c->measured ? "measured" : "estimated");
    printf("  %5s  %9s  %-40s  %-11s  %-11s  %-6s  %-11s  %s\n",
           "stage", "operators", "first .. last", "arena", "bound", "gap", "limit", "busy");
    for (int d = 0; d < p->devices; d++) {
        int n = 0;
        for (int o = 0; o < p->g->nf; o++)
            n += device_of(p, o) == d;
        const DevicePlan *x = &p->dev.at[d];
        printf("  %5d  %9d  %-40s  %-11s  %-11s  %4.1f %%  %-11s  %5.1f %%\n", d, n,
               covers_text(p, d), size_text(x->arena), size_text(x->bound),
               100.0 * (double)(x->arena - x->bound) / (double)x->bound, size_text(x->limit),
               p->step ? 100.0 * (double)x->busy / (double)p->step : 0.0);
    }
    printf("  longest stage at least %.3f ms a micro-batch (%s)\n", (double)p->bound / 1e6, p->space ? p->space : "");
}

static Plan *plan_or_stop(const Options *x, const Model *m)
{
    if (is_plan(x->from))
        return plan_from(x, m);
    Plan *failed = NULL, *p = search(x, m, &failed);
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
        print_table(p);
    return 0;
}

static int generate(const Options *x, const Model *m)
{
    const Device *d = &m->devices.at[0];
    if (!strcmp(d->kind, "cuda"))
        err(d->loc, "kind: cpu, or --pace", "devices of kind cuda can be planned for, and not yet generated");
    if (!m->data.format && !x->dump && strcmp(d->kind, "paced"))
        fail(EXIT_MODEL, "%s has no section data: there is nothing to train on", m->path);
    const Plan *p = plan_or_stop(x, m);
    if (x->dump)
        return 0;
    emit(p, x->out, x->prefix ? x->prefix : "train");
    print_table(p);
    printf("wrote %s: make -C %s\n", x->out, x->out);
    return 0;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char usage[] =
    "dpgen MODEL.yaml -o DIR     plan the training job and write it to DIR as C\n"
    "dpgen check MODEL.yaml      operators, parameters, bytes, FLOP\n"
    "dpgen plan MODEL.yaml       the plan as a table; --json as data\n"
    "\n"
    "  -o DIR                    where to write; appears whole or not at all\n"
    "  -D NAME=VALUE             override a dim of the model\n"
    "  --set PATH=VALUE          override any scalar, such as train.steps=100\n"
    "  --stages N                plan.stages\n"
    "  --schedule NAME           plan.schedule: gpipe, 1f1b or auto\n"
    "  --recompute WHAT          plan.recompute: none, full or auto\n"
    "  --limit BYTES             devices.*.memory, such as 8GiB\n"
    "  --cuts A,B,...            last forward operator of each chunk but the last, counted from 0\n"
    "  --map A,B,...             the device of each chunk, such as 0,1,1,0\n"
    "  --devices FILE            devices, links and hosts, instead of the model's own; devices/ has some\n"
    "  --pace                    devices that wait for their planned time instead of computing: a dry run\n"
    "  --prefix NAME             an object with NAME_main() instead of a program\n"
    "  --profile FILE            measured times\n"
    "  --estimate                times by the roofline of the devices' descriptions\n"
    "  --from FILE               start from a graph (-d f) or a plan (-d a) in text form\n"
    "  -d LETTERS                print the state after these passes and write nothing; -d ? lists them\n"
    "  --help, --version\n"
    "\n"
    "status: 0 done, 1 failed, 2 usage, 3 the model is wrong, 4 no plan fits, 5 stale profile, 70 a bug in dpgen\n";

static NORETURN void misuse(const char *form, const char *what)
{
    fprintf(stderr, "dpgen: ");
    fprintf(stderr, form, what);
    fprintf(stderr, "\ntry: dpgen --help\n");
    exit(EXIT_USAGE);
}

static void list_dumps(void)
{
    for (int i = 0; i < NDUMP; i++)
        printf("%c  %-6s %s\n", dumps[i].letter, dumps[i].pass, dumps[i].what);
    exit(0);
}

static void take_option(Options *x, const char *option, const char *value)
{
    struct { const char *option; const char **to; } texts[] = {
        {"-o", &x->out}, {"--from", &x->from}, {"-d", &x->dump}, {"--profile", &x->profile}, {"--prefix", &x->prefix},
        {"--devices", &x->devices}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(option, texts[i].option)) {
            *texts[i].to = value;
            return;
        }
    if (!strcmp(option, "-D"))
        *PUSH(&x->over.define) = value;
    else if (!strcmp(option, "--set"))
        *PUSH(&x->over.set) = value;
    else if (override_path(option))
        *PUSH(&x->over.set) = strf("%s=%s", option, value);
    else
        misuse("unknown option %s", option);
    if (!value || !*value || (value[0] == '-' && value[1]))     /* what begins with - is the next option */
        misuse("%s needs a value", option);
}

static bool is_verb(const char *word)
{
    return !strcmp(word, "check") || !strcmp(word, "plan");
}

static void check_verb(const char *word)
{
    static const char *const later[] = {"profile", "compare", "explain", "schedules", "pack"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (!strcmp(word, later[i]))
            misuse("the command %s is not built yet; a file of that name is written ./NAME", word);
}

/* An option that a command would ignore is a mistake in the command line. */
static void check_ignored(const Options *x)
{
    bool check = x->verb && !strcmp(x->verb, "check");
    const char *verb = x->verb ? x->verb : "MODEL.yaml";
    const struct { const char *option; bool given, taken; } uses[] = {
        {"-o", x->out, !x->verb}, {"--prefix", x->prefix, !x->verb}, {"--json", x->json, x->verb && !check && !x->dump},
        {"--profile", x->profile, !check && !x->estimate}, {"--estimate", x->estimate, !check}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (uses[i].given && !uses[i].taken)
            misuse(strf("dpgen %s has no use for %%s%s%s", verb, x->dump ? " with -d" : "",
                        x->estimate ? " with --estimate" : ""), uses[i].option);
}

static void check_options(const Options *x)
{
    for (const char *c = x->dump; c && *c; c++) {
        bool known = false;
        for (int i = 0; i < NDUMP; i++)
            known |= dumps[i].letter == *c;
        if (!known)
            misuse("-d %s: there is no such pass; -d ? lists them", x->dump);
    }
    if (!x->file)
        misuse("%s", "no model file");
    check_ignored(x);
    if (!x->verb && !x->out && !x->dump)
        misuse("where to? dpgen %s -o DIR", x->file);
    for (const char *c = x->prefix; c && *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", *c) || strchr("0123456789", *x->prefix))
            misuse("--prefix %s is not a C identifier", x->prefix);
}

static Options options(int argc, char **argv)
{
    Options x = {0};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        if (!strcmp(word, "--version")) {
            printf("dpgen %s\n", DPGEN_VERSION);
            exit(0);
        }
        if (!strcmp(word, "-d") && i + 1 < argc && !strcmp(argv[i + 1], "?"))
            list_dumps();
        if (!strcmp(word, "--json"))
            x.json = true;
        else if (!strcmp(word, "--estimate"))
            x.estimate = true;
        else if (!strcmp(word, "--pace"))
            x.pace = true;
        else if (word[0] == '-' && word[1])
            take_option(&x, word, ++i < argc ? argv[i] : NULL);
        else if (!x.verb && !x.file && is_verb(word))
            x.verb = word;
        else if (!x.file)
            check_verb(x.file = word);
        else
            misuse("one model file at a time: what is %s?", word);
    }
    check_options(&x);
    return x;
}

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

int main(int argc, char **argv)
{
    atexit(mem_free_all);
    Options x = options(argc, argv);
    Node *root = load(x.file);
    if (x.devices)
        override_devices(root, x.devices);
    Model *m = model(root, x.file, &x.over);
    bad_stop();
    pace(m, x.pace);
    if (x.verb && !strcmp(x.verb, "check"))
        return check_model(&x, m);
    if (x.verb)
        return plan_model(&x, m);
    return generate(&x, m);
}
