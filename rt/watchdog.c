/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.c: ends a job that has frozen, with a message.
 *
 * A thread looks at the signs of life of its stages five times a second.  A process in which no stage begins an
 * action for max(30 s, 20 predicted steps) has lost its peer, its device or its mind: the watchdog prints where each
 * stage stands and ends the job with 1.  Silence is counted in looks, not by the clock, so that a process that was
 * stopped and continued is not blamed for the pause.  The start and writing files have four times the patience: others wait
 * for them in silence.  A copy to the host or back is a sign of life
 * with each piece.  A stage that waits for a frozen one falls silent too, so whoever is still alive notices, on any host.
 */
#include <stdlib.h>
#include <time.h>
#include "link.h"
#include "run.h"

enum { LOOKS = 5, SHORTEST = 30, PREDICTED = 20 };

struct Watchdog {
    Run *run;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    long deadline, silent;      /* seconds; looks since a stage of the process has shown life */
    struct { uint64_t beat; long silent; } *seen;
};

/* " on host1", where stages have hosts. */
static void add_host(Text *t, const Run *run, int stage)
{
    const char *host = link_host(run->link, stage);
    if (host)
        text_add(t, " on %s", host);
}

static void tell(const Watchdog *d, const Worker *w, long silent)
{
    char line[1024];
    Text t = {line, 0, sizeof line};
    int64_t at = atomic_load(&w->at);
    int waits = atomic_load(&w->waits), peer = abs(waits) - 1;
    text_add(&t, "%s", w->info->name);
    add_host(&t, d->run, w->stage.index);
    text_add(&t, ": action %lld: %s", (long long)at,
             at < 0 ? "none: it starts, runs a step as a graph, exchanges results or writes files" : action_name(w, at));
    if (waits) {
        text_add(&t, ", %s %s", waits > 0 ? "from" : "to", d->run->job->stage[peer].name);
        add_host(&t, d->run, peer);
    }
    complain(STATUS_RUN, "%s; silent for %ld s", line, silent);
}

_Noreturn static void expire(const Watchdog *d)
{
    const Run *run = d->run;
    for (int i = 0; i < run->count; i++) {
        const Worker *w = &run->worker[i];
        tell(d, w, d->seen[i].silent / LOOKS);
        if (offloads(w))
            job_parts.offload->report(w);
    }
    quit(run->link, STATUS_RUN, "no progress for %ld s, the job ends; if an action really takes that long, raise "
         "--watchdog", d->silent / LOOKS);
}

static void look(Watchdog *d)
{
    bool alive = false;
    int patience = 1;
    for (int i = 0; i < d->run->count; i++) {
        const Worker *w = &d->run->worker[i];
        uint64_t beat = atomic_load(&w->beat);
        int mine = atomic_load(&w->patience);
        alive |= beat != d->seen[i].beat;
        d->seen[i].silent = beat == d->seen[i].beat ? d->seen[i].silent + 1 : 0;
        d->seen[i].beat = beat;
        patience = mine > patience ? mine : patience;
    }
    d->silent = alive ? 0 : d->silent + 1;
    if ((d->silent - 1) / (LOOKS * patience) >= d->deadline)        /* a deadline may be any number */
        expire(d);
}

static void *watch(void *at)
{
    Watchdog *d = at;
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 1000000000 / LOOKS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&d->wake, &d->lock, &until);
        if (!d->stop)
            look(d);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static long deadline(const Run *run)
{
    long predicted = (long)(run->job->step_ns / 1000000000 * PREDICTED);
    if (run->opt.watchdog >= 0)
        return run->opt.watchdog;
    return predicted > SHORTEST ? predicted : SHORTEST;
}

Watchdog *watchdog_open(Run *run)
{
    Watchdog *d = calloc(1, sizeof *d);
    if (!d || deadline(run) == 0) {
        free(d);
        return NULL;
    }
    d->run = run;
    d->deadline = deadline(run);
    d->seen = calloc((size_t)run->count, sizeof *d->seen);
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_t steady;          /* whatever is done to the date */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&d->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (!d->seen || pthread_create(&d->thread, NULL, watch, d) != 0) {
        complain(STATUS_RUN, "no thread for the watchdog: a frozen job will not be noticed");
        free(d->seen);
        free(d);
        return NULL;
    }
    return d;
}

void watchdog_close(Watchdog *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    free(d->seen);
    free(d);
}
