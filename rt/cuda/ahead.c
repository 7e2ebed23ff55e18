/* SPDX-License-Identifier: Apache-2.0
 *
 * ahead.c: data that are read beside the step before.
 *
 * Problem.  A step begins with its data, and the GPU has nothing to do while the host reads them: with large pictures, longer
 * than it computes.  Method.  The reads of a step are the same in each, and a sample is a function of (seed, step).  So the
 * reads of the first step of this run are noted.  From then on a thread makes those of later steps, in their order, in pinned
 * rooms of its own, as far as there are rooms.  A step takes them in that order, and has the same bits.
 *
 * A step that is one graph is noted while it is recorded (record.c).  Its copies read from the same rooms each time, so each
 * read has one of its own, and an event in the graph says when that may be filled for the next step.
 *
 * Pictures, in floats or bytes, go on to the GPU before their step: to a place at the end of the arena, for one load, by the
 * stream `in`.  Each copy waits until the load before has been taken from there, and a load waits for its copy.  A graph has
 * its copies inside.
 *
 * A value out of its range ends the job in its own step: the thread leaves it unread, and the step reads it again and says so.
 * Nothing is read for steps that the job does not make.
 *
 * Not handled: evaluations and steps that overlap: their reads are made when they are asked for.
 */
#include <pthread.h>
#include <stdlib.h>
#include "ahead.h"
#include "record.h"
#include "feed.h"

/* A read of a step.  Of one that is a graph: its room, when the graph has read that, and a sum, which has no room. */
typedef struct { Read read; unsigned char *room; cudaEvent_t taken; int64_t sum; bool good; } Noted;

struct Ahead {
    Worker *worker;
    bool graph;
    Ring ring, landing;         /* landing: of the arena; its event: the load there has been taken */
    cudaEvent_t landed;
    int64_t last;               /* read that went there, -1: none */
    bool good[ROOMS];           /* by room */
    Noted *read;                /* of a step */
    int reads;
    Values first;               /* of the step that was noted */
    bool begun, off;
    int64_t sum;                /* the last that was counted */
    int64_t made, given, taken, end;    /* reads since then, by the thread, to steps and on; how many there will be */
    bool ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
};

cudaError_t ahead_open(Stage *st, size_t load, bool graph)
{
    struct Ahead *a = calloc(1, sizeof *a);
    if (!a)
        return cudaErrorMemoryAllocation;
    a->worker = st->worker;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->change, NULL);
    device_of(st)->ahead = a;
    a->last = -1;
    a->graph = graph;
    a->ring.bytes = load;
    if (graph)
        return cudaSuccess;
    a->landing.n = st->worker->info->landing != 0;
    cudaError_t e = ring_open(&a->ring, load, 2);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&a->landed, cudaEventDisableTiming);
    return e == cudaSuccess ? cudaEventCreateWithFlags(&a->landing.taken[0], cudaEventDisableTiming) : e;
}

static bool lands(const struct Ahead *a, const Read *r)
{
    return a->landing.n && r->mb >= 0 && a->worker->run->job->input[r->input].type == JOB_F32;
}

static Noted *noted(const struct Ahead *a, int64_t k) { return &a->read[k % a->reads]; }
static int rooms(const struct Ahead *a) { return a->graph ? a->reads : a->ring.n; }
static bool *good_at(struct Ahead *a, int64_t k) { return a->graph ? &noted(a, k)->good : &a->good[k % a->ring.n]; }

static void *room_at(struct Ahead *a, int64_t k)
{
    Noted *r = noted(a, k);
    return !a->graph ? a->ring.room[k % a->ring.n] : r->room ? (void *)r->room : &r->sum;
}

/* Has what was there been taken?  A sum has, since its step began. */
static bool is_free(const struct Ahead *a, int64_t k)
{
    cudaEvent_t taken = a->graph ? noted(a, k)->taken : a->ring.taken[k % a->ring.n];
    return !taken || cudaEventSynchronize(taken) == cudaSuccess;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------- */

/* Once the load before is on its way from there. */
static bool land(struct Ahead *a, int64_t k)
{
    const Device *d = device_of(&a->worker->stage);
    int room = (int)(k % a->ring.n);
    pthread_mutex_lock(&a->lock);
    while (!a->ending && a->taken <= a->last)
        pthread_cond_wait(&a->change, &a->lock);
    bool goes = !a->ending;
    pthread_mutex_unlock(&a->lock);
    a->last = k;
    return goes && cudaStreamWaitEvent(d->in, a->landing.taken[0], 0) == cudaSuccess &&
           cudaMemcpyAsync(a->worker->stage.arena + a->worker->info->landing, a->ring.room[room],
                           (size_t)noted(a, k)->read.bytes, cudaMemcpyHostToDevice, d->in) == cudaSuccess &&
           cudaEventRecord(a->ring.taken[room], d->in) == cudaSuccess && cudaEventRecord(a->landed, d->in) == cudaSuccess;
}

static void make(struct Ahead *a, int64_t k)
{
    const Read *r = &noted(a, k)->read;
    Values now = a->first;
    now.step += 1 + k / a->reads;
    *good_at(a, k) = is_free(a, k) && data_read(&a->worker->stage, &now, r, room_at(a, k), true) &&
                     (!lands(a, r) || land(a, k));
}

static void *make_all(void *at)
{
    struct Ahead *a = at;
    cudaSetDevice(device_of(&a->worker->stage)->number);        /* if it cannot, steps make the reads */
    pthread_mutex_lock(&a->lock);
    while (!a->ending && a->made < a->end) {
        if (a->made - a->taken == rooms(a)) {
            pthread_cond_wait(&a->change, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        make(a, a->made);
        pthread_mutex_lock(&a->lock);
        a->made++;
        pthread_cond_broadcast(&a->change);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void end(struct Ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->ending = true;
    pthread_cond_broadcast(&a->change);
    pthread_mutex_unlock(&a->lock);
    if (a->end > 0)
        pthread_join(a->thread, NULL);
    a->end = 0;
    a->off = true;
}

void ahead_settle(const Stage *st)
{
    struct Ahead *a = device_of(st)->ahead;
    if (!a || a->begun || a->off || !a->reads)
        return;
    a->begun = true;
    const int64_t steps = st->worker->run->opt.steps - a->first.step - 1;
    a->end = steps < INT64_MAX / a->reads ? steps * a->reads : INT64_MAX;      /* --steps may be any number */
    a->off = a->end <= 0 || pthread_create(&a->thread, NULL, make_all, a) != 0;
    if (a->off)
        a->end = 0;
}

void ahead_close(const Stage *st)
{
    struct Ahead *a = device_of(st) ? device_of(st)->ahead : NULL;
    if (!a)
        return;
    end(a);
    cudaStreamSynchronize(device_of(st)->in);
    for (int i = 0; i < a->ring.n; i++)
        cudaFreeHost(a->ring.room[i]);
    free(a->read);
    free(a);
    device_of(st)->ahead = NULL;
}

/* ---- in a step --------------------------------------------------------------------------------------------------------- */

static void note(struct Ahead *a, const Values *now, const Read *r)
{
    Noted *more = realloc(a->read, sizeof *more * (size_t)(a->reads + 1));
    a->off = !more || (size_t)r->bytes > a->ring.bytes;
    if (!more)
        return;
    a->read = more;
    a->read[a->reads++] = (Noted){ .read = *r };
    a->first = *now;
    a->first.step -= a->graph;          /* recorded before the first step, not in it */
}

void ahead_room(Stage *st, unsigned char *room)
{
    const struct Ahead *a = device_of(st)->ahead;
    Noted *r = a && a->reads ? &a->read[a->reads - 1] : NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (!r || r->read.mb < 0 || r->room)
        return;
    r->room = room;
    device_check(st, cudaThreadExchangeStreamCaptureMode(&mode), "recording a step");
    device_check(st, cudaEventCreateWithFlags(&r->taken, cudaEventDisableTiming | cudaEventBlockingSync), "recording a step");
    device_check(st, cudaThreadExchangeStreamCaptureMode(&mode), "recording a step");
    device_check(st, cudaEventRecordWithFlags(r->taken, stream_of(st), cudaEventRecordExternal), "recording a step");
}

static bool same(const Read *a, const Read *b)
{
    return a->input == b->input && a->mb == b->mb && a->bytes == b->bytes && a->ignore == b->ignore;
}

static void let_go(struct Ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->taken = a->given;
    pthread_cond_broadcast(&a->change);
    pthread_mutex_unlock(&a->lock);
}

void ahead_taken(const Stage *st)
{
    struct Ahead *a = device_of(st)->ahead;
    if (a && (a->graph || device_of(st)->ring == &a->ring || device_of(st)->ring == &a->landing))
        let_go(a);
}

/* Waits for read number k. */
static bool is_made(struct Ahead *a, int64_t k)
{
    pthread_mutex_lock(&a->lock);
    while (a->made <= k)
        pthread_cond_wait(&a->change, &a->lock);
    pthread_mutex_unlock(&a->lock);
    return *good_at(a, k);
}

void *arena_ahead(Stage *st, const Values *now, const Read *r)
{
    Device *d = device_of(st);
    struct Ahead *a = d->ahead;
    if (!a || a->off || a->graph == (d->mode == PLAIN) || now->eval)
        return NULL;
    if (!a->begun) {
        note(a, now, r);
        return NULL;
    }
    int64_t k = a->given;
    if (k >= a->end || now->step != a->first.step + 1 + k / a->reads || !same(r, &noted(a, k)->read)) {
        end(a);
        return NULL;
    }
    bool good = is_made(a, k);
    a->given++;
    if (a->graph && (!good || r->mb < 0))
        return good ? &noted(a, k)->sum : NULL;
    if (a->graph)
        return d->at_hand = record_room(st, (size_t)r->bytes);          /* where it lies */
    a->ring.next = (int)(k % a->ring.n);
    d->ring = &a->ring;
    d->at_hand = a->ring.room[a->ring.next];
    if (good && lands(a, r)) {
        device_check(st, cudaStreamWaitEvent(stream_of(st), a->landed, 0), "waiting for data");
        d->ring = &a->landing;
        d->at_hand = st->arena + st->worker->info->landing;
    }
    if (good && r->mb >= 0)
        return d->at_hand;              /* arena_post() ends it */
    a->sum = *(const int64_t *)(const void *)d->at_hand;
    ahead_taken(st);
    return good ? &a->sum : NULL;
}
