/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: which GPUs the double has, and what they are.
 *
 *   DOUBLE_DEVICES=N   GPUs, 1 by default     DOUBLE_NAME=TEXT  of each
 *   DOUBLE_ARCH=N      compute capability, 90 by default
 *   DOUBLE_BUSY=N      another process has that one for itself
 *   DOUBLE_FIRST=N     this process sees the GPUs from N on
 *   DOUBLE_DRIVER=N    the version of the driver, that of the runtime by default
 *   DOUBLE_PEERS=0     none may reach into another's memory
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "double.h"

enum { MOST = 64 };
static bool reaches[MOST][MOST];            /* [device][peer] */
static bool chosen[MOST];
static _Thread_local int current = -1;

long double_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = (int)double_setting("DOUBLE_DEVICES", 1);
    return *n < 0 ? cudaErrorInsufficientDriver : *n == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    long arch = double_setting("DOUBLE_ARCH", 90);
    (void)device;
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? (int)(arch / 10)
           : attribute == cudaDevAttrComputeCapabilityMinor ? (int)(arch % 10)
           : attribute == cudaDevAttrMultiProcessorCount ? 132
           : attribute == cudaDevAttrClockRate ? 1830000               /* kHz: those of an H100 */
           : attribute == cudaDevAttrMemoryClockRate ? 2619000
           : attribute == cudaDevAttrGlobalMemoryBusWidth ? 5120 : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *is, int device)
{
    long arch = double_setting("DOUBLE_ARCH", 90);
    const char *name = getenv("DOUBLE_NAME");
    memset(is, 0, sizeof *is);
    snprintf(is->name, sizeof is->name, "%s", name ? name : "Double");
    is->major = (int)(arch / 10), is->minor = (int)(arch % 10);
    is->multiProcessorCount = 132;
    is->uuid.bytes[0] = (char)(device + double_setting("DOUBLE_FIRST", 0) + 1);
    return device < double_setting("DOUBLE_DEVICES", 1) ? cudaSuccess : cudaErrorInvalidDevice;
}

/* ---- which GPU --------------------------------------------------------------------------------------------------- */

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= double_setting("DOUBLE_DEVICES", 1))
        return cudaErrorInvalidDevice;
    if (double_setting("DOUBLE_BUSY", -1) == device)        /* another process has it in exclusive mode */
        return cudaErrorDevicesUnavailable;
    if (double_setting("CUDA_DEVICE_MAX_CONNECTIONS", 8) != 32) {
        fprintf(stderr, "double: the driver wakes with few queues\n");
        _exit(99);
    }
    current = device;
    chosen[device] = true;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current < 0 ? 0 : current;
    return cudaSuccess;
}

bool double_chosen(int device)
{
    return chosen[device];
}

int double_device(const char *who)
{
    if (current >= 0)
        return current;
    fprintf(stderr, "double: %s: this thread has chosen no GPU\n", who);
    _exit(99);
}

/* ---- what is loaded ---------------------------------------------------------------------------------------------- */

typedef struct Code { uint64_t sum; int device; struct Code *next; } Code;
static Code *loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool double_in_steps;

/* FNV-1a (G. Fowler, L. Noll, P. Vo) */
static uint64_t sum_of(const unsigned char *at, size_t n)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

void double_load(const char *who, const void *code, size_t bytes)
{
    int device = double_device(who);
    uint64_t sum = sum_of(code, bytes);
    pthread_mutex_lock(&lock);
    const Code *c = loaded;
    while (c && (c->sum != sum || c->device != device))
        c = c->next;
    if (!c && double_in_steps) {
        fprintf(stderr, "double: %s: its code is loaded in a step\n", who);
        _exit(99);
    }
    if (!c) {
        Code *new = malloc(sizeof *new);
        *new = (Code){sum, device, loaded};
        loaded = new;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- who reaches whom ------------------------------------------------------------------------------------------- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    long n = double_setting("DOUBLE_DEVICES", 1);
    *can = device != peer && double_setting("DOUBLE_PEERS", 1);
    return device < 0 || device >= n || peer < 0 || peer >= n ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int device, can;
    cudaGetDevice(&device);
    if (cudaDeviceCanAccessPeer(&can, device, peer) != cudaSuccess || !can || flags)
        return cudaErrorInvalidDevice;
    if (reaches[device][peer])
        return cudaErrorPeerAccessAlreadyEnabled;
    reaches[device][peer] = true;
    return cudaSuccess;
}

bool double_direct(int from, int to)
{
    return from == to || (reaches[from][to] && reaches[to][from]);
}

cudaError_t cudaHostRegister(void *at, size_t n, unsigned flags)
{
    return at && n && flags == cudaHostRegisterMapped ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)double_setting("DOUBLE_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : e == cudaErrorNoDevice
           ? "no CUDA-capable device is detected" : e == cudaErrorInsufficientDriver
           ? "CUDA driver version is insufficient for CUDA runtime version" : e == cudaErrorIllegalAddress
           ? "an illegal memory access was encountered" : e == cudaErrorStreamCaptureUnjoined
           ? "a fork of the capture is not joined" : e == cudaErrorStreamCaptureIsolation
           ? "a dependency would cross the capture's boundary" : "an error of the double";
}

const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : e == cudaErrorInvalidResourceHandle
           ? "cudaErrorInvalidResourceHandle" : e == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}
