/* SPDX-License-Identifier: Apache-2.0
 *
 * meet.c: messages between the threads of one process.
 *
 * A message is a rendezvous.  Each ordered pair of stages has a queue of halves that wait for their other half; it only ever
 * holds sends or only receives.  The side that comes second takes the first of the queue, copies, and tells both.  There is
 * one copy and no buffer between the stages, and a buffer is free when meet_wait() returns, as with MPI.  Halves are a table
 * [stage][number] in memory of the caller, so nothing here allocates.
 *
 * Waiting spins a little, since the next message is often on its way, then sleeps on the condition of the stage.
 *
 * A program and a library share it: there are no variables at file level, and nothing here ends a process.  What fails is told
 * to the floor above.  It ends the process of a program; in a library it ends the step.
 */
#include <sched.h>
#include <string.h>
#include "meet.h"

enum { SPINS = 64 };

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t meet_bytes(int stages, int requests)
{
    size_t n = (size_t)stages;
    return rounded(n * (size_t)requests * sizeof(Half)) + rounded(n * n * sizeof(Queue)) + rounded(n * sizeof(Bed));
}

/* So many locks of its queues and beds go. */
static void close_some(Meet *m, int queues, int beds)
{
    for (int i = 0; i < queues; i++)
        pthread_mutex_destroy(&m->queue[i].lock);
    for (int i = 0; i < beds; i++) {
        pthread_cond_destroy(&m->bed[i].wake);
        pthread_mutex_destroy(&m->bed[i].lock);
    }
}

static bool open_bed(Bed *b)
{
    if (pthread_mutex_init(&b->lock, NULL))
        return false;
    if (!pthread_cond_init(&b->wake, NULL))
        return true;
    pthread_mutex_destroy(&b->lock);
    return false;
}

bool meet_open(Meet *m, void *room, int stages, int requests)
{
    char *at = room;
    size_t n = (size_t)stages, halves = rounded(n * (size_t)requests * sizeof(Half));
    int queues = 0, beds = 0;
    memset(room, 0, meet_bytes(stages, requests));
    m->stages = stages;
    m->requests = requests;
    m->half = (Half *)(void *)at;
    m->queue = (Queue *)(void *)(at + halves);
    m->bed = (Bed *)(void *)(at + halves + rounded(n * n * sizeof(Queue)));
    atomic_store(&m->broken, 0);
    while (queues < stages * stages && !pthread_mutex_init(&m->queue[queues].lock, NULL))
        queues++;
    while (queues == stages * stages && beds < stages && open_bed(&m->bed[beds]))
        beds++;
    if (beds == stages)
        return true;
    close_some(m, queues, beds);
    return false;
}

void meet_close(Meet *m)
{
    close_some(m, m->stages * m->stages, m->stages);
}

/* The half that meets `mine`, taken from the queue; NULL: `mine` is the first and waits there. */
static Half *meet_other(Queue *q, Half *mine)
{
    Half *other = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->head && q->head->sending != mine->sending) {
        other = q->head;
        q->head = other->next;
    } else {
        if (q->head)
            q->tail->next = mine;
        else
            q->head = mine;
        q->tail = mine;
    }
    pthread_mutex_unlock(&q->lock);
    return other;
}

static int64_t carry_both(Stage *st, const Half *a, const Half *b, int64_t *wire)
{
    const Half *from = a->sending ? a : b, *to = a->sending ? b : a;
    if (from->tag != to->tag || from->bytes != to->bytes)
        stage_fail(st, "stage %lld sends tag %lld, %lld bytes (%s), but stage %lld expects tag %lld, %lld bytes (%s); the "
                   "stages are not of one plan", (long long)from->stage, (long long)from->tag, (long long)from->bytes,
                   stage_action(st, from->stage, from->at), (long long)to->stage, (long long)to->tag, (long long)to->bytes,
                   stage_action(st, to->stage, to->at));
    return message_carry(st, &(Message){from, to, from->buffer, to->buffer, from->bytes}, wire);
}

static void finish(Meet *m, Half *h)
{
    Bed *bed = &m->bed[h->stage];
    pthread_mutex_lock(&bed->lock);
    atomic_store_explicit(&h->done, 1, memory_order_release);
    pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&bed->lock);
}

void *meet_begin(Meet *m, Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    Half *mine = &m->half[st->index * m->requests + request];
    mine->stage = st->index, mine->request = request, mine->tag = tag, mine->sending = sending, mine->at = st->at;
    mine->buffer = buffer, mine->bytes = bytes, mine->next = NULL;
    mine->ready = 0;
    atomic_store_explicit(&mine->done, 0, memory_order_relaxed);
    mine->begun = message_ready(st, request);
    int from = sending ? st->index : peer, to = sending ? peer : st->index;
    Queue *q = &m->queue[from * m->stages + to];
    Half *other = meet_other(q, mine);
    if (other) {
        mine->ready = other->ready = carry_both(st, mine, other, &q->wire);
        atomic_store_explicit(&mine->done, 1, memory_order_relaxed);
        finish(m, other);
    }
    return mine;
}

static bool is_over(Meet *m, Half *h)
{
    return atomic_load_explicit(&h->done, memory_order_acquire) || atomic_load_explicit(&m->broken, memory_order_acquire);
}

void meet_wait(Meet *m, Stage *st, void *half)
{
    Half *h = half;
    Bed *bed = &m->bed[st->index];
    for (int i = 0; i < SPINS && !is_over(m, h); i++)
        sched_yield();
    if (!is_over(m, h)) {
        pthread_mutex_lock(&bed->lock);
        while (!is_over(m, h))
            pthread_cond_wait(&bed->wake, &bed->lock);
        pthread_mutex_unlock(&bed->lock);
    }
    if (atomic_load_explicit(&m->broken, memory_order_acquire))
        stage_leave(st);
    message_arrived(st, h->request, h->ready);
}
