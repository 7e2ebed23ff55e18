/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_adapter.c: adapters from files of their own: those of PEFT, or ours; and what a checkpoint says of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "ckpt.h"
#include "data.h"
#include "json.h"
#include "weights.h"

/* An adapter by the name that PEFT gives it: base_model.model., the tensor of the weight without .weight, .lora_A.weight. */
static Listed *of_peft(const Weights *x, const StateInfo *s)
{
    char base[WEIGHTS_NAME], name[3 * WEIGHTS_NAME];
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
    Listed *found = weights_named(x, name);
    snprintf(name, sizeof name, "base_model.model.%s%.*s%s", prefix, (int)n, base, tail);
    found = found ? found : weights_named(x, name);
    if (!found && m && !strncmp(base, prefix, m)) {
        snprintf(name, sizeof name, "base_model.model.%.*s%s", (int)(n - m), base + m, tail);
        found = weights_named(x, name);
    }
    return found;
}

/* By the name that it has here, or by that. */
static Listed *tensor(const Weights *x, const StateInfo *s)
{
    Listed *found = weights_prefixed(x, s->name);
    return found ? found : of_peft(x, s);
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
        const char *at = j.at;
        if (!json_skip(&j))
            break;
        at += strspn(at, " \t\r\n");
        snprintf(word, sizeof word, "%.*s", j.at - at < (int)sizeof word ? (int)(j.at - at) : (int)sizeof word - 1, at);
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
            Listed *found = is_adapter(s) ? tensor(x, s) : NULL;
            if (found)
                found->used = true;
            else if (is_adapter(s))
                return complain(STATUS_STALE, "%s: there is no tensor for `%s`: does adapt.match name other operators than "
                                "this adapter has?", x->index, s->name);
        }
    for (int i = 0; i < x->tensors; i++)
        if (!x->tensor[i].used && !(job_parts.described && job_parts.described->ignored(x, x->tensor[i].name)))
            return complain(STATUS_STALE, "%s: no adapter of this job takes tensor `%s`: does adapt.match name fewer operators "
                            "than it has?  If it is not wanted, name it in the model file, weights: {ignore: [...]}", x->index,
                            x->tensor[i].name);
    return DONE;
}

static int read_adapters(Run *run, const char *path)
{
    char index[CKPT_PATH];
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    Weights x = {.job = run->job, .path = path, .index = path};
    if (folder && (size_t)snprintf(index, sizeof index, "%s/adapter_model.safetensors", path) < sizeof index)
        x.index = index;
    int status = folder ? check_adapter(run->job, path) : DONE;
    if (status == DONE)
        status = weights_single(&x);
    if (status == DONE)
        status = weights_sort(&x);
    if (status == DONE)
        status = check_adapters(&x);
    for (int k = 0; k < run->count; k++)
        for (int i = 0; i < run->worker[k].info->states && status == DONE; i++)
            if (is_adapter(&run->worker[k].info->state[i]))
                status = weights_parameter(&x, &run->worker[k], &run->worker[k].info->state[i]);
    weights_close(&x);
    return status;
}

static void describe(Text *t, const Job *job)
{
    const AdapterInfo *a = job->adapter;
    if (!a)
        return;
    text_add(t, "\"adapters\":{\"rank\":%ld,\"alpha\":\"%.17g\",\"dropout\":\"%.17g\",\"of\":[", a->rank, a->alpha, a->dropout);
    for (int i = 0; a->of[i]; i++)
        text_add(t, "%s\n\"%s\"", i ? "," : "", a->of[i]);
    text_add(t, "]},\n");
}

static long room(const Job *job)
{
    long n = job->adapter ? 160 : 0;
    for (int i = 0; job->adapter && job->adapter->of[i]; i++)
        n += (long)strlen(job->adapter->of[i]) + 4;
    return n;
}

const Adapters adapters_files = {tensor, read_adapters, describe, room};
