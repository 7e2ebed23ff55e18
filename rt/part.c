/* SPDX-License-Identifier: Apache-2.0
 *
 * part.c: a file that is written beside its place, under a name that another job may use at the same time.
 *
 * Stage 0 holds a lock on it from the first byte until it has its place, and the next job waits.  Results of `serve` may have
 * no end: another one does not wait for them, and ends.  Whoever gets the lock looks whether the name still leads to that
 * file.  A file system without locks is trusted to be used by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "run.h"

static const char suffix[] = ".part";

/* Beside the plain file that is there, also behind a link, or is to come; a device is written to. */
void part_name(char *to, const char *path)
{
    struct stat info;
    char real[PATH_MAX];
    bool there = lstat(path, &info) == 0;
    if (there && S_ISLNK(info.st_mode) && stat(path, &info) == 0 && S_ISREG(info.st_mode) && realpath(path, real))
        path = real;
    snprintf(to, PART_PATH, "%s%s", path, there && !S_ISREG(info.st_mode) ? "" : suffix);
}

int part_end(const char *part, const char *path, int status)
{
    char whole[PART_PATH];
    struct stat info;
    int n = (int)(strlen(part) - strlen(suffix));
    if (!strcmp(part, path))
        return status;
    snprintf(whole, sizeof whole, "%.*s", n, part);
    if (status == DONE && rename(part, whole) != 0)
        status = complain(STATUS_RUN, "%s: cannot rename %s: %s", path, part, strerror(errno));
    if (status != DONE && lstat(part, &info) == 0 && S_ISREG(info.st_mode))
        unlink(part);
    return status;
}

bool part_try(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK, 0666);
    bool fresh = file >= 0;
    if (!fresh)
        file = open(path, O_WRONLY | O_CREAT | O_NONBLOCK, 0666);
    if (file < 0)
        return false;
    if (fresh && (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK))
        unlink(path);
    close(file);
    return true;
}

int part_lock(const char *path, bool waits)
{
    struct stat mine, now;
    for (;;) {
        int file = open(path, O_WRONLY | O_CREAT, 0666);
        if (file < 0 || fstat(file, &mine) != 0 || !S_ISREG(mine.st_mode))
            return file;
        bool taken = flock(file, LOCK_EX | (waits ? 0 : LOCK_NB)) != 0 && errno == EWOULDBLOCK;
        bool named = stat(path, &now) == 0 && mine.st_dev == now.st_dev && mine.st_ino == now.st_ino;
        if (named && !taken && ftruncate(file, 0) == 0)
            return file;
        int why = taken ? EWOULDBLOCK : errno;
        close(file);
        errno = why;
        if (named)
            return -1;
    }
}

bool part_sync(int file, bool good)
{
    good = good && fsync(file) == 0;
    int why = errno;
    if (file >= 0 && close(file) != 0 && good)
        return false;
    errno = why;
    return good;
}

static int cannot_write(const char *path)
{
    return complain(STATUS_RUN, "%s: cannot write: %s", path, strerror(errno));
}

int part_write(Worker *w, const char *part, const char *path, const Text *header, bool (*mine)(Worker *w, int file))
{
    bool first = w->stage.index == 0;
    int file = first ? part_open(w, part) : -1;
    int status = worst(w, first && (file < 0 || !write_all(file, header->at, header->n)) ? cannot_write(part) : DONE);
    if (status == DONE) {
        file = open(part, O_WRONLY);
        status = worst(w, part_sync(file, mine(w, file)) ? DONE : cannot_write(part));
    }
    return worst(w, first ? part_end(part, path, status) : status);
}

int part_open(Worker *w, const char *path)
{
    part_close(w);
    int file = part_lock(path, true);
    w->partial = file > 0 ? file : 0;
    return file;
}

void part_close(Worker *w)
{
    if (w->partial > 0)
        close(w->partial);
    w->partial = 0;
}
