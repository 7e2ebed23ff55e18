/* SPDX-License-Identifier: Apache-2.0
 *
 * cudart.c: the CUDA runtime without a GPU, as strange as a GPU may be.
 *
 * Problem.  Stages for GPUs are right only if every order that their streams and events allow gives the same result, and a
 * real GPU shows one of those orders.  Method.  Calls are queued, and nothing runs before the host has to see something.  Then
 * heads of streams that may run are run one by one, chosen by a seed: by priorities that the seed gives each stream,
 * so that copies come as early or as late as they can, or at random.  A wait that the plan lacks shows as other bits.
 *
 * Memory of the device is closed to the host but while queued work runs; a page that nobody may touch lies at either end of
 * an allocation, and bytes up to the page are checked at the end.  Copies from and to the host happen when their turn comes,
 * so that memory of the host that is used again too early shows, too.
 *
 *   DOUBLE_SEED=N      the order              DOUBLE_DEVICES=N  GPUs
 *   DOUBLE_MEMORY=N    bytes of each          DOUBLE_OPEN=1     its memory is never closed to the host: faster
 *   DOUBLE_DROP=S:I    wait I of stream S is left out: a test of the test
 *   DOUBLE_PATIENCE=N  microseconds without a call before anything runs, a hundred times at most; 0 by default
 *   CUDA_LAUNCH_BLOCKING=1   a kernel keeps the host until it has ended, a message too
 *   DOUBLE_FAULT=NAME  work of this name in a step fails, and with it whoever waits for a stream afterwards
 *   DOUBLE_REPORT=1    on standard error at the end: GPUs that were chosen, allocations, pinned bytes, what the host does
 *                      between a wait for a stream and its next kernel, how many copies between GPUs go which way, and
 *                      each wait as S:I, with `implied` if the other waits order its stream as much (vector clocks:
 *                      F. Mattern, Virtual time and global states of distributed systems, 1989)
 *
 * A thread that has chosen no GPU ends the program with its first call that would reach one.
 *
 * Not handled: default streams, memory pools, errors other than DOUBLE_FAULT.  Graphs: capture.c.  Nothing of it is fast.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "../../rt/pages.h"
#include "queue.h"

enum { PAGE = 4096, MOST_BLOCKS = 64, MOST_DEVICES = 8, MOST_WAITS = 1 << 16, CANARY = 0xc5 };

typedef struct { unsigned char *at; size_t n, room; int device; bool open; } Block;
typedef struct Mapped { unsigned char *at; size_t n; struct Mapped *next; } Mapped;

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
struct CUstream_st *queue_streams;
static Block block[MOST_BLOCKS];
static int blocks, stream_count;
static Mapped *mapped;          /* of the host, and the device reaches it: tests of libraries ask for it, and no job */
static size_t used[MOST_DEVICES], most[MOST_DEVICES];
static _Atomic size_t pinned;   /* bytes of the host's, ever */
static _Atomic int64_t host_ns;
static long between[2];         /* copies from one GPU to another: through the host, direct */
static uint64_t state, pushes;
static Waited *waited[MOST_WAITS];
static int waits;
static bool running;
static cudaError_t fault;

_Noreturn void queue_broken(const char *who, const char *what, const void *at)
{
    fprintf(stderr, "double: %s: %s (%p)\n", who, what, at);
    _exit(99);
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, 2014) */
uint64_t queue_draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static size_t round_up(size_t n)
{
    return (n + PAGE - 1) / PAGE * PAGE;
}

static void open_memory(bool open)
{
    for (int i = 0; i < blocks && !getenv("DOUBLE_OPEN"); i++)
        if (block[i].at)
            mprotect(block[i].at, block[i].room, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static Block *block_at(const void *at)
{
    for (int i = 0; i < blocks; i++)
        if (block[i].at && (const unsigned char *)at >= block[i].at && (const unsigned char *)at < block[i].at + block[i].room)
            return &block[i];
    return NULL;
}

void *double_host(const void *device, size_t n, const char *who)
{
    const Block *b = block_at(device);
    for (const Mapped *m = mapped; m; m = m->next)
        if ((const unsigned char *)device >= m->at && (const unsigned char *)device + n <= m->at + m->n)
            return (void *)(uintptr_t)device;
    if (!b)
        queue_broken(who, "no memory of the device", device);
    if ((size_t)((const unsigned char *)device - b->at) + n > b->n)
        queue_broken(who, "leaves its allocation", device);
    return (void *)(uintptr_t)device;
}

static void check_end(const Block *b)
{
    for (size_t i = b->n; i < b->room; i++)
        if (b->at[i] != CANARY)
            queue_broken("cudaMalloc", "bytes behind the allocation were written", b->at + i);
}

/* At the end, with the lock for good: what goes on between processes (go_on) would close the memory again. */
static void report(void)
{
    pthread_mutex_lock(&queue_lock);
    open_memory(true);
    for (int i = 0; i < blocks; i++)
        if (block[i].at)
            check_end(&block[i]);
    for (int d = 0; getenv("DOUBLE_REPORT") && d < double_setting("DOUBLE_DEVICES", 1); d++)
        if (double_chosen(d))
            fprintf(stderr, "double: GPU %d: most %zu bytes\n", d, most[d]);
    for (int i = 0; getenv("DOUBLE_REPORT") && i < blocks; i++)
        fprintf(stderr, "double: allocation %d: %zu bytes on GPU %d\n", i, block[i].n, block[i].device);
    if (getenv("DOUBLE_REPORT"))
        fprintf(stderr, "double: pinned: %zu bytes\ndouble: from waits to kernels: %lld us\n", pinned,
                (long long)(host_ns / 1000));
    if (getenv("DOUBLE_REPORT"))
        fprintf(stderr, "double: between GPUs: %ld direct, %ld through the host\n", between[1], between[0]);
    if (getenv("DOUBLE_REPORT"))
        capture_report();
    for (int i = 0; getenv("DOUBLE_REPORT") && i < waits; i++)
        fprintf(stderr, "double: wait %d:%d%s\n", waited[i]->stream, waited[i]->index, waited[i]->implied ? " implied" : "");
}

cudaError_t cudaMalloc(void **to, size_t n)
{
    int current = double_device("cudaMalloc");
    cudaError_t e = capture_allows();
    if (e != cudaSuccess)
        return e;
    pthread_mutex_lock(&queue_lock);
    e = cudaErrorMemoryAllocation;
    if (blocks == 0)
        atexit(report);
    if (used[current] + n <= (size_t)double_setting("DOUBLE_MEMORY", 1L << 40) && blocks < MOST_BLOCKS) {
        Block *b = &block[blocks++];
        *b = (Block){.n = n, .room = round_up(n ? n : 1), .device = current};
        unsigned char *at = mmap(NULL, b->room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        b->at = at + PAGE;
        mprotect(b->at, b->room, PROT_READ | PROT_WRITE);
        pages_large(b->at, b->room);            /* each call opens and closes them all */
        memset(b->at, CANARY, b->room);
        if (!running && !getenv("DOUBLE_OPEN"))
            mprotect(b->at, b->room, PROT_NONE);
        used[current] += n;
        most[current] = used[current] > most[current] ? used[current] : most[current];
        *to = b->at;
        e = cudaSuccess;
    }
    pthread_mutex_unlock(&queue_lock);
    return e;
}

cudaError_t cudaFree(void *at)
{
    double_device("cudaFree");
    if (capture_allows() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    pthread_mutex_lock(&queue_lock);
    Block *b = block_at(at);
    if (b) {
        mprotect(b->at, b->room, PROT_READ | PROT_WRITE);
        check_end(b);
        used[b->device] -= b->n;
        munmap(b->at - PAGE, b->room + 2 * PAGE);
        b->at = NULL;
    }
    pthread_mutex_unlock(&queue_lock);
    return cudaSuccess;
}

void double_take(size_t bytes)
{
    int current = double_device("a library");
    pthread_mutex_lock(&queue_lock);
    used[current] += bytes;
    pthread_mutex_unlock(&queue_lock);
}

cudaError_t cudaHostAlloc(void **to, size_t n, unsigned flags)
{
    double_device("cudaHostAlloc");
    if (capture_allows() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    pinned += n;
    *to = flags & cudaHostAllocMapped ? aligned_alloc(256, (n + 255) / 256 * 256) : malloc(n ? n : 1);
    if (*to && flags & cudaHostAllocMapped) {
        Mapped *m = malloc(sizeof *m);
        *m = (Mapped){*to, n, mapped}, mapped = m;
    }
    if (*to)
        memset(*to, CANARY, n);
    return *to ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *at)
{
    double_device("cudaFreeHost");
    if (capture_allows() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    free(at);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    int current = double_device("cudaMemGetInfo");
    *total = (size_t)double_setting("DOUBLE_MEMORY", 1L << 40);
    *free_bytes = *total - used[current];
    return cudaSuccess;
}

/* ---- streams and events ------------------------------------------------------------------------------------------- */

/* With the memory of the device open. */
bool queue_may_run(Task *t)
{
    if (t->kind == POLL)
        t->done = t->done || t->step(t->args);
    if (t->kind == GRAPH)
        return graph_may_run(t);
    return t->kind == POLL ? t->done : t->kind != WAIT || t->event->reached >= t->version;
}

static bool polls(void)
{
    for (const struct CUstream_st *s = queue_streams; s; s = s->next)
        if (s->head && (s->head->kind == POLL || s->head->kind == GRAPH))
            return true;
    return false;
}

static void check_side(const void *at, size_t n, const char *who)
{
    if (block_at(at))
        double_host(at, n, who);
}

static void count_between(const Block *from, const Block *to)
{
    if (from && to && from->device != to->device)
        between[double_direct(from->device, to->device)]++;
}

void queue_perform(Task *t)
{
    switch (t->kind) {
    case WORK:
        t->run(t->args);
        if (getenv("DOUBLE_FAULT") && double_in_steps && !strcmp(t->name, getenv("DOUBLE_FAULT")))
            fault = cudaErrorIllegalAddress;
        break;
    case COPY:
        check_side(t->to, t->n, "cudaMemcpyAsync");
        check_side(t->from, t->n, "cudaMemcpyAsync");
        count_between(block_at(t->from), block_at(t->to));
        memmove(t->to, t->from, t->n);
        break;
    case FILL:
        memset(double_host(t->to, t->n, "cudaMemsetAsync"), t->fill, t->n);
        break;
    case RECORD:
        t->event->reached = t->version;
        break;
    case POLL: case WAIT: case GRAPH:
        break;
    }
}

/* In half of the seeds the order of streams is fixed, so that some are always late and others always early. */
bool queue_ranked(void)
{
    return double_setting("DOUBLE_SEED", 0) % 2;
}

/* The stream whose head runs next; NULL: none may. */
static struct CUstream_st *choose(void)
{
    struct CUstream_st *best = NULL;
    uint64_t least = 0;
    for (struct CUstream_st *s = queue_streams; s; s = s->next) {
        if (!s->head || !queue_may_run(s->head))
            continue;
        uint64_t rank = queue_ranked() ? s->rank : queue_draw();
        if (!best || rank < least)
            best = s, least = rank;
    }
    return best;
}

/* Events tell times that depend on the plan alone: work takes 10 us a letter of its name, a copy 1 us and 0.1 ns a byte, no
 * matter what else is under way. */
static void tick(struct CUstream_st *s, const Task *t)
{
    if (t->kind == WORK)
        s->ns += 10000 * (double)strlen(t->name);
    if (t->kind == COPY)
        s->ns += 1000 + (double)t->n / 10;
    if (t->kind == RECORD)
        t->event->ns = s->ns;
    if (t->kind == WAIT && t->event->ns > s->ns)
        s->ns = t->event->ns;
}

static void advance(struct CUstream_st *s)
{
    Task *t = s->head;
    const Task *now = t->kind == GRAPH ? graph_perform(t) : t;
    if (now == t)
        queue_perform(t);
    if (now)
        tick(s, now);
    if (t->kind == GRAPH && !graph_is_over(t))
        return;
    s->head = t->next;
    s->ended++;
    free(t->args);
    free(t);
}

/* What may run now, until `over`; false: nothing did. */
static bool run_some(bool (*over)(const void *), const void *of)
{
    running = true;
    open_memory(true);
    struct CUstream_st *s = choose();
    bool any = s != NULL;
    for (; s && !over(of); s = choose())
        advance(s);
    open_memory(false);
    running = false;
    return any;
}

static bool works(void)
{
    for (const struct CUstream_st *s = queue_streams; s; s = s->next)
        for (const Task *t = s->head; t; t = t->next)
            if (t->kind == WORK || t->kind == GRAPH)
                return true;
    return false;
}

/* An order that holds only because a thread of the host was late is none: waits, with the lock held, until nobody has
 * queued anything for a while. */
static void let_all_queue(void)
{
    long patience = double_setting("DOUBLE_PATIENCE", 0);
    uint64_t before = ~pushes;
    for (int i = 0; patience && works() && before != pushes && i < 100; i++) {
        before = pushes;
        pthread_mutex_unlock(&queue_lock);
        usleep((useconds_t)patience);
        pthread_mutex_lock(&queue_lock);
    }
}

/* Runs work until `over`, with the lock held.  Other threads may have to queue more before it can be. */
static void run_until(bool (*over)(const void *), const void *of)
{
    if (!over(of))
        let_all_queue();
    while (!over(of)) {
        if (run_some(over, of)) {
            pthread_cond_broadcast(&more);
        } else if (polls()) {
            pthread_mutex_unlock(&queue_lock);
            usleep(100);
            pthread_mutex_lock(&queue_lock);
        } else {
            pthread_cond_wait(&more, &queue_lock);
        }
    }
}

/* Time of a thread's processor from a wait for a stream to the next kernel that it queues, without what it does here. */
static _Thread_local int64_t wait_ended;

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void drain(bool (*over)(const void *), const void *of)
{
    int64_t begin = thread_ns();
    run_until(over, of);
    wait_ended += wait_ended ? thread_ns() - begin : 0;
}

static bool is_dropped(const struct CUstream_st *s)
{
    const char *drop = getenv("DOUBLE_DROP");
    int stream, index;
    return drop && sscanf(drop, "%d:%d", &stream, &index) == 2 && stream == s->number && index == s->waits;
}

static void join(Clock *c, const Clock *other)
{
    for (int i = 0; i < stream_count; i++)
        c->at[i] = c->at[i] > other->at[i] ? c->at[i] : other->at[i];
}

static bool covers(const Clock *c, const Clock *other)
{
    for (int i = 0; i < stream_count; i++)
        if (c->at[i] < other->at[i])
            return false;
    return true;
}

/* The record that the wait is for. */
static uint64_t order_after(struct CUstream_st *s, const struct CUevent_st *e)
{
    Waited *w = calloc(1, sizeof *w);
    *w = (Waited){s->number, s->waits, false, e->clock, s->pending};
    s->pending = w;
    if (waits < MOST_WAITS)
        waited[waits++] = w;
    return e->recorded;
}

/* A call follows some waits: what is before them is before it.  Each of them is implied if the others say as much. */
static void end_waits(struct CUstream_st *s)
{
    for (Waited *w = s->pending; w; w = w->older) {
        Clock others = s->clock;
        for (const Waited *o = s->pending; o; o = o->older)
            if (o != w)
                join(&others, &o->before);
        w->implied = covers(&others, &w->before);
    }
    for (; s->pending; s->pending = s->pending->older)
        join(&s->clock, &s->pending->before);
}

static void append(cudaStream_t s, Task t)
{
    Task *copy = malloc(sizeof *copy);
    *copy = t;
    pushes++;
    s->begun++;
    if (t.kind != WAIT)
        end_waits(s);
    s->clock.at[s->number] += t.kind < RECORD;
    if (t.kind == RECORD) {
        copy->version = ++t.event->recorded;
        t.event->clock = s->clock;
    }
    if (t.kind == WAIT && !is_dropped(s))
        copy->version = order_after(s, t.event);
    s->waits += t.kind == WAIT;
    if (s->head)
        s->tail->next = copy;
    else
        s->head = copy;
    s->tail = copy;
    pthread_cond_broadcast(&more);
}

cudaError_t queue_push(cudaStream_t s, Task t)
{
    bool taken;
    double_device(t.name);
    if (!s)
        queue_broken(t.name, "the default stream is not used here", NULL);
    pthread_mutex_lock(&queue_lock);
    cudaError_t e = capture_call(s, &t, is_dropped(s), &taken);
    if (taken)
        s->waits += t.kind == WAIT;
    else
        append(s, t);
    pthread_mutex_unlock(&queue_lock);
    return e;
}

void queue_host(void)
{
    if (wait_ended && double_in_steps)
        host_ns += thread_ns() - wait_ended;
    wait_ended = 0;
}

/* A kernel, which with CUDA_LAUNCH_BLOCKING=1 keeps the host until it has ended. */
static void launch(cudaStream_t s, Task t, const void *args)
{
    t.args = malloc(t.bytes ? t.bytes : 1);
    memcpy(t.args, args, t.bytes);
    queue_host();
    queue_push(s, t);
    if (double_setting("CUDA_LAUNCH_BLOCKING", 0) && !double_captures(s))
        cudaStreamSynchronize(s);
}

void double_enqueue(cudaStream_t stream, const char *name, void (*run)(void *), const void *args, size_t bytes)
{
    launch(stream, (Task){.kind = WORK, .name = name, .run = run, .bytes = bytes}, args);
}

static bool never(const void *of)
{
    (void)of;
    return false;
}

/* Work between processes goes on while the host waits for something else. */
static void *go_on(void *at)
{
    for (;;) {
        usleep(2000);
        pthread_mutex_lock(&queue_lock);
        if (run_some(never, at))
            pthread_cond_broadcast(&more);
        pthread_mutex_unlock(&queue_lock);
    }
    return NULL;
}

static void start_going_on(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, go_on, NULL);
    pthread_detach(thread);
}

void double_go_on(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_going_on);
}

void double_poll(cudaStream_t stream, const char *name, bool (*step)(void *), const void *args, size_t bytes)
{
    launch(stream, (Task){.kind = POLL, .name = name, .step = step, .bytes = bytes}, args);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags)
{
    int current = double_device("cudaStreamCreate");
    (void)flags;
    pthread_mutex_lock(&queue_lock);
    if (stream_count == 0)
        state = (uint64_t)double_setting("DOUBLE_SEED", 0);
    if (stream_count == MOST_STREAMS)
        queue_broken("cudaStreamCreate", "too many streams", NULL);
    struct CUstream_st *s = calloc(1, sizeof *s);
    s->device = current;
    s->number = stream_count++;
    s->rank = queue_draw();
    s->next = queue_streams;
    queue_streams = s;
    pthread_mutex_unlock(&queue_lock);
    *to = s;
    return cudaSuccess;
}

typedef struct { const struct CUstream_st *s; uint64_t upto; } Reach;

static bool stream_reached(const void *at)
{
    const Reach *r = at;
    return r->s->ended >= r->upto;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    double_device("cudaStreamSynchronize");
    pthread_mutex_lock(&queue_lock);
    Reach r = {s, s->begun};
    cudaError_t e = capture_allows_waiting(s->capture, cudaErrorStreamCaptureUnsupported);
    if (e == cudaSuccess)
        drain(stream_reached, &r);
    pthread_mutex_unlock(&queue_lock);
    wait_ended = thread_ns();
    return e == cudaSuccess ? fault : e;
}

static bool event_reached(const void *at)
{
    const struct CUevent_st *e = at;
    return e->reached >= e->recorded;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    double_device("cudaEventSynchronize");
    pthread_mutex_lock(&queue_lock);
    cudaError_t may = capture_allows_waiting(e->capture, cudaErrorCapturedEvent);
    if (may == cudaSuccess)
        drain(event_reached, e);
    pthread_mutex_unlock(&queue_lock);
    return may;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *to, unsigned flags)
{
    int current = double_device("cudaEventCreate");
    (void)flags;
    *to = calloc(1, sizeof **to);
    (*to)->device = current;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    if (e->device != s->device)
        return cudaErrorInvalidResourceHandle;
    return queue_push(s, (Task){.kind = RECORD, .name = "cudaEventRecord", .event = e});
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s)
{
    bool to_device = block_at(to) != NULL, from_device = block_at(from) != NULL;
    if (to_device != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) ||
        from_device != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice))
        queue_broken("cudaMemcpyAsync", "the direction is not that of its addresses", to);
    return queue_push(s, (Task){.kind = COPY, .name = "cudaMemcpyAsync", .to = to, .from = from, .n = n});
}

cudaError_t cudaMemset(void *to, int fill, size_t n)
{
    double_device("cudaMemset");
    if (capture_allows() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    pthread_mutex_lock(&queue_lock);
    open_memory(true);
    memset(double_host(to, n, "cudaMemset"), fill, n);
    open_memory(false);
    pthread_mutex_unlock(&queue_lock);
    return cudaSuccess;
}
