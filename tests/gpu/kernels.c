/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.c: opcheck on a GPU: every kernel of ours as nvcc made it, against the references in f64 of the portable ones.
 *
 * opcheck calls a kernel and reads its result, as on a processor.  So each call is waited for (device_check), and all that
 * opcheck has is memory that the GPU reaches: its operands, out of one pinned block, its stack, in the same, and its static
 * variables, which are registered.  Products are the loops of tests/simt/calls.c.  Every source is compiled with
 *   -Dmain=opcheck_main -Daligned_alloc=pinned -Dfree=unpinned
 */
#include "rt/cuda/device.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#undef main

enum { PAGE = 4096 };
static const size_t ROOM = (size_t)1 << 29, STACK = 1 << 24, WORKSPACE = 1 << 26;
extern Stage *stage;
extern char __data_start[], _end[];
int opcheck_main(int argc, char **argv);
static Device device = { .sync = 1 };
static unsigned char *pool;
static size_t top;

static void settled(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "kernels: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

void device_check(const Stage *s, cudaError_t status, const char *what)
{
    (void)s;
    settled(status, what);
    settled(cudaStreamSynchronize(device.compute), what);
}

/* What opcheck takes last it gives back first. */
void *aligned_alloc(size_t align, size_t n)
{
    size_t at = (top + align - 1) / align * align;
    if (at + n > ROOM)
        return NULL;
    top = at + n;
    return pool + at;
}

void free(void *at) { top = (size_t)((unsigned char *)at - pool); }

typedef struct { int argc, status; char **argv; } Run;
static void *run(void *of)
{
    Run *r = of;
    settled(cudaSetDevice(0), "the GPU");
    r->status = opcheck_main(r->argc, r->argv);
    return NULL;
}

int main(int argc, char **argv)
{
    static Run r;
    pthread_attr_t how;
    pthread_t thread;
    void *at;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    settled(cudaSetDevice(0), "the GPU");
    settled(cudaStreamCreateWithFlags(&device.compute, cudaStreamNonBlocking), "a stream");
    settled(cudaHostAlloc(&at, ROOM + STACK, cudaHostAllocMapped), "pinned memory");
    pool = at;
    unsigned char *data = (unsigned char *)((size_t)__data_start / PAGE * PAGE);
    settled(cudaHostRegister(data, (size_t)((unsigned char *)_end - data + PAGE - 1) / PAGE * PAGE, cudaHostRegisterMapped),
            "static variables");
    settled(cudaMalloc(&device.workspace, WORKSPACE), "the workspace");
    device.workspace_bytes = WORKSPACE;
    stage->device = &device;
    r = (Run){ argc, 1, argv };
    pthread_attr_init(&how);
    pthread_attr_setstack(&how, pool + ROOM, STACK);
    if (pthread_create(&thread, &how, run, &r) || pthread_join(thread, NULL))
        return 1;
    return r.status;
}
