/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: dpgen export CHECKPOINT --hf DIR: the parameters of a checkpoint as published weights; --adapter DIR: its
 * adapters alone.
 *
 * index.json of a checkpoint says how files of published weights name, turn and stack its parameters, so no model file is
 * needed.  COMMIT vouches for index.json, and that for the files by SHA-256.  Tensors go by name into files of at most --shard
 * bytes, or into those that have them in a published model, --like; its other files are copied then.  The index comes last.
 *
 * Everything is checked before anything is written.  Cost: a pass over the parameters, a tensor in memory at a time.
 */
#include "hf.h"
#include "rt/json.h"
#include "rt/place.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

enum { NAME = 512, SHA = 65 };

typedef struct { const char *name; const char *sha; int64_t bytes; SafeFile *file; } ExportStored;
/* up, down: its adapter is up times down; NULL: there is none */
typedef struct { StoredInfo in; const SafeTensor *from, *up, *down; StateInfo state; } ExportParameter;
typedef struct { SafeTensor as; int first, n, shard; } ExportTensor;    /* parameters first .. first+n-1 are in it */
typedef struct {
    const char *dir, *type;
    VEC(ExportStored) file;
    VEC(ExportParameter) parameter; /* by tensor, then by row */
    VEC(ExportTensor) tensor;       /* by name */
    Strs shard;                     /* names of files to write */
    Strs adapted;                   /* operators that have an adapter */
    int64_t rank;                   /* of each; 0: there are none */
    double alpha, dropout;
} Export;

static NORETURN void misuse(const char *why)
{
    fail(EXIT_USAGE, "export: %s; write dpgen export CHECKPOINT --hf DIR", why);
}

static bool there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* ---- the checkpoint ---------------------------------------------------------------------------------------------------- */

/* A directory of checkpoints is its newest one. */
static const char *newest(const char *dir)
{
    const char *found = NULL;
    if (there(strf("%s/index.json", dir)))
        return dir;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *path = strf("%s/%s", dir, e->d_name);
        bool step = !strncmp(e->d_name, "step-", 5) && strspn(e->d_name + 5, "0123456789") == strlen(e->d_name + 5);
        if (step && there(strf("%s/COMMIT", path)) && (!found || strlen(path) > strlen(found) ||
            (strlen(path) == strlen(found) && strcmp(path, found) > 0)))
            found = path;
    }
    if (d)
        closedir(d);
    if (!found)
        fail(EXIT_STALE, "%s: there is no checkpoint: name step-N of a job, or the directory that has them", dir);
    return found;
}

static void check_sha(const char *path, const void *at, size_t n, const char *want)
{
    if (strncmp(sha256_of(at, n), want, SHA - 1))
        fail(EXIT_STALE, "%s is damaged: its SHA-256 is not the one that the checkpoint has; take an older checkpoint", path);
}

static void read_parameter(Json *j, ExportParameter *p)
{
    char text[NAME];
    int64_t x[6] = {0};
    int n = 0;
    for (bool first = true; json_member(j, &first, NULL, 0) && !j->why; n++)
        if (n < 2 && json_string(j, text, sizeof text))
            *(n ? &p->in.file : &p->in.name) = strf("%s", text);
        else if (n >= 2 && n < 8)
            json_integer(j, &x[n - 2]);
        else
            json_skip(j);
    if (!j->why && ((n != 6 && n != 8) || x[3] < 1 || x[0] > 1 || (n == 8 && x[4] >= x[5])))
        j->why = "a parameter has two names, and four or six numbers";
    p->in.turn = (int)x[0], p->in.from = (long)x[1], p->in.rows = (long)x[2], p->in.groups = (long)x[3];
    p->in.piece = (long)x[4], p->in.pieces = (long)x[5];
}

static void read_published(Json *j, Export *x)
{
    char key[32], type[8];
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!strcmp(key, "type") && json_string(j, type, sizeof type))
            x->type = strf("%s", type);
        else if (!strcmp(key, "parameters"))
            for (bool next = true; json_member(j, &next, NULL, 0) && !j->why;)
                read_parameter(j, PUSH(&x->parameter));
        else
            json_skip(j);
}

static void read_adapters(Json *j, Export *x)
{
    char key[32], text[NAME];
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!strcmp(key, "rank"))
            json_integer(j, &x->rank);
        else if ((!strcmp(key, "alpha") || !strcmp(key, "dropout")) && json_string(j, text, sizeof text))
            *(*key == 'a' ? &x->alpha : &x->dropout) = number_decimal(text, strlen(text));
        else if (!strcmp(key, "of"))
            for (bool next = true; json_member(j, &next, NULL, 0) && json_string(j, text, sizeof text);)
                *PUSH(&x->adapted) = strf("%s", text);
        else
            json_skip(j);
    if (!j->why && x->rank < 1)
        j->why = "adapters have a rank";
}

static void read_files(Json *j, Export *x)
{
    char key[32], text[128];
    for (bool next = true; json_member(j, &next, NULL, 0) && !j->why;) {
        ExportStored *s = PUSH(&x->file);
        s->name = s->sha = "";
        for (bool first = true; json_member(j, &first, key, sizeof key);)
            if ((!strcmp(key, "name") || !strcmp(key, "sha256")) && json_string(j, text, sizeof text))
                *(*key == 'n' ? &s->name : &s->sha) = strf("%s", text);
            else if (!strcmp(key, "bytes"))
                json_integer(j, &s->bytes);
            else
                json_skip(j);
        if (!j->why && (strchr(s->name, '/') || *s->name == '.' || !*s->name))
            j->why = "a file name that leads out of the checkpoint";
    }
}

static void read_index(Export *x, const char *path, const char *text, size_t n)
{
    char key[32];
    Json j = json_open(text, n);
    for (bool first = true; json_member(&j, &first, key, sizeof key);)
        if (!strcmp(key, "files"))
            read_files(&j, x);
        else if (strcmp(key, "metadata"))
            json_skip(&j);
        else for (bool in = true; json_member(&j, &in, key, sizeof key);)
            if (!strcmp(key, "published"))
                read_published(&j, x);
            else if (!strcmp(key, "adapters"))
                read_adapters(&j, x);
            else
                json_skip(&j);
    if (!json_end(&j))
        fail(EXIT_STALE, "%s: byte %ld: %s", path, (long)(j.at - j.from), j.why);
    if (!x->type || safe_bytes(x->type, 0, NULL) < 0)
        fail(EXIT_STALE, "%s: it does not say how its parameters are published: an older dpgen made the job; take "
             "out/train --weights %s --steps 0 --export DIR", path, x->dir);
}

static void open_checkpoint(Export *x)
{
    size_t n, commit_n;
    const char *path = strf("%s/index.json", x->dir), *commit = strf("%s/COMMIT", x->dir);
    const char *text = (const char *)file_map(path, EXIT_STALE, &n);
    const char *sum = (const char *)file_map(commit, EXIT_STALE, &commit_n);
    if (commit_n < SHA - 1)
        fail(EXIT_STALE, "%s is cut short: the checkpoint is damaged; take an older one", commit);
    check_sha(path, text, n, sum);
    read_index(x, path, text, n);
    for (EACH(ExportStored, s, x->file)) {
        const char *name = strf("%s/%s", x->dir, s->name);
        const unsigned char *at = file_map(name, EXIT_STALE, &n);
        check_sha(name, at, n, s->sha);
        s->file = safe_open(name);
    }
}

/* ---- tensors --------------------------------------------------------------------------------------------------------- */

ORDER(by_place, ExportParameter, strcmp(x->in.file, y->in.file), order_of(x->in.from, y->in.from))

static const SafeTensor *stored_tensor(const Export *x, const char *name)
{
    const SafeTensor *t = NULL;
    for (int i = 0; i < x->file.n && !t; i++)
        t = safe_find(x->file.at[i].file, name);
    return t;
}

static const SafeTensor *adapter_of(const Export *x, const char *op, const char *part, int64_t rows, int64_t width)
{
    const char *name = strf("%s.%s.weight", op, part);
    const SafeTensor *t = stored_tensor(x, name);
    if (!t || strcmp(t->type, "F32") || t->ndim != 2 || t->dim[0] != rows || t->dim[1] != width)
        fail(EXIT_STALE, "%s: '%s' is not there as F32 %lld x %lld", x->dir, name, (long long)rows, (long long)width);
    return t;
}

static void find_parameter(const Export *x, ExportParameter *p)
{
    p->from = stored_tensor(x, p->in.name);
    const SafeTensor *t = p->from;
    if (!t || strcmp(t->type, "F32") || t->ndim > 6)
        fail(EXIT_STALE, "%s: parameter '%s' is not there as F32", x->dir, p->in.name);
    p->state = (StateInfo){.name = p->in.name, .ndim = t->ndim, .n = (long)(t->bytes / 4)};
    for (int d = 0; d < t->ndim; d++)
        p->state.dim[d] = (long)t->dim[d];
    if (p->in.pieces && (t->ndim < 2 || t->dim[0] != p->in.pieces || p->in.rows || p->in.turn))
        fail(EXIT_STALE, "%s: parameter '%s' has not %ld parts", x->dir, p->in.name, p->in.pieces);
    if ((p->in.rows || p->in.turn) && (t->ndim < 1 + p->in.turn || t->dim[0] % p->in.groups ||
        (p->in.rows && p->in.from + t->dim[0] / p->in.groups > p->in.rows)))
        fail(EXIT_STALE, "%s: parameter '%s' does not fit into '%s'", x->dir, p->in.name, p->in.file);
    for (int i = 0; i < x->adapted.n; i++) {
        const char *op = x->adapted.at[i];
        if (strcmp(p->in.name, strf("%s.weight", op)))
            continue;
        if (p->from->ndim != 2)
            fail(EXIT_STALE, "%s: '%s' has an adapter, and is no matrix", x->dir, p->in.name);
        p->up = adapter_of(x, op, "lora_B", p->from->dim[0], x->rank);
        p->down = adapter_of(x, op, "lora_A", x->rank, p->from->dim[1]);
    }
}

static void make_tensors(Export *x)
{
    for (int i = 0; i < x->parameter.n; i++)
        find_parameter(x, &x->parameter.at[i]);
    SORT(x->parameter.at, x->parameter.n, by_place);
    for (int i = 0; i < x->parameter.n; i++) {
        const ExportParameter *p = &x->parameter.at[i];
        ExportTensor *last = x->tensor.n ? &x->tensor.at[x->tensor.n - 1] : NULL;
        if (last && !strcmp(last->as.name, p->in.file)) {
            last->n++;
            continue;
        }
        Published place = place_of(&p->in, &p->state);
        ExportTensor t = {.as = {.name = p->in.file, .type = x->type, .ndim = place.ndim}, .first = i, .n = 1};
        memcpy(t.as.dim, place.dim, sizeof place.dim);
        t.as.bytes = safe_bytes(x->type, t.as.ndim, t.as.dim);
        *PUSH(&x->tensor) = t;
    }
}

static double number_at(const SafeTensor *t, int64_t i)
{
    float v;
    memcpy(&v, t->at + 4 * i, sizeof v);
    return (double)v;
}

/* Elements from .. from+n-1 of a weight with alpha / rank B A added in f64, ascending, and rounded once. */
static void merge(float *row, const Export *x, const ExportParameter *p, int64_t from, int64_t n)
{
    int64_t width = p->up ? p->from->dim[1] : 1;
    for (int64_t i = 0; p->up && i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < x->rank; k++)
            sum += number_at(p->up, (from + i) / width * x->rank + k) * number_at(p->down, k * width + (from + i) % width);
        row[i] = (float)((double)row[i] + x->alpha / (double)x->rank * sum);
    }
}

/* Its bytes: each parameter, row by row, where it belongs. */
static void write_tensor(FILE *f, const Export *x, const ExportTensor *t)
{
    int type = !strcmp(x->type, "F16") ? JOB_F16 : !strcmp(x->type, "BF16") ? JOB_BF16 : JOB_F32;
    int size = type == JOB_F32 ? 4 : 2;
    void *mark = mem_mark();
    unsigned char *bytes = alloc((size_t)t->as.bytes + 1);
    for (int i = 0; i < t->n; i++) {
        const ExportParameter *p = &x->parameter.at[t->first + i];
        Published place = place_of(&p->in, &p->state);
        Rows r = place_rows(&place, &p->state);
        float *row = alloc((size_t)r.width * sizeof *row + 1);
        for (int64_t k = 0; k < r.rows; k++) {
            memcpy(row, p->from->at + (place_first(&place) + k * r.width) * 4, (size_t)r.width * 4);
            merge(row, x, p, place_first(&place) + k * r.width, r.width);
            place_narrow(bytes + place_row(&place, &r, k) * size, row, type, r.step, r.width);
        }
    }
    fwrite(bytes, 1, (size_t)t->as.bytes, f);
    mem_release(mark);
}

/* ---- shards ------------------------------------------------------------------------------------------------------------ */

/* Ascending, a file until the next tensor does not fit. */
static void share_out(Export *x, int64_t most)
{
    int64_t used = 0;
    int n = 0;
    for (EACH(ExportTensor, t, x->tensor)) {
        if (n == 0 || used + t->as.bytes > most)
            n++, used = 0;
        used += t->as.bytes;
        t->shard = n - 1;
    }
    for (int i = 0; i < n; i++)
        *PUSH(&x->shard) = n == 1 ? "model.safetensors" : strf("model-%05d-of-%05d.safetensors", i + 1, n);
}

static ExportTensor *tensor_named(const Export *x, const char *name)
{
    ExportTensor key = {.as.name = name};
    return x->tensor.n ? bsearch(&key, x->tensor.at, (size_t)x->tensor.n, sizeof key, text_order) : NULL;
}

/* As another model's index has it. */
static void share_like(Export *x, const char *path)
{
    char key[NAME], file[256];
    size_t n;
    const char *text = file_read(path, "name the folder of a published model", &n);
    Json j = json_open(text, n);
    for (int i = 0; i < x->tensor.n; i++)
        x->tensor.at[i].shard = -1;
    for (bool first = true; json_member(&j, &first, key, sizeof key);)
        if (strcmp(key, "weight_map"))
            json_skip(&j);
        else for (bool next = true; json_member(&j, &next, key, sizeof key) && json_string(&j, file, sizeof file);) {
            ExportTensor *t = tensor_named(x, key);
            if (strchr(file, '/') || *file == '.' || !*file)
                j.why = "a file name that leads out of the folder";
            if (!t || j.why)
                continue;
            t->shard = INDEX_OF(x->shard.at, x->shard.n, file);
            if (t->shard < 0) {
                t->shard = x->shard.n;
                *PUSH(&x->shard) = strf("%s", file);
            }
        }
    if (!json_end(&j))
        fail(EXIT_MODEL, "%s: byte %ld: %s", path, (long)(j.at - j.from), j.why);
    for (int i = 0; i < x->tensor.n; i++)
        if (x->tensor.at[i].shard < 0)
            fail(EXIT_MODEL, "%s does not list tensor '%s' of the checkpoint: is it another model?", path,
                 x->tensor.at[i].as.name);
}

static void write_shard(const Export *x, const char *dir, int shard)
{
    const char *path = strf("%s/%s", dir, x->shard.at[shard]);
    VEC(SafeTensor) list = {0};
    for (int i = 0; i < x->tensor.n; i++)
        if (x->tensor.at[i].shard == shard)
            *PUSH(&list) = x->tensor.at[i].as;
    FILE *f = file_begin(path);
    safe_header(f, list.at, list.n);
    for (int i = 0; i < x->tensor.n; i++)
        if (x->tensor.at[i].shard == shard)
            write_tensor(f, x, &x->tensor.at[i]);
    file_end(f, path);
}

static void write_index(const Export *x, const char *dir)
{
    const char *path = strf("%s/model.safetensors.index.json", dir);
    int64_t bytes = 0;
    for (int i = 0; i < x->tensor.n; i++)
        bytes += x->tensor.at[i].as.bytes;
    FILE *f = file_begin(path);
    fprintf(f, "{\n  \"metadata\": {\n    \"total_parameters\": %lld,\n    \"total_size\": %lld\n  },\n  \"weight_map\": {",
            (long long)(bytes / safe_bytes(x->type, 0, NULL)), (long long)bytes);
    for (int i = 0; i < x->tensor.n; i++)
        fprintf(f, "%s\n    %s: \"%s\"", i ? "," : "", quote_json(x->tensor.at[i].as.name), x->shard.at[x->tensor.at[i].shard]);
    fprintf(f, "\n  }\n}\n");
    file_end(f, path);
}

/* Where none of these files may be. */
static void make_folder(const char *dir, const char *const *names, int n)
{
    files_begin(dir, true);
    for (int i = 0; i < n; i++)
        if (there(strf("%s/%s", dir, names[i])))
            fail(EXIT_USAGE, "%s has %s already; name another folder", dir, names[i]);
}

/* ---- adapters as PEFT has them ------------------------------------------------------------------------------------------ */

/* What PEFT calls an operator: the tensor of its weight, without .weight. */
static const char *peft_name(const Export *x, const char *op)
{
    const char *name = strf("%s.weight", op);
    for (int i = 0; i < x->parameter.n; i++) {
        const StoredInfo *in = &x->parameter.at[i].in;
        const char *stem = text_without(in->file, ".weight");
        if (strcmp(in->name, name))
            continue;
        if (in->rows || in->pieces || !stem)
            fail(EXIT_MODEL, "'%s' is a part of '%s' in published weights, and PEFT has no adapter of a part; merge it with "
                 "--hf", name, in->file);
        return stem;
    }
    fail(EXIT_STALE, "%s: '%s' is not there", x->dir, name);
}

static void write_adapter_config(const Export *x, const char *path)
{
    bool turned = false;
    for (int i = 0; i < x->parameter.n; i++)
        turned |= x->parameter.at[i].up && x->parameter.at[i].in.turn;
    FILE *f = file_begin(path);
    fprintf(f, "{\n  \"peft_type\": \"LORA\",\n  \"r\": %lld,\n  \"lora_alpha\": %.17g,\n  \"lora_dropout\": %.17g,\n"
            "  \"bias\": \"none\",\n  \"fan_in_fan_out\": %s,\n  \"task_type\": null,\n  \"base_model_name_or_path\": null,\n"
            "  \"inference_mode\": true,\n  \"target_modules\": [", (long long)x->rank, x->alpha, x->dropout,
            turned ? "true" : "false");
    for (int i = 0; i < x->adapted.n; i++)
        fprintf(f, "%s\n    %s", i ? "," : "", quote_json(peft_name(x, x->adapted.at[i])));
    fprintf(f, "\n  ]\n}\n");
    file_end(f, path);
}

static void write_adapter(const Export *x, const char *dir)
{
    static const char *const part[] = {"lora_A", "lora_B"};
    static const char *const names[] = {"adapter_model.safetensors", "adapter_config.json"};
    const char *path = strf("%s/%s", dir, names[0]);
    VEC(SafeTensor) list = {0};
    if (!x->adapted.n)
        fail(EXIT_STALE, "%s has no adapters: the job had no section adapt; take --hf", x->dir);
    for (int i = 0; i < x->adapted.n; i++)
        for (int k = 0; k < 2; k++) {
            const SafeTensor *t = stored_tensor(x, strf("%s.%s.weight", x->adapted.at[i], part[k]));
            if (!t || strcmp(t->type, "F32"))
                fail(EXIT_STALE, "%s: '%s.%s.weight' is not there as F32", x->dir, x->adapted.at[i], part[k]);
            *PUSH(&list) = *t;
            list.at[list.n - 1].name = strf("base_model.model.%s.%s.weight", peft_name(x, x->adapted.at[i]), part[k]);
        }
    SORT(list.at, list.n, text_order);
    make_folder(dir, names, 2);
    write_adapter_config(x, strf("%s/%s", dir, names[1]));
    FILE *f = file_begin(path);
    safe_header(f, list.at, list.n);
    for (int i = 0; i < list.n; i++)
        fwrite(list.at[i].at, 1, (size_t)list.at[i].bytes, f);
    file_end(f, path);
    files_end();
    printf("wrote %s: adapters of %s, rank %lld\n", quote_terminal(dir), count_text(x->adapted.n, "operator"),
           (long long)x->rank);
}

/* ---- the command ------------------------------------------------------------------------------------------------------- */

static const char *const others[] = {
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "spiece.model",
    "preprocessor_config.json", NULL
};

static void copy_others(const char *from, const char *dir)
{
    for (const char *const *name = others; *name; name++) {
        const char *path = strf("%s/%s", from, *name), *to = strf("%s/%s", dir, *name);
        size_t n;
        if (!there(path))
            continue;
        const char *text = file_read(path, "name the folder of a published model", &n);
        FILE *f = file_begin(to);
        fwrite(text, 1, n, f);
        file_end(f, to);
    }
}

/* Its index; NULL: its weights are no shards. */
static const char *like_index(const char *like, const char *dir)
{
    static const char *const marks[] = {"model.safetensors.index.json", "model.safetensors", "config.json"};
    struct stat a, b;
    int i = 0;
    if (stat(like, &a) != 0)
        fail(EXIT_USAGE, "--like %s: %s; name the folder of a published model", like, strerror(errno));
    while (i < 3 && !there(strf("%s/%s", like, marks[i])))
        i++;
    if (i == 3)
        fail(EXIT_USAGE, "--like %s: neither weights nor config.json are there; name the folder of a published model", like);
    if (stat(dir, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        fail(EXIT_USAGE, "--like %s is the folder to write: name another one as --hf", like);
    return i == 0 ? strf("%s/%s", like, marks[0]) : NULL;
}

typedef struct { const char *dir, *like, *shard, *adapter; } ExportAsked;
static const Option table[] = {{"--hf", "DIR", WRITES_FOLDER, offsetof(ExportAsked, dir)},
    {"--like", "DIR", READS_FOLDER, offsetof(ExportAsked, like)},
    {"--adapter", "DIR", WRITES_FOLDER, offsetof(ExportAsked, adapter)},
    {"--shard", "SIZE", TAKES_TEXT, offsetof(ExportAsked, shard)}, {0}};

int export_command(int argc, char **argv)
{
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json", "index.json"};
    ExportAsked ask = {0};
    Strs checkpoint = option_words(table, &ask, argc, argv, "the checkpoint", 1, misuse);
    const char *from = checkpoint.n ? checkpoint.at[0] : NULL, *dir = ask.dir;
    const char *index = ask.like && dir ? like_index(ask.like, dir) : NULL;
    if (ask.adapter && (dir || ask.like || ask.shard))
        misuse("--adapter writes adapters alone, and goes with no other option");
    if (ask.adapter && from) {
        Export x = {.dir = newest(from)};
        open_checkpoint(&x);
        make_tensors(&x);
        write_adapter(&x, ask.adapter);
        return 0;
    }
    if (!from || !dir)
        misuse(from ? "no folder to write is named (--hf)" : "no checkpoint is named");
    if (index && ask.shard)
        misuse("the shards are those of --like, and not of --shard");
    const char *text = ask.shard ? ask.shard : "5GB";
    SizeFault fault = {"nothing fits into it", "write it like 5GB"};
    double n = size_read(text, size_bytes, "", "5GB", &fault);
    if (n < 1)
        misuse(strf("--shard: %s: %s", fault.why, fault.hint));
    int64_t most = (int64_t)n;
    Export x = {.dir = newest(from)};
    open_checkpoint(&x);
    make_tensors(&x);
    if (index)
        share_like(&x, index);
    else
        share_out(&x, most);
    make_folder(dir, weights, 3);    /* shards of two checkpoints must not stand beside each other */
    for (int i = 0; i < x.shard.n; i++)
        write_shard(&x, dir, i);
    if (x.shard.n > 1 || index)
        write_index(&x, dir);
    if (ask.like)
        copy_others(ask.like, dir);
    files_end();
    printf("wrote %s: %s of %s, %s\n", quote_terminal(dir), count_text(x.tensor.n, "tensor"), x.type,
           count_text(x.shard.n, "file"));
    return 0;
}
