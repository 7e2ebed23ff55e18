/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the command line of a job, as one table, and the reader of such tables.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "apart.h"
#include "link.h"
#include "options.h"

const JobOption options_train[] = {
    {"--steps", "N", NUMBER, offsetof(Options, steps), "stop after step N; rates follow the model file all the same"},
    {"--seconds", "N", NUMBER, offsetof(Options, seconds), "stop after the step that is under way after N seconds"},
    {"--data", "PATH...", INPUTS, offsetof(Options, data), "training files or patterns, in place of the model file's"},
    {"--eval-data", "PATH...", INPUTS, offsetof(Options, eval_data), "the same for the evaluation"},
    {"--checkpoint", "DIR", CHECKPOINTS, offsetof(Options, checkpoint), "write checkpoints to DIR"},
    {"--no-checkpoint", NULL, FLAG, offsetof(Options, none), "write none, whatever the model file says"},
    {"--resume", NULL, FLAG, offsetof(Options, resume), "go on from the newest checkpoint there, under any plan"},
    {"--weights", "FILE", INPUT, offsetof(Options, weights), "start from a safetensors file, a folder of them, or DIR/step-N"},
    {"--adapter", "DIR", INPUT, offsetof(Options, adapter), "beside --weights: start adapters from PEFT's files"},
    {"--log", "FILE", OUTPUT, offsetof(Options, log), "append metrics as JSON lines"},
    {"--hash", NULL, FLAG, offsetof(Options, hash), "print the SHA-256 of all parameters at the end"},
    {"--record", NULL, FLAG, offsetof(Options, record), "print the SHA-256 of the data files, and every loss exactly"},
    {"--export", "DIR", PUBLISHED, offsetof(Options, publish), "write DIR/model.safetensors at the end, as published weights"},
    {"--gradients", "FILE", OUTPUT, offsetof(Options, gradients), "write the gradients of the last step as safetensors"},
    {"--trace", "FILE", OUTPUT, offsetof(Options, trace), "write predicted and measured actions as Trace Event JSON"},
    {"--offload-dir", "DIR", FOLDER, offsetof(Options, spill), "where the file of offloaded tensors is, of a job that has one"},
    {"--allow-nan", NULL, FLAG, offsetof(Options, nan), "go on when a loss or norm is not finite"},
    {"--selftest", NULL, FLAG, offsetof(Options, selftest), "check each call of one step against f64 on the host, and end"},
    {"--watchdog", "SECONDS", NUMBER, offsetof(Options, watchdog), "end the job after such a silence; 0 never"},
    {"--fill", "BYTE", BYTE, offsetof(Options, fill), "fill arenas with this byte before the start"},
    {"--dump-arena", "FILE", BY_STAGE, offsetof(Options, dump), "write the arena of each stage to FILE.stageN at the end"},
    {"--eval-only", NULL, FLAG, offsetof(Options, evaluates), "evaluate once what --weights or --resume gives; train nothing"},
    {"--quiet", NULL, FLAG, offsetof(Options, quiet), "no progress"},
    {.about = "SIGUSR1: checkpoint.  SIGTERM, SIGINT, SIGHUP: checkpoint and stop.\n"
     "Status: 0 done, 1 failed, 2 usage, 5 foreign or broken checkpoint, 6 wrong machine, 7 a loss or\n"
     "norm is not finite, 8 a call differs in --selftest, 75 stopped on request with a checkpoint: start\n"
     "again with --resume.\n"}
};

static int say(const Text *t)
{
    if (write_all(STDOUT_FILENO, t->at, t->n < t->cap ? t->n : t->cap - 1))
        return DONE;
    return complain(STATUS_RUN, "cannot write to standard output: %s", strerror(errno));
}

static int help(const JobOption *p, const Job *job, const char *does, const char *called)
{
    char store[4096];
    Text t = {store, 0, sizeof store};
    text_add(&t, "Usage: %s [OPTION]...\n%s %s, stages: %d, transport: %s.\n\n", called, does, job->name, job->stages,
             link_name());
    for (; p->name; p++) {
        char left[40];
        snprintf(left, sizeof left, "%s %s", p->name, p->value ? p->value : "");
        text_add(&t, "  %-22s %s\n", left, p->about);
    }
    text_add(&t, "  %-22s this text\n  %-22s the job and its key\n\n", "--help", "--version");
    if (p->about)
        text_add(&t, "%s", p->about);
    return say(&t);
}

static int version(const Job *job)
{
    char store[4096];
    Text t = {store, 0, sizeof store};
    text_add(&t, "%s\nkernels %s, %s\ntransport %s\nmodel %s\nplan %s\nkey %s\n",
             job->name, job->kernels, kernels_version(), link_name(), job->model, job->plan, job->key);
    return say(&t);
}

int options_about(const JobOption *table, const Job *job, const char *does, int argc, char **argv, bool speak)
{
    const char *called = job->program && strcmp(job->program, "train") ? job->program : program_name;
    for (int i = 1; i < argc; i++) {
        bool h = strcmp(argv[i], "--help") == 0, v = strcmp(argv[i], "--version") == 0;
        if (h || v)
            return !speak ? DONE : h ? help(table, job, does, called) : version(job);
    }
    return -1;
}

/* Decimal, as in the model file: 010 is ten.  A byte may be 0xff too. */
static bool number(const char *text, JobOptionKind kind, long *x)
{
    char *end;
    errno = 0;
    *x = strtol(text, &end, kind == BYTE && !strncmp(text, "0x", 2) ? 16 : 10);
    return end != text && !*end && !errno && *x >= 0;
}

static bool fraction(const char *text, double *x)
{
    char *end;
    *x = strtod(text, &end);
    return end != text && !*end && *x >= 0 && *x < 1e9;
}

/* A variable of the shell that was not set is an empty word, and names nothing; what begins with -- is the next option. */
static bool missing(const JobOption *p, const char *word)
{
    return !word || !*word || (p->kind != WORD && !strncmp(word, "--", 2));
}

/* All words up to the next option; 0: there is none, or an empty one. */
static int list_of(const JobOption *p, const char ***to, char **argv)
{
    int n = 0;
    while (!missing(p, argv[n]))
        n++;
    if (argv[n] && !*argv[n])
        return 0;
    *to = calloc((size_t)n + 1, sizeof **to);
    for (int i = 0; *to && i < n; i++)
        (*to)[i] = argv[i];
    return n;
}

/* Number of further words used, or -1: value missing or wrong. */
static int read_value(void *to, const JobOption *p, char **argv)
{
    char *field = (char *)to + p->field;
    long x = 0;
    if (p->kind == FLAG)
        *(bool *)(void *)field = true;
    if (p->kind == FLAG)
        return 0;
    if (missing(p, argv[0]))
        return -1;
    if (p->kind == INPUTS) {
        int n = list_of(p, (const char ***)(void *)field, argv);
        return n ? n : -1;
    }
    if (p->kind == FRACTION)
        return fraction(argv[0], (double *)(void *)field) ? 1 : -1;
    if (p->kind == WORD || p->kind == INPUT || p->kind >= OUTPUT)
        *(const char **)(void *)field = argv[0];
    else if (!number(argv[0], p->kind, &x) || (p->kind == BYTE && x > 255))
        return -1;
    else if (p->kind == BYTE)
        *(int *)(void *)field = (int)x;
    else
        *(long *)(void *)field = x;
    return 1;
}

int options_table(const JobOption *table, void *to, char **argv, bool speak)
{
    for (argv++; *argv;) {
        const JobOption *p = table;
        while (p->name && strcmp(p->name, *argv) != 0)
            p++;
        int used = p->name ? read_value(to, p, argv + 1) : -1;
        if (used < 0 && speak && p->name)
            complain(STATUS_USAGE, "%s needs %s; see --help", *argv, p->value);
        else if (used < 0 && speak)
            complain(STATUS_USAGE, "unknown option `%s`; see --help", *argv);
        if (used < 0)
            return STATUS_USAGE;
        argv += 1 + used;
    }
    return -1;
}

/* ---- outputs ------------------------------------------------------------------------------------------------------- */

/* What is written, as endings of the value, | between them; .* stands for the name of each stage.  NULL: files of no name. */
static const char *const endings[] = {[OUTPUT] = "|.part", [FOLDER] = NULL, [CHECKPOINTS] = "/lock",
    [PUBLISHED] = "/model.safetensors|/model.safetensors.part", [BY_STAGE] = ".*"};

static const char *text_of(const JobOption *p, const void *from)
{
    return *(const char *const *)(const void *)((const char *)from + p->field);
}

static int note(const JobOption *p, const char *path, const char *ending, size_t n, const char *stage, bool speak)
{
    char name[4096], why[1024];
    if ((size_t)snprintf(name, sizeof name, "%s%.*s%s", path, (int)n, ending, stage) >= sizeof name)
        return speak ? complain(STATUS_USAGE, "%s: a path of %zu bytes is too long", p->name, strlen(path)) : STATUS_USAGE;
    if (apart_note(p->name, name, true, why, sizeof why))
        return -1;
    return speak ? complain(STATUS_USAGE, "%s", why) : STATUS_USAGE;
}

/* Each is told before an input is opened: data_map() compares.  A file that an option names is told first.  -1: go on. */
static int note_paths(const JobOption *table, const void *from, const Job *job, bool speak)
{
    char why[1024];
    int status = -1;
    apart_clear();
    for (const JobOption *p = table; p->name; p++) {
        const char *path = p->kind == INPUT ? text_of(p, from) : NULL;
        if (path)
            apart_note(p->name, path, false, why, sizeof why);
    }
    for (const JobOption *p = table; p->name && status < 0; p++) {
        const char *path = p->kind >= OUTPUT ? text_of(p, from) : NULL;
        for (const char *at = path ? endings[p->kind] : NULL; at && status < 0; at = strchr(at, '|'), at += at != NULL) {
            size_t n = strcspn(at, "|");
            bool each = n == 2 && !strncmp(at, ".*", 2);
            for (int i = 0; i < (each ? job->stages : 1) && status < 0; i++)
                status = note(p, path, at, each ? 1 : n, each ? job->stage[i].name : "", speak);
        }
    }
    return status;
}

/* Which options do not go together, or not with this job; NULL: all do. */
static const char *contradiction(const Options *o, const Job *job)
{
    bool evaluation = job->eval.format != NULL, waits = job->stage->pace != NULL;
    const struct { bool there; const char *why; } list[] = {
        {o->selftest && o->resume, "--selftest and --resume exclude each other"},
        {o->selftest && waits, "--selftest: calls of a paced job compute nothing"},
        {o->none && o->checkpoint != job->ckpt_dir, "--checkpoint and --no-checkpoint exclude each other"},
        {o->adapter && !job->adapter,
         "--adapter: this job has no adapters; give the model file a section adapt and generate it anew"},
        {o->adapter && !o->weights, "--adapter needs --weights, the model that it was trained beside"},
        {o->evaluates && !evaluation,
         "--eval-only: this job has no evaluation; give the model file a data.eval and generate it anew"},
        {o->evaluates && (o->selftest || o->gradients || waits),
         "--eval-only: nothing is trained, so --gradients, --selftest and paced jobs have nothing to show"},
        {o->evaluates && !o->weights && !o->resume,
         "--eval-only evaluates given weights: name --weights PATH, or --checkpoint DIR and --resume"},
        {o->eval_data && !evaluation,
         "--eval-data: this job has no evaluation; give the model file a data.eval and generate it anew"},
        {o->resume && o->weights, "--resume and --weights exclude each other"},
        {o->resume && (o->none || !o->checkpoint), "--resume needs --checkpoint DIR"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].there)
            return list[i].why;
    return NULL;
}

int options_read(Options *o, const Job *job, char **argv, bool speak)
{
    *o = (Options){.steps = job->steps, .checkpoint = job->ckpt_dir, .watchdog = -1,
                    .trace = job->trace ? "trace.run.json" : NULL};
    int status = options_table(options_train, o, argv, speak);
    const char *why = status < 0 ? contradiction(o, job) : NULL;
    if (why)
        status = speak ? complain(STATUS_USAGE, "%s", why) : STATUS_USAGE;
    if (status >= 0)
        return status;
    if (o->selftest)
        o->steps = 1, o->quiet = true, o->watchdog = 0;
    if (o->none || o->selftest || (o->evaluates && !o->resume))
        o->checkpoint = NULL;
    return note_paths(options_train, o, job, speak);
}
