/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: the GPU behind a stage.
 *
 * A stage has one arena on one GPU and four streams.  Kernels and library calls go to `compute` in the order of the
 * stage's source; messages to `send` and `recv`, copies to the host and back to `out` and `in`.  What begins on
 * another stream waits for what `compute` has been given so far; what waits for it makes `compute` wait: that is an event
 * each, and the plan's begin and wait say where.  The host only enqueues: it meets the GPU once a step, in step_end().
 */
#ifndef DEVICE_H
#define DEVICE_H
#include <cuda_runtime_api.h>
#include "../rt.h"

typedef struct Device {
    int number;                     /* of the GPU, as the CUDA runtime counts */
    cudaStream_t compute, send, recv, out, in;
    void *workspace;                /* in the arena: of the library calls on `compute`, one after another */
    size_t workspace_bytes;
    void *products;                 /* cublasLtHandle_t: rt/op/cuda/product.c */
    void *graphs;                   /* cudnnHandle_t: rt/op/cuda/graph.c */
} Device;

static inline Device *device_of(const Stage *st) { return (Device *)st->device; }
static inline cudaStream_t stream_of(const Stage *st) { return device_of(st)->compute; }

/* Ends the job with the name of the failed call unless status is 0: cudaSuccess, CUBLAS_STATUS_SUCCESS, CUDNN_... */
void device_check(const Stage *st, cudaError_t status, const char *what);
#endif
