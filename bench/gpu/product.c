/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c: TFLOP/s of one bf16 product of 8192 cubed with f32 sums, cuBLASLt's first choice, and TB/s that a copy of one of
 * its operands reads and writes: medians of 20, random data.
 */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef N
#define N 8192
#endif
enum { TIMES = 20, ROOM = 33554432, ALIGN = 64 };

static void check(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "product: %s: status %d\n", what, status);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int main(void)
{
    size_t bytes = (size_t)N * N * 2, room = ROOM;
    uint16_t *host = malloc(bytes);
    uint32_t align = ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;   /* a job's */
    void *m[3], *space;
    uint32_t s = 1;
    for (size_t i = 0; i < (size_t)N * N; i++) {            /* bf16 in (-2, 2) */
        s = s * 1664525u + 1013904223u;
        host[i] = (uint16_t)((s >> 16 & 0x807f) | 0x3f00 | (s >> 8 & 0x80));
    }
    cudaStream_t stream;
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    for (int i = 0; i < 3; i++) {
        check(cudaMalloc(&m[i], bytes), "cudaMalloc");
        check(cudaMemcpyAsync(m[i], host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    }
    check(cudaStreamSynchronize(stream), "cudaMemcpyAsync");
    check(cudaMalloc(&space, room), "cudaMalloc");
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t square;
    cublasLtMatmulPreference_t wish;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    check(cublasLtCreate(&lt), "cublasLtCreate");
    check(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F), "descriptor");
    check(cublasLtMatrixLayoutCreate(&square, CUDA_R_16BF, N, N, N), "layout");
    check(cublasLtMatmulPreferenceCreate(&wish), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
          "preference");
    check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes),
          "preference");
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
        check(cublasLtMatmulPreferenceSetAttribute(wish, (cublasLtMatmulPreferenceAttributes_t)i, &align, sizeof align),
              "preference");
    check(cublasLtMatmulAlgoGetHeuristic(lt, op, square, square, square, square, wish, 1, &found, &n), "heuristic");
    check(n != 1, "no algorithm");
    float one = 1, zero = 0, ms[2][TIMES];
    cudaEvent_t from, to;
    check(cudaEventCreateWithFlags(&from, 0), "event");
    check(cudaEventCreateWithFlags(&to, 0), "event");
    for (int i = -6; i < 2 * TIMES; i++) {      /* by turns */
        check(cudaEventRecord(from, stream), "event");
        check(i % 2 ? (int)cudaMemcpyAsync(m[2], m[0], bytes, cudaMemcpyDeviceToDevice, stream)
              : (int)cublasLtMatmul(lt, op, &one, m[0], square, m[1], square, &zero, m[2], square, m[2], square, &found.algo,
                                    space, room, stream), i % 2 ? "copy" : "product");
        check(cudaEventRecord(to, stream), "event");
        check(cudaEventSynchronize(to), "event");
        check(cudaEventElapsedTime(&ms[i < 0 ? 0 : i % 2][i < 0 ? 0 : i / 2], from, to), "event");
    }
    for (int i = 0; i < 2; i++)
        qsort(ms[i], TIMES, sizeof **ms, by_size);
    printf("%.1f TFLOP/s, copies %.2f TB/s\n", 2e-9 * N * N * N / (double)ms[0][TIMES / 2],
           2e-9 * (double)bytes / (double)ms[1][TIMES / 2]);
    return 0;
}
