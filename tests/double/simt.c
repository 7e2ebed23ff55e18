/* SPDX-License-Identifier: Apache-2.0
 *
 * simt.c: own kernels of jobs for GPUs, which tests/simt runs when their stream gets to them: linked in place of
 * tests/simt/now.c, with build/kernels.o and build/simt.o.
 */
#include "rt/cuda/device.h"
#include "double.h"

void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes);
void *simt_workspace(Stage *st, size_t bytes);
void simt_gather(Stage *st, Together launch, const void *row, size_t bytes);
void simt_load(const void *kernel);
void simt_use(const char *name, const void *kernel);

void simt_load(const void *kernel)
{
    double_load("cudaFuncGetAttributes", &kernel, sizeof kernel);
}

void simt_use(const char *name, const void *kernel)
{
    double_load(name, &kernel, sizeof kernel);
}

void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes)
{
    double_enqueue(stream_of(st), name, run, args, bytes);
    device_check(st, cudaSuccess, name);        /* as LAUNCH does */
}

void simt_gather(Stage *st, Together launch, const void *row, size_t bytes)
{
    gather_row(st, launch, row, bytes);
}

void *simt_workspace(Stage *st, size_t bytes)
{
    if (bytes > device_of(st)->workspace_bytes)
        device_check(st, cudaErrorMemoryAllocation, "the workspace is too small for a kernel");
    return device_of(st)->workspace;
}
