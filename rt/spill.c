/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.c: the place where offloaded tensors wait, and the way there and back.
 *
 * Each stage that offloads has its own room, mapped before the first step: in memory that stands for the host's of a device,
 * or in a file.  The place of a tensor there is a literal of the stage's source, as in the arena.  A thread makes the copies
 * of one direction one after another, in the order in which they were begun.  A link that carries one direction at a time has
 * one thread for both.  A thread sleeps until there is something to copy, and a stage that waits sleeps until it is done.  No
 * core is burnt, and nothing is allocated after the start.
 *
 * A stage that keeps all its cores busy shares them with its copies; the kernel decides.  Threads of a lower class would
 * leave the core to the stage, but make it wait longer for its copies.
 *
 * On processors the arena and the host's memory are the same memory.  Offload to it emulates a device with its own memory,
 * for tests and for plans made elsewhere; it frees none.  A file does.  It is written past the page cache (O_DIRECT, through
 * a page-aligned buffer); where the file system cannot do that, its pages are written out and dropped.  The file has all its
 * room before the first step, so that a full disk is found then.  It has no name: however the job ends, nothing is left over.
 *
 * A paced job copies nothing and waits as long as the plan says, on the same two links.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "link.h"
#include "room.h"
#include "run.h"
#include "spill.h"

enum { OUT, IN, SPINS = 64, PAGE = 4096, CHUNK = 1 << 20, RING = 1 << 16, TMPFS = 0x01021994 };

typedef struct { unsigned char *device; size_t host; long bytes; int direction, copy; int64_t at; } CopyJob;

typedef struct {                /* a thread, and what it has to copy */
    Spill *spill;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    CopyJob *ring;              /* a ring of as many as there are numbers */
    int head, count;
    bool started, stop;
    unsigned char *bounce;      /* CHUNK bytes, for a file */
    _Atomic int64_t at;         /* action whose copy is under way; -1 none */
    int64_t ready;              /* paced: when the link is free, ns */
} Lane;

struct Spill {
    Worker *w;
    Lane lane[2];
    unsigned char *memory;
    int file;
    bool direct;
    const char *dir;
    struct { _Atomic int busy; Lane *lane; int64_t ready; } *copy;      /* by number */
    struct { Copied *ring; uint64_t n; } trace[2];
};

/* ---- a file ------------------------------------------------------------------------------------------------------ */

_Noreturn static void broken(const Spill *s, const char *what)
{
    quit(s->w->stage.link, STATUS_RUN, "%s: cannot %s the file of offloaded tensors in %s: %s", s->w->info->name, what, s->dir,
         strerror(errno));
}

/* n bytes, whole pages if the file is direct, between the buffer and the file. */
static void move(const Spill *s, unsigned char *data, size_t n, off_t at, bool write)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = write ? pwrite(s->file, data + done, n - done, at + (off_t)done)
                          : pread(s->file, data + done, n - done, at + (off_t)done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k == 0)
            errno = EIO;
        if (k <= 0)
            broken(s, write ? "write" : "read");
        done += (size_t)k;
    }
    if (s->direct)
        return;
    if (write && sync_file_range(s->file, at, (off_t)n, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                 SYNC_FILE_RANGE_WAIT_AFTER) != 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE)
        broken(s, "write");
    posix_fadvise(s->file, at, (off_t)n, POSIX_FADV_DONTNEED);
}

static void through_file(Lane *l, const CopyJob *o)
{
    const Spill *s = l->spill;
    for (long done = 0; done < o->bytes; done += CHUNK) {
        size_t n = o->bytes - done < CHUNK ? (size_t)(o->bytes - done) : CHUNK, pages = (n + PAGE - 1) / PAGE * PAGE;
        if (o->direction == OUT)
            memcpy(l->bounce, o->device + done, n);
        move(s, l->bounce, pages, (off_t)o->host + done, o->direction == OUT);
        if (o->direction == IN)
            memcpy(o->device + done, l->bounce, n);
        atomic_fetch_add(&s->w->beat, 1);
    }
}

static void through_memory(const Spill *s, const CopyJob *o)
{
    for (long done = 0; done < o->bytes; done += CHUNK) {
        size_t n = o->bytes - done < CHUNK ? (size_t)(o->bytes - done) : CHUNK;
        if (o->direction == OUT)
            memcpy(s->memory + o->host + done, o->device + done, n);
        else
            memcpy(o->device + done, s->memory + o->host + done, n);
        atomic_fetch_add(&s->w->beat, 1);
    }
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

static void carry_out(Lane *l, const CopyJob *o)
{
    Spill *s = l->spill;
    double from = s->trace[o->direction].ring ? seconds() : 0;
    atomic_store(&l->at, o->at);
    if (s->file >= 0)
        through_file(l, o);
    else
        through_memory(s, o);
    atomic_store(&l->at, -1);
    if (s->trace[o->direction].ring)
        s->trace[o->direction].ring[s->trace[o->direction].n++ % RING] = (Copied){from, seconds(), (int)o->at};
}

static void *lane_main(void *at)
{
    Lane *l = at;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->count == 0 && !l->stop)
            pthread_cond_wait(&l->wake, &l->lock);
        if (l->count == 0)
            break;
        CopyJob o = l->ring[l->head];
        pthread_mutex_unlock(&l->lock);
        carry_out(l, &o);
        pthread_mutex_lock(&l->lock);
        l->head = (l->head + 1) % l->spill->w->info->copies;
        l->count--;
        atomic_store_explicit(&l->spill->copy[o.copy].busy, 0, memory_order_release);
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- what a stage calls -------------------------------------------------------------------------------------------- */

static void begin(Stage *st, unsigned char *device, size_t host, int copy, long bytes, int direction)
{
    Spill *s = st->spill;
    const StageInfo *info = st->worker->info;
    check_range(st, host, copy, bytes);
    if (s->copy[copy].lane)
        begins_again(st, copy);
    Lane *l = &s->lane[info->lanes > 1 ? direction : 0];
    s->copy[copy].lane = l;
    if (paced(st)) {
        int64_t due = st->worker->due;
        l->ready = (due > l->ready ? due : l->ready) + info->pace[2 * st->at + 1];
        s->copy[copy].ready = l->ready;
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->ring[(l->head + l->count++) % info->copies] = (CopyJob){device, host, bytes, direction, copy, st->at};
    atomic_store_explicit(&s->copy[copy].busy, 1, memory_order_relaxed);
    pthread_mutex_unlock(&l->lock);
    pthread_cond_signal(&l->wake);
}

void offload_begin(Stage *st, const void *from, size_t host, int copy, long bytes)
{
    begin(st, (unsigned char *)(uintptr_t)from, host, copy, bytes, OUT);
}

void fetch_begin(Stage *st, void *to, size_t host, int copy, long bytes)
{
    begin(st, to, host, copy, bytes, IN);
}

void copy_wait(Stage *st, int copy)
{
    Spill *s = st->spill;
    if (!s || copy < 0 || copy >= st->worker->info->copies || !s->copy[copy].lane)
        never_begun(st, copy);
    Lane *l = s->copy[copy].lane;
    s->copy[copy].lane = NULL;
    if (paced(st))
        job_parts.pace->wait(st->worker, s->copy[copy].ready);
    for (int i = 0; i < SPINS; i++) {
        if (!atomic_load_explicit(&s->copy[copy].busy, memory_order_acquire))
            return;
        sched_yield();
    }
    pthread_mutex_lock(&l->lock);
    while (atomic_load_explicit(&s->copy[copy].busy, memory_order_acquire))
        pthread_cond_wait(&l->done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* ---- start and end ------------------------------------------------------------------------------------------------- */

static int open_file(Spill *s)
{
    const StageInfo *info = s->w->info;
    const Run *run = s->w->run;
    char name[4096];
    struct statfs fs;
    s->dir = run->opt.spill ? run->opt.spill : run->job->spill_dir ? run->job->spill_dir : ".";
    if (snprintf(name, sizeof name, "%s/.offload-XXXXXX", s->dir) >= (int)sizeof name)
        return complain(STATUS_USAGE, "%s: the name of the directory for offloaded tensors is too long", info->name);
    s->file = mkostemp(name, O_CLOEXEC);
    if (s->file < 0)
        return complain(STATUS_RUN, "%s: cannot make a file for offloaded tensors in %s: %s; name a directory that can be "
                        "written with --offload-dir", info->name, s->dir, strerror(errno));
    unlink(name);
    int why = posix_fallocate(s->file, 0, (off_t)((info->host + PAGE - 1) / PAGE * PAGE));
    if (why != 0)
        return complain(STATUS_RUN, "%s: %s has no room for %zu bytes of offloaded tensors: %s; name a directory that has with "
                        "--offload-dir", info->name, s->dir, info->host, strerror(why));
    s->direct = fcntl(s->file, F_SETFL, fcntl(s->file, F_GETFL) | O_DIRECT) == 0;
    if (fstatfs(s->file, &fs) == 0 && fs.f_type == TMPFS && s->w->stage.index == 0)
        complain(DONE, "%s is in memory: what is offloaded there frees none; --offload-dir names another directory", s->dir);
    return DONE;
}

static int open_lane(Spill *s, int i)
{
    Lane *l = &s->lane[i];
    l->spill = s;
    atomic_store(&l->at, -1);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    pthread_cond_init(&l->done, NULL);
    l->ring = calloc((size_t)s->w->info->copies, sizeof *l->ring);
    l->bounce = s->file >= 0 ? aligned_alloc(PAGE, CHUNK) : NULL;
    if (!l->ring || (s->file >= 0 && !l->bounce))
        return complain(STATUS_RUN, "%s: no memory for copies to the host", s->w->info->name);
    l->started = pthread_create(&l->thread, NULL, lane_main, l) == 0;
    if (!l->started)
        return complain(STATUS_RUN, "%s: no thread for copies to the host; check `ulimit -u` (processes) and `ulimit -v` "
                        "(memory)", s->w->info->name);
    return DONE;
}

static int open_memory(Spill *s)
{
    s->memory = pages_map(s->w->info->host, s->w->run->opt.fill);
    if (!s->memory)
        return complain(STATUS_RUN, "%s: no memory for %zu bytes of offloaded tensors: %s; offload less, or to a file "
                        "(plan.offload: {to: disk})", s->w->info->name, s->w->info->host, strerror(errno));
    return DONE;
}

static int spill_open(Worker *w)
{
    Spill *s = calloc(1, sizeof *s);
    if (s)
        s->copy = calloc((size_t)w->info->copies, sizeof *s->copy);
    for (int i = 0; s && w->run->opt.trace && !w->info->pace && i < 2; i++)
        s->trace[i].ring = calloc(RING, sizeof(Copied));
    if (!s || !s->copy)
        return complain(STATUS_RUN, "%s: no memory for copies to the host", w->info->name);
    s->w = w;
    s->file = -1;
    w->stage.spill = s;
    if (w->info->pace)
        return DONE;
    int status = w->run->job->disk ? open_file(s) : open_memory(s);
    for (int i = 0; i < w->info->lanes && status == DONE; i++)
        status = open_lane(s, i);
    return status;
}

static void spill_close(Worker *w)
{
    Spill *s = w->stage.spill;
    for (int i = 0; s && i < 2; i++) {
        Lane *l = &s->lane[i];
        if (!l->started)
            continue;
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->wake);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    if (!s)
        return;
    if (s->file >= 0)
        close(s->file);
    pages_unmap(s->memory, w->info->host);
    for (int i = 0; i < 2; i++) {
        free(s->lane[i].ring);
        free(s->lane[i].bounce);
        free(s->trace[i].ring);
    }
    free(s->copy);
    free(s);
    w->stage.spill = NULL;
}

static void spill_report(const Worker *w)
{
    const Spill *s = w->stage.spill;
    for (int i = 0; s && i < 2; i++) {
        int64_t at = atomic_load(&s->lane[i].at);
        if (s->lane[i].started && at >= 0)
            complain(STATUS_RUN, "%s: copy of action %lld is under way: %s", w->info->name, (long long)at, action_name(w, at));
    }
}

static const Copied *spill_trace(const Worker *w, int direction, uint64_t i, uint64_t *n)
{
    const Spill *s = w->stage.spill;
    if (!s || !s->trace[direction].ring)
        return NULL;
    uint64_t all = s->trace[direction].n, kept = all < RING ? all : RING;
    *n = kept;
    return &s->trace[direction].ring[(all - kept + i) % RING];
}

const Offload offload_host = {spill_open, spill_close, spill_report, spill_trace};
