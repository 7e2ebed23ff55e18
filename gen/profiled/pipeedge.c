/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeedge.c: reads the three files of PipeEdge, as a graph with times by kind of device.
 *
 * Y. Hu et al., Pipeline Parallelism for Inference on Heterogeneous Edge Computing, 2021; github usc-isi/PipeEdge,
 * README_Scheduler.md.  Beside models.yml, which --from names, lie device_types.yml and devices.yml:
 *
 *     google/vit-base:                     Board:                              Board: [host-0, host-1]
 *       layers: 2                            bw_Mbps: 1000
 *       mem_MB: [26.8, 18.9]                 mem_MB: 2048
 *       parameters_in: 150528                model_profiles:
 *       parameters_out: [302592, 151296]       google/vit-base:
 *                                              - {batch_size: 8, dtype: torch.float32, time_s: [0.46, 0.08]}
 *
 * A layer is a node with no backward, and the layers are a chain.  What it leaves is parameters_out numbers of that dtype for
 * each sample.  A type with hosts is a kind of device, and as many devices, in any order.  MB and Mb are 2^20, as there.  A
 * link has the rate of the slower end.
 *
 * The file may have several models: FILE:NAME names one.  Of several profiles of a model the first one counts, and every type
 * with hosts must have one of that batch_size and dtype.  Not read: parameters_in, for no stage sends the input.
 *
 * fails   with err(), file, line and column
 */
#include "foreign.h"
#include <math.h>
#include <unistd.h>

static const double MEGA = 1048576, MOST_S = 1e6, MOST_BYTES = 4398046511104.0;         /* 2^42 */

/* Sought by name: INDEX_OF() looks at the first field. */
typedef struct { const char *name, *type; const Node *profile, *entry; double rate; int hosts; } EdgeKind;
typedef struct { Foreign *f; const char *model; const Node *types; VEC(EdgeKind) kind; } EdgeReader;

/* ---- values ------------------------------------------------------------------------------------------------------- */

static const Node *of_kind(const Node *n, Loc at, NodeKind kind, const char *what, const char *form)
{
    if (!n)
        err(at, form, "there is no %s", what);
    if (n->kind != kind)
        err(n->loc, form, "%s is no %s", what, kind == MAP ? "map" : kind == LIST ? "list" : "number");
    return n;
}

static const Node *entry_of(const Node *map, const char *key, NodeKind kind, const char *form)
{
    return of_kind(node_get(map, key), map->loc, kind, key, form);
}

static const Node *column(const Node *map, const char *key, int layers)
{
    const Node *list = entry_of(map, key, LIST, "a number for each layer");
    if (list->n != layers)
        err(list->loc, NULL, "%s has %s, and the model %s", key, count_text(list->n, "number"), count_text(layers, "layer"));
    return list;
}

static const Node *root_of(const char *path)
{
    const Node *root = load(path);
    return of_kind(root, root->loc, MAP, path, "NAME: {...}");
}

/* ---- kinds of devices ---------------------------------------------------------------------------------------------- */

/* The profile of the model on that type, with the batch and type of numbers of the first one that was taken. */
static const Node *profile_of(const EdgeReader *x, const Node *type, const char *name, Loc asked)
{
    static const char form[] = "- {batch_size: 8, dtype: torch.float32, time_s: [...]}";
    const Node *models = node_get(type, "model_profiles");
    const Node *list = models && models->kind == MAP ? node_get(models, x->model) : NULL;
    if (!list)
        err(asked, "profile it there, or delete these hosts", "type '%s' has no profile of %s", name, x->model);
    of_kind(list, list->loc, LIST, "profile", form);
    for (int i = 0; i < list->n; i++) {
        const Node *n = of_kind(list->at[i], list->loc, MAP, "profile", form);
        const Node *batch = entry_of(n, "batch_size", SCALAR, form), *dtype = entry_of(n, "dtype", SCALAR, form);
        const Node *first = x->kind.n ? x->kind.at[0].profile : n;
        if (!strcmp(batch->text, node_get(first, "batch_size")->text) && !strcmp(dtype->text, node_get(first, "dtype")->text))
            return n;
    }
    err(list->loc, NULL, "type '%s' has no profile of %s with batch_size %s and dtype %s, as type '%s' has", name, x->model,
        node_get(x->kind.at[0].profile, "batch_size")->text, node_get(x->kind.at[0].profile, "dtype")->text,
        x->kind.at[0].type);
}

/* A name that dpgen allows, and that no other kind has. */
static const char *legal_kind(const EdgeReader *x, const char *type)
{
    const char *name = text_plain(strf("%s%.40s", *type >= '0' && *type <= '9' ? "n_" : "", type), C_WORD);
    bool taken = INDEX_OF(x->kind.at, x->kind.n, name) >= 0;
    return taken ? legal_kind(x, strf("%.30s_%d", name, x->kind.n + 1)) : name;
}

static void read_hosts(EdgeReader *x, const Node *fleet)
{
    for (int i = 0; i < fleet->n; i++) {
        const char *type = fleet->key[i]->text;
        const Node *entry = node_get(x->types, type);
        if (!entry)
            err(fleet->key[i]->loc, NULL, "device_types.yml has no type '%s'", type);
        of_kind(entry, entry->loc, MAP, "type", "{bw_Mbps: 1000, mem_MB: 2048, model_profiles: {...}}");
        if (fleet->at[i]->kind != LIST)
            err(fleet->at[i]->loc, strf("%s: [HOST, HOST]", type), "the hosts of type '%s' are no list", type);
        if (!fleet->at[i]->n)
            continue;
        EdgeKind k = {.type = type, .name = legal_kind(x, type), .entry = entry, .hosts = fleet->at[i]->n};
        const Node *rate = entry_of(entry, "bw_Mbps", SCALAR, "bw_Mbps: 1000");
        k.profile = profile_of(x, entry, type, fleet->key[i]->loc);
        k.rate = foreign_number(rate, "bw_Mbps", 1e9) * MEGA / 8;
        if (!(k.rate >= 1))
            err(rate->loc, NULL, "type '%s' sends nothing", type);
        *PUSH(&x->kind) = k;
    }
    if (!x->kind.n)
        err(fleet->loc, "TYPE: [HOST, HOST]", "no type has a host");
}

/* ---- the graph ----------------------------------------------------------------------------------------------------- */

static double bytes_of(const Node *dtype)
{
    static const struct { const char *name; double bytes; } types[] = {
        {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"float64", 8}, {"int8", 1}, {"uint8", 1}};
    const char *name = strncmp(dtype->text, "torch.", 6) ? dtype->text : dtype->text + 6;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return types[i].bytes;
    err(dtype->loc, "torch.float32, float16, bfloat16, float64, int8 or uint8", "'%s' is no type whose size is known",
        dtype->text);
}

static void read_layers(EdgeReader *x, const Node *model)
{
    Foreign *f = x->f;
    const Node *count = entry_of(model, "layers", SCALAR, "layers: 48");
    int layers = (int)foreign_number(count, "layers", 100000);
    if (layers < 1)
        err(count->loc, NULL, "a model without layers");
    const Node *memory = column(model, "mem_MB", layers), *out = column(model, "parameters_out", layers);
    double scalar = bytes_of(node_get(x->kind.at[0].profile, "dtype"));
    for (int i = 0; i < layers; i++) {
        ForeignNode *n = PUSH(&f->node);
        *n = (ForeignNode){.id = strf("layer%d", i + 1), .loc = memory->at[i]->loc};
        n->name = n->id;
        n->params = (Bytes)floor(foreign_number(memory->at[i], "mem_MB", MOST_BYTES / MEGA) * MEGA + 0.5);
        double left = foreign_number(out->at[i], "parameters_out", MOST_BYTES) * scalar * (double)f->batch;
        if (!(left <= MOST_BYTES))
            err(out->at[i]->loc, NULL, "a layer leaves more than 2^42 bytes");
        n->output = (Bytes)left;
        if (i > 0) {
            *PUSH(&n->from) = i - 1;
            *PUSH(&f->node.at[i - 1].to) = i;
        }
    }
    for (int k = 0; k < x->kind.n; k++) {
        const Node *time = column(x->kind.at[k].profile, "time_s", layers);
        *PUSH(&f->kind) = x->kind.at[k].name;
        for (int i = 0; i < layers; i++)
            *PUSH(&f->node.at[i].on) = (ForeignTime){(Ns)floor(foreign_number(time->at[i], "time_s", MOST_S) * 1e9 + 0.5), 0};
    }
}

static const char *devices_text(const EdgeReader *x)
{
    const char *list = "", *links = "";
    for (int k = 0; k < x->kind.n; k++) {
        const EdgeKind *a = &x->kind.at[k];
        const Node *memory = entry_of(a->entry, "mem_MB", SCALAR, "mem_MB: 2048");
        double bytes = floor(foreign_number(memory, "mem_MB", MOST_BYTES / MEGA) * MEGA);
        if (!(bytes >= 1))
            err(memory->loc, NULL, "type '%s' has no memory", a->type);
        list = strf("%s%s{name: %s, count: %d, memory: %.0f}", list, k ? ", " : "", a->name, a->hosts, bytes);
        for (int j = 0; j <= k; j++) {
            const EdgeKind *b = &x->kind.at[j];
            links = strf("%s%s%s-%s: {rate: %.0fB/s, latency: 0ns}", links, k || j ? ", " : "", b->name, a->name,
                         floor(a->rate < b->rate ? a->rate : b->rate));
        }
    }
    return strf("devices: {order: free, list: [%s]}\nlinks: {%s}\n", list, links);
}

/* ---- the files ----------------------------------------------------------------------------------------------------- */

/* FILE.yml or FILE.yml:NAME; how long FILE is, 0: it is another file. */
static size_t file_of(const char *path)
{
    const char *end = strstr(path, ".yml:");
    size_t n = end ? (size_t)(end - path) + 4 : strlen(path);
    return n > 4 && !strncmp(path + n - 4, ".yml", 4) ? n : 0;
}

/* A graph or a plan may have any name. */
bool pipeedge_is(const char *path)
{
    char first[7] = "";
    FILE *f = file_of(path) ? fopen(path, "r") : NULL;
    if (f && fread(first, 1, 6, f) != 6)
        first[0] = 0;
    if (f)
        fclose(f);
    return file_of(path) > 0 && strcmp(first, "dpgen-") != 0;
}

static const Node *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *file = strf("%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
    if (access(file, R_OK) != 0)
        file_refuse(file, strf("%s lies beside the models: docs/text.md", name));
    return root_of(file);
}

static const Node *choose(const Node *models, const char *name)
{
    Strs names = {0};
    const char *list = "";
    const Node *only = NULL;
    for (int i = 0; i < models->n; i++) {
        const Node *layers = models->at[i]->kind == MAP ? node_get(models->at[i], "layers") : NULL;
        if (layers && layers->kind == SCALAR && !strcmp(layers->text, "0"))     /* an example of what an entry looks like */
            continue;
        *PUSH(&names) = models->key[i]->text;
        list = strf("%s%s%s", list, *list ? ", " : "", models->key[i]->text);
        only = models->key[i];
    }
    if (!name && names.n == 1)
        return only;
    for (int i = 0; name && i < models->n; i++)
        if (!strcmp(models->key[i]->text, name))
            return models->key[i];
    err(models->loc, did_you_mean(name, names.at, names.n, strf("FILE:NAME, of %s", list)),
        name ? "no model is called '%s'" : "which of these models?%s", name ? name : "");
}

void pipeedge_read(Foreign *f, const char *path)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    size_t n = file_of(path);
    const char *file = strf("%.*s", (int)n, path);
    const Node *models = root_of(file), *key = choose(models, path[n] ? path + n + 1 : NULL);
    const Node *model = of_kind(node_get(models, key->text), key->loc, MAP, "model", "{layers: 48, ...}");
    EdgeReader x = {.f = f, .model = key->text, .types = beside(file, "device_types.yml")};
    read_hosts(&x, beside(file, "devices.yml"));
    const Node *batch = node_get(x.kind.at[0].profile, "batch_size");
    double samples = foreign_number(batch, "batch_size", 1 << 20);
    if (!(samples >= 1) || floor(samples) != samples)
        err(batch->loc, NULL, "batch_size is no number of samples");
    f->batch = (int64_t)samples;
    f->micro = 64;
    f->head = key->loc;
    char *name = strf("%s%.50s", strchr(first, *key->text) ? "" : "model_", key->text);
    for (char *p = name; *p; p++)
        *p = strchr(first, *p) || strchr("0123456789-", *p) ? *p : '_';
    f->name = name;
    read_layers(&x, model);
    f->devices = devices_text(&x);
}
