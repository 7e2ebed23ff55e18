/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.c: a profile, measured: the benchmark of a model is written, built, run, read and removed.
 *
 *   needs   Model whose devices are processors, or GPUs, of one sort, a place to write beside the profile
 *   fills   Profile, sorted and signed
 *   fails   status 6 where this machine cannot build or run the kernels, 1 where the benchmark ends badly, and then with the
 *           call that was being timed
 *
 * The folder is that of a job of one stage, made by the same code and so with the same Makefile; only what stands in
 * stage0.c and launch.c differs.  Micro-batches: time is measured at three of them or more, so that the sizes between can be
 * interpolated; three because a straight line through two would hide that it is none.
 *
 * GPUs: dpgen itself knows nothing of them; the benchmark says first what the profile is to be signed with.
 *
 * Cost: the build, a few seconds; then per row and column about twelve repetitions of a millisecond, or of one call.  On a
 * processor all of them share a minute, and a call that takes its whole share runs once.
 */
#include "calls.h"
#include "emit/emit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZES = 3, LARGE = 16 };     /* micro: auto is measured at 1, 4, 16, and at 1, 2, 4 where a step has fewer samples */

typedef struct {
    Profile *p;
    const Bench *b;
    const char *at;             /* what is being measured */
    int64_t gpus;               /* that the benchmark sees */
} ProfileReader;

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const char *folder;      /* FILE.bench: whoever has it locked measures, and removes it at the end */
static int held;

void profile_end(void)
{
    if (folder)
        out_remove(folder);
    if (folder)
        close(held);
    folder = NULL;
}

/* Locked, and the one that has its name still; -1: it went in between. */
static int lock_folder(const char *dir, bool *waited)
{
    struct stat is, named;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        fail(EXIT_RUN, "cannot open the folder %s: %s", dir, strerror(errno));
    bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (busy && !*waited)
        fprintf(stderr, "dpgen: another dpgen measures in %s: waiting for its end\n", quote_terminal(dir));
    *waited |= busy;
    if (busy)
        flock(fd, LOCK_EX);
    if (fd >= 0 && fstat(fd, &is) == 0 && stat(dir, &named) == 0 && is.st_ino == named.st_ino && is.st_dev == named.st_dev)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

void profile_begin(const char *file)
{
    const char *dir = strf("%s.bench", file), *mark = strf("%s/MANIFEST", dir);
    bool waited = false;
    do {
        if (mkdir(dir, 0777) != 0 && errno != EEXIST)
            fail(EXIT_RUN, "cannot make the folder %s: %s", dir, strerror(errno));
        held = lock_folder(dir, &waited);
    } while (held < 0);
    out_check(dir);
    out_remove(strf("%s/job", dir));                    /* of a run that was killed */
    int fd = open(mark, O_WRONLY | O_CREAT, 0666);      /* the next run knows by it whose folder it is, if this one is killed */
    if (fd >= 0)
        close(fd);
    folder = dir;
    atexit(profile_end);
}

static void copy_template(Out *o, const char *from, const char *to)
{
    const Embedded *e = embedded_find(from);
    if (!e)
        die("no template %s", from);
    out_copy(o, to, e->data, e->n);
}

/* The Makefile asks a plan for names and files: one of one stage without an arena will do, of a graph with every call. */
static void write_folder(const Bench *b, const char *dir)
{
    static const char unmade[] = "a benchmark";
    Graph all = *b->call.at[0].g;
    memset(&all.op, 0, sizeof all.op);
    for (int k = 0; k < b->call.n; k++)
        *PUSH(&all.op) = *b->call.at[k].o;
    Plan p = {.g = &all, .m = b->m, .devices = 1, .schedule = unmade, .key = unmade};
    *PUSH(&p.dev) = (DevicePlan){0};
    Out *o = out_begin(dir);
    bench_print(out_open(o, "stage0.c"), b);
    out_close(o);
    copy_template(o, on_gpus(b->m) ? "templates/bench_cuda.c" : "templates/bench.c", "launch.c");
    copy_template(o, "templates/bench.h", "bench.h");
    copy_template(o, "templates/bench_shared.h", "bench_shared.h");
    emit_build(o, &p, "train");
    out_end(o);
}

/* A profile is whole or is not written; the folder goes at exit. */
static void stop_if_asked(void)
{
    if (busy_stopped())
        fail(EXIT_STOPPED, "interrupted: no profile was written");
}

static void take_nothing(void *ctx, char *line)
{
    (void)ctx, (void)line;
}

/* What to do where nothing can be measured. */
static const char *otherwise(const Model *m)
{
    return on_gpus(m) ? "times can be estimated: --estimate, or come from a machine that has such a GPU: --profile FILE"
                         : "times can be estimated: --estimate";
}

/* ---- the results ------------------------------------------------------------------------------------------------- */

static const char *name_of(const Bench *b, const char *what, int64_t number)
{
    if (!strcmp(what, "op"))
        return number >= 0 && number < b->call.n ? strf("op %s", b->call.at[number].signature) : NULL;
    return strf("%s %s=%" PRId64, what, strcmp(what, "compute") ? "bytes" : "batch", number);
}

/* `algorithm ROW PART` and the numbers of it.  What was chosen when the profile was made stays when rows are added. */
static void take_algorithm(ProfileReader *r, const char *line)
{
    Algorithm a = {0};
    int64_t v[2 + ALGORITHM_NUMBERS];
    for (int i = 0; i < 2 + ALGORITHM_NUMBERS; i++) {
        char *end;
        v[i] = strtoll(line, &end, 10);
        if (end == line)
            return;
        line = end;
    }
    if (v[0] < 0 || v[0] >= r->b->call.n)
        return;
    a.what = strf("algorithm %s part=%" PRId64, r->b->call.at[v[0]].signature, v[1]);
    memcpy(a.number, v + 2, sizeof a.number);
    if (INDEX_OF(r->p->algorithm.at, r->p->algorithm.n, a.what) < 0)
        *PUSH(&r->p->algorithm) = a;
}

/* `at DONE OF WHAT NUMBER`, or `WHAT NUMBER ALONE QUARTILES BUSY QUARTILES`. */
static void take_line(void *ctx, char *line)
{
    ProfileReader *r = ctx;
    char what[16];
    long number, done, of, ns[4];
    if (!strncmp(line, "sign ", 5)) {
        line += 5;
        size_t n = strcspn(line, " ");
        if (!strncmp(line, "gpus ", 5))
            r->gpus = strtol(line + 5, NULL, 10);
        else if (line[n] && line[n + 1])
            profile_sign_by(r->p, strf("%.*s", (int)n, line), strf("%s", line + n + 1));
        return;
    }
    if (!strncmp(line, "algorithm ", 10)) {
        take_algorithm(r, line + 10);
        return;
    }
    if (sscanf(line, "at %ld %ld %15s %ld", &done, &of, what, &number) == 4) {
        r->at = name_of(r->b, what, number);
        busy_at(", %ld of %ld", done, of);
        return;
    }
    if (sscanf(line, "%15s %ld %ld %ld %ld %ld", what, &number, &ns[0], &ns[1], &ns[2], &ns[3]) != 6)
        return;
    const char *name = name_of(r->b, what, number);
    if (name && INDEX_OF(r->p->measured.at, r->p->measured.n, name) < 0)
        *PUSH(&r->p->measured) = (Measured){name, {ns[0], ns[1]}, {ns[2], ns[3]}};
}

/* The kernels were compiled for another CPU: isa of the device file, which a plan fixes where bits depend on it. */
static const char *other_isa(const Model *m, int status)
{
    const char *asked = m->devices.at[0].isa, *here = machine_isa();
    bool other = asked && here && strcmp(asked, here) && strcmp(asked, "native") && !on_gpus(m);
    if (!other || (status != EXIT_MACHINE && status != 128 + SIGILL))
        return "";
    return strf("; kernels were compiled for isa %s, this machine has %s: --set devices.0.isa=%s", asked, here, here);
}

static void run_bench(ProfileReader *r, const char *dir, const char *const *argv)
{
    const char *log = strf("%s/run.log", dir);
    r->at = NULL;
    int status = process_run(argv, log, take_line, r);
    stop_if_asked();
    if (status == 0)
        return;
    const char *text = process_last(log);
    const char *cause = status > 128 ? strf("it ended with signal %d (%s)", status - 128, strsignal(status - 128))
        : *text ? text : strf("it ended with status %d", status);
    const char *isa = other_isa(r->b->m, status);
    fail(status == EXIT_MACHINE || *isa ? EXIT_MACHINE : EXIT_RUN, "the benchmark failed%s%s: %s%s; %s", r->at ? " at " : "",
         r->at ? r->at : "", cause, isa, otherwise(r->b->m));
}

/* Messages need two stages; those of MPI two ranks, those of NCCL two GPUs. */
static bool can_talk(const ProfileReader *r)
{
    bool gpus = transport_of(r->b->m)->gpus;
    if (r->b->stages > 1 && gpus && r->gpus < 2)
        fprintf(stderr, "dpgen: there is one GPU here, and NCCL wants one for each stage: messages keep their estimate\n");
    return r->b->stages > 1 && (!gpus || r->gpus > 1);
}

/* Rows of the graphs that p has not yet, measured in a folder beside `file`. */
static void add_rows(Profile *p, const Model *m, const Graph *const *g, int n, const Graph *mix, const char *file, bool few)
{
    const char *dir = strf("%s.bench/job", file);
    ProfileReader r = {.p = p, .b = bench_of(m, g, n, mix)};
    const Fit *fit = few ? fit_of(r.b) : NULL;
    if (fit)
        r.b = &fit->few;
    /* The CUDA runtime opens the driver by this name; without one, kernels would be compiled to hear of it a minute later. */
    void *driver = on_gpus(m) ? dlopen("libcuda.so.1", RTLD_LAZY) : NULL;
    if (driver)
        dlclose(driver);
    else if (on_gpus(m))
        fail(EXIT_MACHINE, "there is no NVIDIA driver here: %s; %s", dlerror(), otherwise(m));
    write_folder(r.b, dir);
    busy_heeds(true);
    busy_with("building the calls of the model");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *jobs = strf("-j%ld", cores > 0 ? cores : 1), *log = strf("%s/build.log", dir);
    const char *argv[] = {"make", "-s", "-C", dir, jobs, NULL};
    int status = process_run(argv, log, take_nothing, NULL);
    stop_if_asked();
    if (status != 0)
        fail(EXIT_MACHINE, "the kernels cannot be built here (make ended with %d): %s; %s", status, process_last(log),
             otherwise(m));
    busy_with("measuring");
    const char *program = strf("%s/train", dir);
    if (*program != '/')
        program = strf("./%s", program);
    const char *kernels[] = {program, "kernels", NULL}, *local[] = {program, "messages", NULL};
    const char *sign[] = {program, "sign", NULL};
    const char *ranks[] = {"mpirun", "-n", "2", "--oversubscribe", geteuid() ? program : "--allow-run-as-root",
        geteuid() ? "messages" : program, geteuid() ? NULL : "messages", NULL};
    if (on_gpus(r.b->m))
        run_bench(&r, dir, sign);
    run_bench(&r, dir, kernels);
    if (can_talk(&r))
        run_bench(&r, dir, transport_of(r.b->m)->cpus ? ranks : local);
    busy_end();
    busy_heeds(false);
    out_remove(dir);
    for (int i = 0; i < r.b->call.n; i++)
        if (INDEX_OF(p->measured.at, p->measured.n, name_of(r.b, "op", i)) < 0)
            fail(EXIT_RUN, "the benchmark said nothing about %s", r.b->call.at[i].signature);
    if (fit)
        fit_fill(fit, p);
    profile_signed(p);
    profile_sort(p);
}

/* ---- what others call -------------------------------------------------------------------------------------------- */

typedef VEC(const Graph *) Graphs;

/* With nothing joined, and in every other form: options may ask for any, by --fuse or by a name in a list of the section plan.
 * The same for each number of devices of a stage that the model leaves open.  write_folder() goes by all.  Returns the model's
 * own, or as auto has it; NULL: shapes that hold for other sizes alone. */
static const Graph *take_graphs(Graphs *list, const Model *m, int64_t batch)
{
    const Models teams = team_models(m);
    const Graph *graph = profile_graph_at(teams.at[0], batch);
    for (int t = 0; t < teams.n && graph; t++) {
        const Model *form[FORMS];
        Model open = *teams.at[t];
        open.plan.fuse = FUSE_FASTEST;
        for (int k = 0, n = fuse_forms(&open, form); k < n; k++) {
            const Graph *g = profile_graph_at(form[k == FUSE_AUTO ? FUSE_NONE : k == FUSE_NONE ? FUSE_AUTO : k], batch);
            if (g || t == 0)                /* some models cannot be divided */
                *PUSH(list) = g;
        }
    }
    return graph;
}

Profile *profile_measure(const Model *m, const char *file, bool few)
{
    /* It is renamed into place, which would put a plain file where a device stood. */
    struct stat is;
    if (stat(file, &is) == 0 && !S_ISREG(is.st_mode))
        fail(EXIT_RUN, "%s is no plain file: a profile cannot take its place", file);
    Profile *p = alloc(sizeof *p);
    /* The one of the model, half and twice as much; or what `auto` may choose. */
    Ints list = {0};
    int64_t b = m->train.batch;
    int64_t first = b > 1 ? b / 2 : 1, step = b > 0 || m->train.global < LARGE ? 2 : 4;
    for (int i = 0; i < SIZES; i++, first *= step)
        *PUSH(&list) = (int)first;
    if (b > 1 && list.at[1] != b)                   /* odd */
        list.at[1] = (int)b, list.at[2] = (int)b * 2;
    Ints want = list;
    Graphs g = {0}, at_batch = {0};
    profile_sign(p, m, true);
    for (int i = 0; i < want.n; i++) {
        const Graph *one = take_graphs(&g, m, want.at[i]);
        if (one) {
            *PUSH(&at_batch) = one;
            *PUSH(&p->batch) = want.at[i];
        }
    }
    if (!g.n)
        fail(EXIT_MODEL, "%s cannot be built with micro-batches of %d", m->path, want.at[0]);
    add_rows(p, m, g.at, g.n, at_batch.at[at_batch.n / 2], file, few);
    p->path = file;
    profile_graphs(p, m);
    return p;
}

void profile_measure_more(Profile *p, const Model *m, int64_t batch, const char *file)
{
    Graphs g = {0};
    const Graph *at_batch = take_graphs(&g, m, batch);
    if (!at_batch)
        die("no graph of the micro-batch that was planned");
    add_rows(p, m, g.at, g.n, at_batch, file, false);
    int i = p->batch.n;
    *PUSH(&p->batch) = (int)batch;
    for (; i > 0 && p->batch.at[i - 1] > batch; i--)
        p->batch.at[i] = p->batch.at[i - 1];
    p->batch.at[i] = (int)batch;
    p->graph.n = 0;
    profile_graphs(p, m);
}

const char *profile_cannot(const Model *m)
{
    const Device *a = &m->devices.at[0];
    if (target_of(a)->paced)
        return strf("devices of kind %s are not this machine", a->kind);
    if (m->train.tf32 || m->train.fp8)
        return strf("products in %s have no times but estimates yet", compute_word(&m->train));
    if (!library_of(a)->anywhere && m->train.blocks != m->plan.tensor)
        return strf("%s kernels add up one block of each sum", a->kernels);
    for (int d = 1; d < m->devices.n; d++)
        if (m->devices.at[d].threads != a->threads)
            return strf("%s has %d threads and %s %d, and a profile is of one number of threads", a->name, a->threads,
                        m->devices.at[d].name, m->devices.at[d].threads);
    return NULL;
}

void profile_write(const Profile *f, const char *file)
{
    FILE *to = file_begin(file);
    profile_print(to, f);
    file_end(to, file);
}
