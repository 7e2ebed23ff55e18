/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.c: NCCL without GPUs, between processes of one host: as much of it as rt/cuda/link_nccl.c calls.  A communicator of two
 * is a named pipe for each way; one of more is a pipe for each ordered pair.  A message says how long it is, so that a send
 * which meets another receive than its own is found.  Messages of one group on one stream go at once, others one after the
 * other: two that send first, each outside of a group, wait for good.
 *
 * A message in a graph: a communicator waits at its end for the graphs that use it, for good where nobody destroys them, which
 * ends the program here.  Graphs and other calls at once are not asked for (NCCL_GRAPH_MIXING_SUPPORT=0).
 *
 * The first call on a communicator keeps the host until its peer calls too, as where NCCL connects the two; calls between
 * ncclGroupStart() and ncclGroupEnd() at once.  Communicators of a process are opened in one group.
 *
 *   DOUBLE_COMM=fails  opening a communicator fails      =hangs  it waits for good, as for a peer that has ended
 *                =breaks messages are lost behind the first on a communicator, which then has a fault
 *   DOUBLE_PAUSE=N     before each call the host stops for up to N microseconds, drawn by DOUBLE_SEED and
 *                    DOUBLE_FIRST, the GPU of the process
 */
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "double.h"

enum { PAIR = 40 << 20 };       /* of the GPU's memory, for a communicator of two and 4 channels */
enum { RANKS = 16 };
/* to, from: files, by the other rank; -1: nothing has gone that way yet */
struct ncclComm {
    int to[RANKS], from[RANKS], rank, ranks;
    long messages;
    bool captured;
    _Atomic bool broken;
    char path[NCCL_UNIQUE_ID_BYTES];
};

typedef struct { int file; bool sending; unsigned char *at; size_t n, done, head; size_t said; bool over; } Moving;

/* Between start and end: messages begin together, once all of their communicators are connected. */
typedef struct {
    const void *at;
    size_t n;
    ncclDataType_t type;
    int peer;
    ncclComm_t comm;
    cudaStream_t stream;
    bool sending;
} Held;
enum { HELD = 128 };
static _Thread_local Held held[HELD];
static _Thread_local int depth, alone, holds;
typedef struct { int n; Moving of[HELD]; } Together;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int count;
    const char *dir = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/double-nccl-%ld-%d", dir ? dir : ".", (long)getpid(), count++);
    return mkfifo(id->internal, 0600) == 0 ? ncclSuccess : ncclSystemError;
}

/* A receive that waits keeps as many multiprocessors from everything else as it has blocks. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    if (!depth && alone++) {
        fprintf(stderr, "double: communicators that are opened one by one: each takes a second\n");
        _exit(99);
    }
    if (config->maxCTAs < 2 || config->maxCTAs > 4 || config->minCTAs > config->maxCTAs) {
        fprintf(stderr, "double: a communicator of %d blocks\n", config->maxCTAs);
        _exit(99);
    }
    const char *how = getenv("DOUBLE_COMM");
    while (how && !strcmp(how, "hangs"))
        pause();
    if (how && !strcmp(how, "fails"))
        return ncclSystemError;
    size_t left, total;
    if (cudaMemGetInfo(&left, &total) != cudaSuccess || left < PAIR)
        return ncclUnhandledCudaError;
    double_take(PAIR);
    struct ncclComm *c = calloc(1, sizeof *c);
    for (int i = 0; i < RANKS; i++)
        c->to[i] = c->from[i] = -1;
    c->rank = rank;
    c->ranks = ranks;
    double_go_on();
    memcpy(c->path, id.internal, sizeof c->path);
    *to = c;
    return ranks >= 2 && ranks <= RANKS && access(c->path, F_OK) == 0 ? ncclSuccess : ncclInvalidArgument;
}

/* The pipe from a rank to another: of the first two it is the one that the name of the communicator has made. */
static void pipe_of(char *to, size_t n, const struct ncclComm *c, int from, int rank)
{
    if (from == 0 && rank == 1)
        snprintf(to, n, "%s", c->path);
    else
        snprintf(to, n, "%s.%d.%d", c->path, from, rank);
    mkfifo(to, 0600);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (c->captured && double_graphs() > 0) {
        fprintf(stderr, "double: a communicator waits for a graph that nobody destroys\n");
        _exit(99);
    }
    for (int i = 0; i < c->ranks; i++) {
        char path[NCCL_UNIQUE_ID_BYTES + 32];
        pipe_of(path, sizeof path, c, c->rank, i);
        unlink(path);
        if (c->to[i] >= 0)
            close(c->to[i]);
        if (c->from[i] >= 0)
            close(c->from[i]);
    }
    free(c);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = (int)double_setting("DOUBLE_NCCL", NCCL_VERSION_CODE);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t e)
{
    return e == ncclSuccess ? "no error" : e == ncclInvalidArgument ? "invalid argument" : e == ncclRemoteError
           ? "remote error" : e == ncclUnhandledCudaError ? "unhandled cuda error" : "system error";
}

/* As much as goes now.  The head is the length.  A send is over when all has been received: NCCL promises no room between. */
static bool move(void *args)
{
    Moving *m = args;
    int unread = 0;
    for (;;) {
        bool head = m->head < sizeof m->said;
        unsigned char *at = head ? (unsigned char *)&m->said + m->head : m->at + m->done;
        size_t n = head ? sizeof m->said - m->head : m->n - m->done;
        if (!head && m->said != m->n) {
            fprintf(stderr, "double: a receive of %zu bytes meets a send of %zu\n", m->n, m->said);
            _exit(99);
        }
        if (n == 0)
            return !m->sending || (ioctl(m->file, FIONREAD, &unread) == 0 && unread == 0);
        ssize_t k = m->sending ? write(m->file, at, n) : read(m->file, at, n);
        if (k <= 0)
            return false;
        m->head += head ? (size_t)k : 0;
        m->done += head ? 0 : (size_t)k;
    }
}

static void be_late(void)
{
    static _Thread_local uint64_t drawn;
    long most = double_setting("DOUBLE_PAUSE", 0);
    if (!drawn)
        drawn = (uint64_t)(double_setting("DOUBLE_SEED", 0) * 1000003 + double_setting("DOUBLE_FIRST", 0));
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    if (most > 0)
        usleep((useconds_t)((drawn >> 33) % (uint64_t)most));
}

/* A pipe opens once somebody is at its other end. */
static int connect_first(ncclComm_t c, int peer, bool sending)
{
    int *file = sending ? &c->to[peer] : &c->from[peer];
    char path[NCCL_UNIQUE_ID_BYTES + 32];
    if (*file >= 0)
        return *file;
    pipe_of(path, sizeof path, c, sending ? c->rank : peer, sending ? peer : c->rank);
    int end = open(path, sending ? O_WRONLY : O_RDONLY);
    *file = open(path, O_RDWR | O_NONBLOCK);            /* a peer that is gone is no error of this process */
    close(end);
    return *file;
}

static bool move_all(void *args)
{
    Together *t = args;
    bool over = true;
    for (int i = 0; i < t->n; i++) {
        bool first = true;          /* of those that are not over, on its way */
        for (int k = 0; k < i; k++)
            first &= t->of[k].over || t->of[k].file != t->of[i].file || t->of[k].sending != t->of[i].sending;
        if (first && !t->of[i].over)
            t->of[i].over = move(&t->of[i]);
        over &= t->of[i].over;
    }
    return over;
}

static bool never(void *args)
{
    (void)args;
    return false;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *e)
{
    *e = c->broken ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

/* A message, ready to move. */
static ncclResult_t begin(const Held *h, Moving *to)
{
    ncclComm_t c = h->comm;
    be_late();
    c->captured |= double_captures(h->stream);
    if (c->captured && double_setting("NCCL_GRAPH_MIXING_SUPPORT", 1)) {
        fprintf(stderr, "double: graphs of several communicators, which may hang\n");
        _exit(99);
    }
    *to = (Moving){.file = connect_first(c, h->peer, h->sending), .sending = h->sending,
                   .at = (unsigned char *)(uintptr_t)h->at, .n = h->n, .said = h->sending ? h->n : 0};
    const char *how = getenv("DOUBLE_COMM");
    c->broken = how && !strcmp(how, "breaks") && c->messages++ > double_setting("DOUBLE_MESSAGES", 0);
    return ncclSuccess;
}

static _Atomic long kernels, messages;

__attribute__((destructor)) static void report(void)
{
    if (getenv("DOUBLE_REPORT"))
        fprintf(stderr, "double: NCCL: %ld messages in %ld kernels\n", messages, kernels);
}

/* Of what is held all that goes over the stream of message `first`, at once. */
static ncclResult_t start(const Held *all, int n, int first)
{
    Together t = {0};
    ncclResult_t e = ncclSuccess;
    cudaStream_t s = all[first].stream;
    bool broken = false;
    for (int i = first; i < n && e == ncclSuccess; i++)
        if (all[i].stream == s) {
            e = begin(&all[i], &t.of[t.n++]);
            messages++;
            broken |= all[i].comm->broken;
        }
    const char *alone = all[first].sending ? "ncclSend" : "ncclRecv";
    const char *name = broken ? "a lost message" : t.n > 1 ? "messages of a group" : alone;
    kernels++;
    if (e == ncclSuccess)
        double_poll(s, name, broken ? never : move_all, &t, offsetof(Together, of) + (size_t)t.n * sizeof *t.of);
    return e;
}

static ncclResult_t hold(const Held h)
{
    if (h.type != ncclInt8 || h.peer < 0 || h.peer >= h.comm->ranks || h.peer == h.comm->rank || holds == HELD)
        return ncclInvalidArgument;
    if (!depth)
        return start(&h, 1, 0);
    held[holds++] = h;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    return hold((Held){from, n, type, peer, c, s, true});
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    return hold((Held){to, n, type, peer, c, s, false});
}

static void *connect_one(void *of)
{
    const Held *h = of;
    connect_first(h->comm, h->peer, h->sending);
    return NULL;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

/* The library has a thread for each communicator that it connects. */
ncclResult_t ncclGroupEnd(void)
{
    pthread_t thread[HELD];
    ncclResult_t e = ncclSuccess;
    if (--depth)
        return ncclSuccess;
    for (int i = 0; i < holds; i++)
        pthread_create(&thread[i], NULL, connect_one, &held[i]);
    for (int i = 0; i < holds; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < holds && e == ncclSuccess; i++) {
        bool first = true;
        for (int k = 0; k < i; k++)
            first &= held[k].stream != held[i].stream;
        if (first)
            e = start(held, holds, i);
    }
    holds = 0;
    return e;
}
