/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.h: cudart.c and capture.c, the two halves of the double's streams, know this of each other.  queue_lock guards all.
 */
#ifndef QUEUE_H
#define QUEUE_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "double.h"

enum { MOST_STREAMS = 256 };

/* From RECORD on: nothing runs, only orders. */
typedef enum { WORK, POLL, COPY, FILL, GRAPH, RECORD, WAIT } Kind;

typedef struct Task {
    Kind kind;
    const char *name;
    void (*run)(void *);
    bool (*step)(void *);
    bool done;                  /* POLL */
    void *args;
    size_t bytes;               /* of args */
    struct Running *graph;
    void *to;
    const void *from;
    size_t n;
    int fill;
    cudaEvent_t event;
    uint64_t version;
    bool external;              /* RECORD: a node of its graph */
    struct Task *next;
} Task;

typedef struct { uint32_t at[MOST_STREAMS]; } Clock;        /* calls of each stream that come before */

/* While a stream is captured, in place of its queue: the nodes that its next one comes after.  Of an event, those that a
 * stream which waits for it comes after. */
typedef struct { int *at, n; } Tips;

struct CUstream_st {
    Task *head, *tail;
    int device, number, waits;
    struct Waited *pending;     /* since its last call */
    uint64_t rank, ended, begun;
    double ns;                  /* for events: when its last call ended */
    Clock clock;
    struct Capture *capture;    /* NULL: its calls are queued */
    Tips tips;
    struct CUstream_st *next;
};

struct CUevent_st {
    uint64_t recorded, reached;
    int device;
    double ns;
    Clock clock;
    struct Capture *capture;    /* it was last recorded there */
    Tips tips;
};

typedef struct Waited { int stream, index; bool implied; Clock before; struct Waited *older; } Waited;

/* cudart.c */
extern pthread_mutex_t queue_lock;
extern struct CUstream_st *queue_streams;
uint64_t queue_draw(void);
bool queue_ranked(void);                /* streams have priorities in this run */
bool queue_may_run(Task *t);
void queue_perform(Task *t);
cudaError_t queue_push(cudaStream_t s, Task t);
void queue_host(void);                  /* a kernel or a graph is launched: ends what the host's own work is counted in */
_Noreturn void queue_broken(const char *who, const char *what, const void *at);

/* capture.c */
/* *taken: the call belongs to a capture, and not to the queue. */
cudaError_t capture_call(struct CUstream_st *s, const Task *t, bool dropped, bool *taken);
/* May the host make this call, which waits for the device or may do so? */
cudaError_t capture_allows(void);
cudaError_t capture_allows_waiting(struct Capture *c, cudaError_t otherwise);
bool graph_may_run(const Task *t);
const Task *graph_perform(const Task *t);       /* some node that may run; NULL: none is left */
bool graph_is_over(const Task *t);
void capture_report(void);
#endif
