/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c: streams that are captured into a graph, and graphs that are launched, as the headers of CUDA 13.0 say
 * (cudaStreamBeginCapture, cudaStreamEndCapture, cudaThreadExchangeStreamCaptureMode, cudaError).
 *
 * A call on a captured stream becomes a node behind the nodes that the stream has come to.  An event that is recorded there
 * remembers these, and a stream that waits for it belongs to the capture from then on; recorded as an external one it is a
 * node, and the host may wait for it behind each launch.  A launch is one call of its stream:
 * nodes run one by one, any that may, chosen by the seed.  Each launch has its own copy of the arguments.
 *
 * Refused, with CUDA's error, and the capture is spoilt: waiting on the host for a captured stream or event; calls that
 * may wait for the device (memory made or freed) unless the thread says that it knows (relaxed); an event of no capture, or
 * of another; a stream that nobody joins again; the end on another stream or thread.  A graph in a graph is not handled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "queue.h"

typedef struct { Task task; Tips after; uint64_t rank; } Node;

struct CUgraph_st { Node *node; int n, room; };
struct CUgraphExec_st { struct CUgraph_st *graph; long launches; bool gone; struct CUgraphExec_st *older; };

typedef struct Capture {
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    pthread_t thread;
    enum cudaStreamCaptureMode mode;
    bool spoilt, over;
} Capture;

/* A launch: copies of the tasks. */
struct Running { const struct CUgraph_st *graph; Task *task; bool *done; int first, left; };

static _Thread_local Capture *mine;
static _Thread_local enum cudaStreamCaptureMode interaction = cudaStreamCaptureModeGlobal;
static struct CUgraphExec_st *all;
static int graphs;                      /* both kinds, that nobody has destroyed */

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

static Tips copy_of(const Tips *t)
{
    Tips c = {malloc(sizeof *c.at * (size_t)(t->n + 1)), t->n};
    memcpy(c.at, t->at, sizeof *c.at * (size_t)t->n);
    return c;
}

static void set_tips(Tips *to, Tips t)
{
    free(to->at);
    *to = t;
}

static void join(Tips *to, const Tips *more)
{
    Tips t = {malloc(sizeof *t.at * (size_t)(to->n + more->n + 1)), to->n};
    memcpy(t.at, to->at, sizeof *t.at * (size_t)to->n);
    for (int i = 0; i < more->n; i++) {
        bool known = false;
        for (int k = 0; k < t.n && !known; k++)
            known = t.at[k] == more->at[i];
        if (!known)
            t.at[t.n++] = more->at[i];
    }
    set_tips(to, t);
}

static void add_node(struct CUstream_st *s, const Task *t)
{
    struct CUgraph_st *g = s->capture->graph;
    if (g->n == g->room) {
        g->room = 2 * g->room + 64;
        g->node = realloc(g->node, sizeof *g->node * (size_t)g->room);
    }
    g->node[g->n] = (Node){*t, s->tips, s->rank};
    s->tips = (Tips){malloc(sizeof(int)), 1};
    s->tips.at[0] = g->n++;
}

static cudaError_t spoil(Capture *c, cudaError_t why)
{
    c->spoilt = true;
    return why;
}

static cudaError_t wait_for(struct CUstream_st *s, const struct CUevent_st *e, bool *taken)
{
    Capture *c = e->capture;
    if (!c && !s->capture)
        return cudaSuccess;
    *taken = true;
    if (!c)
        return spoil(s->capture, cudaErrorStreamCaptureIsolation);
    if (c->over)
        return s->capture ? spoil(s->capture, cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
    if (s->capture && s->capture != c)
        return spoil(c, cudaErrorStreamCaptureMerge);
    if (!s->capture)
        set_tips(&s->tips, (Tips){NULL, 0});
    s->capture = c;
    join(&s->tips, &e->tips);
    return cudaSuccess;
}

cudaError_t capture_call(struct CUstream_st *s, const Task *t, bool dropped, bool *taken)
{
    *taken = s->capture != NULL;
    if (s->capture && s->capture->spoilt)
        return cudaErrorStreamCaptureInvalidated;
    if (t->external && !s->capture) {
        *taken = true;
        return cudaErrorInvalidValue;
    }
    if (t->kind == RECORD && !t->external) {
        t->event->capture = s->capture;
        set_tips(&t->event->tips, copy_of(&s->tips));
        return cudaSuccess;
    }
    if (t->kind == WAIT)
        return dropped ? cudaSuccess : wait_for(s, t->event, taken);
    if (s->capture && t->kind == GRAPH)
        return spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    if (s->capture)
        add_node(s, t);
    return cudaSuccess;
}

/* ---- begin and end ----------------------------------------------------------------------------------------------------- */

cudaError_t capture_allows(void)
{
    if (!mine || mine->mode == cudaStreamCaptureModeRelaxed || interaction == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    return spoil(mine, cudaErrorStreamCaptureUnsupported);
}

cudaError_t capture_allows_waiting(Capture *c, cudaError_t otherwise)
{
    return !c ? cudaSuccess : spoil(c, otherwise);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode was = interaction;
    interaction = *mode;
    *mode = was;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    cudaError_t e = cudaErrorIllegalState;
    double_device("cudaStreamBeginCapture");
    if (!s)
        return cudaErrorStreamCaptureUnsupported;
    pthread_mutex_lock(&queue_lock);
    if (!s->capture) {
        Capture *c = calloc(1, sizeof *c);
        *c = (Capture){calloc(1, sizeof *c->graph), s, pthread_self(), mode, false, false};
        s->capture = mine = c;
        set_tips(&s->tips, (Tips){NULL, 0});
        e = cudaSuccess;
    }
    pthread_mutex_unlock(&queue_lock);
    return e;
}

/* Every stream of the capture has come to nothing that the origin has not. */
static bool is_joined(const Capture *c)
{
    const struct CUgraph_st *g = c->graph;
    bool *before = calloc((size_t)g->n + 1, 1), joined = true;
    for (int i = 0; i < c->origin->tips.n; i++)
        before[c->origin->tips.at[i]] = true;
    for (int i = g->n; i-- > 0;)
        for (int k = 0; before[i] && k < g->node[i].after.n; k++)
            before[g->node[i].after.at[k]] = true;
    for (const struct CUstream_st *s = queue_streams; s; s = s->next)
        for (int i = 0; s->capture == c && i < s->tips.n; i++)
            joined &= before[s->tips.at[i]];
    free(before);
    return joined;
}

static cudaError_t end(const Capture *c, const struct CUstream_st *s)
{
    if (c->origin != s)
        return cudaErrorStreamCaptureUnmatched;
    if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
        return cudaErrorStreamCaptureWrongThread;
    return c->spoilt ? cudaErrorStreamCaptureInvalidated : is_joined(c) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t at, cudaGraph_t *graph)
{
    double_device("cudaStreamEndCapture");
    *graph = NULL;
    pthread_mutex_lock(&queue_lock);
    Capture *c = at->capture;
    cudaError_t e = c ? end(c, at) : cudaErrorIllegalState;
    if (c && e != cudaErrorStreamCaptureUnmatched && e != cudaErrorStreamCaptureWrongThread) {
        for (struct CUstream_st *s = queue_streams; s; s = s->next)
            if (s->capture == c)
                s->capture = NULL;
        c->over = true;
        mine = mine == c ? NULL : mine;
        *graph = e == cudaSuccess ? c->graph : NULL;
        graphs += *graph != NULL;
    }
    pthread_mutex_unlock(&queue_lock);
    return e;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------------ */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *to, cudaGraph_t g, unsigned long long flags)
{
    double_device("cudaGraphInstantiate");
    if (!g || flags)
        return cudaErrorInvalidValue;
    *to = malloc(sizeof **to);
    pthread_mutex_lock(&queue_lock);
    **to = (struct CUgraphExec_st){g, 0, false, all};
    all = *to;
    graphs++;
    pthread_mutex_unlock(&queue_lock);
    return cudaSuccess;
}

/* What was instantiated goes on. */
cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    pthread_mutex_lock(&queue_lock);
    graphs -= g != NULL;
    pthread_mutex_unlock(&queue_lock);
    return g ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    if (!x || x->gone)
        return cudaErrorInvalidValue;
    pthread_mutex_lock(&queue_lock);
    x->gone = true;
    graphs--;
    pthread_mutex_unlock(&queue_lock);
    return cudaSuccess;
}

int double_graphs(void)
{
    pthread_mutex_lock(&queue_lock);
    int n = graphs;
    pthread_mutex_unlock(&queue_lock);
    return n;
}

bool double_captures(cudaStream_t s)
{
    pthread_mutex_lock(&queue_lock);
    bool captures = s->capture != NULL;
    pthread_mutex_unlock(&queue_lock);
    return captures;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t s)
{
    return x && s ? cudaSuccess : cudaErrorInvalidValue;
}

static struct Running *running_of(const struct CUgraph_st *g)
{
    struct Running *r = malloc(sizeof *r);
    *r = (struct Running){g, calloc((size_t)g->n, sizeof *r->task), calloc((size_t)g->n, 1), 0, g->n};
    for (int i = 0; i < g->n; i++) {
        Task *t = &r->task[i];
        *t = g->node[i].task;
        if (t->bytes)
            t->args = memcpy(malloc(t->bytes), t->args, t->bytes);
        if (t->kind == RECORD)
            t->version = ++t->event->recorded;
    }
    return r;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    if (!x || !s || x->gone)
        return cudaErrorInvalidValue;
    x->launches++;
    pthread_mutex_lock(&queue_lock);
    struct Running *r = running_of(x->graph);
    pthread_mutex_unlock(&queue_lock);
    queue_host();
    return queue_push(s, (Task){.kind = GRAPH, .name = "cudaGraphLaunch", .graph = r});
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags)
{
    if (e->device != s->device)
        return cudaErrorInvalidResourceHandle;
    return queue_push(s, (Task){.kind = RECORD, .name = "cudaEventRecordWithFlags", .event = e,
                                .external = flags == cudaEventRecordExternal});
}

static bool is_ready(const struct Running *r, int i)
{
    const Tips *after = &r->graph->node[i].after;
    bool ready = !r->done[i];
    for (int k = 0; k < after->n && ready; k++)
        ready = r->done[after->at[k]];
    return ready && queue_may_run(&r->task[i]);
}

bool graph_may_run(const Task *t)
{
    const struct Running *r = t->graph;
    for (int i = r->first; i < r->graph->n; i++)
        if (is_ready(r, i))
            return true;
    return r->left == 0;
}

const Task *graph_perform(const Task *t)
{
    struct Running *r = t->graph;
    int best = -1;
    uint64_t least = 0;
    for (int i = r->first; i < r->graph->n; i++) {
        if (!is_ready(r, i))
            continue;
        uint64_t rank = queue_ranked() ? r->graph->node[i].rank : queue_draw();
        if (best < 0 || rank < least)
            best = i, least = rank;
    }
    if (best < 0)
        return NULL;
    queue_perform(&r->task[best]);
    free(r->task[best].args);
    r->done[best] = true;
    r->left--;
    while (r->first < r->graph->n && r->done[r->first])
        r->first++;
    return &r->task[best];
}

bool graph_is_over(const Task *t)
{
    struct Running *r = t->graph;
    if (r->left > 0)
        return false;
    free(r->task);
    free(r->done);
    free(r);
    return true;
}

void capture_report(void)
{
    for (const struct CUgraphExec_st *x = all; x; x = x->older)
        fprintf(stderr, "double: a graph of %d nodes, launched %ld times\n", x->graph->n, x->launches);
}

/* ---- calls that only queue ---------------------------------------------------------------------------------------- */

typedef struct { cudaHostFn_t run; void *with; } HostCall;

static void call_host(void *at)
{
    HostCall *c = at;
    c->run(c->with);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t run, void *with)
{
    HostCall c = {run, with};
    double_enqueue(s, "cudaLaunchHostFunc", call_host, &c, sizeof c);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)((to->ns - from->ns) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void)flags;
    return queue_push(s, (Task){.kind = WAIT, .name = "cudaStreamWaitEvent", .event = e});
}

cudaError_t cudaMemsetAsync(void *to, int fill, size_t n, cudaStream_t s)
{
    return queue_push(s, (Task){.kind = FILL, .name = "cudaMemsetAsync", .to = to, .fill = fill, .n = n});
}
