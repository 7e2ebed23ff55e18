/* SPDX-License-Identifier: Apache-2.0
 *
 * link_local.c: all stages in one process, a thread each.
 *
 * A message is a rendezvous.  Each ordered pair of stages has a queue of halves that wait for their other half; it only ever
 * holds sends or only receives.  The side that comes second takes the first of the queue, copies, and tells both.  There is
 * one copy and no buffer between the stages, and a buffer is free when link_wait() returns, as with MPI.  Requests are a table
 * [stage][number], so nothing is allocated after link_open().
 *
 * A launcher of ranks that starts this program several times gets as many whole trainings on the same files.  That is refused.
 *
 * Waiting spins a little, since the next message is often on its way, then sleeps on the condition of the stage.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "link.h"
#include "run.h"

enum { SPINS = 64 };

typedef struct Half {           /* a send or a receive */
    int stage, request, tag, sending;
    int64_t at;                 /* action that began it */
    char *buffer;
    long bytes;
    int64_t begun, ready;       /* paced jobs: ns */
    _Atomic int done;
    struct Half *next;
} Half;

typedef struct {                /* halves of one ordered pair of stages that came first */
    pthread_mutex_t lock;
    Half *head, *tail;
    int64_t wire;               /* paced jobs: when the wire is free, ns */
} Queue;

typedef struct {                /* where a stage sleeps */
    pthread_mutex_t lock;
    pthread_cond_t wake;
} Bed;

struct Link {
    int stages;
    Half *half;                 /* [stage * ALL_REQUESTS + number] */
    Queue *queue;               /* [from * stages + to] */
    Bed *bed;
    pthread_mutex_t lock;       /* of what follows: link_share() */
    pthread_cond_t all;
    int arrived;
    uint64_t round;
    char *board;                /* [round & 1][stage][LINK_SHARE] */
};

static bool one_rank(void)
{
    Ranks r = launcher_ranks();
    if (r.size > 1 && r.rank == 0)      /* the others end as well: one of them says why */
        complain(STATUS_USAGE, "%s is %d, but all stages of this job run in one process (transport local), so that each rank "
                 "would train on its own; start it without mpirun and srun, or generate it with plan.transport: mpi",
                 r.variable, r.size);
    return r.size <= 1;
}

Link *link_open(int stages, const int *rank, int *argc, char ***argv, int *status)
{
    (void)rank;
    (void)argc, (void)argv;
    if (!one_rank()) {
        *status = STATUS_USAGE;
        return NULL;
    }
    size_t n = (size_t)stages;
    Link *l = calloc(1, sizeof *l);
    if (l) {
        l->half = calloc(n * ALL_REQUESTS, sizeof *l->half);
        l->queue = calloc(n * n, sizeof *l->queue);
        l->bed = calloc(n, sizeof *l->bed);
        l->board = calloc(2 * n, LINK_SHARE);
    }
    if (!l || !l->half || !l->queue || !l->bed || !l->board) {
        *status = complain(STATUS_RUN, "no memory for the transport");
        return NULL;
    }
    l->stages = stages;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->all, NULL);
    for (size_t i = 0; i < n * n; i++)
        pthread_mutex_init(&l->queue[i].lock, NULL);
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_init(&l->bed[i].lock, NULL);
        pthread_cond_init(&l->bed[i].wake, NULL);
    }
    return l;
}

int link_connect(Link *l, const Job *job)
{
    (void)l, (void)job;
    return DONE;
}

int link_first(const Link *l)
{
    (void)l;
    return 0;
}

int link_count(const Link *l)
{
    return l->stages;
}

const char *link_name(void)
{
    return "local";
}

const char *link_host(const Link *l, int stage)
{
    (void)l, (void)stage;
    return NULL;
}

/* The half that meets `mine`, taken from the queue; NULL: `mine` is the first and waits there. */
static Half *meet(Queue *q, Half *mine)
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

static const char *action_text(const Stage *st, int stage, int64_t at)
{
    return st->worker ? action_name(&st->worker->run->worker[stage], at) : "?";
}

static void carry(Stage *st, const Half *a, const Half *b)
{
    const Half *from = a->sending ? a : b, *to = a->sending ? b : a;
    if (from->tag != to->tag || from->bytes != to->bytes)
        quit(st->link, STATUS_RUN, "stage %d sends tag %d, %ld bytes (%s), but stage %d expects tag %d, %ld bytes "
             "(%s); the stages are not of one plan", from->stage, from->tag, from->bytes,
             action_text(st, from->stage, from->at), to->stage, to->tag, to->bytes, action_text(st, to->stage, to->at));
    Message m = {from->stage, from->request, to->stage, to->request, from->buffer, to->buffer, from->bytes};
    message_carry(st, &m);
}

/* When a message of a paced job arrives: whoever comes second knows both halves. */
static void pace(Stage *st, Queue *q, Half *mine, Half *other)
{
    if (!paced(st))
        return;
    const Half *from = mine->sending ? mine : other, *to = mine->sending ? other : mine;
    const StageInfo *stage = st->worker->run->job->stage;
    q->wire = (mine->begun > q->wire ? mine->begun : q->wire) + stage[from->stage].pace[2 * from->at + 1];
    mine->ready = other->ready = q->wire + stage[to->stage].pace[2 * to->at + 1];
}

static void finish(Link *l, Half *h)
{
    Bed *bed = &l->bed[h->stage];
    pthread_mutex_lock(&bed->lock);
    atomic_store_explicit(&h->done, 1, memory_order_release);
    pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&bed->lock);
}

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    Link *l = st->link;
    Half *mine = &l->half[st->index * ALL_REQUESTS + request];
    mine->stage = st->index, mine->request = request, mine->tag = tag, mine->sending = sending, mine->at = st->at;
    mine->buffer = buffer, mine->bytes = bytes, mine->next = NULL;
    mine->begun = paced(st) ? st->worker->due : 0, mine->ready = 0;
    atomic_store_explicit(&mine->done, 0, memory_order_relaxed);
    message_ready(st, request);
    int from = sending ? st->index : peer, to = sending ? peer : st->index;
    Half *other = meet(&l->queue[from * l->stages + to], mine);
    if (other) {
        carry(st, mine, other);
        pace(st, &l->queue[from * l->stages + to], mine, other);
        atomic_store_explicit(&mine->done, 1, memory_order_relaxed);
        finish(l, other);
    }
    return mine;
}

static void wait_done(Stage *st, Half *h)
{
    Bed *bed = &st->link->bed[st->index];
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&h->done, memory_order_acquire))
            return;
        sched_yield();
    }
    pthread_mutex_lock(&bed->lock);
    while (!atomic_load_explicit(&h->done, memory_order_acquire))
        pthread_cond_wait(&bed->wake, &bed->lock);
    pthread_mutex_unlock(&bed->lock);
}

void link_wait(Stage *st, void *request)
{
    Half *h = request;
    wait_done(st, h);
    if (h->ready)
        pace_wait(st->worker, h->ready);
    message_arrived(st, h->request);
}

/* Two boards are enough: nobody can be more than one round ahead of the slowest, who may still be reading. */
void link_share(Stage *st, const void *mine, void *all, size_t bytes)
{
    Link *l = st->link;
    pthread_mutex_lock(&l->lock);
    uint64_t round = l->round;
    char *board = l->board + (round & 1) * (size_t)l->stages * LINK_SHARE;
    memcpy(board + (size_t)st->index * LINK_SHARE, mine, bytes);
    if (++l->arrived == l->stages) {
        l->arrived = 0;
        l->round++;
        pthread_cond_broadcast(&l->all);
    }
    while (l->round == round)
        pthread_cond_wait(&l->all, &l->lock);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->stages; i++)
        memcpy((char *)all + (size_t)i * bytes, board + (size_t)i * LINK_SHARE, bytes);
}

int link_worst(Link *l, int status)
{
    (void)l;
    return status;
}

void link_close(Link *l)
{
    free(l->half);
    free(l->queue);
    free(l->bed);
    free(l->board);
    free(l);
}

void link_abort(Link *l, int status)
{
    (void)l;
    _exit(status);
}
