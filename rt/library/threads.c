/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c: a job of several devices.  The first one runs in the thread of whoever calls, and each other one in a thread of
 * its own from NAME_open() to NAME_close().
 *
 * Between calls these threads sleep, so a job that nobody calls takes no time.  Signals of the program never come to them.
 * Messages are those of the program's threads (meet.c).
 *
 * Problem: a stage that fails must not end the process, and others may wait for its messages.  Method: the first failure leaves
 * its text in the job, and wakes whoever waits; each thread leaves its list by longjmp() and sleeps again.  Then the tables of
 * messages are as at first, and NAME_load() or NAME_restart() makes the parameters whole.
 *
 * Libraries of other fields keep one pool for the whole process, which a program meets as a global: OpenBLAS, whose users ask
 * how to be rid of its threads after fork() and how to give two callers their own.  Here the threads belong to the job, like
 * its memory.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include "inside.h"
#include "link.h"
#include "meet.h"

enum { STACK = 8 << 20 };       /* bytes of a thread: gemm.c takes 1.9 MiB, and musl's threads have 128 KiB */
enum { TABLES = JOB_STAGES * (ALL_REQUESTS * (int)sizeof(Half) + JOB_STAGES * (int)sizeof(Queue) + (int)sizeof(Bed)) + 192 };

typedef struct {
    _Alignas(64) unsigned char tables[TABLES];
    Meet meet;
    pthread_mutex_t lock;       /* of what follows up to `telling` */
    pthread_cond_t go, end;
    uint64_t round;             /* counts up with every run */
    int left;                   /* threads that have not come to its end */
    bool eval, over;
    pthread_mutex_t telling;    /* of the text of the job, and of `failed`; one listener at a time */
    bool failed;
    int threads;                /* that were made */
    pthread_t thread[JOB_STAGES];
} Crew;

CREW_FITS();

static Crew *crew_of(library_job *j) { return crew_room(j); }

/* All that wait for messages, or will wait, call stage_leave(). */
static void meet_break(Meet *m)
{
    atomic_store(&m->broken, 1);
    for (int i = 0; i < m->stages; i++) {
        pthread_mutex_lock(&m->bed[i].lock);
        pthread_cond_broadcast(&m->bed[i].wake);
        pthread_mutex_unlock(&m->bed[i].lock);
    }
}

/* As at first, while no stage runs. */
static void meet_renew(Meet *m)
{
    for (int i = 0; i < m->stages * m->stages; i++)
        m->queue[i].head = m->queue[i].tail = NULL;
    atomic_store(&m->broken, 0);
}

/* ---- what messages ask for --------------------------------------------------------------------------------------------- */

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    return meet_begin(&crew_of(worker_of(st)->job)->meet, st, request, sending, buffer, peer, tag, bytes);
}

void link_wait(Stage *st, void *request)
{
    meet_wait(&crew_of(worker_of(st)->job)->meet, st, request);
}

int64_t message_ready(Stage *st, int request)
{
    (void)st, (void)request;
    return 0;
}

int64_t message_carry(Stage *st, const Message *m, int64_t *wire)
{
    (void)st, (void)wire;
    memcpy(m->target, m->source, (size_t)m->bytes);
    return 0;
}

void message_arrived(Stage *st, int request, int64_t ready)
{
    (void)st, (void)request, (void)ready;
}

void stage_waits(Stage *st, int who)
{
    (void)st, (void)who;
}

const char *stage_action(const Stage *st, int stage, int64_t at)
{
    (void)st, (void)stage, (void)at;
    return "?";
}

void stage_leave(Stage *st)
{
    longjmp(*(jmp_buf *)worker_of(st)->out, 1);
}

void stage_fail(Stage *st, const char *form, ...)
{
    library_job *j = worker_of(st)->job;
    Crew *c = crew_of(j);
    va_list given;
    va_start(given, form);
    pthread_mutex_lock(&c->telling);
    if (!c->failed)
        job_text(j->why, form, given);
    c->failed = true;
    pthread_mutex_unlock(&c->telling);
    va_end(given);
    meet_break(&c->meet);
    stage_leave(st);
}

void crew_tell(Worker *w, const char *action)
{
    Crew *c = crew_of(w->job);
    pthread_mutex_lock(&c->telling);
    w->job->told(w->job->with, w->stage.index, action);
    pthread_mutex_unlock(&c->telling);
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

static void work(Worker *w, bool eval)
{
    jmp_buf out;
    w->out = &out;
    if (!setjmp(out))
        (eval ? w->info.eval : w->info.step)(&w->stage);
}

static void *thread_main(void *at)
{
    Worker *w = at;
    Crew *c = crew_of(w->job);
    uint64_t seen = 0;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->round == seen && !c->over)
            pthread_cond_wait(&c->go, &c->lock);
        if (c->over)
            break;
        bool eval = c->eval;
        seen = c->round;
        pthread_mutex_unlock(&c->lock);
        work(w, eval);
        pthread_mutex_lock(&c->lock);
        if (--c->left == 0)
            pthread_cond_signal(&c->end);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void renew(library_job *j)
{
    Crew *c = crew_of(j);
    c->failed = false;
    meet_renew(&c->meet);
    for (int i = 0; i < JOB_STAGES; i++)
        memset(j->worker[i].stage.request, 0, sizeof j->worker[i].stage.request);
}

bool crew_run(library_job *j, bool eval)
{
    Crew *c = crew_of(j);
    pthread_mutex_lock(&c->lock);
    c->eval = eval;
    c->left = JOB_STAGES - 1;
    c->round++;
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
    work(&j->worker[0], eval);
    pthread_mutex_lock(&c->lock);
    while (c->left > 0)
        pthread_cond_wait(&c->end, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (!c->failed)
        return true;
    renew(j);
    return false;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static bool open_locks(Crew *c)
{
    if (pthread_mutex_init(&c->lock, NULL))
        return false;
    if (!pthread_mutex_init(&c->telling, NULL)) {
        if (!pthread_cond_init(&c->go, NULL)) {
            if (!pthread_cond_init(&c->end, NULL))
                return true;
            pthread_cond_destroy(&c->go);
        }
        pthread_mutex_destroy(&c->telling);
    }
    pthread_mutex_destroy(&c->lock);
    return false;
}

static void open_threads(library_job *j)
{
    Crew *c = crew_of(j);
    pthread_attr_t attr;
    sigset_t all, before;
    size_t size = 0;
    if (pthread_attr_init(&attr))
        return;
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < STACK)
        pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);        /* a thread begins with the mask of who makes it */
    while (c->threads < JOB_STAGES - 1 &&
           !pthread_create(&c->thread[c->threads], &attr, thread_main, &j->worker[c->threads + 1]))
        c->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

const char *crew_open(library_job *j, const void *over, char *here)
{
    (void)over;
    if (!j)
        return here;
    Crew *c = crew_of(j);
    if (!open_locks(c))
        return "the system has no lock left";
    if (!meet_open(&c->meet, c->tables, JOB_STAGES, ALL_REQUESTS)) {
        pthread_cond_destroy(&c->end);
        pthread_cond_destroy(&c->go);
        pthread_mutex_destroy(&c->telling);
        pthread_mutex_destroy(&c->lock);
        return "the system has no lock left";
    }
    open_threads(j);
    if (c->threads == JOB_STAGES - 1)
        return NULL;
    crew_close(j);
    return "the system gives no thread for a stage: look at ulimit -u (processes) and -v (memory)";
}

void crew_close(library_job *j)
{
    Crew *c = crew_of(j);
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_broadcast(&c->go);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->threads; i++)
        pthread_join(c->thread[i], NULL);
    meet_close(&c->meet);
    pthread_cond_destroy(&c->end);
    pthread_cond_destroy(&c->go);
    pthread_mutex_destroy(&c->telling);
    pthread_mutex_destroy(&c->lock);
}
