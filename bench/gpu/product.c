/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c: TFLOP/s of one bf16 product of 8192 cubed with f32 sums, cuBLASLt's first choice: the median of 20, random data.
 */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 8192, TIMES = 20, ROOM = 33554432 };

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
    void *m[3], *space;
    uint32_t s = 1;
    for (size_t i = 0; i < (size_t)N * N; i++) {            /* bf16 in (-2, 2) */
        s = s * 1664525u + 1013904223u;
        host[i] = (uint16_t)((s >> 16 & 0x807f) | 0x3f00 | (s >> 8 & 0x80));
    }
    for (int i = 0; i < 3; i++) {
        check(cudaMalloc(&m[i], bytes), "cudaMalloc");
        check(cudaMemcpy(m[i], host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
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
    check(cublasLtMatmulAlgoGetHeuristic(lt, op, square, square, square, square, wish, 1, &found, &n), "heuristic");
    check(n != 1, "no algorithm");
    float one = 1, zero = 0, ms[TIMES];
    cudaEvent_t from, to;
    check(cudaEventCreate(&from), "event");
    check(cudaEventCreate(&to), "event");
    for (int i = -3; i < TIMES; i++) {
        check(cudaEventRecord(from, 0), "event");
        check(cublasLtMatmul(lt, op, &one, m[0], square, m[1], square, &zero, m[2], square, m[2], square, &found.algo, space,
                             room, 0), "product");
        check(cudaEventRecord(to, 0), "event");
        check(cudaEventSynchronize(to), "event");
        check(cudaEventElapsedTime(&ms[i < 0 ? 0 : i], from, to), "event");
    }
    qsort(ms, TIMES, sizeof *ms, by_size);
    printf("%.1f\n", 2e-9 * N * N * N / (double)ms[TIMES / 2]);
    return 0;
}
