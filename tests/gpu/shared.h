/* SPDX-License-Identifier: Apache-2.0
 *
 * shared.h: for tests of library calls that run over doubles on the CPU and, with -DON_GPU, on a GPU: memory that host and
 * GPU both see, at addresses no better aligned than an arena's, the wait for what was queued, a stage to call kernels
 * with, and what runtime and doubles give them: work is done when it is queued.  With -DON_GPU the memory is pinned, and
 * work is done on a stream; over the doubles of the runtime, too (tests/gpu_visit.sh).
 */
#ifndef SHARED_H
#define SHARED_H
#include "rt/cuda/device.h"
#include "tests/double/double.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 64 };

static Device device;
static Stage stage = { .count = 1, .device = &device };
static Stage *const st = &stage;
static int queued __attribute__((unused));                 /* works so far; on a GPU nobody counts them */
static const char *in_use __attribute__((unused)) = "";     /* the last of them */

#ifdef ON_GPU
enum { GPU = 1 };
static void settled(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "the GPU says: %s\n", cudaGetErrorString(e));
    exit(1);
}
static void *shared(size_t n)
{
    void *at;
    if (!device.compute) {
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);         /* as start.c of a job */
        settled(cudaSetDevice(0));
        settled(cudaStreamCreateWithFlags(&device.compute, cudaStreamNonBlocking));
    }
    settled(cudaHostAlloc(&at, n + ARENA_ALIGN, cudaHostAllocMapped));
    memset(at, 0, n + ARENA_ALIGN);
    return (char *)at + ARENA_ALIGN;
}
static void settle(void) { settled(cudaStreamSynchronize(device.compute)); }
#else
enum { GPU = 0 };
static void *shared(size_t n)
{
    char *at = aligned_alloc(256, (n + ARENA_ALIGN + 255) / 256 * 256);
    if (!at)
        abort();
    memset(at, 0, n + ARENA_ALIGN);
    return at + ARENA_ALIGN;
}
static void settle(void) { }

void double_enqueue(cudaStream_t stream, const char *name, void (*run)(void *), const void *args, size_t bytes)
{
    unsigned char copy[4096];
    if (bytes > sizeof copy || stream != device.compute || !name)
        abort();
    queued++;
    in_use = name;
    run(memcpy(copy, args, bytes));
}

void double_load(const char *who, const void *code, size_t bytes)
{
    if (!who || !code || !bytes)
        abort();
}

void *double_host(const void *address, size_t bytes, const char *who)
{
    if (!address || !bytes || !who)
        abort();
    return (void *)(uintptr_t)address;
}

void double_take(size_t bytes) { (void)bytes; }

#ifdef SPARE            /* what product.c asks then */
cudaError_t cudaGetDevice(int *number)
{
    *number = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int number)
{
    *value = what == cudaDevAttrMultiProcessorCount && number == 0 ? 132 : 0;
    return cudaSuccess;
}
#endif
#endif

void device_check(const Stage *s, cudaError_t status, const char *what)
{
    (void)s;
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}
#endif
