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
 * A stage copies its states at the end of the step, and its thread writes the copy (ckpt_beside.c).  Once no stage writes any
 * more, which all learn with the loss of a step, stage 0 is given the hashes, and its thread commits (ckpt_commit.c); once it
 * has, all learn how that went.  So two meetings that there are anyway carry a checkpoint.  The next one, a stop and the end of
 * the job wait for it.
 *
 * Replicas all hold the same values, and the first one writes.  Where each has its own part of the moments (train.shard), all
 * write into the file of the first one, at places that nobody else writes to; then the first one reads it for its hash: by its
 * thread too, between the two meetings.  Where devices of a stage share such states, the step waits.
 * Nothing allocates: headers and copies have their room from the start.  Cost: a copy in the step, and one pass over
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
#include "ckpt_write.h"
#include "link.h"
#include "little.h"
#include "safetensors.h"
#include "weights.h"

enum { HOME_STATES = 1 << STATE_PARAM | 1 << STATE_MOMENT1 | 1 << STATE_MOMENT2 | 1 << STATE_DRIFT | 1 << STATE_CENTRE |
                     1 << STATE_OLD };

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
    return room + (job_parts.adapters ? job_parts.adapters->room(job) : 0);
}

static int make_room(Run *run, Checkpoint *c)
{
    size_t n = (size_t)run->count;
    c->local = calloc(n, sizeof *c->local);
    c->owns = calloc(n, sizeof *c->owns);
    c->header = calloc(n, sizeof *c->header);
    c->written = calloc((size_t)run->job->stages, sizeof *c->written);
    c->flight = calloc(n, sizeof *c->flight);
    c->all = items_make(run->job, HOME_STATES, -1, &c->alls);
    bool good = c->local && c->owns && c->header && c->written && c->all && c->flight &&
                make_text(&c->index, c->all, c->alls, 256 + 256L * run->job->stages + published_room(run) +
                                                    said_room(run->job));
    for (int i = 0; good && i < c->alls; i++)
        c->cut |= c->all[i].state->cut;
    for (int i = 0; good && i < run->count; i++) {
        int twin = home_at(run->job, run->first + i);
        c->local[i] = items_make(run->job, HOME_STATES, twin, &c->owns[i]);
        good = c->local[i] && make_text(&c->header[i], c->local[i], c->owns[i], 0);
    }
    return good ? DONE : complain(STATUS_RUN, "no memory for checkpoints");
}

/* In front of each part in the copy: where it goes, behind the header of the file, and how long it is. */
typedef struct { int64_t at, bytes; } CopyPart;

/* What this stage copies: the states at home here, in the first replica and on its first device; with train.shard its parts. */
static size_t copied_bytes(const Run *run, int k)
{
    const Checkpoint *c = run->checkpoint;
    const Job *job = run->job;
    bool first = run->first + k < homes_of(job);
    size_t bytes = c->cut;      /* some, so that all stages take the same way */
    for (int i = 0; (first || c->cut) && i < c->owns[k]; i++) {
        const Item *item = &c->local[k][i];
        const StateInfo *here = &job->stage[run->first + k].state[item->state - job->stage[item->stage].state];
        bytes += sizeof(CopyPart) + (size_t)(here->cut ? here->part : first ? item->state->n : 0) * sizeof(float);
    }
    return bytes;
}

/* Threads, and memory for copies; a job can do without. */
static void open_beside(Run *run, Checkpoint *c)
{
    size_t all = 0;
    bool mixed = false;
    for (int i = 0; i < c->alls; i++)
        mixed |= c->cut && c->all[i].state->outer;
    if (!run->job->ckpt_async || mixed)
        return;
    for (int k = 0; k < run->count; k++)
        all += copied_bytes(run, k);
    bool good = beside_fits(all, job_parts.hosts ? job_parts.hosts->processes(run) : 1);
    for (int k = 0; k < run->count && good; k++)
        good = beside_open(&c->flight[k].beside, copied_bytes(run, k));
    for (int k = 0; k < run->count && !good; k++)
        beside_close(&c->flight[k].beside);
    c->aside = good;
    if (!good)
        complain(DONE, "no memory for a copy of %zu bytes of the states: steps wait while checkpoints are written", all);
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
    ckpt_mark(run->mark);
    if (!run->opt.checkpoint)
        return DONE;
    Checkpoint *c = run->checkpoint = calloc(1, sizeof *c);
    if (!c)
        return complain(STATUS_RUN, "no memory for checkpoints");
    c->lock.file = -1;
    int status = make_room(run, c);
    if (status == DONE)
        open_beside(run, c);
    if (status == DONE && run->main)
        status = ckpt_lock(&c->lock, run->opt.checkpoint, !run->opt.resume, run->mark);
    return status == DONE && run->main ? take_stock(run, c) : status;
}

int ckpt_seen(const Run *run)
{
    return job_parts.hosts ? job_parts.hosts->check(run, run->checkpoint && run->checkpoint->lock.file >= 0) : DONE;
}

void ckpt_close(Run *run)
{
    Checkpoint *c = run->checkpoint;
    if (!c)
        return;
    for (int i = 0; c->flight && i < run->count; i++)
        beside_close(&c->flight[i].beside);
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
    free(c->flight);
    free(c->old);
    free(c->stale);
    free(c);
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static bool put(void *to, const void *piece, size_t n)
{
    const Put *p = to;
    digest_add(p->d, piece, n);
    return write_all(p->file, piece, n);
}

static bool not_finite(const float *x, long n)
{
    enum { EXPONENT = 0x7f800000 };
    uint32_t some = 0;
    for (long i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, x + i, sizeof word);
        some |= (word & EXPONENT) == EXPONENT;
    }
    return some;
}

bool ckpt_floats(void *to, const void *piece, size_t n)
{
    ((Put *)to)->nan |= not_finite(piece, (long)(n / sizeof(float)));
    return little_floats(piece, n, put, to);
}

bool ckpt_items(Worker *w, Put *to, const Item **broken)
{
    const Checkpoint *c = w->run->checkpoint;
    int k = w->stage.index - w->run->first;
    const Item *item = c->local[k];
    bool good = true;
    for (int i = 0; i < c->owns[k]; i++) {      /* of others whole items are read: they wait, whatever becomes of the file */
        if (good || item[i].state->outer)
            good = item_read(w, &item[i], 0, item[i].state->n, ckpt_floats, to) && good;
        if (to->nan && !*broken)
            *broken = &item[i];
    }
    return good;
}

void ckpt_stage(char path[CKPT_PATH], const Worker *w, int64_t step)
{
    const Job *job = w->run->job;
    char tail[CKPT_NAME];
    snprintf(tail, sizeof tail, ".part/stage%d.safetensors", home_at(job, w->stage.index));
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

void ckpt_file(Worker *w, int64_t step, PutBody *body, Written *out)
{
    const Checkpoint *c = w->run->checkpoint;
    const Text *header = &c->header[w->stage.index - w->run->first];
    char path[CKPT_PATH];
    Digest d;
    ckpt_stage(path, w, step);
    digest_start(&d);
    int file = open(path, O_WRONLY | O_CREAT | (c->cut ? 0 : O_TRUNC), 0666);
    Put to = {file, &d, false};
    const Item *broken = NULL;
    bool good = file >= 0 && ((c->cut && copy_of(w) > 0) || put(&to, header->at, header->n));
    good = body(w, good ? &to : &(Put){-1, &d, false}, &broken) && good;
    *out = (Written){.bytes = (int64_t)d.n};
    out->status = written(w, step, path, part_sync(file, good), broken);
    digest_end(&d, out->sha);
}

static Flight *flight_of(const Worker *w)
{
    return w->run->checkpoint ? &w->run->checkpoint->flight[w->stage.index - w->run->first] : NULL;
}

/* ---- a copy, and its file ------------------------------------------------------------------------------------------ */

static bool take_copy(void *to, const void *piece, size_t n)
{
    Beside *b = to;
    if (n > b->room - b->used)
        return false;           /* never */
    memcpy(b->at + b->used, piece, n);
    b->used += n;
    return true;
}

/* What follows the step may change the states now. */
static void copy_items(Worker *w, int64_t step, Flight *f)
{
    const Checkpoint *c = w->run->checkpoint;
    int k = w->stage.index - w->run->first;
    const Item *broken = NULL;
    int64_t at = 0;
    f->beside.used = 0;
    for (int i = 0; i < c->owns[k]; i++) {
        const Item *item = &c->local[k][i];
        long from = 0, n = item->state->n;
        const float *data = c->cut ? item_part(w, item, &from, &n) : NULL;
        take_copy(&f->beside, &(CopyPart){at + from * (int64_t)sizeof *data, n * (int64_t)sizeof *data}, sizeof(CopyPart));
        const float *copy = (const float *)(void *)(f->beside.at + f->beside.used);
        if (data)
            arena_read(w, data, (size_t)n * sizeof *data, take_copy, &f->beside);
        else if (n)
            item_read(w, item, 0, n, take_copy, &f->beside);
        if (!broken && not_finite(copy, n))
            broken = item;
        at += item->state->n * (int64_t)sizeof *data;
    }
    f->mine.status = written(w, step, "", true, broken);
}

static bool put_copy(Worker *w, Put *to, const Item **broken)
{
    Beside *b = &flight_of(w)->beside;
    off_t first = (off_t)w->run->checkpoint->header[w->stage.index - w->run->first].n;
    CopyPart part;
    bool good = to->file >= 0;
    (void)broken;               /* it was looked at */
    for (size_t done = 0; good && done + sizeof part <= b->used; done += (size_t)part.bytes) {
        memcpy(&part, b->at + done, sizeof part);
        done += sizeof part;
        good = !part.bytes || lseek(to->file, first + part.at, SEEK_SET) == first + part.at;
        for (int64_t from = 0, n; good && from < part.bytes; from += n) {
            n = part.bytes - from < ARENA_PIECE ? part.bytes - from : ARENA_PIECE;
            good = little_floats(b->at + done + from, (size_t)n, put, to);
            atomic_fetch_add(&b->pieces, 1);
        }
    }
    return good;
}

/* By the stage's thread: nothing here is the step's. */
static void write_copy(void *at)
{
    Flight *f = at;
    ckpt_file(f->w, f->step, put_copy, &f->mine);
}

/* By the thread of a stage in the first replica, when all have written into its file. */
static void sum_parts(void *at)
{
    Flight *f = at;
    job_parts.parted->sum(f->w, f->step, &f->mine);
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

/* By the thread of stage 0. */
static void end_checkpoint(void *at)
{
    Flight *f = at;
    f->mine.status = ckpt_commit(f->w, f->step, &f->best);
}

bool ckpt_writing(const Worker *w)
{
    const Flight *f = flight_of(w);
    return f && beside_busy(&f->beside);
}

/* No stage writes: on to the hash of what several wrote, to the commit, and from there to the end. */
static int go_on(Worker *w)
{
    Flight *f = flight_of(w);
    Run *run = w->run;
    bool first = w->stage.index == 0;
    int status = DONE;
    link_share(&w->stage, &f->mine, w->board, sizeof f->mine);
    for (int i = 0; i < w->stage.count; i++) {
        const Written *x = (const Written *)w->board + i;
        if (x->status > status)
            status = x->status;
        if (first && f->phase < COMMITS)
            run->checkpoint->written[i] = *x;
    }
    f->open = status == DONE && f->phase < COMMITS;
    if (f->open) {
        f->phase = f->phase == WRITES && run->checkpoint->cut ? SUMS : COMMITS;
        if (f->phase == SUMS && copy_of(w) == 0)
            beside_post(&f->beside, sum_parts, f);
        if (f->phase == COMMITS && first)
            beside_post(&f->beside, end_checkpoint, f);
        return DONE;
    }
    /* One that failed goes.  Without the lock it stays: another job may have put its own there, and removes this one. */
    if (first && status != DONE && ckpt_alone(&run->checkpoint->lock, run->opt.checkpoint))
        ckpt_remove(run->opt.checkpoint, f->step, CKPT_PART, homes_of(run->job));
    if (first && status == DONE) {
        char detail[CKPT_PATH];
        ckpt_name(detail, run->opt.checkpoint, f->step, "");
        metrics_line(run, "checkpoint", f->step, detail);
    }
    return f->failed = status;
}

int ckpt_turn(Worker *w)
{
    Flight *f = flight_of(w);
    if (!f || !f->open || w->writing)
        return f ? f->failed : DONE;
    w->writing = true;          /* what it says is used up: of the commit that begins here only the next report knows */
    return go_on(w);
}

int ckpt_settle(Worker *w)
{
    Flight *f = flight_of(w);
    atomic_store(&w->patience, PATIENT);
    while (f && f->open) {
        beside_wait(&f->beside, w);
        go_on(w);
    }
    atomic_store(&w->patience, 1);
    return f ? f->failed : DONE;
}

static int save(Worker *w, int64_t step)
{
    const Checkpoint *c = w->run->checkpoint;
    Flight *f = flight_of(w);
    int k = w->stage.index - w->run->first;
    int status = worst(w, w->stage.index == 0 ? begin(w->run, step) : DONE);
    if (status != DONE)
        return f->failed = status;
    f->w = w;
    f->step = step;
    f->best = w->best;
    f->mine = (Written){0};
    f->open = true;
    f->phase = c->aside ? WRITES : SUMS;
    safe_header(&c->header[k], c->local[k], c->owns[k], NULL);
    if (!f->beside.at) {
        if (job_parts.parted)
            job_parts.parted->files(w, step, &f->mine);
        else if (copy_of(w) == 0)
            ckpt_file(w, step, ckpt_items, &f->mine);
        return DONE;
    }
    copy_items(w, step, f);
    if (f->mine.status == DONE)
        beside_post(&f->beside, write_copy, f);
    return DONE;
}

int ckpt_save(Worker *w, int64_t step, bool now)
{
    Flight *f = flight_of(w);
    now |= !w->run->job->ckpt_async || (w->run->checkpoint->cut && !w->run->checkpoint->aside);
    if (f->open && !now && w->stage.index == 0 && !w->run->checkpoint->late++)
        complain(DONE, "step %lld: a checkpoint is due while the last one is written, and steps wait for it; see "
                 "checkpoint.every", (long long)step);
    int status = ckpt_settle(w);
    atomic_store(&w->patience, PATIENT);
    if (status == DONE)
        status = save(w, step);
    atomic_store(&w->patience, 1);
    return status == DONE && now ? ckpt_settle(w) : status;
}
