/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_commit.c: how a checkpoint becomes one: index.json, COMMIT, its name, and which ones stay.
 *
 * Stage 0 calls it when all stages have written their files and have told their hashes.  ckpt.c says why a directory with this
 * name and a COMMIT is whole.  It may run beside a step, so it reads nothing that a step writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ckpt_write.h"
#include "sha256.h"
#include "weights.h"

static int write_text(const char *path, const char *text, size_t n)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (part_sync(file, file >= 0 && write_all(file, text, n)))
        return DONE;
    return complain(STATUS_RUN, "%s: cannot write: %s; the last committed checkpoint is as it was", path,
                    strerror(errno));
}

static int sync_directory(const char *path)
{
    int file = open(path, O_RDONLY);
    if (part_sync(file, file >= 0))
        return DONE;
    return complain(STATUS_RUN, "%s: cannot sync the directory: %s", path, strerror(errno));
}

/* The parameters as files of published weights have them: for dpgen export. */
static void add_published(Text *t, const Run *run)
{
    int type = run->job->published, some = 0;
    text_add(t, "\"published\":{\"type\":\"%s\",\"parameters\":[",
             type == JOB_F16 ? "F16" : type == JOB_BF16 ? "BF16" : "F32");
    for (int i = 0; i < run->parameters; i++) {
        const StateInfo *s = run->parameter[i].state;
        for (int piece = 0; piece < weights_pieces(run->job, s); piece++) {
            Published p = weights_place(run->job, s, piece);
            text_add(t, "%s\n[\"%s\",", some++ ? "," : "", p.in.name);
            text_json(t, p.in.file);
            text_add(t, ",%d,%ld,%ld,%ld", p.in.turn, p.in.from, p.in.rows, p.in.groups);
            text_add(t, p.in.pieces ? ",%ld,%ld]" : "]", p.in.piece, p.in.pieces);
        }
    }
    text_add(t, "]}");
}

/* What gives the numbers their meaning, and what each step had beside them. */
static void add_training(Text *t, const Job *job)
{
    int some = 0;
    text_add(t, "\"dpgen\":\"%s\",\"moments\":\"%s\",\"key\":", job->version ? job->version : "",
             job->moments ? job->moments : "");
    text_json(t, job->key);
    text_add(t, ",\n\"settings\":{");
    for (const Setting *s = job->setting; s && s->name; s++) {
        text_add(t, some++ ? ",\n" : "\n");
        text_json(t, s->name);
        text_add(t, ":");
        text_json(t, s->value);
    }
    text_add(t, "},\n");
}

static void make_index(Worker *w, int64_t step, const Best *b)
{
    const Job *job = w->run->job;
    const Checkpoint *c = w->run->checkpoint;
    Text *t = &w->run->checkpoint->index;
    t->n = 0;
    text_add(t, "{\"metadata\":{\"format\":\"dpgen-checkpoint-1\",\"model\":\"%s\",\"plan\":\"%s\",\"step\":%lld,"
             "\"versions\":\"%s\",\"seed\":\"%llu\",\"batch\":%ld,\"micro\":%ld,\"groups\":%ld,\"samples\":%lld,"
             "\"data\":\"%s\",\n",
             job->model, job->plan, (long long)step, job->versions ? job->versions : "", (unsigned long long)job->seed,
             job->batch, job->micro, job->groups, (long long)data_cursor(job, step), w->run->data);
    if (job_parts.best)
        job_parts.best->describe(t, job, b);
    add_training(t, job);
    if (job_parts.adapters)
        job_parts.adapters->describe(t, job);
    add_published(t, w->run);
    text_add(t, "},\n\"files\":[");
    for (int i = 0; i < homes_of(job); i++)
        text_add(t, "%s\n{\"name\":\"stage%d.safetensors\",\"bytes\":%lld,\"sha256\":\"%s\"}", i ? "," : "", i,
                 (long long)c->written[i].bytes, c->written[i].sha);
    text_add(t, "],\n\"weight_map\":{");
    for (int i = 0; i < c->alls; i++)
        text_add(t, "%s\n\"%s%s\":\"stage%d.safetensors\"", i ? "," : "", c->all[i].state->name, c->all[i].suffix,
                 c->all[i].stage);
    text_add(t, "}}\n");
}

static int commit(Worker *w, int64_t step, const Best *best)
{
    const Text *index = &w->run->checkpoint->index;
    const char *dir = w->run->opt.checkpoint;
    char part[CKPT_PATH], whole[CKPT_PATH], path[CKPT_PATH], hex[66];
    make_index(w, step, best);
    digest_of(index->at, index->n, hex);
    hex[64] = '\n';
    ckpt_name(part, dir, step, ".part");
    ckpt_name(whole, dir, step, "");
    ckpt_name(path, dir, step, ".part/index.json");
    int status = write_text(path, index->at, index->n);
    ckpt_name(path, dir, step, ".part/COMMIT");
    if (status == DONE)
        status = write_text(path, hex, 65);
    if (status == DONE)
        status = sync_directory(part);
    if (status == DONE)         /* writing took its time, and another job may have begun from what was there before */
        status = ckpt_held(&w->run->checkpoint->lock, dir);
    if (status == DONE && rename(part, whole) != 0)
        status = complain(STATUS_RUN, "%s: cannot rename it to %s: %s", part, whole, strerror(errno));
    return status == DONE ? sync_directory(dir) : status;
}

/* The oldest go while there are more than `keep`; the best is not counted, and stays. */
static void prune(Run *run, int64_t step, int64_t best)
{
    Checkpoint *c = run->checkpoint;
    long keep = run->job->ckpt_keep;
    if (keep <= 0)
        return;
    c->old[c->olds++] = (Saved){step, CKPT_COMMITTED, homes_of(run->job)};
    int left = 0, spared = 0;
    for (int i = 0; i < c->olds; i++)
        spared += c->old[i].step == best;
    int extra = c->olds - spared - (int)keep;
    for (int i = 0; i < c->olds; i++)
        if (extra > 0 && c->old[i].step != best) {
            ckpt_remove(run->opt.checkpoint, c->old[i].step, CKPT_COMMITTED, c->old[i].files);
            extra--;
        } else {
            c->old[left++] = c->old[i];
        }
    c->olds = left;
}

int ckpt_commit(Worker *w, int64_t step, const Best *best)
{
    int status = commit(w, step, best);
    if (status == DONE)
        prune(w->run, step, job_parts.best ? job_parts.best->stays(w->run, step, best) : -1);
    return status;
}
