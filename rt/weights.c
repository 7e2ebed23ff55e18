/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: starting from published weights: one safetensors file, or the shards of a model.safetensors.index.json.
 *
 * The job knows each parameter's tensor: its name, or one row of the table `stored`.  A tensor may have its axes the other way
 * round (GPT-2), hold several parameters below each other (Phi-3), or do so head by head (GPT-NeoX).  A prefix may stand before
 * all names, or be missing there.  Files are mapped; a process opens those shards that it needs.  F32, F16 and BF16 are
 * widened, which is exact.
 *
 * Refused with status 5, before anything is trained: a tensor that is missing, of another shape or of another type; one that
 * a folder has, nobody takes and `ignore` does not name; a copy, such as the head of a tied table, that differs from its
 * parameter; a shard that is missing; an index that is no index; a folder with two lists of tensors, which may differ.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "ckpt.h"
#include "data.h"
#include "json.h"
#include "safetensors.h"
#include "weights.h"

/* ---- a parameter and its tensor ---------------------------------------------------------------------------------- */

/* The pieces of a parameter stand behind each other. */
static const StoredInfo *stored_of(const Job *job, const StateInfo *s)
{
    for (int i = 0; i < job->stored_n; i++)
        if (!strcmp(job->stored[i].name, s->name))
            return &job->stored[i];
    return NULL;
}

int weights_pieces(const Job *job, const StateInfo *s)
{
    const StoredInfo *stored = stored_of(job, s);
    return s->files == FILES_DO_NOT || s->files == FILES_MAY ? 0 : stored && stored->pieces ? (int)stored->pieces : 1;
}

Published weights_place(const Job *job, const StateInfo *s, int piece)
{
    const StoredInfo *stored = stored_of(job, s);
    return place_of(stored ? stored + piece : NULL, s);
}

/* ---- the list of tensors ----------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Listed *)a)->name, ((const Listed *)b)->name);
}

static bool list(Weights *x, const char *name, int shard)
{
    Listed *more = x->tensors % 256 ? x->tensor : realloc(x->tensor, ((size_t)x->tensors + 256) * sizeof *more);
    char *copy = strdup(name);
    if (more)
        x->tensor = more;
    if (more && copy)
        x->tensor[x->tensors++] = (Listed){copy, shard, false};
    else
        free(copy);
    return more && copy;
}

/* The number of a file, listed when it is met first; -1: no memory. */
static int shard_of(Weights *x, const char *path)
{
    for (int i = 0; i < x->shards; i++)
        if (!strcmp(x->shard[i].path, path))
            return i;
    Shard *more = realloc(x->shard, ((size_t)x->shards + 1) * sizeof *more);
    char *copy = strdup(path);
    if (more)
        x->shard = more;
    if (!more || !copy) {
        free(copy);
        return -1;
    }
    x->shard[x->shards] = (Shard){.path = copy};
    return x->shards++;
}

int weights_shard(Weights *x, Json *j, const char *file)
{
    char path[CKPT_PATH];
    int shard = -1;
    if (strchr(file, '/') || file[0] == '.' || !file[0])
        j->why = "a file name that leads out of the folder";
    else if ((size_t)snprintf(path, sizeof path, "%s/%s", x->path, file) >= sizeof path)
        j->why = "a path that is too long";
    else if ((shard = shard_of(x, path)) < 0)
        j->why = "no memory";
    return shard;
}

bool weights_map(Weights *x, Json *j)
{
    char name[WEIGHTS_NAME], file[WEIGHTS_NAME];
    for (bool first = true; json_member(j, &first, name, sizeof name);) {
        int shard = json_string(j, file, sizeof file) ? weights_shard(x, j, file) : -1;
        if (!j->why && !list(x, name, shard))
            j->why = "no memory";
    }
    return !j->why;
}

int weights_sort(Weights *x)
{
    if (x->tensors > 1)
        qsort(x->tensor, (size_t)x->tensors, sizeof *x->tensor, by_name);
    for (int i = 1; i < x->tensors; i++)
        if (!by_name(&x->tensor[i - 1], &x->tensor[i]))
            return complain(STATUS_STALE, "%s: tensor `%s` is listed twice", x->index, x->tensor[i].name);
    return DONE;
}

static int read_index(Weights *x)
{
    DataFile f = {0};
    char key[32];
    bool seen = false;
    int opened = data_map(&f, x->index, "weights");
    if (opened != DONE)
        return data_stale(opened);
    Json j = json_open(f.at, f.size);
    for (bool first = true; json_member(&j, &first, key, sizeof key);) {
        bool map = !strcmp(key, "weight_map");
        if (map && seen)
            j.why = "weight_map stands there twice";
        else if (map ? !weights_map(x, &j) : !json_skip(&j))
            break;
        seen |= map;
    }
    if (json_end(&j) && !seen)
        j.why = "weight_map is missing";
    int status = j.why ? complain(STATUS_STALE, "%s: byte %ld: %s", x->index, (long)(j.at - j.from), j.why) : DONE;
    data_unmap(&f);
    return status;
}

static int open_shard(Weights *x, Shard *s)
{
    struct stat info;
    if (s->open)
        return DONE;
    if (strcmp(s->path, x->index) && stat(s->path, &info) != 0 && errno == ENOENT)
        return complain(STATUS_STALE, "%s: the shard is missing, and %s lists it; download it again", s->path, x->index);
    s->open = true;
    return safe_open(&s->file, s->path);
}

int weights_single(Weights *x)
{
    int shard = shard_of(x, x->index), status = shard < 0 ? complain(STATUS_RUN, "no memory to read %s", x->index) : DONE;
    if (status == DONE)
        status = open_shard(x, &x->shard[shard]);
    for (int i = 0; status == DONE && i < x->shard[shard].file.tensors; i++)
        if (!list(x, x->shard[shard].file.tensor[i].name, shard))
            status = complain(STATUS_RUN, "no memory to read %s", x->index);
    return status;
}

int weights_lists(const char *dir, const char *found[WEIGHTS_LISTS])
{
    static const char *const names[WEIGHTS_LISTS] = {"index.json", "model.safetensors.index.json", "model.safetensors"};
    char path[CKPT_PATH];
    struct stat info;
    int n = 0;
    for (int i = 0; i < WEIGHTS_LISTS; i++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, names[i]) < sizeof path && stat(path, &info) == 0)
            found[n++] = names[i];
    return n;
}

int weights_one_list(const char *dir, const char *found[WEIGHTS_LISTS])
{
    if (weights_lists(dir, found) > 1)
        return complain(STATUS_STALE, "%s holds %s and %s, two sets of weights: which one is meant?  Name the file, or move "
                        "the other one away", dir, found[0], found[1]);
    return DONE;
}

/* What the path is: a file; a folder with an index; a folder with one file. */
static int open_weights(Weights *x, char index[CKPT_PATH])
{
    struct stat info;
    const char *found[WEIGHTS_LISTS] = {NULL};
    bool folder = stat(x->path, &info) == 0 && S_ISDIR(info.st_mode), shards = false;
    x->index = x->path;
    if (folder && !weights_lists(x->path, found))
        return complain(STATUS_STALE, "%s: neither model.safetensors nor model.safetensors.index.json is there, and it "
                        "is no checkpoint; weights in another format have to be saved as safetensors", x->path);
    if (folder) {
        snprintf(index, CKPT_PATH, "%s/%s", x->path, found[0]);
        shards = strstr(found[0], "index") != NULL;
        x->index = index;
    }
    int status = shards ? read_index(x) : weights_single(x);
    return status == DONE ? weights_sort(x) : status;
}

void weights_close(Weights *x)
{
    for (int i = 0; i < x->shards; i++) {
        if (x->shard[i].open)
            safe_close(&x->shard[i].file);
        free(x->shard[i].path);
    }
    for (int i = 0; i < x->tensors; i++)
        free(x->tensor[i].name);
    free(x->shard);
    free(x->tensor);
}

/* ---- who takes what ---------------------------------------------------------------------------------------------- */

Listed *weights_named(const Weights *x, const char *name)
{
    Listed key = {.name = (char *)(uintptr_t)name};
    return x->tensors ? bsearch(&key, x->tensor, (size_t)x->tensors, sizeof key, by_name) : NULL;
}

/* With the prefix, without it, or as it is. */
Listed *weights_prefixed(const Weights *x, const char *name)
{
    char longer[2 * WEIGHTS_NAME];
    const char *prefix = x->job->prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    Listed *found = weights_named(x, name);
    if (!found && n && (size_t)snprintf(longer, sizeof longer, "%s%s", prefix, name) < sizeof longer)
        found = weights_named(x, longer);
    if (!found && n && !strncmp(name, prefix, n))
        found = weights_named(x, name + n);
    return found;
}

static Listed *tensor_of(const Weights *x, const Published *p)
{
    Listed *found = weights_prefixed(x, p->in.file);
    return found || !p->in.also ? found : weights_prefixed(x, p->in.also);
}

/* An adapter by the name that it has here. */
static Listed *adapter(const Weights *x, const StateInfo *s)
{
    return s->files == FILES_MAY ? weights_prefixed(x, s->name) : NULL;
}

int weights_untaken(const char *from, const char *tensor)
{
    return complain(STATUS_STALE, "%s: no parameter takes tensor `%s`: is it another model?  If it is not wanted, name it in "
                    "the model file, weights: {ignore: [...]}", from, tensor);
}

/* Every parameter of the whole job has a tensor, and every tensor of a folder a parameter; a file by itself may hold more. */
static int check_parameter(Weights *x, const StateInfo *s)
{
    if (adapter(x, s))
        adapter(x, s)->used = true;
    for (int piece = 0; piece < weights_pieces(x->job, s); piece++) {
        Published p = weights_place(x->job, s, piece);
        Listed *found = tensor_of(x, &p);
        if (found && s->files == FILES_GET)
            found->used = true;
        if (s->files == FILES_GET)
            continue;
        bool other = strcmp(p.in.file, s->name) != 0;
        if (!found && job_parts.described && weights_pieces(x->job, s) == 1 && job_parts.described->take_four(x, &p))
            continue;
        if (!found)
            return complain(STATUS_STALE, "%s: tensor `%s`%s%s%s is missing: are these weights of another model?", x->index,
                            p.in.file, other ? " of parameter `" : "", other ? s->name : "", other ? "`" : "");
        found->used = true;
    }
    return DONE;
}

static int check_names(Weights *x)
{
    for (int k = 0; k < x->job->stages; k++)
        for (int i = 0; i < x->job->stage[k].states; i++) {
            const StateInfo *s = &x->job->stage[k].state[i];
            int status = s->kind == STATE_PARAM ? check_parameter(x, s) : DONE;
            if (status != DONE)
                return status;
        }
    for (int i = 0; i < x->tensors && x->index != x->path; i++)
        if (!x->tensor[i].used && !(job_parts.described && job_parts.described->passes(x, &x->tensor[i])))
            return weights_untaken(x->index, x->tensor[i].name);
    return DONE;
}

/* ---- the numbers ------------------------------------------------------------------------------------------------- */

int weights_refuse(const SafeFile *f, const SafeTensor *t, const Published *p, bool adapter)
{
    char is[256], wants[256];
    Text x = {is, 0, sizeof is}, y = {wants, 0, sizeof wants};
    safe_shape(&x, t->ndim, t->dim);
    safe_shape(&y, p->ndim, p->dim);
    return complain(STATUS_STALE, "%s: tensor `%s` is %s, and parameter `%s` wants %s: %s", f->path, t->name, is, p->in.name,
                    wants, adapter ? "set adapt.rank to that of the adapter" : "the dims of the model are other ones");
}

/* The tensor in its file; type: how its numbers stand there, f, h, b or i, NULL: whatever they are. */
int weights_find_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t, char *type)
{
    *shard = &x->shard[listed->shard];
    int status = open_shard(x, *shard);
    *t = status == DONE ? safe_find(&(*shard)->file, listed->name) : NULL;
    if (status == DONE && !*t)
        return complain(STATUS_STALE, "%s: tensor `%s` is missing, though %s promises it", (*shard)->path, listed->name,
                        x->index);
    if (status != DONE || !type)
        return status;
    *type = safe_type(*t);
    return *type ? DONE : complain(STATUS_STALE, "%s: tensor `%s` is %s; F32, F16, BF16, and I64 of counters, are read",
                                   (*shard)->path, listed->name, (*t)->type);
}

static int read_piece(Weights *x, const StateInfo *s, int piece, float *values)
{
    Published p = weights_place(x->job, s, piece);
    Shard *shard;
    const SafeTensor *t;
    char type;
    bool adapts = s->files == FILES_MAY;
    Listed *from = adapts ? job_parts.adapters->tensor(x, s) : tensor_of(x, &p);
    if (!from)
        return job_parts.described->read_four(x, s, &p, values);
    int status = weights_find_tensor(x, from, &shard, &t, &type);
    if (status != DONE)
        return status;
    bool counter = t->ndim == 0 && p.n == 1;            /* PyTorch's num_batches_tracked is a scalar */
    if (!counter && (t->ndim != p.ndim || memcmp(t->dim, p.dim, (size_t)p.ndim * sizeof *p.dim)))
        return weights_refuse(&shard->file, t, &p, adapts);
    Rows r = place_rows(&p, s);
    values += place_first(&p);
    int size = type == 'f' ? 4 : type == 'i' ? 8 : 2;
    for (int64_t i = 0; i < r.rows; i++)
        safe_widen(values + i * r.width, safe_numbers(&shard->file, t) + place_row(&p, &r, i) * size, type, r.step, r.width);
    return DONE;
}

int weights_parameter(Weights *x, Worker *w, const StateInfo *s)
{
    float *values = malloc((size_t)s->n * sizeof *values + 1);
    int status = values ? DONE : complain(STATUS_RUN, "no memory to read `%s`", s->name);
    int pieces = s->files == FILES_MAY ? 1 : weights_pieces(x->job, s);
    for (int piece = 0; status == DONE && piece < pieces; piece++)
        status = read_piece(x, s, piece, values);
    if (status == DONE && job_parts.described)
        status = job_parts.described->compare(x, s, values);
    if (status == DONE)
        init_place(w, s, 0, values, 0, s->n);
    free(values);
    return status;
}

int weights_read(Run *run, const char *path)
{
    char index[CKPT_PATH];
    Weights x = {.job = run->job, .path = path};
    int status = open_weights(&x, index);
    if (status == DONE)
        status = check_names(&x);
    for (int k = 0; k < run->count; k++)
        for (int i = 0; i < run->worker[k].info->states && status == DONE; i++) {
            const StateInfo *s = &run->worker[k].info->state[i];
            if (s->kind == STATE_PARAM && (s->files == FILES_HOLD || adapter(&x, s)))
                status = weights_parameter(&x, &run->worker[k], s);
        }
    weights_close(&x);
    return status;
}
