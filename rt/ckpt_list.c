/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_list.c: names of checkpoints, which exist, which go, and which job may write.
 *
 * Only names of our own form are looked at, and only files of our own names are ever removed.  Everything else in the
 * directory stays.
 *
 * Two jobs in one directory would race for the same names, and find out at their first checkpoint or at their last.  So each
 * holds a lock on DIR/lock while it runs.  The kernel releases it however the process ends, so a file that a killed job left
 * there blocks nobody.  A file system without locks is trusted to be used by one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ckpt.h"
#include "weights.h"

void ckpt_name(char *to, const char *dir, int64_t step, const char *tail)
{
    snprintf(to, CKPT_PATH, "%s/step-%06lld%s", dir, (long long)step, tail);
}

/* step-NNNNNN or step-NNNNNN.part, exactly as ckpt_name() writes it. */
static bool parse(const char *name, Saved *s)
{
    char again[CKPT_NAME];
    long long step;
    int n = 0;
    if (sscanf(name, "step-%18lld%n", &step, &n) != 1 || step < 0)
        return false;
    bool part = strcmp(name + n, ".part") == 0;
    snprintf(again, sizeof again, "step-%06lld%s", step, part ? ".part" : "");
    *s = (Saved){step, part ? CKPT_PART : CKPT_UNCOMMITTED, 0};
    return strcmp(again, name) == 0;
}

/* How many stages wrote, and whether it was committed. */
static void inspect(const char *dir, Saved *s)
{
    char path[CKPT_PATH];
    struct stat info;
    ckpt_name(path, dir, s->step, s->state == CKPT_PART ? ".part" : "");
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/COMMIT");
    if (s->state != CKPT_PART && stat(path, &info) == 0)
        s->state = CKPT_COMMITTED;
    path[n] = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        int stage;
        if (sscanf(e->d_name, "stage%9d.safetensors", &stage) == 1 && stage >= s->files)
            s->files = stage + 1;
    }
    if (d)
        closedir(d);
}

static int by_step(const void *a, const void *b)
{
    const Saved *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

Saved *ckpt_list(const char *dir, int *n, int *status)
{
    Saved *list = NULL, one;
    *n = 0;
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT)
        *status = complain(STATUS_RUN, "%s: cannot look for checkpoints: %s", dir, strerror(errno));
    for (struct dirent *e; d && *status == DONE && (e = readdir(d)) != NULL;) {
        if (!parse(e->d_name, &one))
            continue;
        Saved *more = realloc(list, ((size_t)*n + 1) * sizeof *more);
        if (!more) {
            *status = complain(STATUS_RUN, "no memory for the list of checkpoints");
            break;
        }
        list = more;
        inspect(dir, &one);
        list[(*n)++] = one;
    }
    if (d)
        closedir(d);
    if (*n > 1)
        qsort(list, (size_t)*n, sizeof *list, by_step);
    return list;
}

int64_t ckpt_newest(const char *dir, int *status)
{
    int n;
    int64_t step = -1;
    Saved *list = ckpt_list(dir, &n, status);
    for (int i = 0; i < n; i++)
        if (list[i].state == CKPT_COMMITTED)
            step = list[i].step;
    free(list);
    return step;
}

void ckpt_remove(const char *dir, int64_t step, CkptState state, int files)
{
    static const char *const fixed[] = {"/COMMIT", "/index.json"};
    char path[CKPT_PATH];
    ckpt_name(path, dir, step, state == CKPT_PART ? ".part" : "");
    size_t n = strlen(path);
    for (int i = 0; i < 2; i++) {
        snprintf(path + n, sizeof path - n, "%s", fixed[i]);
        unlink(path);
    }
    for (int i = 0; i < files; i++) {
        snprintf(path + n, sizeof path - n, "/stage%d.safetensors", i);
        unlink(path);
    }
    path[n] = 0;
    rmdir(path);
}

/* ---- one writer a directory -------------------------------------------------------------------------------------- */

void ckpt_host(char to[64])
{
    if (gethostname(to, 64) != 0)
        strcpy(to, "a host");
    to[63] = 0;
}

void ckpt_mark(char mark[SHARED_MARK])
{
    char host[64];
    struct timespec now;
    ckpt_host(host);
    clock_gettime(CLOCK_REALTIME, &now);
    memset(mark, 0, SHARED_MARK);
    snprintf(mark, SHARED_MARK, "%s %ld %lld.%09ld\n", host, (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
}

static void lock_name(char *to, const char *dir)
{
    snprintf(to, CKPT_PATH, "%s/lock", dir);
}

/* The part of a path that is not there, or leads nowhere. */
static int refuse_path(const char *dir, int why)
{
    char part[CKPT_PATH];
    struct stat info;
    for (size_t n = 1; why == ENOENT && n <= strlen(dir); n++) {
        snprintf(part, sizeof part, "%.*s", (int)n, dir);
        if ((dir[n] && dir[n] != '/') || stat(part, &info) == 0)
            continue;
        if (lstat(part, &info) == 0)
            return complain(STATUS_RUN, "%s: cannot write checkpoints there: %s is a link to what is not there", dir, part);
        if (dir[n])
            return complain(STATUS_RUN, "%s: cannot write checkpoints there: there is no %s; make it first", dir, part);
    }
    return complain(STATUS_RUN, "%s: cannot write checkpoints there: %s", dir, strerror(why));
}

static int refuse_second(int file, const char *dir)
{
    char mark[SHARED_MARK] = {0}, host[64], who[128] = "";
    long process;
    if (pread(file, mark, sizeof mark - 1, 0) > 0 && sscanf(mark, "%63s %ld", host, &process) == 2)
        snprintf(who, sizeof who, " (process %ld on %s)", process, host);
    close(file);
    return complain(STATUS_RUN, "%s: another running job writes its checkpoints there%s; wait for its end, or name another "
                    "directory with --checkpoint", dir, who);
}

int ckpt_lock(CkptLock *l, const char *dir, bool make, const char *mark)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat info;
    char path[CKPT_PATH];
    if (strlen(dir) >= CKPT_PATH - 2 * CKPT_NAME)
        return complain(STATUS_RUN, "--checkpoint: a path of %zu bytes is too long", strlen(dir));
    lock_name(path, dir);
    *l = (CkptLock){.made = make && mkdir(dir, 0777) == 0, .file = -1};
    if (make && !l->made && errno != EEXIST)
        return refuse_path(dir, errno);
    do {                        /* again when the job before removed the file between our open and our lock */
        if (l->file >= 0)
            close(l->file);
        l->file = open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0666);
        if (l->file < 0 && errno == ENOENT && !make)
            return DONE;        /* no directory: no checkpoint in it, as the caller finds out */
        if (l->file < 0)
            return refuse_path(dir, errno);
        if (fcntl(l->file, F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN)) {
            int status = refuse_second(l->file, dir);
            l->file = -1;
            return status;
        }
    } while (fstat(l->file, &info) == 0 && info.st_nlink == 0);
    if (ftruncate(l->file, 0) != 0 || !write_all(l->file, mark, strlen(mark)))
        return complain(STATUS_RUN, "%s: cannot write there: %s", path, strerror(errno));
    return DONE;
}

/* A lock is on a file, and a path may come to name another one. */
bool ckpt_alone(const CkptLock *l, const char *dir)
{
    char path[CKPT_PATH];
    struct stat held, there;
    lock_name(path, dir);
    return fstat(l->file, &held) == 0 && stat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

/* Touched, it is no old file that a cleaner takes away. */
int ckpt_held(const CkptLock *l, const char *dir)
{
    char path[CKPT_PATH];
    lock_name(path, dir);
    futimens(l->file, NULL);
    if (ckpt_alone(l, dir))
        return DONE;
    return complain(STATUS_RUN, "%s is no longer the file that this job holds: somebody removed it or put another directory "
                    "there, and another job may write its checkpoints in %s; the job ends without one more", path, dir);
}

/* The name goes before the lock, so that nobody locks a file that is about to go without seeing it. */
void ckpt_unlock(CkptLock *l, const char *dir)
{
    char path[CKPT_PATH];
    lock_name(path, dir);
    if (l->file < 0)
        return;
    bool same = ckpt_alone(l, dir);
    if (same)
        unlink(path);
    close(l->file);
    l->file = -1;
    if (same && l->made)
        rmdir(dir);             /* nothing was written: it goes as it came */
}

int weights_find(Run *run, const char *asked, char *store)
{
    struct stat info;
    int status = DONE;
    const char *found[WEIGHTS_LISTS];
    if (stat(asked, &info) != 0 && asked == run->job->ckpt_dir)
        return complain(STATUS_STALE, "there are no checkpoints in %s: run train first, or name weights with --weights PATH",
                        asked);
    if (stat(asked, &info) != 0)
        return complain(STATUS_STALE, "--weights: %s: %s; give a safetensors file or a directory of checkpoints", asked,
                        strerror(errno));
    int64_t step = S_ISDIR(info.st_mode) ? ckpt_newest(asked, &status) : -1;
    run->opt.weights = asked;
    if (step >= 0) {
        ckpt_name(store, asked, step, "");
        run->opt.weights = store;
    }
    if (step >= 0 && weights_lists(asked, found))
        return complain(STATUS_STALE, "%s holds checkpoints and %s: which weights are meant?  Name %s, or the file", asked,
                        found[0], store);
    return status;
}
