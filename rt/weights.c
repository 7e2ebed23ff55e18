/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: starting from published weights: one safetensors file, or the shards of a model.safetensors.index.json.
 *
 * The job knows each parameter's tensor: its name, or one row of the table `stored`.  A tensor may have its axes the other way
 * round (GPT-2), hold several parameters below each other (Phi-3), or do so head by head (GPT-NeoX).  A prefix may stand before
 * all names, or be missing there.  Files are mapped; a process opens those shards that it needs.  F32, F16 and BF16 are
 * widened, which is exact.  So is MXFP4 (Open Compute Project, Microscaling formats, 2023): NAME_blocks has 32 numbers of 4
 * bits in 16 bytes, the lower bits first, and NAME_scales a power of two for each of them, in the order of the parameter.
 *
 * Refused with status 5, before anything is trained: a tensor that is missing, of another shape or of another type; one that
 * a folder has, nobody takes and `ignore` does not name; a copy, such as the head of a tied table, that differs from its
 * parameter; a shard that is missing; an index that is no index; a folder with two lists of tensors, which may differ.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "ckpt.h"
#include "data.h"
#include "json.h"
#include "real.h"
#include "safetensors.h"
#include "weights.h"

enum { NAME = 512 };

typedef struct { char *path; bool open; SafeFile file; } Shard;
typedef struct { char *name; int shard; bool used; } Listed;
typedef struct {
    const Job *job;
    const char *path;           /* as the user gave it */
    const char *index;          /* file that lists the tensors: that of the index, or the only one */
    Shard *shard;
    int shards;
    Listed *tensor;             /* by name */
    int tensors;
} Weights;

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

static char *copied(const char *text)
{
    char *to = malloc(strlen(text) + 1);
    return to ? strcpy(to, text) : NULL;
}

static bool list(Weights *x, const char *name, int shard)
{
    Listed *more = x->tensors % 256 ? x->tensor : realloc(x->tensor, ((size_t)x->tensors + 256) * sizeof *more);
    char *copy = copied(name);
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
    char *copy = copied(path);
    if (more)
        x->shard = more;
    if (!more || !copy) {
        free(copy);
        return -1;
    }
    x->shard[x->shards] = (Shard){.path = copy};
    return x->shards++;
}

static bool read_map(Json *j, Weights *x)
{
    char name[NAME], file[NAME], path[CKPT_PATH];
    for (bool first = true; json_member(j, &first, name, sizeof name);) {
        if (!json_string(j, file, sizeof file))
            return false;
        if (strchr(file, '/') || file[0] == '.' || !file[0])
            j->why = "a file name that leads out of the folder";
        else if ((size_t)snprintf(path, sizeof path, "%s/%s", x->path, file) >= sizeof path)
            j->why = "a path that is too long";
        int shard = j->why ? -1 : shard_of(x, path);
        if (!j->why && (shard < 0 || !list(x, name, shard)))
            j->why = "no memory";
    }
    return !j->why;
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
        else if (map ? !read_map(&j, x) : !json_skip(&j))
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

static int read_single(Weights *x)
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
    int status = shards ? read_index(x) : read_single(x);
    if (status == DONE && x->tensors > 1)
        qsort(x->tensor, (size_t)x->tensors, sizeof *x->tensor, by_name);
    for (int i = 1; i < x->tensors && status == DONE; i++)
        if (!by_name(&x->tensor[i - 1], &x->tensor[i]))
            status = complain(STATUS_STALE, "%s: tensor `%s` is listed twice", x->index, x->tensor[i].name);
    return status;
}

static void close_weights(Weights *x)
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

static Listed *named(const Weights *x, const char *name)
{
    Listed key = {.name = (char *)(uintptr_t)name};
    return x->tensors ? bsearch(&key, x->tensor, (size_t)x->tensors, sizeof key, by_name) : NULL;
}

/* With the prefix, without it, or as it is. */
static Listed *prefixed(const Weights *x, const char *name)
{
    char longer[2 * NAME];
    const char *prefix = x->job->prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    Listed *found = named(x, name);
    if (!found && n && (size_t)snprintf(longer, sizeof longer, "%s%s", prefix, name) < sizeof longer)
        found = named(x, longer);
    if (!found && n && !strncmp(name, prefix, n))
        found = named(x, name + n);
    return found;
}

static Listed *tensor_of(const Weights *x, const Published *p)
{
    Listed *found = prefixed(x, p->in.file);
    return found || !p->in.also ? found : prefixed(x, p->in.also);
}

/* NAME_blocks or NAME_scales */
static Listed *part_of_four(const Weights *x, const Published *p, const char *what)
{
    char name[2 * NAME];
    return (size_t)snprintf(name, sizeof name, "%s_%s", p->in.file, what) < sizeof name ? prefixed(x, name) : NULL;
}

static bool ignored(const Weights *x, const char *name)
{
    for (const char *const *pattern = x->job->ignored; pattern && *pattern; pattern++)
        if (fnmatch(*pattern, name, 0) == 0)
            return true;
    return false;
}

/* Another tensor that holds a parameter once more. */
static bool copies(const Weights *x, const Listed *tensor)
{
    for (const CopyInfo *c = x->job->copied; c && c->file; c++)
        if (prefixed(x, c->file) == tensor)
            return true;
    return false;
}

/* An adapter by the name that it has here. */
static Listed *adapter(const Weights *x, const StateInfo *s)
{
    return s->files == FILES_MAY ? prefixed(x, s->name) : NULL;
}

/* ... and by that which PEFT gives it: base_model.model., the tensor of the weight without .weight, .lora_A.weight. */
static Listed *adapter_of_peft(const Weights *x, const StateInfo *s)
{
    char base[NAME], name[3 * NAME];
    const char *tail = strstr(s->name, ".lora_"), *prefix = x->job->prefix ? x->job->prefix : "";
    for (const char *next = tail; next; next = strstr(next + 1, ".lora_"))
        tail = next;
    if (!tail || (size_t)snprintf(base, sizeof base, "%.*s.weight", (int)(tail - s->name), s->name) >= sizeof base)
        return NULL;
    for (int i = 0; i < x->job->stored_n; i++)
        if (!strcmp(x->job->stored[i].name, base))
            snprintf(base, sizeof base, "%s", x->job->stored[i].file);
    size_t n = strlen(base), k = strlen(".weight"), m = strlen(prefix);
    n = n > k && !strcmp(base + n - k, ".weight") ? n - k : n;
    snprintf(name, sizeof name, "base_model.model.%.*s%s", (int)n, base, tail);
    Listed *found = named(x, name);
    snprintf(name, sizeof name, "base_model.model.%s%.*s%s", prefix, (int)n, base, tail);
    found = found ? found : named(x, name);
    if (!found && m && !strncmp(base, prefix, m)) {
        snprintf(name, sizeof name, "base_model.model.%.*s%s", (int)(n - m), base + m, tail);
        found = named(x, name);
    }
    return found;
}

static Listed *adapter_of(const Weights *x, const StateInfo *s)
{
    Listed *here = adapter(x, s);
    return here ? here : adapter_of_peft(x, s);
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
        Listed *blocks = found ? NULL : part_of_four(x, &p, "blocks"), *scales = blocks ? part_of_four(x, &p, "scales") : NULL;
        if (scales && weights_pieces(x->job, s) == 1) {
            blocks->used = scales->used = true;
            continue;
        }
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
        if (!x->tensor[i].used && !ignored(x, x->tensor[i].name) && !copies(x, &x->tensor[i]))
            return complain(STATUS_STALE, "%s: no parameter takes tensor `%s`: is it another model?  If it is not wanted, "
                            "name it in the model file, weights: {ignore: [...]}", x->index, x->tensor[i].name);
    return DONE;
}

/* ---- the numbers ------------------------------------------------------------------------------------------------- */

static void widen(float *to, const unsigned char *from, char type, int64_t step, int64_t n)
{
    if (type == 'f' && step == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else for (int64_t i = 0; i < n; i++)
        to[i] = type == 'h' ? half_float((uint16_t)data_bits(from + 2 * i * step, 2))
              : type == 'b' ? bf16_float((uint16_t)data_bits(from + 2 * i * step, 2))
              : type == 'i' ? (float)(int64_t)data_bits(from + 8 * i * step, 8)
              : bits_float((uint32_t)data_bits(from + 4 * i * step, 4));
}

static void add_shape(Text *t, int n, const int64_t *dim)
{
    text_add(t, "[");
    for (int i = 0; i < n; i++)
        text_add(t, "%s%lld", i ? " " : "", (long long)dim[i]);
    text_add(t, "]");
}

static int refuse_shape(const SafeFile *f, const SafeTensor *t, const Published *p, bool adapter)
{
    char is[256], wants[256];
    Text x = {is, 0, sizeof is}, y = {wants, 0, sizeof wants};
    add_shape(&x, t->ndim, t->dim);
    add_shape(&y, p->ndim, p->dim);
    return complain(STATUS_STALE, "%s: tensor `%s` is %s, and parameter `%s` wants %s: %s", f->path, t->name, is, p->in.name,
                    wants, adapter ? "set adapt.rank to that of the adapter" : "the dims of the model are other ones");
}

/* The tensor in its file. */
static int open_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t)
{
    *shard = &x->shard[listed->shard];
    int status = open_shard(x, *shard);
    *t = status == DONE ? safe_find(&(*shard)->file, listed->name, "") : NULL;
    if (status == DONE && !*t)
        return complain(STATUS_STALE, "%s: tensor `%s` is missing, though %s promises it", (*shard)->path, listed->name,
                        x->index);
    return status;
}

/* ... and how its numbers stand there: f, h, b or i. */
static int find_tensor(Weights *x, const Listed *listed, Shard **shard, const SafeTensor **t, char *type)
{
    int status = open_tensor(x, listed, shard, t);
    if (status != DONE)
        return status;
    const char *is = (*t)->type;
    *type = !strcmp(is, "F32") ? 'f' : !strcmp(is, "F16") ? 'h' : !strcmp(is, "BF16") ? 'b' : !strcmp(is, "I64") ? 'i' : 0;
    return *type ? DONE : complain(STATUS_STALE, "%s: tensor `%s` is %s; F32, F16, BF16, and I64 of counters, are read",
                                   (*shard)->path, listed->name, is);
}

static const unsigned char *numbers_of(const Shard *shard, const SafeTensor *t)
{
    return shard->file.at + shard->file.data + t->from;
}

/* 4 bits are a sign, and a number of these; 255 is the scale of no number. */
static void widen_four(float *to, const unsigned char *blocks, const unsigned char *scales, int64_t n)
{
    static const float number[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int64_t i = 0; i < n; i++) {
        unsigned bits = blocks[i / 2] >> (i % 2 * 4) & 15, scale = scales[i / 32];
        float power = scale == 255 ? bits_float(0x7fc00000) : scale ? bits_float((uint32_t)scale << 23) : bits_float(1u << 22);
        to[i] = power * (bits & 8 ? -number[bits & 7] : number[bits & 7]);
    }
}

static int read_four(Weights *x, const StateInfo *s, const Published *p, float *values)
{
    static const char *const part[] = {"blocks", "scales"};
    const unsigned char *at[2];
    for (int i = 0; i < 2; i++) {
        Shard *shard;
        const SafeTensor *t;
        int status = open_tensor(x, part_of_four(x, p, part[i]), &shard, &t);
        if (status != DONE)
            return status;
        Published want = place_of(NULL, s);
        int last = want.ndim - 1;
        if (last < 0 || last > 4 || want.dim[last] % 32)
            return refuse_shape(&shard->file, t, &want, false);
        want.dim[last] /= 32;
        want.dim[want.ndim] = 16;
        want.ndim += !i;
        if ( t->ndim != want.ndim || memcmp(t->dim, want.dim, (size_t)want.ndim * sizeof *want.dim))
            return refuse_shape(&shard->file, t, &want, false);
        if (strcmp(t->type, "U8"))
            return complain(STATUS_STALE, "%s: tensor `%s` is %s; bytes, U8, hold numbers of 4 bits and their scales",
                            shard->path, t->name, t->type);
        at[i] = numbers_of(shard, t);
    }
    widen_four(values, at[0], at[1], s->n);
    return DONE;
}

static int read_piece(Weights *x, const StateInfo *s, int piece, float *values)
{
    Published p = weights_place(x->job, s, piece);
    Shard *shard;
    const SafeTensor *t;
    char type;
    bool adapts = s->files == FILES_MAY;
    Listed *from = adapts ? adapter_of(x, s) : tensor_of(x, &p);
    if (!from)
        return read_four(x, s, &p, values);
    int status = find_tensor(x, from, &shard, &t, &type);
    if (status != DONE)
        return status;
    bool counter = t->ndim == 0 && p.n == 1;            /* PyTorch's num_batches_tracked is a scalar */
    if (!counter && (t->ndim != p.ndim || memcmp(t->dim, p.dim, (size_t)p.ndim * sizeof *p.dim)))
        return refuse_shape(&shard->file, t, &p, adapts);
    Rows r = place_rows(&p, s);
    values += place_first(&p);
    int size = type == 'f' ? 4 : type == 'i' ? 8 : 2;
    for (int64_t i = 0; i < r.rows; i++)
        widen(values + i * r.width, numbers_of(shard, t) + place_row(&p, &r, i) * size, type, r.step, r.width);
    return DONE;
}

/* Tied in the model, and perhaps not in the file: what would be lost by passing over it is worth a word. */
static int compare_copy(Weights *x, const CopyInfo *c, const StateInfo *s, const float *values)
{
    enum { SOME = 1024 };
    float some[SOME];
    const Listed *listed = prefixed(x, c->file);
    Published p = place_of(NULL, s);
    Shard *shard;
    const SafeTensor *t;
    char type;
    if (!listed || listed->used)
        return DONE;
    int status = find_tensor(x, listed, &shard, &t, &type);
    if (status != DONE)
        return status;
    bool same = t->ndim == p.ndim && !memcmp(t->dim, p.dim, (size_t)p.ndim * sizeof *p.dim);
    int size = type == 'f' ? 4 : type == 'i' ? 8 : 2;
    for (long i = 0, n; same && i < s->n; i += n) {
        n = s->n - i < SOME ? s->n - i : SOME;
        widen(some, numbers_of(shard, t) + i * size, type, 1, n);
        same = !memcmp(some, values + i, (size_t)n * sizeof *some);
    }
    return same ? DONE : complain(STATUS_STALE, "%s: tensor `%s` differs from `%s`, and this model has one parameter for both; "
                                  "generate the job from a model file that does not tie them (config.json: "
                                  "tie_word_embeddings)", shard->path, listed->name, s->name);
}

static int read_parameter(Weights *x, Worker *w, const StateInfo *s)
{
    float *values = malloc((size_t)s->n * sizeof *values + 1);
    int status = values ? DONE : complain(STATUS_RUN, "no memory to read `%s`", s->name);
    int pieces = s->files == FILES_MAY ? 1 : weights_pieces(x->job, s);
    for (int piece = 0; status == DONE && piece < pieces; piece++)
        status = read_piece(x, s, piece, values);
    for (const CopyInfo *c = x->job->copied; status == DONE && c && c->file; c++)
        if (!strcmp(c->name, s->name))
            status = compare_copy(x, c, s, values);
    if (status == DONE)
        init_place(w, s, 0, values, 0, s->n);
    free(values);
    return status;
}

static bool to_read(const Weights *x, const StateInfo *s)
{
    return s->kind == STATE_PARAM && (s->files == FILES_HOLD || adapter(x, s));
}

int weights_read(Run *run, const char *path)
{
    char index[CKPT_PATH];
    Weights x = {.job = run->job, .path = path};
    int status = open_weights(&x, index);
    if (status == DONE)
        status = check_names(&x);
    for (int k = 0; k < run->count; k++)
        for (int i = 0; i < run->worker[k].info->states && status == DONE; i++)
            if (to_read(&x, &run->worker[k].info->state[i]))
                status = read_parameter(&x, &run->worker[k], &run->worker[k].info->state[i]);
    close_weights(&x);
    return status;
}

/* adapter_config.json beside it: another factor would make another model of the same tensors.  A value may end the file, and
 * nothing is mapped behind that: each is copied. */
static int check_adapter(const Job *job, const char *dir)
{
    static const char *const cannot[] = {"use_dora", "use_rslora", "alpha_pattern", "rank_pattern"};
    char path[CKPT_PATH], key[64], word[64];
    struct stat info;
    DataFile f = {0};
    double rank = -1, alpha = -1;
    const char *undone = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/adapter_config.json", dir) >= sizeof path || stat(path, &info) != 0)
        return DONE;
    int status = data_stale(data_map(&f, path, "adapter"));
    Json j = json_open(status == DONE ? f.at : NULL, f.size);
    for (bool first = true; status == DONE && json_member(&j, &first, key, sizeof key);) {
        JsonPart value = json_value(&j);
        snprintf(word, sizeof word, "%.*s", (int)(value.n < sizeof word ? value.n : sizeof word - 1), value.at);
        if (!strcmp(key, "r") || !strcmp(key, "lora_alpha"))
            *(*key == 'r' ? &rank : &alpha) = strtod(word, NULL);
        bool is = *word == 't' || (*word == '{' && word[1 + strspn(word + 1, " \t\r\n")] != '}');
        for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++)
            undone = is && !strcmp(key, cannot[i]) ? cannot[i] : undone;
    }
    if (status == DONE && !json_end(&j))
        status = complain(STATUS_STALE, "%s: byte %ld: %s", path, (long)(j.at - j.from), j.why);
    data_unmap(&f);
    if (status == DONE && undone)
        return complain(STATUS_STALE, "%s: %s is not done here; every adapter has one rank, and B A the factor alpha / rank",
                        path, undone);
    if (status == DONE && rank > 0 && alpha / rank != job->adapter->alpha / (double)job->adapter->rank)
        return complain(STATUS_STALE, "%s: alpha %g and rank %g, and this job has %g and %ld: set adapt.alpha and adapt.rank, "
                        "and generate it anew", path, alpha, rank, job->adapter->alpha, job->adapter->rank);
    return status;
}

static bool is_adapter(const StateInfo *s)
{
    return s->kind == STATE_PARAM && s->files == FILES_MAY;
}

/* Every adapter of the whole job has a tensor, and every tensor an adapter. */
static int check_adapters(Weights *x)
{
    for (int k = 0; k < x->job->stages; k++)
        for (int i = 0; i < x->job->stage[k].states; i++) {
            const StateInfo *s = &x->job->stage[k].state[i];
            Listed *found = is_adapter(s) ? adapter_of(x, s) : NULL;
            if (found)
                found->used = true;
            else if (is_adapter(s))
                return complain(STATUS_STALE, "%s: there is no tensor for `%s`: does adapt.match name other operators than "
                                "this adapter has?", x->index, s->name);
        }
    for (int i = 0; i < x->tensors; i++)
        if (!x->tensor[i].used && !ignored(x, x->tensor[i].name))
            return complain(STATUS_STALE, "%s: no adapter of this job takes tensor `%s`: does adapt.match name fewer operators "
                            "than it has?  If it is not wanted, name it in the model file, weights: {ignore: [...]}", x->index,
                            x->tensor[i].name);
    return DONE;
}

int weights_adapter(Run *run, const char *path)
{
    char index[CKPT_PATH];
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    Weights x = {.job = run->job, .path = path, .index = path};
    if (folder && (size_t)snprintf(index, sizeof index, "%s/adapter_model.safetensors", path) < sizeof index)
        x.index = index;
    int status = folder ? check_adapter(run->job, path) : DONE;
    if (status == DONE)
        status = read_single(&x);
    if (status == DONE && x.tensors > 1)
        qsort(x.tensor, (size_t)x.tensors, sizeof *x.tensor, by_name);
    if (status == DONE)
        status = check_adapters(&x);
    for (int k = 0; k < run->count; k++)
        for (int i = 0; i < run->worker[k].info->states && status == DONE; i++)
            if (is_adapter(&run->worker[k].info->state[i]))
                status = read_parameter(&x, &run->worker[k], &run->worker[k].info->state[i]);
    close_weights(&x);
    return status;
}
