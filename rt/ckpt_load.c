/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_load.c: continuing from a checkpoint, or starting from given weights.
 *
 * The newest committed checkpoint is taken.  COMMIT vouches for index.json, and index.json for the files, by SHA-256.  A
 * turned bit or a cut file is found before anything is used.  Tensors are found by name in whatever file has them: the
 * partition that wrote need not be the one that reads.  A process does not open files that it needs nothing of.
 *
 * Refused with status 5, and the name of the fault: another model, seed, micro-batch, or number of micro-batches or of
 * gradient groups; moments of another optimiser; a broken or missing file; a tensor that is missing, listed twice, or of
 * another type or shape.  Files are only read.  Other data, other settings of training and other kernels go on, with a line.
 *
 * What an older dpgen did not write is not compared: before 0.2.0 the rule of the moments, the settings and the key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ckpt.h"
#include "data.h"
#include "json.h"
#include "safetensors.h"
#include "sha256.h"
#include "weights.h"

typedef struct {
    char dir[CKPT_PATH], path[CKPT_PATH + 16];  /* of the checkpoint; of its index.json */
    Weights list;
    char format[32], model[65], seed[32], data[65], versions[1024], moments[64], key[2048];
    char store[512];
    Text changed;               /* settings that this job has otherwise */
    int64_t step, batch, micro, groups, best, since;     /* -1: not there */
    char loss[64];
} Index;

/* ---- index.json -------------------------------------------------------------------------------------------------- */

static void changed(Index *x, const char *name, const char *was, const char *is)
{
    if (strcmp(was, is))
        text_add(&x->changed, "%s%s %.60s (now %.60s)", x->changed.n ? ", " : "", name, was, is);
}

/* There is one only where some parameter is so. */
static bool is_absent_else(const char *name)
{
    return !strcmp(name, "train.freeze") || !strncmp(name, "train.optimizer.groups.", strlen("train.optimizer.groups."));
}

static int setting_of(const Setting *all, const char *name)
{
    for (int i = 0; all && all[i].name; i++)
        if (!strcmp(all[i].name, name))
            return i;
    return -1;
}

/* Those that both know are compared, and those whose absence says something.  No string is longer than what is left. */
static bool read_settings(Json *j, Index *x)
{
    const Setting *all = x->list.job->setting;
    size_t room = (size_t)(j->end - j->at) + 1, n = 0;
    while (all && all[n].name)
        n++;
    bool *seen = calloc(n + 1, sizeof *seen);
    char *name = malloc(room), *was = malloc(room);
    if (!seen || !name || !was)
        j->why = "no memory for settings";
    for (bool first = true; !j->why && json_member(j, &first, name, room) && json_string(j, was, room);) {
        int i = setting_of(all, name);
        if (i >= 0)
            seen[i] = true;
        if (i >= 0 || is_absent_else(name))
            changed(x, name, was, i >= 0 ? all[i].value : "none");
    }
    for (size_t i = 0; !j->why && i < n; i++)
        if (!seen[i] && is_absent_else(all[i].name))
            changed(x, all[i].name, "none", all[i].value);
    free(seen);
    free(name);
    free(was);
    return !j->why;
}

static bool read_metadata(Json *j, Index *x)
{
    char key[64];
    const struct { const char *name; int64_t *number; char *text; size_t room; } field[] = {
        {"step", &x->step, NULL, 0}, {"batch", &x->batch, NULL, 0}, {"micro", &x->micro, NULL, 0},
        {"groups", &x->groups, NULL, 0}, {"format", NULL, x->format, sizeof x->format},
        {"model", NULL, x->model, sizeof x->model}, {"versions", NULL, x->versions, sizeof x->versions},
        {"data", NULL, x->data, sizeof x->data}, {"seed", NULL, x->seed, sizeof x->seed},
        {"moments", NULL, x->moments, sizeof x->moments}, {"best_step", &x->best, NULL, 0},
        {"best_since", &x->since, NULL, 0}, {"best_loss", NULL, x->loss, sizeof x->loss},
        {"key", NULL, x->key, sizeof x->key}, {NULL, NULL, NULL, 0}
    }, *k;
    for (bool first = true; json_member(j, &first, key, sizeof key);) {
        for (k = field; k->name && strcmp(key, k->name) != 0; k++)
            continue;
        if (k->number)
            json_integer(j, k->number);
        else if (k->name)
            json_string(j, k->text, k->room);
        else if (!strcmp(key, "settings"))
            read_settings(j, x);
        else
            json_skip(j);
    }
    return !j->why;
}

static bool read_file(Json *j, Index *x)
{
    char key[32], name[CKPT_NAME] = "", sha[65] = "";
    int64_t bytes = -1;
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!strcmp(key, "name"))
            json_string(j, name, sizeof name);
        else if (!strcmp(key, "sha256"))
            json_string(j, sha, sizeof sha);
        else if (!strcmp(key, "bytes"))
            json_integer(j, &bytes);
        else
            json_skip(j);
    int i = j->why ? -1 : weights_shard(&x->list, j, name);
    if (i >= 0) {
        x->list.shard[i].bytes = bytes;
        memcpy(x->list.shard[i].sha, sha, sizeof sha);
    }
    return !j->why;
}

static bool read_files(Json *j, Index *x)
{
    for (bool first = true; json_member(j, &first, NULL, 0);)
        read_file(j, x);
    return !j->why;
}

static int parse_index(Index *x, const char *text, size_t n)
{
    enum { METADATA = 1, FILES = 2, MAP = 4 };
    int seen = 0;
    char key[32];
    Json j = json_open(text, n);
    for (bool first = true; json_member(&j, &first, key, sizeof key);) {
        int bit = !strcmp(key, "metadata") ? METADATA : !strcmp(key, "files") ? FILES :
                  !strcmp(key, "weight_map") ? MAP : 0;
        if (!bit || seen & bit)
            j.why = "an unknown or repeated key";
        else if (bit == MAP ? !weights_map(&x->list, &j) : !(bit == METADATA ? read_metadata : read_files)(&j, x))
            break;
        seen |= bit;
    }
    if (json_end(&j) && seen != (METADATA | FILES | MAP))
        j.why = "metadata, files or weight_map is missing";
    if (j.why)
        return complain(STATUS_STALE, "%s: byte %ld: %s", x->path, (long)(j.at - j.from), j.why);
    return weights_sort(&x->list);
}

/* COMMIT is the hash of index.json and a newline, nothing else. */
static int check_commit(const char *path, const DataFile *commit, const DataFile *index)
{
    char hex[65];
    digest_of(index->at, index->size, hex);
    if (commit->size == 65 && memcmp(commit->at, hex, 64) == 0 && commit->at[64] == '\n')
        return DONE;
    return complain(STATUS_STALE, "%s does not belong to the index.json beside it: the checkpoint is damaged; move "
                    "it away to go on from an older one", path);
}

static int open_index(Index *x)
{
    char commit_path[CKPT_PATH + 16];
    DataFile commit = {0}, index = {0};
    snprintf(commit_path, sizeof commit_path, "%s/COMMIT", x->dir);
    snprintf(x->path, sizeof x->path, "%s/index.json", x->dir);
    int status = data_stale(data_map(&commit, commit_path, "checkpoint"));
    if (status == DONE)
        status = data_stale(data_map(&index, x->path, "checkpoint"));
    if (status == DONE)
        status = check_commit(commit_path, &commit, &index);
    x->list.path = x->dir;
    x->list.index = x->path;
    x->changed = (Text){x->store, 0, sizeof x->store};
    if (status == DONE)
        status = parse_index(x, (const char *)index.at, index.size);
    data_unmap(&commit);
    data_unmap(&index);
    return status;
}

/* What a synchronous schedule and an older dpgen leave out. */
static const char *or_else(const char *text, const char *none)
{
    return text && *text ? text : none;
}

static int check_rules(const Index *x, const Job *job)
{
    const char *every = "a synchronous schedule", *was = or_else(x->versions, every), *is = or_else(job->versions, every);
    if (strcmp(was, is))
        return complain(STATUS_STALE, "%s was trained with the weight versions of `%s`, this job has those of `%s`: the next "
                        "steps would read versions that it does not hold; plan the same schedule, and where it names cuts the "
                        "same cuts, or start anew from its parameters with --weights %s", x->dir, was, is, x->dir);
    if (*x->moments && job->moments && strcmp(x->moments, job->moments))
        return complain(STATUS_STALE, "%s has the moments of `%s`, and this job reads them as those of `%s`; set "
                        "train.optimizer back, or start anew from its parameters with --weights %s", x->dir, x->moments,
                        job->moments, x->dir);
    return DONE;
}

static int check_sizes(const Index *x, const Job *job, int from, int to)
{
    const struct { const char *key; int64_t was; long is; } size[] = {
        {"batch", x->batch, job->batch}, {"micro", x->micro, job->micro}, {"groups", x->groups, job->groups}
    };
    for (int i = from; i < to; i++)
        if (size[i].was != size[i].is)
            return complain(STATUS_STALE, "%s was written with %s %lld, this job has %ld: samples would be used twice "
                            "or never, and sums rounded otherwise; set train.batch back, or start anew from its "
                            "parameters with --weights %s", x->dir, size[i].key, (long long)size[i].was, size[i].is,
                            x->dir);
    return DONE;
}

/* The word behind `name` of a numeric key. */
static void word_of(const char *key, const char *name, char to[32])
{
    const char *at = strstr(key, name);
    snprintf(to, 32, "%.*s", at ? (int)strcspn(at + strlen(name), " ") : 0, at ? at + strlen(name) : "");
}

/* Sums in other blocks are rounded otherwise. */
static int check_blocks(const Index *x, const Job *job)
{
    char was[32], is[32];
    word_of(x->key, " blocks=", was);
    word_of(job->key, " blocks=", is);
    if (!*x->key || !strcmp(was, is))
        return DONE;
    return complain(STATUS_STALE, "%s was written with sums in %s block%s, this job adds in %s; set train.blocks back, or "
                    "start anew from its parameters with --weights %s", x->dir, *was ? was : "one", *was ? "s" : "",
                    *is ? is : "one", x->dir);
}

/* The hash of the model knows the type that it computes in. */
static int check_model(const Index *x, const Job *job)
{
    char was[32], is[32];
    word_of(x->key, " compute=", was);
    word_of(job->key, " compute=", is);
    if (!strcmp(x->model, job->model))
        return DONE;
    if (*was && strcmp(was, is))
        return complain(STATUS_STALE, "%s was trained in %s, this job computes in %s; set train.precision.compute back, or "
                        "start anew from its parameters with --weights %s", x->dir, was, is, x->dir);
    return complain(STATUS_STALE, "%s belongs to another model: it says %.16s..., this job is %.16s...; generate "
                    "the job from the model file that wrote it, or take its parameters with --weights %s",
                    x->dir, x->model, job->model, x->dir);
}

/* The hash of the model knows the samples of a micro-batch, so their number comes before it. */
static int check_job(const Index *x, const Job *job)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)job->seed);
    if (strcmp(x->format, "dpgen-checkpoint-1"))
        return complain(STATUS_STALE, "%s: format `%s` is not known here", x->dir, x->format);
    int status = check_rules(x, job);
    if (status == DONE)
        status = check_sizes(x, job, 0, 1);
    if (status == DONE)
        status = check_model(x, job);
    if (status == DONE)
        status = check_sizes(x, job, 1, 3);
    if (status == DONE)
        status = check_blocks(x, job);
    if (status == DONE && strcmp(x->seed, seed))
        return complain(STATUS_STALE, "%s was written with seed %s, this job has %s; set train.seed back, or start "
                        "anew from its parameters with --weights %s", x->dir, x->seed, seed, x->dir);
    return status;
}

/* What comes behind the numbers of the model and of training: compute, kernels, threads, instructions. */
static const char *how(const char *key)
{
    const char *at = strstr(key, " compute=");
    return at ? at + 1 : "";
}

/* What is no reason to end, but to say so.  A checkpoint of an older version does not know it. */
static void say_changes(const Index *x, const Run *run)
{
    long long step = (long long)x->step;
    const Job *job = run->job;
    if (job->moments && !*x->moments)
        complain(DONE, "%s is of a dpgen before 0.2.0, which did not say whose moments it has: they are read as those of `%s`",
                 x->dir, job->moments);
    if (*run->data && *x->data && strcmp(x->data, run->data))
        complain(DONE, "%s was trained with other data: samples from step %lld on are those of the files given now", x->dir,
                 step);
    if (x->changed.n)
        complain(DONE, "%s was trained with other settings: %s; from step %lld on those of this job count", x->dir,
                 x->changed.at, step);
    char was[32], is[32];
    word_of(x->key, " order=", was);
    word_of(job->key, " order=", is);
    if (*x->key && strcmp(how(x->key), how(job->key)))
        complain(DONE, "%s was computed with `%s`, and this job goes on with `%s`: its bits are those of neither alone%s%s",
                 x->dir, how(x->key), how(job->key), strcmp(was, is) ? ", for sums are of another order now, " : "",
                 strcmp(was, is) ? is : "");
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static int open_part(Shard *p)
{
    char hex[65];
    DataFile f = {0};
    int status = data_stale(data_map(&f, p->path, "checkpoint"));
    if (status == DONE && (int64_t)f.size != p->bytes)
        status = complain(STATUS_STALE, "%s has %zu bytes, index.json says %lld: it is cut short or from elsewhere",
                          p->path, f.size, (long long)p->bytes);
    if (status == DONE) {
        digest_of(f.at, f.size, hex);
        if (strcmp(hex, p->sha))
            status = complain(STATUS_STALE, "%s is damaged: its SHA-256 is not the one in index.json", p->path);
    }
    data_unmap(&f);
    p->open = status == DONE;
    return status == DONE ? safe_open(&p->file, p->path) : status;
}

/* Version n of a state into its place.  Of an older one that is kept in bf16 alone, the f32 values are not wanted. */
static int place(Worker *w, const StateInfo *s, int64_t n, const SafeFile *f, const SafeTensor *t)
{
    StateInfo only = *s;
    float *values = malloc((size_t)s->n * sizeof *values + 1);
    if (!values)
        return complain(STATUS_RUN, "no memory to read `%s`", s->name);
    if (n != w->done && s->kept < 2)
        only.offset = NOWHERE;
    int status = safe_read(f, t, s, values);
    if (status == DONE)
        init_place(w, &only, n, values, 0, s->n);
    free(values);
    return status;
}

static int load_state(Worker *w, Index *x, const StateInfo *s, int age)
{
    char name[WEIGHTS_NAME], suffix[16];
    state_suffix(suffix, s->kind, age);
    snprintf(name, sizeof name, "%s%s", s->name, suffix);
    const Listed *e = weights_named(&x->list, name);
    if (!e)
        return complain(STATUS_STALE, "%s: tensor `%s` is missing%s%s", x->dir, name,
                        s->kind == STATE_PARAM ? "" : "; start anew from its parameters with --weights ",
                        s->kind == STATE_PARAM ? "" : x->dir);
    Shard *p = &x->list.shard[e->shard];
    if (!*p->sha)
        return complain(STATUS_STALE, "%s: tensor `%s` is in `%s`, which index.json does not list", x->dir, name,
                        strrchr(p->path, '/') + 1);
    int status = p->open ? DONE : open_part(p);
    if (status != DONE)
        return status;
    const SafeTensor *t = safe_find(&p->file, name);
    if (!t)
        return complain(STATUS_STALE, "%s: tensor `%s` is missing, though index.json promises it", p->path, name);
    return place(w, s, w->done - age, &p->file, t);
}

/* A history of sizes that is not there begins anew. */
static int load_some(Worker *w, Index *x, const StateInfo *s, bool old)
{
    bool may = s->files == FILES_DO_NOT || s->files == FILES_MAY;
    bool left = s->files == FILES_GET || (may && !weights_named(&x->list, s->name));
    int status = DONE, ages = old ? state_versions(s) : left ? 0 : 1;
    for (int age = 0; age < ages && status == DONE; age++)
        status = load_state(w, x, s, age);
    return status;
}

/* The states whose kind is in `kinds`, bits 1 << STATE_...; old: all versions, of a run that goes on. */
static int load_worker(Worker *w, Index *x, unsigned kinds, bool old)
{
    int status = DONE;
    for (int i = 0; i < w->info->states && status == DONE; i++)
        if (kinds >> w->info->state[i].kind & 1)
            status = load_some(w, x, &w->info->state[i], old);
    return status;
}

/* ---- what main.c calls ------------------------------------------------------------------------------------------- */

int ckpt_load(Run *run)
{
    Index x = {.list = {.job = run->job}, .step = -1, .batch = -1, .micro = -1, .groups = -1, .best = -1};
    int status = DONE;
    int64_t step = ckpt_newest(run->opt.checkpoint, &status);
    if (status == DONE && step < 0)
        status = complain(STATUS_STALE, "%s: no committed checkpoint to resume from; start without --resume",
                          run->opt.checkpoint);
    if (status != DONE)
        return status;
    ckpt_name(x.dir, run->opt.checkpoint, step, "");
    status = open_index(&x);
    if (status == DONE)
        status = check_job(&x, run->job);
    if (status == DONE && x.step != step)
        status = complain(STATUS_STALE, "%s says it is of step %lld: it was renamed", x.dir, (long long)x.step);
    for (int i = 0; i < run->count && status == DONE; i++) {
        run->worker[i].done = step;
        status = load_worker(&run->worker[i], &x, ~(1u << STATE_GRAD), true);
    }
    if (status == DONE && run->main)
        say_changes(&x, run);
    run->start = step;
    run->best = (Best){strtod(x.loss, NULL), x.loss[0] ? x.best : -1, x.since, false};
    weights_close(&x.list);
    return status;
}

/* Which parameters are not from there: some by their names. */
static void say_fresh(const Run *run, const char *path)
{
    enum { NAMED = 8 };
    char store[1024];
    Text t = {store, 0, sizeof store};
    int n = 0;
    for (int i = 0; i < run->parameters; i++)
        if (run->parameter[i].state->files == FILES_GET && n++ < NAMED)
            text_add(&t, "%s%.100s", n > 1 ? ", " : "", run->parameter[i].state->name);
    if (n > NAMED)
        text_add(&t, ", and %d more", n - NAMED);
    if (n)
        complain(DONE, "%d of %d parameters are not read from %s and start from their rules: %s", n, run->parameters, path,
                 t.at);
}

static int by_parameter(const void *name, const void *item)
{
    return strcmp(name, ((const Item *)item)->state->name);
}

/* A parameter of the job, or a state of one, whose name has a word more. */
static bool has_taker(const Run *run, const char *entry)
{
    char name[WEIGHTS_NAME];
    snprintf(name, sizeof name, "%s", entry);
    for (char *end = name + strlen(name); end; end = strrchr(name, '.')) {
        *end = 0;
        if (bsearch(name, run->parameter, (size_t)run->parameters, sizeof *run->parameter, by_parameter))
            return true;
    }
    return false;
}

/* Of a checkpoint: of any job with these parameters, whatever its data and batches.  A job that infers has not all that was
 * trained; adapters it has, or what it has learnt is lost. */
static int weights_of_checkpoint(Run *run, const char *dir)
{
    Index x = {.list = {.job = run->job}, .step = -1, .batch = -1, .micro = -1, .groups = -1, .best = -1};
    snprintf(x.dir, sizeof x.dir, "%s", dir);
    int status = open_index(&x);
    for (int i = 0; i < x.list.tensors && status == DONE; i++) {
        const char *name = x.list.tensor[i].name;
        bool may = run->job->outputs && (run->job->adapter || !strstr(name, ".lora_"));
        if (!may && !has_taker(run, name) && !(job_parts.described && job_parts.described->ignored(&x.list, name)))
            status = weights_untaken(dir, name);
    }
    for (int i = 0; i < run->count && status == DONE; i++)
        status = load_worker(&run->worker[i], &x, 1u << STATE_PARAM, false);
    weights_close(&x.list);
    return status;
}

/* A checkpoint of ours says so; whatever else it is, weights.c reads it. */
int ckpt_weights(Run *run, const char *path)
{
    const char *found[WEIGHTS_LISTS] = {NULL};
    int status = weights_one_list(path, found);
    if (run->main && status == DONE)
        say_fresh(run, path);
    if (status == DONE)
        status = found[0] && !strcmp(found[0], "index.json") ? weights_of_checkpoint(run, path) : weights_read(run, path);
    if (status == DONE && run->opt.adapter)
        status = job_parts.adapters->read(run, run->opt.adapter);
    for (int k = 0; k < run->count && status == DONE && job_parts.overlap; k++)
        job_parts.overlap->spread(&run->worker[k]);
    return status;
}
