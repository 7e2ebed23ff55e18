/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.c: the program `serve`: samples through the stages of a job of plan.mode infer, and results out.
 *
 * A step of the job is a list of micro-batches.  Stages run it again and again without meeting each other, so the pipeline
 * stays full.  They meet between rounds alone.  A round is a whole file, or what standard input has: at least one sample, and
 * what else has come by then, up to ROUND bytes.  So a slow writer has each answer at once, and a fast one full micro-batches.
 * The places of a step that no sample fills have samples of the round again, and their results go nowhere.
 *
 * Inputs are NumPy files, which standard input may have too, or plain numbers as the model file declares them: f32, i32 or u8,
 * little endian, sample behind sample.  Results are f32 likewise.  An output stands on one stage, whose first device
 * writes it in the order of samples.
 *
 * Latency is that of a round's first micro-batch, from the meeting to its result: the pipeline is empty then.  Throughput is
 * that of the micro-batches behind it.
 *
 * Not handled: standard input for several inputs, or for a stage of another process than the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "apart.h"
#include "ckpt.h"
#include "data.h"
#include "link.h"
#include "little.h"
#include "options.h"
#include "real.h"
#include "weights.h"

const char program_name[] = "serve";

enum { MOST_NAMES = 16, ROUND = 4 << 20, CHUNK = 4096, MOST_HEAD = 1 << 16 };
static const char magic[] = "\x93NUMPY";

typedef struct {
    const char **in, **out, *weights;
    long watchdog;
    bool untrained, quiet;
} Asked;

typedef struct { int file; bool named; char beside[PART_PATH]; } Out;     /* file -1: not open */

typedef struct Serve {
    Asked ask;
    const char *from[MOST_NAMES], *to[MOST_NAMES];      /* by input, by output: paths; NULL: standard input or output */
    DataInfo info;              /* as a data set of the inputs that are read */
    const char *role[MOST_NAMES];
    int input[MOST_NAMES];
    DataFile file[MOST_NAMES];
    int files;                  /* that are mapped */
    bool stream, ended;         /* standard input; it has come to its end */
    unsigned char *room;        /* samples of a round, and the begin of the next one */
    size_t each, held;          /* bytes of a sample; there, behind those of the round */
    bool counted;               /* its header says how many rows there are ... */
    int64_t promised;           /* ... so many */
    size_t coming;              /* and so many bytes are still to come */
    int64_t rows, most;         /* samples: of the files; of a round */
    Out out[MOST_NAMES];
    double *begun;              /* by stage: when its round began */
    double first, least, sum;   /* of output 0: the round's first result; the least latency; seconds behind first results */
    int64_t samples, behind;    /* written; micro-batches behind first results */
    int64_t served;             /* of standard input, by the stage that reads it */
    char path[CKPT_PATH];       /* of the weights */
} Serve;

static const JobOption table[] = {
    {"--in", "[NAME=]FILE...", INPUTS, offsetof(Asked, in), "of each input a file, .npy or plain; default: standard input"},
    {"--out", "[NAME=]FILE...", INPUTS, offsetof(Asked, out), "of each output a file for its f32; default: standard output"},
    {"--weights", "PATH", INPUT, offsetof(Asked, weights), "a safetensors file, a checkpoint, or the newest in PATH"},
    {"--untrained", NULL, FLAG, offsetof(Asked, untrained), "start values in place of weights, to measure"},
    {"--watchdog", "SECONDS", NUMBER, offsetof(Asked, watchdog), "end after such a silence; 0 never, which is the default"},
    {"--quiet", NULL, FLAG, offsetof(Asked, quiet), "no line about latency and throughput"},
    {.about = "Status: 0 done, 1 failed, 2 usage, 5 foreign or broken weights, 6 wrong machine.\n"}
};

/* ---- results -------------------------------------------------------------------------------------------------------- */

static void write_numbers(Worker *w, Out *o, const float *at, size_t n)
{
    if (!little_floats(at, n * sizeof *at, write_piece, &o->file))
        quit(w->run->link, STATUS_RUN, "%s: cannot write results: %s", o->named ? o->beside : "standard output",
             strerror(errno));
}

static void note_times(Serve *s, int stage, bool first)
{
    double now = seconds();
    if (first) {
        double latency = now - s->begun[stage];
        s->least = s->least == 0 || latency < s->least ? latency : s->least;
        s->first = now;
        return;
    }
    s->sum += now - s->first;
    s->first = now;
    s->behind++;
}

/* Of a stage, in its thread. */
static void leave(Stage *st, const real *x, const Values *vals, int mb, int output, long n)
{
    Worker *w = st->worker;
    Serve *s = w->run->serve;
    if (st->shard > 0)          /* every device of the stage has it */
        return;
    float wide[CHUNK];
    int64_t first = (vals->step + mb) * vals->batch, left = w->done - first;
    long per = n / vals->batch, valid = left > vals->batch ? n : left > 0 ? (long)left * per : 0;
    for (long i = 0; i < valid; i += CHUNK) {
        long k = valid - i < CHUNK ? valid - i : CHUNK;
        for (long j = 0; j < k; j++)
            wide[j] = get(x, i + j);
        write_numbers(w, &s->out[output], wide, (size_t)k);
    }
    if (output == 0 && valid > 0)
        note_times(s, st->index, first == 0);
    if (output == 0)
        s->samples += valid / per;
}

/* ---- rounds --------------------------------------------------------------------------------------------------------- */

typedef struct { int64_t samples; int status; } Round;

static bool more_now(void)
{
    struct pollfd p = {STDIN_FILENO, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
}

/* At least one sample, unless the input ends; what is behind the last whole one waits. */
static Round read_round(Serve *s, int64_t before)
{
    size_t used = (size_t)before * s->each, room = (size_t)s->most * s->each;
    memmove(s->room, s->room + used, s->held - used);
    s->held -= used;
    while (!s->ended && s->held < room && (s->held < s->each || more_now())) {
        size_t most = s->counted && s->coming < room - s->held ? s->coming : room - s->held;
        ssize_t n = most > 0 ? read(STDIN_FILENO, s->room + s->held, most) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return (Round){0, complain(STATUS_RUN, "standard input: %s", strerror(errno))};
        s->ended = n == 0;
        s->held += (size_t)n;
        s->coming -= s->counted ? (size_t)n : 0;
    }
    int64_t whole = (int64_t)(s->held / s->each);
    s->served += before;
    if (whole > 0)
        return (Round){whole, DONE};
    if (s->held > 0)
        return (Round){0, complain(STATUS_RUN, "standard input ends inside of a sample: it has %zu of its %zu bytes, behind "
                                   "%lld whole ones; a sample of this job is %zu bytes", s->held, s->each,
                                   (long long)s->served, s->each)};
    char more;
    if (s->counted && s->coming > 0)
        return (Round){0, complain(STATUS_RUN, "standard input ends behind row %lld of the %lld that its header has",
                                   (long long)s->served, (long long)s->promised)};
    if (s->counted && read(STDIN_FILENO, &more, 1) > 0)
        return (Round){0, complain(STATUS_RUN, "standard input is too long: more stands behind its %lld rows",
                                   (long long)s->promised)};
    return (Round){0, DONE};
}

static Round next_round(Run *run, int64_t before)
{
    Serve *s = run->serve;
    if (!s->stream)
        return (Round){before == 0 ? s->rows : 0, DONE};
    Round r = read_round(s, before);
    if (r.samples > 0)
        data_rows_are(run->loader, r.samples);
    return r;
}

static void tell(const Run *run)
{
    const Serve *s = run->serve;
    const Job *job = run->job;
    double rate = s->sum > 0 ? (double)(s->behind * job->batch) / s->sum : 0;
    double planned = job->period_ns > 0 ? (double)job->batch * 1e9 / (double)job->period_ns : 0;
    if (!s->ask.quiet && s->samples > 0)
        complain(DONE, "%lld samples; %.4g samples/s, predicted %.4g; latency of a micro-batch of %ld %.3f ms, predicted "
                 "%.3f ms", (long long)s->samples, rate, planned, job->batch, s->least * 1e3, (double)job->latency_ns / 1e6);
}

/* What is not whole does not get its name. */
static int results_close(Run *run, bool whole)
{
    Serve *s = run->serve;
    int status = DONE;
    for (int i = 0; i < MOST_NAMES && s; i++) {
        Out *o = &s->out[i];
        if (!o->named || o->file < 0)
            continue;
        if (whole && fsync(o->file) != 0 && errno != EINVAL)        /* a device */
            status = complain(STATUS_RUN, "%s: cannot write results: %s", o->beside, strerror(errno));
        int end = part_end(o->beside, s->to[i], whole && status == DONE ? DONE : STATUS_RUN);
        status = whole && end > status ? end : status;
        close(o->file);         /* and its lock goes */
        o->file = -1;
    }
    return status;
}

static void serve_stage(Worker *w)
{
    Run *run = w->run;
    Serve *s = run->serve;
    Stage *st = &w->stage;
    int64_t before = 0;
    int status = s->ask.untrained ? init_parameters(w) : DONE;
    machine_cores(w);
    w->eval = true;
    st->put = leave;
    w->status = worst(w, status);
    while (w->status == DONE) {
        Round mine = {0, DONE}, *all = w->board;
        if (st->index == 0)
            mine = next_round(run, before);
        link_share(st, &mine, all, sizeof mine);
        w->done = before = all[0].samples;
        w->status = all[0].status;
        if (before == 0)
            break;
        s->begun[st->index] = seconds();
        for (w->step = 0; w->step * run->job->batch < before; w->step += run->job->micro)
            w->info->step(st);
    }
    w->status = worst(w, w->status);
    if (w == run->worker && w->status == DONE)
        w->status = results_close(run, true);
    w->status = worst(w, w->status);
    if (w == run->worker && w->status == DONE)
        tell(run);
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */

static int refuse(const Run *run, const char *form, const char *a, const char *b)
{
    return run->main ? complain(STATUS_USAGE, form, a, b) : STATUS_USAGE;
}

static const char *name_at(const Job *job, bool in, int i)
{
    return in ? job->input[i].name : job->output[i].name;
}

static bool is_used(const Job *job, bool in, int i)
{
    return !in || job->loads[2 * i] >= 0;
}

/* NAME=FILE, or FILE where there is one.  -1: told. */
static int named(const Run *run, bool in, const char *word, const char **file)
{
    const Job *job = run->job;
    int n = in ? job->inputs : job->outputs, used = 0, only = -1;
    const char *equal = strchr(word, '=');
    for (int i = 0; i < n; i++) {
        size_t k = strlen(name_at(job, in, i));
        bool same = equal && (size_t)(equal - word) == k && !strncmp(word, name_at(job, in, i), k), is = is_used(job, in, i);
        used += is;
        only = is ? i : only;
        *file = equal + same;
        if (same && is)
            return i;
        if (same) {
            refuse(run, "--in %s: no output of this job depends on input `%s`; leave it out", word, name_at(job, in, i));
            return -1;
        }
    }
    *file = word;
    if (used == 1)
        return only;
    refuse(run, in ? "--in %s: this job reads several inputs, and the first is `%s`; write NAME=FILE of each"
           : "--out %s: this job has several outputs, and the first is `%s`; write NAME=FILE of each", word,
           name_at(job, in, 0));
    return -1;
}

static int read_names(const Run *run, bool in, const char **words, const char **path)
{
    for (int i = 0; words && words[i]; i++) {
        const char *file;
        int k = named(run, in, words[i], &file);
        if (k < 0)
            return STATUS_USAGE;
        if (path[k])
            return refuse(run, "%s is given two files", name_at(run->job, in, k), NULL);
        path[k] = file;
    }
    for (int i = 0; i < (in ? run->job->inputs : run->job->outputs); i++)
        if (path[i] && !strcmp(path[i], "-"))
            path[i] = NULL;
    return DONE;
}

/* A result would replace what is read, or another result.  Files of weights and samples are compared as they are mapped. */
static int check_names(const Run *run)
{
    const Serve *s = run->serve;
    char what[128], why[1024];
    bool apart = true;
    apart_clear();
    for (int i = 0; i < run->job->outputs && apart; i++) {
        snprintf(what, sizeof what, "output `%s`", name_at(run->job, false, i));
        apart = !s->to[i] || apart_note(what, s->to[i], true, why, sizeof why);
    }
    for (int i = 0; i < run->job->inputs && apart; i++)
        apart = !is_used(run->job, true, i) ||
                apart_note("samples", s->from[i] ? s->from[i] : "/dev/stdin", false, why, sizeof why);
    return apart ? DONE : refuse(run, "%s", why, NULL);
}

/* ---- samples -------------------------------------------------------------------------------------------------------- */

static size_t row_bytes(const InputInfo *in)
{
    return (size_t)in->per * (in->bytes ? 1 : 4);
}

static Element element_of(const InputInfo *in)
{
    return in->bytes ? DATA_U8 : in->type == JOB_I32 ? DATA_I32 : DATA_F32;
}

static bool is_npy(const DataFile *f)
{
    return f->size >= sizeof magic - 1 && !memcmp(f->at, magic, sizeof magic - 1);
}

static int open_file(Serve *s, const Run *run, int k, Array *array)
{
    const InputInfo *in = &run->job->input[s->input[k]];
    DataFile *f = &s->file[k];
    Source source = {.info = &s->info, .file = s->file, .array = array};
    int status = data_map(f, s->from[s->input[k]], "samples");
    s->files += status == DONE;
    if (status != DONE || is_npy(f))
        return status != DONE ? status : data_npy.open(&source, f);
    size_t row = row_bytes(in);
    if (f->size % row || f->size == 0)
        return complain(STATUS_RUN, "%s has %zu bytes, and a sample of input `%s` has %zu: %zu whole ones and %zu bytes more; "
                        "plain numbers are %s", f->path, f->size, in->name, row, f->size / row, f->size % row,
                        in->bytes ? "u8" : in->type == JOB_I32 ? "i32" : "f32");
    array[k] = (Array){f, 0, element_of(in), (int64_t)(f->size / row), in->per, 0};
    return DONE;
}

/* Up to `until` bytes of the begin of standard input; fewer where it ends. */
static size_t read_until(unsigned char *head, size_t have, size_t until)
{
    while (have < until) {
        ssize_t n = read(STDIN_FILENO, head + have, until - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return have;
}

/* The header of a NumPy file, if one is first; else what was read of the first numbers: a byte, as long as it could be one. */
static int read_head(Serve *s, unsigned char *head, size_t *have, Array *array)
{
    for (*have = 0; *have < sizeof magic - 1 && (*have == 0 || head[*have - 1] == (unsigned char)magic[*have - 1]);) {
        size_t now = read_until(head, *have, *have + 1);
        if (now == *have)
            break;
        *have = now;
    }
    if (*have < sizeof magic - 1 || memcmp(head, magic, sizeof magic - 1))
        return DONE;
    *have = read_until(head, *have, NPY_FIRST);
    size_t length = *have == NPY_FIRST ? npy_length(head) : 0;
    if (length > MOST_HEAD)
        return complain(STATUS_RUN, "standard input: a header of %zu bytes; %d are read", length, MOST_HEAD);
    *have = read_until(head, *have, length);
    DataFile f = {"standard input", head, *have + (*have == length)};
    int status = npy_head(&f, array);
    if (status != DONE)
        return status;
    if (array->per < 1 || array->rows < 1 || array->rows > INT64_MAX / 8 / array->per)
        return complain(STATUS_RUN, "standard input has %lld rows of %lld elements", (long long)array->rows,
                        (long long)array->per);
    s->counted = true;
    s->promised = array->rows;
    s->each = (size_t)array->per * data_width(array->kind);
    s->coming = (size_t)array->rows * s->each;
    *have = 0;
    return DONE;
}

static int open_stream(Serve *s, const Run *run, Array *array)
{
    unsigned char head[MOST_HEAD];
    size_t have = 0;
    const Job *job = run->job;
    const InputInfo *in = &job->input[s->input[0]];
    if (s->info.roles > 1)
        return refuse(run, "--in: standard input feeds a job of one input, and this one reads `%s` and others; write NAME=FILE "
                      "of each%s", in->name, "");
    int last = job->loads[2 * s->input[0] + 1] + (team_of(job) - 1) * firsts_of(job);
    if (run->main && last >= run->count)
        return refuse(run, "--in: input `%s` is read by %s, in a process that has no standard input; write --in FILE", in->name,
                      job->stage[last].name);
    int64_t step = job->batch * job->micro;
    s->stream = true;
    s->each = row_bytes(in);
    array[0] = (Array){.kind = element_of(in), .per = in->per};
    int status = run->main ? read_head(s, head, &have, array) : DONE;
    if (status != DONE)
        return status;
    s->most = ROUND / (int64_t)s->each / step * step;
    s->most = s->most < step ? step : s->most;
    if (run->main)
        s->room = malloc((size_t)s->most * s->each);
    if (run->main && !s->room)
        return complain(STATUS_RUN, "no memory for %lld samples", (long long)s->most);
    if (run->main)
        memcpy(s->room, head, have);
    s->held = have;
    s->file[0] = (DataFile){"standard input", s->room, (size_t)s->most * s->each};
    array[0] = (Array){&s->file[0], 0, array[0].kind, s->most, array[0].per, 0};
    return DONE;
}

static int samples_open(Run *run)
{
    Serve *s = run->serve;
    const Job *job = run->job;
    int status = DONE, named = 0;
    s->info = (DataInfo){.format = "npy", .role = s->role, .input = s->input, .sequential = 1};
    for (int i = 0; i < job->inputs; i++)
        if (is_used(job, true, i)) {
            s->role[s->info.roles] = job->input[i].name;
            s->input[s->info.roles++] = i;
            named += s->from[i] != NULL;
        }
    Array *array = calloc((size_t)s->info.roles + 1, sizeof *array);
    if (!array)
        return complain(STATUS_RUN, "no memory");
    if (named < s->info.roles)
        status = open_stream(s, run, array);
    for (int k = 0; k < s->info.roles && status == DONE && !s->stream; k++)
        status = open_file(s, run, k, array);
    if (status == DONE)
        run->loader = data_rows(job, &s->info, array, &status);
    else
        free(array);
    s->rows = array && status == DONE ? array[0].rows : 0;
    return status;
}

/* The process of the stage that has an output writes it; a stage tells the others by its first result alone, so all open. */
static int results_open(Run *run)
{
    Serve *s = run->serve;
    const Job *job = run->job;
    int plain = 0;
    for (int i = 0; i < job->outputs; i++)
        plain += !s->to[i];
    if (plain > 1)
        return refuse(run, "--out: standard output has room for one output, and this job has `%s` and others; write NAME=FILE "
                      "of each%s", job->output[0].name, "");
    for (int i = 0; i < job->outputs; i++) {
        Out *o = &s->out[i];
        bool here = job->output[i].stage >= run->first && job->output[i].stage < run->first + run->count;
        o->file = here ? STDOUT_FILENO : -1;
        o->named = here && s->to[i];
        if (!o->named)
            continue;
        part_name(o->beside, s->to[i]);
        o->file = part_lock(o->beside, false);
        if (o->file < 0)
            return complain(STATUS_RUN, "%s: cannot write results: %s", o->beside, errno != EWOULDBLOCK ? strerror(errno)
                            : "another serve or output writes them; wait for its end, or name another file");
    }
    return DONE;
}

/* ---- the program ---------------------------------------------------------------------------------------------------- */

static int serve_options(Run *run, char **argv)
{
    Serve *s = run->serve = calloc(1, sizeof *s);
    const Job *job = run->job;
    if (!s)
        return complain(STATUS_RUN, "no memory");
    for (int i = 0; i < MOST_NAMES; i++)
        s->out[i].file = -1;
    s->ask.weights = job->ckpt_dir;
    int status = options_table(table, &s->ask, argv, run->main);
    if (status >= 0)
        return status;
    run->opt = (Options){.steps = 1, .quiet = true, .watchdog = s->ask.watchdog};
    if (s->ask.untrained && s->ask.weights != job->ckpt_dir)
        return refuse(run, "--untrained and --weights exclude each other", NULL, NULL);
    status = read_names(run, true, s->ask.in, s->from);
    if (status == DONE)
        status = read_names(run, false, s->ask.out, s->to);
    if (status == DONE)
        status = check_names(run);
    return status == DONE ? -1 : status;
}

static int serve_prepare(Run *run)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    Serve *s = run->serve;
    int status = machine_check(run);
    for (int i = 0; i < 3; i++)         /* there is nothing to be saved */
        signal(ends[i], SIG_DFL);
    s->begun = calloc((size_t)run->job->stages, sizeof *s->begun);
    if (status == DONE && !s->begun)
        status = complain(STATUS_RUN, "no memory");
    if (status == DONE)
        status = samples_open(run);
    if (status == DONE)
        status = results_open(run);
    if (status == DONE)
        status = prepare_workers(run);
    if (status == DONE && !s->ask.untrained)
        status = weights_find(run, s->ask.weights, s->path);
    if (status == DONE)
        status = start_values(run);
    return status;
}

static void serve_close(Run *run)
{
    Serve *s = run->serve;
    results_close(run, false);
    for (int i = 0; s && i < s->files; i++)
        data_unmap(&s->file[i]);
    if (s) {
        free(s->room);
        free(s->begun);
        free(s->ask.in);
        free(s->ask.out);
    }
    free(s);
}

int job_serve(const Job *job, int argc, char **argv)
{
    static const Program serve = {table, "Serve", serve_options, serve_prepare, serve_stage, serve_close};
    return job_run(job, &serve, argc, argv);
}
