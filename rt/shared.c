/* SPDX-License-Identifier: Apache-2.0
 *
 * shared.c: do all processes see the files that they write together?
 *
 * Problem: a checkpoint, an export and the gradients are written by all stages into one folder.  Hosts that have a folder of
 * their own under that path would find out at the first checkpoint, or at the end.  Method: before the first step the process
 * of stage 0 writes a mark into a file there, with its host, its number and the time, and every other one reads it.  A file
 * system of a network may show a new file late, so each waits a while.  Cost: milliseconds where all is well.
 *
 * link_worst() is a maximum over all processes.  Where all but one give 0, it tells what that one has.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ckpt.h"
#include "link.h"

enum { WAIT = 60 };             /* seconds: as long as Linux keeps what it knows of a directory of NFS */

static void tell(const Run *run, char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (char)link_worst(run->link, run->main ? (unsigned char)data[i] : 0);
}

static bool has_mark(const char *path, const char *mark)
{
    char is[SHARED_MARK] = {0};
    int file = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t n = file < 0 ? -1 : read(file, is, sizeof is - 1);
    if (file >= 0)
        close(file);
    return n > 0 && !strcmp(is, mark);
}

/* The process of stage 0 wrote it.  It may hold a lock on the file, and closing it once more would give that up. */
static int see(const Run *run, const char *what, const char *path, const char *mark)
{
    char here[64];
    long tries = 10 * (run->opt.watchdog > 0 && run->opt.watchdog < WAIT ? run->opt.watchdog : WAIT);
    bool seen = run->main || has_mark(path, mark);
    while (!seen && tries-- > 0) {
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        seen = has_mark(path, mark);
    }
    ckpt_host(here);
    return seen ? DONE : complain(STATUS_RUN, "%s does not see %s of %.*s: it must be on a file system that all hosts share",
                                  here, what, (int)strcspn(mark, " "), mark);
}

/* A file that is written at the end, tried with the mark in it. */
static int try_file(const Run *run, const char *what, const char *folder, const char *path, const char *mark)
{
    bool made = run->main && folder && mkdir(folder, 0777) == 0;
    int file = run->main ? part_lock(path, false) : -1, status = DONE;
    if (link_worst(run->link, run->main && file < 0 && errno == EWOULDBLOCK))
        return DONE;            /* another job writes its file there, and this one waits for it at its end */
    if (run->main && (file < 0 || !write_all(file, mark, strlen(mark))))
        status = complain(STATUS_RUN, "%s: cannot write there: %s", path, strerror(errno));
    status = link_worst(run->link, status);
    if (status == DONE)
        status = link_worst(run->link, see(run, what, path, mark));
    if (run->main)
        unlink(path);
    if (file >= 0)
        close(file);
    if (made)
        rmdir(folder);
    return status;
}

static int check(const Run *run, bool locked)
{
    const Options *o = &run->opt;
    char mark[SHARED_MARK], path[CKPT_PATH + 64];
    int status = DONE;
    if (run->count == run->job->stages)
        return DONE;
    memcpy(mark, run->mark, sizeof mark);
    tell(run, mark, sizeof mark);
    if (link_worst(run->link, locked)) {
        snprintf(path, sizeof path, "%s/lock", o->checkpoint);
        status = link_worst(run->link, see(run, o->checkpoint, path, mark));
    }
    snprintf(path, sizeof path, "%s/model.safetensors.part", o->publish ? o->publish : "");
    if (status == DONE && o->publish)
        status = try_file(run, o->publish, o->publish, path, mark);
    snprintf(path, sizeof path, "%s.part", o->gradients ? o->gradients : "");
    if (status == DONE && o->gradients)
        status = try_file(run, o->gradients, NULL, path, mark);
    return status;
}

/* Processes of the job on this host. */
static int processes(const Run *run)
{
    const char *here = link_host(run->link, run->first);
    int stages = 0;
    for (int s = 0; here && s < run->job->stages; s++)
        stages += !strcmp(link_host(run->link, s), here);
    return stages > run->count ? (stages + run->count - 1) / run->count : 1;
}

const Hosts hosts_files = {check, processes};
