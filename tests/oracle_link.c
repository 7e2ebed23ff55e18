/* SPDX-License-Identifier: Apache-2.0
 *
 * oracle_link.c: a transport that wishes a job ill.  Linked with --wrap for link_begin, link_wait and the copies to the host.
 *
 * A message may complete at any moment from the begin of its second half to the first wait for one of them, and nobody may see
 * which.  ORACLE=early: at once.  late: in that wait, and the bytes where it will arrive are made 0xFF at the begin.  Else a
 * number, by which each message has a moment of its own: so many calls of the transport later.  Copies to the host likewise.
 * Stages are threads of one process; one lock serves all, and each turn wakes all: jobs of tests are small.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "link.h"

enum { MOST = 64, COPIES = 4096 };
typedef struct Message Message;
struct Message { char *from, *to; long bytes; int halves, tag, waits; Message *next; };
typedef struct { Message *first, *last, *sent, *wanted; } Queue;        /* sent, wanted: the last that has begun so */
typedef struct { char *to; const char *from; long bytes; size_t host; int out, waits, busy; } Copy;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static Queue queue[MOST][MOST];
static Copy copy[MOST][COPIES];
static char *host[MOST];
static size_t host_bytes[MOST];
static Message *under_way[1 << 16];
static int ways;
static uint64_t drawn;

static int moment(void)
{
    const char *when = getenv("ORACLE");
    if (!when || !strcmp(when, "early"))
        return 0;
    if (!strcmp(when, "late"))
        return 1 << 30;
    drawn = drawn ? drawn : strtoull(when, NULL, 10) + 1;
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int)(drawn >> 60);
}

static void complete(Message *m)
{
    memcpy(m->to, m->from, (size_t)m->bytes);
    m->halves = 3;
    for (int i = 0; i < ways; i++)
        if (under_way[i] == m)
            under_way[i] = under_way[--ways];
    pthread_cond_broadcast(&turn);
}

static void later(void)
{
    for (int i = 0; i < ways; i++)
        if (under_way[i]->waits-- <= 0)
            complete(under_way[i--]);
}

/* The next message of the pair that has no such half yet. */
static Message *half(Queue *q, Message **last)
{
    Message *m = *last ? (*last)->next : q->first;
    if (!m) {
        m = calloc(1, sizeof *m);
        if (!m)
            abort();
        *(q->last ? &q->last->next : &q->first) = m;
        q->last = m;
    }
    return *last = m;
}

void *__wrap_link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);
void *__wrap_link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    (void)request;
    pthread_mutex_lock(&lock);
    Queue *q = sending ? &queue[st->index][peer] : &queue[peer][st->index];
    Message *m = half(q, sending ? &q->sent : &q->wanted);
    if (m->halves && (m->tag != tag || m->bytes != bytes))
        abort();
    *(sending ? &m->from : &m->to) = buffer;
    m->tag = tag;
    m->bytes = bytes;
    if (!sending && moment() > 0)
        memset(buffer, 0xFF, (size_t)bytes);
    later();
    if (++m->halves == 2) {
        m->waits = moment();
        under_way[ways++] = m;
        if (m->waits == 0)
            complete(m);
        pthread_cond_broadcast(&turn);
    }
    pthread_mutex_unlock(&lock);
    return m;
}

void __wrap_link_wait(Stage *st, void *request);
void __wrap_link_wait(Stage *st, void *request)
{
    Message *m = request;
    (void)st;
    pthread_mutex_lock(&lock);
    later();
    while (m->halves < 2)
        pthread_cond_wait(&turn, &lock);
    if (m->halves == 2)
        complete(m);
    pthread_mutex_unlock(&lock);
}

/* ---- copies: of one stage, so no lock ------------------------------------------------------------------------------------ */

static void bring(int stage, Copy *c)
{
    char *there = host[stage] + c->host;
    memcpy(c->out ? there : c->to, c->out ? c->from : there, (size_t)c->bytes);
    c->busy = 0;
}

static void begin(Stage *st, const char *from, char *to, size_t at, int number, long bytes)
{
    int s = st->index;
    if (host_bytes[s] < at + (size_t)bytes) {
        size_t more = 2 * (at + (size_t)bytes);
        host[s] = realloc(host[s], more);
        if (!host[s])
            abort();
        memset(host[s] + host_bytes[s], 0xFF, more - host_bytes[s]);
        host_bytes[s] = more;
    }
    Copy *c = &copy[s][number];
    pthread_mutex_lock(&lock);
    *c = (Copy){to, from, bytes, at, from != NULL, moment(), 1};
    pthread_mutex_unlock(&lock);
    if (c->waits == 0)
        bring(s, c);
    else if (!c->out)
        memset(to, 0xFF, (size_t)bytes);
}

void __wrap_offload_begin(Stage *st, const void *from, size_t at, int number, long bytes);
void __wrap_offload_begin(Stage *st, const void *from, size_t at, int number, long bytes)
{
    begin(st, from, NULL, at, number, bytes);
}

void __wrap_fetch_begin(Stage *st, void *to, size_t at, int number, long bytes);
void __wrap_fetch_begin(Stage *st, void *to, size_t at, int number, long bytes)
{
    begin(st, NULL, to, at, number, bytes);
}

void __wrap_copy_wait(Stage *st, int number);
void __wrap_copy_wait(Stage *st, int number)
{
    if (copy[st->index][number].busy)
        bring(st->index, &copy[st->index][number]);
}
