/* SPDX-License-Identifier: Apache-2.0
 *
 * shared.h: for tests of library calls that run over doubles on the CPU and, with -DON_GPU, on a GPU: memory that host and
 * GPU both see, at addresses no better aligned than an arena's, and the wait for what was queued.
 */
#ifndef SHARED_H
#define SHARED_H
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 64 };

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
    settled(cudaMallocManaged(&at, n + ARENA_ALIGN, cudaMemAttachGlobal));
    memset(at, 0, n + ARENA_ALIGN);
    return (char *)at + ARENA_ALIGN;
}
static void settle(void) { settled(cudaDeviceSynchronize()); }
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
#endif
#endif
