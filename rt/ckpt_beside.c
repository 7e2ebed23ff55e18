/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_beside.c: a thread for each stage of a process that writes its part of a checkpoint while training goes on.
 *
 * Problem: hashing and writing a checkpoint take seconds, and a step that waits for them is lost.  Method: at the end of a
 * step a stage copies its states into memory that it has had since the start, and its thread writes that.  One piece of work is
 * there at a time; whoever wants another one waits for it first.  What follows from all files, the commit, needs all stages:
 * they learn with the loss of a step whether one still writes (ckpt.c).
 *
 * A process takes at most half of what the machine has free for its copies.  Where there is less, work is done by the caller,
 * as it is with checkpoint.async: false.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ckpt.h"

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
    return 1024 * kilobytes;
}

bool beside_fits(size_t bytes)
{
    return (double)bytes <= free_memory() / 2;
}

/* Signals are for the threads that were there before. */
bool beside_open(Beside *b, size_t bytes)
{
    sigset_t all, before;
    b->room = bytes;
    b->at = bytes ? arena_map(bytes, 0) : NULL;
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
        arena_unmap(b->at, b->room);
    b->started = false;
    b->at = NULL;
}
