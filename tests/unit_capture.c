/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_capture.c: the double of CUDA refuses what the headers of CUDA say that a capture forbids, with that error, and a graph
 * runs its nodes as its streams ordered them.  Without this, jobs that pass over the double would prove nothing.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "double.h"

static int passed, failed;
#define CHECK(x) ((x) ? (void)passed++ : (void)(failed++, printf("unit_capture: line %d: %s\n", __LINE__, #x)))

static cudaStream_t a, b, c;
static cudaEvent_t begun, done, other;
static const enum cudaStreamCaptureMode alone = cudaStreamCaptureModeThreadLocal;

/* Work on `s` that appends a letter to `order`. */
static char order[200];
static void write_letter(void *at)
{
    strncat(order, at, 1);
}

static void letter(cudaStream_t s, const char *which)
{
    double_enqueue(s, "letter", write_letter, which, 2);
}

static void after(cudaStream_t s, cudaEvent_t e, cudaStream_t first)
{
    CHECK(cudaEventRecord(e, first) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(s, e, 0) == cudaSuccess);
}

static void begin(void)
{
    CHECK(cudaStreamBeginCapture(a, alone) == cudaSuccess);
}

/* The capture was spoilt by `why`, and ends as such; then calls are queued again. */
static void spoilt(cudaError_t got, cudaError_t why)
{
    cudaGraph_t g = (cudaGraph_t)&a;
    CHECK(got == why);
    CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureInvalidated && !g);
    CHECK(cudaStreamSynchronize(a) == cudaSuccess);
}

static bool before(char first, char second)
{
    return strchr(order, first) && strchr(order, second) && strchr(order, first) < strchr(order, second);
}

/* w before x and y, both before z. */
static void test_fork(void)
{
    cudaGraph_t g = NULL;
    cudaGraphExec_t x = NULL;
    order[0] = 0;
    begin();
    letter(a, "w");
    after(b, begun, a);
    letter(b, "x");
    letter(a, "y");
    after(a, done, b);
    letter(a, "z");
    CHECK(cudaStreamEndCapture(a, &g) == cudaSuccess && g);
    CHECK(cudaGraphInstantiate(&x, g, 0) == cudaSuccess && cudaGraphDestroy(g) == cudaSuccess);
    CHECK(cudaGraphUpload(x, a) == cudaSuccess && cudaStreamSynchronize(a) == cudaSuccess && order[0] == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaGraphLaunch(x, a) == cudaSuccess);
        letter(a, "!");
        CHECK(cudaStreamSynchronize(a) == cudaSuccess && strlen(order) == 5);
        CHECK(before('w', 'x') && before('w', 'y') && before('x', 'z') && before('y', 'z') && before('z', '!'));
        order[0] = 0;
    }
    CHECK(double_graphs() == 1 && cudaGraphExecDestroy(x) == cudaSuccess && double_graphs() == 0);
    CHECK(cudaGraphLaunch(x, a) == cudaErrorInvalidValue);
}

/* An event that a graph records: behind each launch the host waits for the nodes before it, and for no other. */
static void test_external(void)
{
    cudaGraph_t g = NULL;
    cudaGraphExec_t x = NULL;
    cudaEvent_t taken;
    order[0] = 0;
    CHECK(cudaEventCreateWithFlags(&taken, cudaEventDisableTiming) == cudaSuccess);
    CHECK(cudaEventRecordWithFlags(taken, a, cudaEventRecordExternal) == cudaErrorInvalidValue);        /* no capture */
    begin();
    letter(a, "w");
    CHECK(cudaEventRecordWithFlags(taken, a, cudaEventRecordExternal) == cudaSuccess);
    letter(a, "x");
    CHECK(cudaStreamEndCapture(a, &g) == cudaSuccess && cudaGraphInstantiate(&x, g, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(g) == cudaSuccess && cudaEventSynchronize(taken) == cudaSuccess && order[0] == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaGraphLaunch(x, a) == cudaSuccess);
        CHECK(cudaEventSynchronize(taken) == cudaSuccess && !strcmp(order, "w"));
        CHECK(cudaStreamSynchronize(a) == cudaSuccess && !strcmp(order, "wx"));
        order[0] = 0;
    }
    CHECK(cudaGraphExecDestroy(x) == cudaSuccess);
}

static void test_waits(void)
{
    begin();
    spoilt(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
    begin();
    CHECK(cudaEventRecord(begun, a) == cudaSuccess);
    spoilt(cudaEventSynchronize(begun), cudaErrorCapturedEvent);
    CHECK(cudaStreamWaitEvent(b, begun, 0) == cudaErrorCapturedEvent);          /* behind the capture, too */
    CHECK(cudaEventSynchronize(begun) == cudaErrorCapturedEvent);
    CHECK(cudaEventRecord(begun, a) == cudaSuccess && cudaEventSynchronize(begun) == cudaSuccess);
    begin();
    spoilt(cudaStreamWaitEvent(a, begun, 0), cudaErrorStreamCaptureIsolation);
}

static void test_memory(void)
{
    void *at = NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    begin();
    spoilt(cudaMalloc(&at, 8), cudaErrorStreamCaptureUnsupported);
    begin();
    spoilt(cudaHostAlloc(&at, 8, 0), cudaErrorStreamCaptureUnsupported);
    begin();
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && mode == cudaStreamCaptureModeGlobal);
    CHECK(cudaHostAlloc(&at, 8, 0) == cudaSuccess);
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && mode == cudaStreamCaptureModeRelaxed);
    spoilt(cudaFreeHost(at), cudaErrorStreamCaptureUnsupported);
    CHECK(cudaFreeHost(at) == cudaSuccess);
}

static void *end_elsewhere(void *at)
{
    cudaGraph_t g;
    cudaSetDevice(0);
    *(cudaError_t *)at = cudaStreamEndCapture(a, &g);
    return NULL;
}

static void test_ends(void)
{
    cudaGraph_t g;
    cudaGraphExec_t x = NULL;
    cudaError_t e = cudaSuccess;
    pthread_t thread;
    begin();
    CHECK(cudaStreamBeginCapture(a, alone) == cudaErrorIllegalState);
    after(b, begun, a);
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(c, &g) == cudaErrorIllegalState);
    pthread_create(&thread, NULL, end_elsewhere, &e);
    pthread_join(thread, NULL);
    CHECK(e == cudaErrorStreamCaptureWrongThread);
    letter(b, "u");                             /* nobody waits for it */
    CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureUnjoined && !g);
    begin();
    after(b, begun, a);
    letter(b, "u");
    after(c, other, b);
    after(a, done, c);                          /* joined by way of another */
    CHECK(cudaStreamEndCapture(a, &g) == cudaSuccess && cudaGraphInstantiate(&x, g, 0) == cudaSuccess);
    begin();
    spoilt(cudaGraphLaunch(x, a), cudaErrorStreamCaptureUnsupported);
    begin();
    CHECK(cudaStreamBeginCapture(b, alone) == cudaSuccess && cudaEventRecord(begun, b) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(a, begun, 0) == cudaErrorStreamCaptureMerge);
    cudaStreamEndCapture(b, &g);
    cudaStreamEndCapture(a, &g);
    CHECK(cudaStreamBeginCapture(NULL, alone) == cudaErrorStreamCaptureUnsupported);
}

int main(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    cudaSetDevice(0);
    cudaStream_t *stream[] = {&a, &b, &c};
    cudaEvent_t *event[] = {&begun, &done, &other};
    for (int i = 0; i < 3; i++) {
        cudaStreamCreateWithFlags(stream[i], cudaStreamNonBlocking);
        cudaEventCreateWithFlags(event[i], cudaEventDisableTiming);
    }
    test_fork();
    test_external();
    test_waits();
    test_memory();
    test_ends();
    printf("unit_capture: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
