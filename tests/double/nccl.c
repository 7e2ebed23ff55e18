/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl.c: NCCL without GPUs, between processes of one host: as much of it as rt/cuda/link_nccl.c calls.  A communicator of two
 * is a named pipe; a message says how long it is, so that a send which meets another receive than its own is found.
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "double.h"

enum { PAIR = 40 << 20 };       /* of the GPU's memory, for a communicator of two and 4 channels */
struct ncclComm { int file, rank; long messages; bool captured; _Atomic bool broken; char path[NCCL_UNIQUE_ID_BYTES]; };

typedef struct { int file; bool sending; unsigned char *at; size_t n, done, head; size_t said; } Moving;

/* Between start and end: messages begin together, once all of their communicators are connected. */
typedef struct { const void *at; size_t n; ncclDataType_t type; ncclComm_t comm; cudaStream_t stream; bool sending; } Held;
enum { HELD = 64 };
static _Thread_local Held held[HELD];
static _Thread_local int depth, alone, holds;

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
    c->file = -1;
    c->rank = rank;
    double_go_on();
    memcpy(c->path, id.internal, sizeof c->path);
    *to = c;
    return ranks == 2 && access(c->path, F_OK) == 0 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    if (c->captured && double_graphs() > 0) {
        fprintf(stderr, "double: a communicator waits for a graph that nobody destroys\n");
        _exit(99);
    }
    if (c->rank == 0)
        unlink(c->path);
    if (c->file >= 0)
        close(c->file);
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

/* As much as goes now.  The head is the length. */
static bool move(void *args)
{
    Moving *m = args;
    for (;;) {
        bool head = m->head < sizeof m->said;
        unsigned char *at = head ? (unsigned char *)&m->said + m->head : m->at + m->done;
        size_t n = head ? sizeof m->said - m->head : m->n - m->done;
        if (!head && m->said != m->n) {
            fprintf(stderr, "double: a receive of %zu bytes meets a send of %zu\n", m->n, m->said);
            _exit(99);
        }
        if (n == 0)
            return true;
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
static void connect_first(ncclComm_t c)
{
    if (c->file >= 0)
        return;
    int end = open(c->path, c->rank == 0 ? O_WRONLY : O_RDONLY);
    c->file = open(c->path, O_RDWR | O_NONBLOCK);       /* a peer that is gone is no error of this process */
    close(end);
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

static ncclResult_t start(const void *at, size_t n, ncclDataType_t type, ncclComm_t c, cudaStream_t s, bool sending)
{
    if (depth) {
        held[holds++] = (Held){at, n, type, c, s, sending};
        return holds < HELD ? ncclSuccess : ncclInvalidArgument;
    }
    be_late();
    connect_first(c);
    c->captured |= double_captures(s);
    if (c->captured && double_setting("NCCL_GRAPH_MIXING_SUPPORT", 1)) {
        fprintf(stderr, "double: graphs of several communicators, which may hang\n");
        _exit(99);
    }
    Moving m = {.file = c->file, .sending = sending, .at = (unsigned char *)(uintptr_t)at, .n = n, .said = sending ? n : 0};
    if (type != ncclInt8 || sending != (c->rank == 0))
        return ncclInvalidArgument;
    const char *how = getenv("DOUBLE_COMM");
    c->broken = how && !strcmp(how, "breaks") && c->messages++ > double_setting("DOUBLE_MESSAGES", 0);
    if (c->broken) {
        double_poll(s, "a lost message", never, &m, sizeof m);
        return ncclSuccess;
    }
    double_poll(s, sending ? "ncclSend" : "ncclRecv", move, &m, sizeof m);
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    return peer == 1 ? start(from, n, type, c, s, true) : ncclInvalidArgument;
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    return peer == 0 ? start(to, n, type, c, s, false) : ncclInvalidArgument;
}

static void *connect_one(void *c)
{
    connect_first(c);
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
        pthread_create(&thread[i], NULL, connect_one, held[i].comm);
    for (int i = 0; i < holds; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < holds && e == ncclSuccess; i++)
        e = start(held[i].at, held[i].n, held[i].type, held[i].comm, held[i].stream, held[i].sending);
    holds = 0;
    return e;
}
