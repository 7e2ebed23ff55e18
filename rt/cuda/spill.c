/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.c: pinned memory of the host, where offloaded tensors wait, and the way there and back.  There are two streams, or
 * one where the link carries one direction at a time.
 *
 * A copy begins after the work that the stage's computation has been given so far, and ends in an event; the wait makes the
 * computation wait for that.  A copy therefore overlaps everything that the plan put between its begin and its wait, and the
 * host does not wait at all.
 */
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "run.h"
#include "spill.h"

struct Spill {
    unsigned char *memory;
    struct { cudaEvent_t begun, done; bool under_way; } *copy;      /* by number */
    struct { Copied *ring; uint64_t n; } trace[2];
};

enum { OUT, IN, RING = 1 << 16 };

static void begin(Stage *st, size_t host, int copy, long bytes, cudaStream_t s)
{
    Spill *x = st->spill;
    check_range(st, host, copy, bytes);
    if (x->copy[copy].under_way)
        begins_again(st, copy);
    x->copy[copy].under_way = true;
    device_check(st, cudaEventRecord(x->copy[copy].begun, stream_of(st)), "beginning a copy");
    device_check(st, cudaStreamWaitEvent(s, x->copy[copy].begun, 0), "beginning a copy");
}

static void carry(Stage *st, int way, cudaStream_t s, void *to, const void *from, int copy, long bytes)
{
    Spill *x = st->spill;
    Copied *c = x->trace[way].ring ? &x->trace[way].ring[x->trace[way].n++ % RING] : NULL;
    if (c) {
        c->number = (int)st->at;
        device_clock(st, s, &c->from);
    }
    device_check(st, cudaMemcpyAsync(to, from, (size_t)bytes, way == OUT ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, s),
                 "a copy to the host or back");
    device_check(st, cudaEventRecord(x->copy[copy].done, s), "a copy to the host or back");
    if (c)
        device_clock(st, s, &c->to);
}

void offload_begin(Stage *st, const void *from, size_t host, int copy, long bytes)
{
    cudaStream_t s = device_of(st)->out;
    begin(st, host, copy, bytes, s);
    carry(st, OUT, s, st->spill->memory + host, from, copy, bytes);
}

void fetch_begin(Stage *st, void *to, size_t host, int copy, long bytes)
{
    Device *d = device_of(st);
    cudaStream_t s = st->worker->info->lanes > 1 ? d->in : d->out;
    begin(st, host, copy, bytes, s);
    carry(st, IN, s, to, st->spill->memory + host, copy, bytes);
}

void copy_wait(Stage *st, int copy)
{
    Spill *x = st->spill;
    if (!x || copy < 0 || copy >= st->worker->info->copies || !x->copy[copy].under_way)
        never_begun(st, copy);
    x->copy[copy].under_way = false;
    device_check(st, cudaStreamWaitEvent(stream_of(st), x->copy[copy].done, 0), "waiting for a copy");
}

static int spill_open(Worker *w)
{
    const StageInfo *info = w->info;
    Spill *x = w->stage.spill = calloc(1, sizeof *x);
    if (x)
        x->copy = calloc((size_t)info->copies, sizeof *x->copy);
    for (int i = 0; x && w->run->opt.trace && i < 2; i++)
        x->trace[i].ring = calloc(RING, sizeof(Copied));
    if (!x || !x->copy)
        return complain(STATUS_RUN, "%s: no memory for copies to the host", info->name);
    cudaError_t e = cudaSetDevice(device_of(&w->stage)->number);
    for (int i = 0; i < info->copies && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&x->copy[i].begun, cudaEventDisableTiming);
        if (e == cudaSuccess)
            e = cudaEventCreateWithFlags(&x->copy[i].done, cudaEventDisableTiming);
    }
    if (e == cudaSuccess)
        e = cudaHostAlloc((void **)&x->memory, info->host, cudaHostAllocDefault);
    if (e != cudaSuccess)
        return complain(STATUS_RUN, "%s: no pinned memory for %zu bytes of offloaded tensors: %s; offload less, or check "
                        "`ulimit -l` and the memory limit of the batch job", info->name, info->host, cudaGetErrorString(e));
    memset(x->memory, w->run->opt.fill, info->host);
    return DONE;
}

static void spill_close(Worker *w)
{
    (void)w;
}

static void spill_report(const Worker *w)
{
    (void)w;
}

static const Copied *spill_trace(const Worker *w, int direction, uint64_t i, uint64_t *n)
{
    const Spill *x = w->stage.spill;
    if (!x || !x->trace[direction].ring)
        return NULL;
    uint64_t all = x->trace[direction].n, kept = all < RING ? all : RING;
    *n = kept;
    return &x->trace[direction].ring[(all - kept + i) % RING];
}

const Offload offload_host = {spill_open, spill_close, spill_report, spill_trace};
