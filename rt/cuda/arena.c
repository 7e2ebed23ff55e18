/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c: the memory of a stage on its GPU, and the way there for the host.
 *
 * One cudaMalloc of exactly the plan's bytes is made before the first step.  Several stages may share a GPU, each with its
 * own arena.  The streams, the events of every request and the pinned memory below are made at the same time; nothing is made
 * later.
 *
 * In a step the host sends step values, counts and data.  They go through rings of pinned rooms: small ones, and large ones
 * where the stage loads data.  Each room has an event that says when it may be written again.  The host can therefore run ahead
 * of the GPU and overwrites nothing that is still to be read.  Step values come back once a step; there the host waits for all
 * of the stage's computation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ahead.h"
#include "device.h"
#include "link.h"
#include "op/cuda/start.h"
#include "pictures.h"
#include "record.h"
#include "feed.h"

/* The line in the stage's source names operands and the line of the model. */
static void describe(const Stage *st, char *to, size_t room)
{
    if (!st->worker || st->at < 0 || st->worker->eval)
        snprintf(to, room, ", before the first step or in an evaluation");
    else
        snprintf(to, room, ", near line %d of stage%d.c, in: %s", st->line, st->index, action_name(st->worker, st->at));
}

void device_check(const Stage *st, cudaError_t status, const char *what)
{
    char where[256] = "; DPGEN_SYNC=1 names the call";
    const Device *d = device_of(st);
    if (status == cudaSuccess && d->sync)
        status = cudaStreamSynchronize(d->compute);
    if (status != cudaSuccess && d->sync)
        describe(st, where, sizeof where);
    if (d->mode == CAPTURES)
        snprintf(where, sizeof where, ", recording a step; without DPGEN_GRAPH calls go to the GPU one by one");
    if (status != cudaSuccess)
        quit(st->link, STATUS_RUN, "%s: %s: %s (%s)%s; checkpoints are as they were",
             st->worker ? st->worker->info->name : "stage", what, cudaGetErrorString(status), cudaGetErrorName(status), where);
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static int failed(const Worker *w, cudaError_t status, const char *what)
{
    return complain(STATUS_RUN, "%s: %s: %s (%s)", w->info->name, what, cudaGetErrorString(status), cudaGetErrorName(status));
}

/* The first call that needs a context says whether there may be one. */
static int unprepared(const Worker *w, const Device *d, cudaError_t e)
{
    int busy = 0;
    if (e != cudaErrorDevicesUnavailable)
        return failed(w, e, "preparing the GPU");
    while (busy < d->numbers - 1 && cudaSetDevice(busy) != cudaErrorDevicesUnavailable)
        busy++;
    return complain(STATUS_RUN, "%s: GPU %d is busy: another process has it for itself; end that one (nvidia-smi names it), "
                    "wait for it, or name other GPUs in CUDA_VISIBLE_DEVICES", w->info->name, busy);
}

/* A device that shares this one's operators, by its number in the team; -1: it is not in this process, or it is this one. */
static int partner_of(const Worker *w, int shard)
{
    const Stage *st = &w->stage;
    int other = st->index + (shard - st->shard) * st->apart, here = other - w->run->first;
    return shard != st->shard && here >= 0 && here < w->run->count ? other : -1;
}

/* One for each stage of this process that sends something here. */
static cudaError_t open_streams(const Worker *w, Device *d)
{
    const Job *job = w->run->job;
    cudaStream_t *all[] = {&d->compute, &d->out, &d->in};
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < sizeof all / sizeof *all && e == cudaSuccess; i++)
        e = cudaStreamCreateWithFlags(all[i], cudaStreamNonBlocking);
    for (int i = 0; i < job->pairs && e == cudaSuccess; i++) {
        int from = job->pair[2 * i];
        if (job->pair[2 * i + 1] == w->stage.index && from >= w->run->first && from < w->run->first + w->run->count)
            e = cudaStreamCreateWithFlags(&d->from[from], cudaStreamNonBlocking);
    }
    for (int k = 0; k < w->stage.shards && e == cudaSuccess; k++)
        if (partner_of(w, k) >= 0)
            e = cudaStreamCreateWithFlags(&d->from[partner_of(w, k)], cudaStreamNonBlocking);
    return e;
}

static cudaError_t open_events(cudaEvent_t *event, int n)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < n && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming);
    return e;
}

/* Stages of one process are dealt out to its GPUs in turn, processes of one host likewise. */
static int gpu_of(const Device *d, int stage_here)
{
    return (launcher_ranks().local + stage_here) % d->numbers;
}

/* An event belongs to a GPU: of a message that leaves, to that of whoever receives it.  A GPU that no stage of this process
 * is on is left alone: choosing it would take room for a context there. */
static cudaError_t open_leaving(const Worker *w, Device *d)
{
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < w->run->count && i < d->numbers && e == cudaSuccess; i++) {
        int gpu = gpu_of(d, i);
        e = cudaSetDevice(gpu);
        if (e == cudaSuccess)
            e = open_events(d->left + gpu * ALL_REQUESTS, ALL_REQUESTS);
    }
    return e == cudaSuccess ? cudaSetDevice(d->number) : e;
}

/* Copies between two GPUs go from one to the other where each may reach into the other's memory.  Where that is not so, or one
 * has as many peers as it can have, the same call goes through the host. */
static cudaError_t open_peer(const Device *d, int gpu, int *reached)
{
    cudaError_t e = cudaDeviceCanAccessPeer(reached, d->number, gpu);
    if (e == cudaSuccess && *reached)
        e = cudaDeviceEnablePeerAccess(gpu, 0);
    *reached &= e != cudaErrorTooManyPeers;
    if (e != cudaErrorPeerAccessAlreadyEnabled && e != cudaErrorTooManyPeers)
        return e;
    cudaGetLastError();
    return cudaSuccess;
}

/* The GPUs of those stages that this one exchanges messages or shares operators with, in this process. */
static cudaError_t open_peers(const Worker *w, Device *d)
{
    const Job *job = w->run->job;
    cudaError_t e = cudaSuccess;
    int reached;
    for (int i = 0; i < job->pairs && e == cudaSuccess; i++) {
        int from = job->pair[2 * i], to = job->pair[2 * i + 1], other = from == w->stage.index ? to : from;
        int here = other - w->run->first;
        if ((from != w->stage.index && to != w->stage.index) || here < 0 || here >= w->run->count)
            continue;
        if (gpu_of(d, here) != d->number)
            e = open_peer(d, gpu_of(d, here), &reached);
    }
    for (int k = 0; k < w->stage.shards && e == cudaSuccess; k++) {
        int other = partner_of(w, k), gpu = other < 0 ? d->number : gpu_of(d, other - w->run->first);
        reached = other >= 0 || k == w->stage.shard;
        if (gpu != d->number)
            e = open_peer(d, gpu, &reached);
        d->reaches = (k == 0 || d->reaches) && reached;
    }
    return e;
}

/* Whoever waits for a room may do so for most of a step: without a core. */
cudaError_t ring_open(Ring *r, size_t bytes, int least)
{
    size_t n = ROOM_BYTES / bytes;
    cudaError_t e = cudaSuccess;
    r->bytes = bytes;
    r->n = n < (size_t)least ? least : n < ROOMS ? (int)n : ROOMS;
    for (int i = 0; i < r->n && e == cudaSuccess; i++)
        e = cudaEventCreateWithFlags(&r->taken[i], cudaEventDisableTiming | cudaEventBlockingSync);
    for (int i = 0; i < r->n && e == cudaSuccess; i++)
        e = cudaHostAlloc((void **)&r->room[i], bytes, cudaHostAllocDefault);
    return e;
}

/* Where a thread reads ahead, only a first step and evaluations want other rooms. */
static cudaError_t open_rooms(Worker *w, Device *d)
{
    size_t load = w->info->load;
    size_t values = values_bytes(w->run->job);
    bool ahead = load > values && !w->run->job->overlap, graph = record_wanted();
    cudaError_t e = ring_open(&d->values, values, ROOMS);
    if (e == cudaSuccess && load > values)
        e = ring_open(&d->loads, load, ahead && !graph ? 1 : 2);
    if (e == cudaSuccess && ahead)
        e = ahead_open(&w->stage, load, graph);
    for (int i = 0; i < d->mirrors && e == cudaSuccess; i++)
        e = cudaHostAlloc((void **)&d->mirror[i], values, cudaHostAllocDefault);
    return e == cudaSuccess ? cudaHostAlloc((void **)&d->bounce, ARENA_PIECE, cudaHostAllocDefault) : e;
}

/* For kernels_bytes(): of the stages on a GPU, which open one after another, the first knows what the last has spared. */
static void count_from_here(const Worker *w, Device *d)
{
    int here = w->stage.index - w->run->first;
    Device *first = here < d->numbers ? d : device_of(&w->run->worker[here % d->numbers].stage);
    size_t total;
    cudaMemGetInfo(&first->spare, &total);
}

static int open_arena(Worker *w, Device *d)
{
    size_t free_bytes = 0, total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    cudaError_t e = cudaMalloc((void **)&w->stage.arena, w->info->arena);
    if (e == cudaErrorMemoryAllocation)
        return complain(STATUS_RUN, "%s: no room for its arena of %zu bytes on GPU %d: %zu of %zu bytes are free; plan with a "
                        "smaller limit, or end what else runs there (nvidia-smi names it)", w->info->name, w->info->arena,
                        d->number, free_bytes, total);
    d->workspace = w->stage.arena + w->info->workspace;
    d->workspace_bytes = w->info->workspace_bytes;
    count_from_here(w, d);
    return e == cudaSuccess ? DONE : failed(w, e, "making the arena");
}

/* Algorithms that were measured on another GPU, or in another version of the library, may be none here, or give other bits. */
static int check_measured(const Worker *w, int gpu)
{
    char here[400];
    const char *there = w->run->job->measured;
    if (!there || (gpu_signature(gpu, here, sizeof here) == 0 && !strcmp(here, there)))
        return DONE;
    return complain(STATUS_MACHINE, "%s: the matrix products of this folder were chosen on %s, and GPU %d is %s; measure and "
                    "generate again here: dpgen profile MODEL, or without a profile: --estimate", w->info->name, there, gpu,
                    here);
}

int arena_open(Worker *w)
{
    Device *d = calloc(1, sizeof *d);
    cudaError_t e = d ? cudaGetDeviceCount(&d->numbers) : cudaErrorMemoryAllocation;
    if (e != cudaSuccess)
        return failed(w, e, "looking for a GPU");
    const char *sync = getenv("DPGEN_SYNC");
    d->sync = sync && *sync && strcmp(sync, "0");
    d->number = gpu_of(d, w->stage.index - w->run->first);
    if (check_measured(w, d->number) != DONE)
        return STATUS_MACHINE;
    d->from = calloc((size_t)w->stage.count, sizeof *d->from);
    d->left = calloc((size_t)d->numbers * ALL_REQUESTS, sizeof *d->left);
    d->mirrors = w->run->job->overlap + 2;      /* a step that is under way has step values of its own; an evaluation */
    d->mirror = calloc((size_t)d->mirrors, sizeof *d->mirror);
    d->mirrored = calloc((size_t)d->mirrors, sizeof *d->mirrored);
    if (!d->from || !d->left || !d->mirror || !d->mirrored)
        return complain(STATUS_RUN, "no memory for %s", w->info->name);
    w->stage.device = d;
    if (ranges_open(w) != DONE)
        return STATUS_MACHINE;
    e = open_leaving(w, d);
    if (e == cudaSuccess)
        e = open_peers(w, d);
    if (e == cudaSuccess)
        e = open_streams(w, d);
    if (e == cudaSuccess)
        e = open_events(d->ready, ALL_REQUESTS);
    if (e == cudaSuccess)
        e = open_events(d->arrived, ALL_REQUESTS);
    if (e == cudaSuccess)
        e = open_rooms(w, d);
    return e == cudaSuccess ? open_arena(w, d) : unprepared(w, d, e);
}

/* Streams, events and handles stay with the process, which a GPU's libraries keep for themselves anyway. */
void arena_close(Worker *w)
{
    record_close(&w->stage);
    ahead_close(&w->stage);
    cudaFree(w->stage.arena);
    cudaFreeHost(w->stage.loss);
}

void arena_enter(Worker *w)
{
    device_check(&w->stage, cudaSetDevice(device_of(&w->stage)->number), "choosing the GPU");
}

#pragma weak kernels_load
/* Everything that a step calls, once.  On the stream of whatever comes next: the default one would run beside it. */
void arena_warm(Worker *w)
{
    Device *d = device_of(&w->stage);
    if (kernels_load)
        kernels_load(&w->stage);
    for (const Dry *dry = d->dry; dry; dry = dry->next)
        dry->run(&w->stage, dry->of);
    device_check(&w->stage, cudaStreamSynchronize(d->compute), "the first calls of libraries");
    device_check(&w->stage, cudaMemsetAsync(w->stage.arena, w->run->opt.fill, w->info->arena, d->compute), "filling the arena");
}

/* ---- between steps -------------------------------------------------------------------------------------------------- */

static void copy_now(Worker *w, void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    cudaStream_t s = stream_of(&w->stage);
    device_check(&w->stage, cudaMemcpyAsync(to, from, n, kind, s), "copying between host and arena");
    device_check(&w->stage, cudaStreamSynchronize(s), "copying between host and arena");
}

bool arena_read(Worker *w, const void *at, size_t n, ArenaTake take, void *to)
{
    unsigned char *piece = device_of(&w->stage)->bounce;
    for (size_t done = 0, k; done < n; done += k) {
        k = n - done < ARENA_PIECE ? n - done : ARENA_PIECE;
        copy_now(w, piece, (const char *)at + done, k, cudaMemcpyDeviceToHost);
        if (!take(to, piece, k))
            return false;
        atomic_fetch_add(&w->beat, 1);
    }
    return true;
}

void arena_write(Worker *w, void *at, const void *from, size_t n)
{
    copy_now(w, at, from, n, cudaMemcpyHostToDevice);
}

void *arena_shared(size_t n)
{
    void *at = NULL;
    if (cudaHostAlloc(&at, n, cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess)
        memset(at, 0, n);
    return at;
}

/* ---- in a step -------------------------------------------------------------------------------------------------------- */

/* The next room, once the GPU has read what it held. */
void *arena_room(Stage *st, size_t n)
{
    Device *d = device_of(st);
    Ring *r = n <= d->values.bytes ? &d->values : &d->loads;
    if (n > r->bytes)
        quit(st->link, STATUS_RUN, "stage %d sends %zu bytes to its arena, and no input is as large; this folder is not what "
             "dpgen wrote", st->index, n);
    if (d->mode != PLAIN)
        return d->at_hand = record_room(st, n);
    r->next = (r->next + 1) % r->n;
    device_check(st, cudaEventSynchronize(r->taken[r->next]), "waiting for data to be taken");
    d->ring = r;
    return d->at_hand = r->room[r->next];
}

/* A load of a step to come, ahead.c. */
static bool in_arena(const Stage *st, const unsigned char *from)
{
    return st->worker->info->landing && from == st->arena + st->worker->info->landing;
}

void arena_post(Stage *st, void *at, const void *from, size_t n, const ByteInfo *bytes)
{
    Device *d = device_of(st);
    if (from != d->at_hand)
        from = memcpy(arena_room(st, n), from, n);
    if (d->mode == REPLAYS)
        return;
    if (bytes)
        picture_numbers(st, at, from, bytes->mean, bytes->std, bytes->channels, (long)n);
    else
        device_check(st, cudaMemcpyAsync(at, from, n, in_arena(st, from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice,
                                         stream_of(st)), "sending data");
    if (d->mode == CAPTURES)
        ahead_room(st, d->at_hand);
    if (d->mode == PLAIN) {
        device_check(st, cudaEventRecord(d->ring->taken[d->ring->next], stream_of(st)), "sending data");
        ahead_taken(st);
    }
}

Values *arena_values(Stage *st, Values *vals)
{
    Device *d = device_of(st);
    for (int i = 0; i < d->mirrors; i++) {
        if (!d->mirrored[i])
            d->mirrored[i] = vals;
        if (d->mirrored[i] == vals)
            return d->mirror[i];
    }
    quit(st->link, STATUS_RUN, "stage %d has step values in more than %d places; this folder is not what dpgen wrote",
         st->index, d->mirrors);
}

static void CUDART_CB look_at_clock(void *at)
{
    *(double *)at = seconds();
}

void device_clock(const Stage *st, cudaStream_t s, double *at)
{
    device_check(st, cudaLaunchHostFunc(s, look_at_clock, at), "asking for the time");
}

void arena_clock(Stage *st, double *at)
{
    device_clock(st, stream_of(st), at);
}

void arena_settle(Stage *st, Values *vals)
{
    const Device *d = device_of(st);
    cudaStream_t s = stream_of(st);
    if (d->mode == REPLAYS)
        record_launch(st);
    else
        device_check(st, cudaMemcpyAsync(arena_values(st, vals), vals, sizeof *vals, cudaMemcpyDeviceToHost, s),
                     "ending the step");
    if (d->mode != CAPTURES)
        device_check(st, cudaStreamSynchronize(s), "ending the step");
    if (d->mode == PLAIN)
        ahead_settle(st);
}
