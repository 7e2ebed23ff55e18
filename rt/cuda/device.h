/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: the GPU of a stage.
 *
 * A stage has one arena on one GPU.  Its kernels and library calls go to the stream `compute` in the order of the stage's
 * source. Messages travel on a stream for each ordered pair of stages, copies to the host and back on `out` and `in`.  Work
 * on another stream first waits for everything that `compute` has been given so far.  A wait of the plan makes `compute`
 * wait.  Each is an event.  The host only enqueues; it meets the GPU once a step, in step_end().
 *
 * There is a stream for each pair because the host runs ahead.  On one stream, a message that cannot go yet would hold up
 * another that the first one waits for, round the pipeline.  Between two stages the plan's order is that of both.
 */
#ifndef DEVICE_H
#define DEVICE_H
#include <cuda_runtime_api.h>
#include "../rt.h"
#include <string.h>

enum { ROOMS = 16, ROOM_BYTES = 32 << 20, GATHERED = 3968 };
enum { QUEUES = 32, OTHERS = 3 };       /* of a GPU, at most; streams that are no pair's */
/* PLAIN: what is queued runs.  CAPTURES: it becomes nodes of a graph.  REPLAYS: the graph is filled with a step's data. */
enum { PLAIN, CAPTURES, REPLAYS };

/* Code is loaded by its first call, and that may wait for all that runs: a receive, whose peer waits for this stage.  So
 * whoever opens a library's call here leaves one to make before the first step, on memory of the arena that holds nothing
 * yet; arena_warm() makes them. */
typedef struct Dry { void (*run)(Stage *st, void *of); void *of; struct Dry *next; } Dry;

/* Calls of one kind behind each other, which go to the GPU as one kernel over a table: a row a call.  Whatever is queued next
 * comes behind it. */
typedef void (*Together)(Stage *st, const void *row, int n);
typedef struct { Together launch; int n; long rows[GATHERED / sizeof(long)]; } Gathered;

/* Rooms of pinned memory on its way to the arena, taken in turn. */
typedef struct {
    size_t bytes;                   /* of a room */
    int n, next;
    unsigned char *room[ROOMS];
    cudaEvent_t taken[ROOMS];       /* the GPU has read it */
} Ring;

typedef struct Device {
    int number, numbers;            /* of the GPU, of how many, as the CUDA runtime counts */
    cudaStream_t compute, out, in;
    cudaStream_t *from;             /* [stage]: messages from it */
    void *workspace;                /* in the arena: of the library calls on `compute`, one after another */
    size_t workspace_bytes;
    void *products;                 /* cublasLtHandle_t: op/cuda/product.c */
    void *graphs;                   /* cudnnHandle_t: op/cuda/graph.c */
    Dry *dry;
    int sync;                       /* DPGEN_SYNC: the host waits for each call */
    const char *routine;            /* ranges.c: of the last call, NULL: none since the action began */
    int ranges;                     /* open ones */
    Gathered gathered;
    size_t spare;                   /* bytes of the GPU, once the arenas on it are made; 0: not the first stage on it */
    /* message.c: by request */
    cudaEvent_t ready[ALL_REQUESTS], arrived[ALL_REQUESTS], *left;  /* left[gpu of the receiver * ALL_REQUESTS + request] */
    int left_by[ALL_REQUESTS];      /* that gpu; -1: this stage receives */
    /* team.c: this GPU reaches into those of its team; what the others may read there at the moment */
    int reaches;
    const void *shared;
    /* arena.c: what goes to the arena, and copies of step values */
    Ring values, loads, *ring;      /* data inputs, where the stage loads one; ring: of the last room that was given out */
    unsigned char *at_hand;         /* that room */
    struct Ahead *ahead;            /* ahead.c */
    Values **mirror, **mirrored;    /* [mirrors]: on the host; in the arena */
    int mirrors;
    unsigned char *bounce;          /* ARENA_PIECE bytes */
    int mode;
    struct Record *record;          /* record.c */
} Device;

static inline Device *device_of(const Stage *st) { return (Device *)st->device; }
/* Where the stage's kernels and library calls go. */
static inline cudaStream_t stream_of(const Stage *st)
{
    Gathered *x = &device_of(st)->gathered;
    int n = x->n;
    x->n = 0;
    if (n)
        x->launch((Stage *)(uintptr_t)st, x->rows, n);
    return device_of(st)->compute;
}

static inline void gather_row(Stage *st, Together launch, const void *row, size_t bytes)
{
    Gathered *x = &device_of(st)->gathered;
    if (x->n && (x->launch != launch || (size_t)(x->n + 1) * bytes > sizeof x->rows))
        stream_of(st);
    memcpy((char *)x->rows + (size_t)x->n++ * bytes, row, bytes);
    x->launch = launch;
    if (device_of(st)->sync)
        stream_of(st);
}
/* Where sums of a team lie on their way: the upper half of the workspace.  What a call keeps meanwhile lies in the lower. */
static inline void *team_room(const Stage *st, size_t *bytes)
{
    const Device *d = device_of(st);
    *bytes = d->workspace_bytes / 2 / 256 * 256;
    return (char *)d->workspace + *bytes;
}
/* Bytes of the arena before the workspace. */
static inline size_t room_of(const Stage *st) { return (size_t)((char *)device_of(st)->workspace - (char *)st->arena); }

#ifdef __cplusplus
extern "C"
#endif
/* Ends the job with the name of the failed call unless status is cudaSuccess.  With DPGEN_SYNC it first waits for the call,
 * and so comes behind each one. */
void device_check(const Stage *st, cudaError_t status, const char *what);
/* Loads the code of each kernel of ours, op/cuda/kernel.h. */
#ifdef __cplusplus
extern "C"
#endif
void kernels_load(const Stage *st);
/* As many rooms as ROOM_BYTES hold, from `least` to ROOMS. */
cudaError_t ring_open(Ring *r, size_t bytes, int least);
/* seconds(), when the stream has come so far. */
void device_clock(const Stage *st, cudaStream_t s, double *at);
#endif
