/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_beside.c: a thread for each stage of a process that writes its part of a checkpoint while training goes on.
 *
 * Problem: hashing and writing a checkpoint take seconds, and a step that waits for them is lost.  Method: at the end of a
 * step a stage copies its states into memory that it has had since the start, and its thread writes that.  One piece of work is
 * there at a time; whoever wants another one waits for it first.  What follows from all files, the commit, needs all stages:
 * they learn with the loss of a step whether one still writes (ckpt.c).
 *
 * Copies take at most half of what the machine, or the control group of a batch job, has free; each process of the host has
 * its share.  Where there is less, work is done by the caller, as it is with checkpoint.async: false.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ckpt.h"
#include "room.h"

static void *write_work(void *at)
{
    Beside *b = at;
    pthread_mutex_lock(&b->lock);
    while (!b->stop || b->work) {
        if (!b->work) {
            pthread_cond_wait(&b->wake, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        b->work(b->of);
        pthread_mutex_lock(&b->lock);
        b->work = NULL;
        atomic_store(&b->busy, false);
        pthread_cond_broadcast(&b->done);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static double number_in(const char *folder, const char *name)
{
    char path[600];
    double n = -1;              /* there is no such file, or it says max */
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lf", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    return n;
}

double beside_left(char *path, size_t root, const char *most, const char *now, double left)
{
    for (;;) {
        double limit = number_in(path, most), used = number_in(path, now);
        if (limit >= 0 && used >= 0 && limit - used < left)
            left = limit - used;
        char *end = strrchr(path, '/');
        if (strlen(path) <= root || !end)
            return left;
        *end = 0;
    }
}

static double left_in_groups(double left)
{
    static const char one[] = "/sys/fs/cgroup/memory", two[] = "/sys/fs/cgroup";
    char line[512], folder[600];
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *controller = strchr(line, ':'), *path = controller ? strchr(controller + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        bool second = controller[1] == 0;
        snprintf(folder, sizeof folder, "%s%s", second ? two : one, strcmp(path, "/") ? path : "");
        if (second)
            left = beside_left(folder, sizeof two - 1, "memory.max", "memory.current", left);
        else if (!strcmp(controller + 1, "memory"))
            left = beside_left(folder, sizeof one - 1, "memory.limit_in_bytes", "memory.usage_in_bytes", left);
    }
    if (f)
        fclose(f);
    return left;
}

/* Bytes that the kernel would give without taking them from somebody; 0: it does not say. */
static double free_memory(void)
{
    char line[128];
    double kilobytes = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "MemAvailable:", 13))
            kilobytes = strtod(line + 13, NULL);
    if (f)
        fclose(f);
    return left_in_groups(1024 * kilobytes);
}

bool beside_fits(size_t bytes, int processes)
{
    return (double)bytes * processes <= free_memory() / 2;
}

/* Signals are for the threads that were there before. */
bool beside_open(Beside *b, size_t bytes)
{
    sigset_t all, before;
    b->room = bytes;
    b->at = bytes ? pages_map(bytes, 0) : NULL;
    if (bytes && !b->at)
        return false;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->wake, NULL);
    pthread_cond_init(&b->done, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    b->started = pthread_create(&b->thread, NULL, write_work, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return b->started;
}

void beside_post(Beside *b, void (*work)(void *), void *of)
{
    if (!b->started) {
        work(of);
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->work = work;
    b->of = of;
    atomic_store(&b->busy, true);
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

/* As long as pieces are written, that is a sign of life. */
void beside_wait(Beside *b, Worker *w)
{
    uint64_t seen = atomic_load(&b->pieces);
    if (!b->started)
        return;
    pthread_mutex_lock(&b->lock);
    while (b->work) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&b->done, &b->lock, &until);
        uint64_t now = atomic_load(&b->pieces);
        atomic_fetch_add(&w->beat, now != seen);
        seen = now;
    }
    pthread_mutex_unlock(&b->lock);
}

bool beside_busy(const Beside *b)
{
    return b->started && atomic_load(&b->busy);
}

void beside_close(Beside *b)
{
    if (b->started) {
        pthread_mutex_lock(&b->lock);
        b->stop = true;
        pthread_cond_signal(&b->wake);
        pthread_mutex_unlock(&b->lock);
        pthread_join(b->thread, NULL);
    }
    if (b->at)
        pages_unmap(b->at, b->room);
    b->started = false;
    b->at = NULL;
}
