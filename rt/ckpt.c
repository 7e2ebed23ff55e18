/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt.c: writing checkpoints.
 *
 * Problem: a job may die at any instruction, a host at any write.  The last good checkpoint must survive both.  Method: every
 * stage writes its file into step-N.part/ and syncs it.  When all have reported, stage 0 writes index.json with their hashes
 * and COMMIT with the hash of index.json, and syncs both and the directory.  Then it renames the directory to step-N and
 * syncs its parent.  A directory named step-N with a COMMIT is therefore whole, and the hashes find a bit that turns later.
 * Old checkpoints go only after the new one is there, COMMIT first.  Source: T. Pillai et al., All File Systems Are Not
 * Created Equal, OSDI 2014, on the guarantees that file systems do not give.
 *
 * Replicas all hold the same values, and the first one writes.  Where each has its own part of the moments (train.shard), all
 * write into the file of the first one, at places that nobody else writes to; then the first one reads it for its hash.
 * Nothing allocates: headers have their room from the start, and tensors go from the arena to write(2).  Cost: one pass over
 * parameters and moments at the speed of SHA-256 or of the disk.  A failed checkpoint ends the job and removes its .part.
 * Several hosts need a directory that all of them see.
 *
 * Parameters and moments that are not finite are not committed, for they would take the place of good ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ckpt.h"
#include "link.h"
#include "safetensors.h"
#include "sha256.h"
#include "team.h"
#include "weights.h"

enum { HOME_STATES = 1 << STATE_PARAM | 1 << STATE_MOMENT1 | 1 << STATE_MOMENT2 | 1 << STATE_DRIFT | 1 << STATE_CENTRE |
                     1 << STATE_OLD };

typedef struct { int status, pad; int64_t bytes; char sha[72]; } Written;

struct Checkpoint {
    Item **local;               /* by stage of this process */
    int *owns;
    Text *header;
    Item *all;                  /* for the index: stage 0 */
    int alls;
    Text index;
    Written *written;           /* of all stages */
    Saved *old;                 /* committed, ascending; room for what this run adds */
    int olds;
    Saved *stale;               /* never committed: removed when the first checkpoint is written, not before */
    int stales;
    CkptLock lock;
    bool cut;                   /* replicas have parts of some state */
};

/* ---- before the first step --------------------------------------------------------------------------------------- */

static bool make_text(Text *t, const Item *item, int n, long more)
{
    t->cap = (size_t)(items_room(item, n) + more);
    t->at = malloc(t->cap);
    return t->at != NULL;
}

static long published_room(const Run *run)
{
    long room = 256;
    for (int i = 0; i < run->parameters; i++) {
        int pieces = weights_pieces(run->job, run->parameter[i].state);
        Published p = weights_place(run->job, run->parameter[i].state, pieces - 1);     /* the longest number */
        room += (long)(strlen(p.in.name) + 6 * strlen(p.in.file) + 136) * pieces;
    }
    return room;
}

/* A byte of text may need six in JSON. */
static long said_room(const Job *job)
{
    long room = 6 * (long)strlen(job->key) + 256;
    for (const Setting *s = job->setting; s && s->name; s++)
        room += 6 * (long)(strlen(s->name) + strlen(s->value)) + 16;
    for (int i = 0; job->adapter && job->adapter->of[i]; i++)
        room += (long)strlen(job->adapter->of[i]) + 4;
    return room + (job->adapter ? 160 : 0);
}

static int make_room(Run *run, Checkpoint *c)
{
    size_t n = (size_t)run->count;
    c->local = calloc(n, sizeof *c->local);
    c->owns = calloc(n, sizeof *c->owns);
    c->header = calloc(n, sizeof *c->header);
    c->written = calloc((size_t)run->job->stages, sizeof *c->written);
    c->all = items_make(run->job, HOME_STATES, -1, &c->alls);
    bool good = c->local && c->owns && c->header && c->written && c->all &&
                make_text(&c->index, c->all, c->alls, 256 + 256L * run->job->stages + published_room(run) +
                                                    said_room(run->job));
    for (int i = 0; good && i < c->alls; i++)
        c->cut |= c->all[i].state->cut;
    for (int i = 0; good && i < run->count; i++) {
        int twin = (run->first + i) % homes_of(run->job);
        c->local[i] = items_make(run->job, HOME_STATES, twin, &c->owns[i]);
        good = c->local[i] && make_text(&c->header[i], c->local[i], c->owns[i], 0);
    }
    return good ? DONE : complain(STATUS_RUN, "no memory for checkpoints");
}

/* What is there already: committed, or left behind by a job that died. */
static int take_stock(Run *run, Checkpoint *c)
{
    const char *dir = run->opt.checkpoint;
    int n, status = DONE;
    Saved *list = ckpt_list(dir, &n, &status);
    c->old = calloc((size_t)n + (size_t)run->job->ckpt_keep + 3, sizeof *c->old);
    c->stale = calloc((size_t)n + 1, sizeof *c->stale);
    if (status == DONE && (!c->old || !c->stale))
        status = complain(STATUS_RUN, "no memory for checkpoints");
    for (int i = 0; status == DONE && i < n; i++)
        if (list[i].state == CKPT_COMMITTED)
            c->old[c->olds++] = list[i];
        else
            c->stale[c->stales++] = list[i];
    free(list);
    if (status == DONE && c->olds > 0 && !run->opt.resume)
        status = complain(STATUS_STALE, "%s holds a checkpoint of step %lld: go on from it with --resume, name another "
                          "directory with --checkpoint, or write none with --no-checkpoint",
                          dir, (long long)c->old[c->olds - 1].step);
    return status;
}

int ckpt_open(Run *run)
{
    shared_mark(run->mark);
    if (!run->opt.checkpoint)
        return DONE;
    Checkpoint *c = run->checkpoint = calloc(1, sizeof *c);
    if (!c)
        return complain(STATUS_RUN, "no memory for checkpoints");
    c->lock.file = -1;
    int status = make_room(run, c);
    if (status == DONE && run->main)
        status = ckpt_lock(&c->lock, run->opt.checkpoint, !run->opt.resume, run->mark);
    return status == DONE && run->main ? take_stock(run, c) : status;
}

int ckpt_seen(const Run *run)
{
    return shared_check(run, run->checkpoint && run->checkpoint->lock.file >= 0);
}

void ckpt_close(Run *run)
{
    Checkpoint *c = run->checkpoint;
    if (!c)
        return;
    ckpt_unlock(&c->lock, run->opt.checkpoint);
    for (int i = 0; i < run->count; i++) {
        if (c->local)
            free(c->local[i]);
        if (c->header)
            free(c->header[i].at);
    }
    free(c->local);
    free(c->owns);
    free(c->header);
    free(c->all);
    free(c->index.at);
    free(c->written);
    free(c->old);
    free(c->stale);
    free(c);
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

typedef struct { int file; Digest *d; bool nan; } Put;

static bool put(void *to, const void *piece, size_t n)
{
    const Put *p = to;
    digest_add(p->d, piece, n);
    return write_all(p->file, piece, n);
}

static bool put_floats(void *to, const void *piece, size_t n)
{
    enum { EXPONENT = 0x7f800000 };
    const uint32_t *word = piece;
    uint32_t some = 0;
    for (size_t i = 0; i < n / sizeof *word; i++)
        some |= (word[i] & EXPONENT) == EXPONENT;
    ((Put *)to)->nan |= some;
    return put(to, piece, n);
}

/* *broken: the first that is not finite. */
static bool put_items(Worker *w, Put *to, const Item *item, int n, const Item **broken)
{
    bool good = true;
    for (int i = 0; i < n; i++) {       /* of others whole items are read: they wait, whatever becomes of the file */
        if (good || item[i].state->outer)
            good = item_read(w, &item[i], 0, item[i].state->n, put_floats, to) && good;
        if (to->nan && !*broken)
            *broken = &item[i];
    }
    return good;
}

/* The parts of a further device of a stage, for the first one. */
static void lend_items(Worker *w, const Item *item, int n)
{
    for (int i = 0; i < n; i++)
        if (item[i].state->outer && item_here(w, &item[i]))
            item_read(w, &item[i], 0, item[i].state->n, NULL, NULL);
}

/* Synced and closed; errno says why not. */
static bool finish(int file, bool good)
{
    good = good && fsync(file) == 0;
    int why = errno;
    if (file >= 0 && close(file) != 0 && good)
        return false;
    errno = why;
    return good;
}

/* The file of a stage, or of its twin in replica 0. */
static void stage_path(char path[CKPT_PATH], const Worker *w, int64_t step)
{
    const Job *job = w->run->job;
    char tail[CKPT_NAME];
    snprintf(tail, sizeof tail, ".part/stage%d.safetensors", w->stage.index % homes_of(job));
    ckpt_name(path, w->run->opt.checkpoint, step, tail);
}

/* good: all bytes are there.  broken: something that is not finite. */
static int written(const Worker *w, int64_t step, const char *path, bool good, const Item *broken)
{
    if (!good)
        return complain(STATUS_RUN, "%s: cannot write: %s; the last committed checkpoint is as it was", path, strerror(errno));
    if (broken && !w->run->opt.nan)
        return complain(STATUS_BROKEN, "after step %lld `%s%s` is not finite: the job ends, and checkpoints are as they were; "
                        "--allow-nan goes on", (long long)step, broken->state->name, broken->suffix);
    return DONE;
}

typedef struct { Put *to; off_t at; } Runs;

static bool put_run(void *to, long begin, const float *x, long n)
{
    const Runs *r = to;
    off_t here = r->at + (off_t)begin * (off_t)sizeof *x;
    return lseek(r->to->file, here, SEEK_SET) == here && put_floats(r->to, x, (size_t)n * sizeof *x);
}

/* Of each item the part that this replica has.  *broken: the first that is not finite. */
static bool put_parts(Worker *w, Put *to, const Item *item, int n, off_t at, const Item **broken)
{
    for (int i = 0; i < n; i++) {
        long from = 0, k = 0;
        const float *data = item[i].state->outer ? NULL : item_part(w, &item[i], &from, &k);
        off_t here = at + (off_t)from * (off_t)sizeof *data;
        if (item[i].state->outer && !job_team->give(w, &item[i], put_run, &(Runs){to, at}))
            return false;
        if (k > 0 && lseek(to->file, here, SEEK_SET) != here)
            return false;
        if (k > 0 && !(data ? arena_read(w, data, (size_t)k * sizeof *data, put_floats, to)
                            : item_read(w, &item[i], 0, k, put_floats, to)))
            return false;
        if (to->nan && !*broken)
            *broken = &item[i];
        at += (off_t)item[i].state->n * (off_t)sizeof *data;
    }
    return true;
}

/* Whole, or the part of this replica: the file is then that of all replicas, and the first one begins it. */
static void write_stage(Worker *w, int64_t step, bool cut, Written *out)
{
    Checkpoint *c = w->run->checkpoint;
    int k = w->stage.index - w->run->first;
    char path[CKPT_PATH];
    Digest d;
    stage_path(path, w, step);
    safe_header(&c->header[k], c->local[k], c->owns[k], NULL);
    digest_start(&d);
    int file = open(path, O_WRONLY | O_CREAT | (cut ? 0 : O_TRUNC), 0666);
    Put to = {file, &d, false};
    const Item *broken = NULL;
    bool good = file >= 0 && ((cut && copy_of(w) > 0) || put(&to, c->header[k].at, c->header[k].n));
    if (cut)
        good = good && put_parts(w, &to, c->local[k], c->owns[k], (off_t)c->header[k].n, &broken);
    else
        good = put_items(w, good ? &to : &(Put){-1, &d, false}, c->local[k], c->owns[k], &broken) && good;
    *out = (Written){.bytes = (int64_t)d.n};
    out->status = written(w, step, path, finish(file, good), broken);
    digest_end(&d, out->sha);
}

static void sum_part(Worker *w, int64_t step, Written *out)
{
    char path[CKPT_PATH];
    unsigned char piece[1 << 14];
    Digest d;
    ssize_t n = -1;
    stage_path(path, w, step);
    digest_start(&d);
    int file = open(path, O_RDONLY);
    while (file >= 0 && (n = read(file, piece, sizeof piece)) > 0)
        digest_add(&d, piece, (size_t)n);
    out->bytes = (int64_t)d.n;
    if (n < 0)
        out->status = complain(STATUS_RUN, "%s: cannot read what was written: %s; the last committed checkpoint is as it was",
                               path, strerror(errno));
    if (file >= 0)
        close(file);
    digest_end(&d, out->sha);
}

/* The files of all stages. */
static void write_files(Worker *w, int64_t step, Written *mine)
{
    const Checkpoint *c = w->run->checkpoint;
    bool cut = c->cut, first = copy_of(w) == 0;
    int k = w->stage.index - w->run->first;
    if (cut || first)
        write_stage(w, step, cut, mine);
    else
        lend_items(w, c->local[k], c->owns[k]);
    if (!cut)
        return;
    mine->status = worst(w, mine->status);
    if (mine->status == DONE && first)
        sum_part(w, step, mine);
}

static int write_text(const char *path, const char *text, size_t n)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (finish(file, file >= 0 && write_all(file, text, n)))
        return DONE;
    return complain(STATUS_RUN, "%s: cannot write: %s; the last committed checkpoint is as it was", path,
                    strerror(errno));
}

static int sync_directory(const char *path)
{
    int file = open(path, O_RDONLY);
    if (finish(file, file >= 0))
        return DONE;
    return complain(STATUS_RUN, "%s: cannot sync the directory: %s", path, strerror(errno));
}

/* ---- commit: stage 0 --------------------------------------------------------------------------------------------- */

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

/* What dpgen export makes of them. */
static void add_adapters(Text *t, const AdapterInfo *a)
{
    if (!a)
        return;
    text_add(t, "\"adapters\":{\"rank\":%ld,\"alpha\":\"%.17g\",\"dropout\":\"%.17g\",\"of\":[", a->rank, a->alpha, a->dropout);
    for (int i = 0; a->of[i]; i++)
        text_add(t, "%s\n\"%s\"", i ? "," : "", a->of[i]);
    text_add(t, "]},\n");
}

static void make_index(Worker *w, int64_t step)
{
    const Job *job = w->run->job;
    const Checkpoint *c = w->run->checkpoint;
    Text *t = &w->run->checkpoint->index;
    t->n = 0;
    text_add(t, "{\"metadata\":{\"format\":\"dpgen-checkpoint-1\",\"model\":\"%s\",\"plan\":\"%s\",\"step\":%lld,"
             "\"versions\":\"%s\",\"seed\":\"%lu\",\"batch\":%ld,\"micro\":%ld,\"groups\":%ld,\"samples\":%lld,"
             "\"data\":\"%s\",\n",
             job->model, job->plan, (long long)step, job->versions ? job->versions : "", job->seed, job->batch, job->micro,
             job->groups, (long long)data_cursor(job, step), w->run->data);
    const Best *b = &w->best;
    if ((job->keep_best || job->patience) && b->at >= 0)
        text_add(t, "\"best_loss\":\"%a\",\"best_step\":%lld,\"best_since\":%lld,\n", b->loss, (long long)b->at,
                 (long long)b->since);
    add_training(t, job);
    add_adapters(t, job->adapter);
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

static int commit(Worker *w, int64_t step)
{
    const Text *index = &w->run->checkpoint->index;
    const char *dir = w->run->opt.checkpoint;
    char part[CKPT_PATH], whole[CKPT_PATH], path[CKPT_PATH], hex[66];
    Digest d;
    make_index(w, step);
    digest_start(&d);
    digest_add(&d, index->at, index->n);
    digest_end(&d, hex);
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

/* DIR/best leads to the checkpoint of the best evaluation. */
static void point_best(const Run *run, int64_t step)
{
    char link[CKPT_PATH], part[CKPT_PATH], to[CKPT_NAME];
    const char *dir = run->opt.checkpoint;
    snprintf(to, sizeof to, "step-%06lld", (long long)step);
    if ((size_t)snprintf(link, sizeof link, "%s/best", dir) >= sizeof link ||
        (size_t)snprintf(part, sizeof part, "%s/best.part", dir) >= sizeof part)
        return;
    unlink(part);
    if (symlink(to, part) != 0 || rename(part, link) != 0)
        complain(DONE, "%s: cannot point to %s: %s; that checkpoint is kept all the same", link, to, strerror(errno));
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

static int begin(const Run *run, int64_t step)
{
    Checkpoint *c = run->checkpoint;
    const char *dir = run->opt.checkpoint;
    char path[CKPT_PATH];
    int status = ckpt_held(&c->lock, dir);
    if (status != DONE)
        return status;
    ckpt_name(path, dir, step, ".part");
    while (c->stales > 0) {
        const Saved *s = &c->stale[--c->stales];
        ckpt_remove(dir, s->step, s->state, s->files);
    }
    if (mkdir(path, 0777) == 0)
        return DONE;
    return complain(STATUS_RUN, "%s: cannot make the directory: %s; the last committed checkpoint is as it was", path,
                    strerror(errno));
}

/* A checkpoint that failed goes.  Without the lock it stays: another job may have put its own there, and removes this one. */
static void remove_part(const Run *run, int64_t step)
{
    if (ckpt_alone(&run->checkpoint->lock, run->opt.checkpoint))
        ckpt_remove(run->opt.checkpoint, step, CKPT_PART, homes_of(run->job));
}

static int save(Worker *w, int64_t step)
{
    Run *run = w->run;
    bool first = w->stage.index == 0;
    Written mine;
    int status = worst(w, first ? begin(run, step) : DONE);
    if (status != DONE)
        return status;
    mine = (Written){0};
    write_files(w, step, &mine);
    link_share(&w->stage, &mine, w->board, sizeof mine);
    for (int i = 0; i < w->stage.count; i++) {
        const Written *x = (const Written *)w->board + i;
        if (x->status > status)
            status = x->status;
        if (first)
            run->checkpoint->written[i] = *x;
    }
    if (status == DONE)
        status = worst(w, first ? commit(w, step) : DONE);
    int64_t best = run->job->keep_best ? w->best.at : -1;
    if (first && status == DONE && best == step)
        point_best(run, step);
    if (first && status == DONE)
        prune(run, step, best);
    else if (first)
        remove_part(run, step);
    return status;
}

int ckpt_save(Worker *w, int64_t step)
{
    char detail[CKPT_PATH];
    atomic_store(&w->patience, PATIENT);
    int status = save(w, step);
    atomic_store(&w->patience, 1);
    ckpt_name(detail, w->run->opt.checkpoint, step, "");
    if (status == DONE && w->stage.index == 0)
        metrics_line(w->run, "checkpoint", step, detail);
    return status;
}
