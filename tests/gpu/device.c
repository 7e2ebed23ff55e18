/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: the GPUs of this machine as a file for devices/, from what the driver says of them.
 *
 * Bandwidth is bus times memory clock, twice a clock.  Products in bf16: operations of a multiprocessor in a clock, by
 * generation (NVIDIA, tuning guides and data sheets), times the highest clock; under load the clock is lower.  The rates of
 * links and both efficiencies are guesses, which dpgen profile replaces.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

static long ask(enum cudaDeviceAttr what)
{
    int value = 0;
    cudaDeviceGetAttribute(&value, what, 0);
    return value;
}

/* Multiplications and additions of bf16 in a clock, dense. */
static long tensor_rate(long arch)
{
    return arch == 80 || arch == 87 ? 2048 : arch / 10 == 8 ? 1024 : arch == 90 ? 4096 : arch / 10 == 10 ? 8192 : 1024;
}

int main(void)
{
    struct cudaDeviceProp is;
    size_t left = 0, total = 0;
    int gpus = 0;
    cudaError_t e = cudaGetDeviceCount(&gpus);
    if (e == cudaSuccess)
        e = cudaSetDevice(0);
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&is, 0);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&left, &total);
    if (e != cudaSuccess)
        return fprintf(stderr, "device: %s; nvidia-smi may say more\n", cudaGetErrorString(e)), 6;
    long arch = 10 * ask(cudaDevAttrComputeCapabilityMajor) + ask(cudaDevAttrComputeCapabilityMinor);
    double clock = 1e3 * (double)ask(cudaDevAttrClockRate) * (double)ask(cudaDevAttrMultiProcessorCount);
    double bytes = 2e3 * (double)ask(cudaDevAttrMemoryClockRate) * (double)ask(cudaDevAttrGlobalMemoryBusWidth) / 8;
    long floats = arch == 80 ? 64 : 128;
    printf("# %s; %zu of %zu MiB are free\n", is.name, left >> 20, total >> 20);
    printf("devices:\n  - {name: gpu, kind: cuda, arch: sm_%ld, count: %d, memory: %zuMiB, reserve: 1GiB, call: 4us,\n", arch,
           gpus, total >> 20);
    printf("     bandwidth: %.0fGB/s, flops: {f32: %.0fTFLOP/s, bf16: %.0fTFLOP/s}, vector: %.0fTFLOP/s,\n", bytes / 1e9,
           2 * floats * clock / 1e12, tensor_rate(arch) * clock / 1e12, 2 * floats * clock / 1e12);
    printf("     efficiency: {product: 0.6, memory: 0.85}}\n");
    printf("links: {gpu-gpu: {rate: 50GB/s, latency: 10us}, gpu-host: {rate: 20GB/s, latency: 10us}}\n");
    printf("hosts: {count: 1, memory: 64GiB, offload: 16GiB}\n");
    return 0;
}
