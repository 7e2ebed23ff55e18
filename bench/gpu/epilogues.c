/* SPDX-License-Identifier: Apache-2.0
 *
 * epilogues.c: may the product that makes the gradient of a Gelu make that of the bias too (DGELU_BGRAD), in place of a pass of
 * our own over what it stores?  In GPT-2 124M, 32 samples of 1024 tokens, that pass takes 65 us of each block.
 *
 * The plain product, then with DGELU, then with both, the sums in f32 and in bf16: microseconds of cublasLt's first choice,
 * medians of 20, by turns.  An epilogue that costs the third line as much as a pass does is one.
 */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef ROWS
#define ROWS 32768
#endif
#ifndef WIDTH
#define WIDTH 768
#endif
enum { TIMES = 20, WARM = 4, ROOM = 33554432, ALIGN = 64, INNER = 4 * WIDTH };

static const struct { const char *what; cublasLtEpilogue_t epilogue; cudaDataType_t sums; } list[] = {
    { "plain", CUBLASLT_EPILOGUE_DEFAULT, CUDA_R_32F },
    { "DGELU", CUBLASLT_EPILOGUE_DGELU, CUDA_R_32F },
    { "DGELU_BGRAD, sums in f32", CUBLASLT_EPILOGUE_DGELU_BGRAD, CUDA_R_32F },
    { "DGELU_BGRAD, sums in bf16", CUBLASLT_EPILOGUE_DGELU_BGRAD, CUDA_R_16BF },
};
enum { WAYS = sizeof list / sizeof *list };
typedef struct { cublasLtMatmulDesc_t op; cublasLtMatmulHeuristicResult_t found; int there; float ms[TIMES]; } Way;

static cublasLtHandle_t lt;
static cublasLtMatrixLayout_t left, right, result;
static cublasLtMatmulPreference_t wish;
static cudaStream_t stream;

static void check(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "epilogues: %s: status %d\n", what, status);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void *numbers(size_t n)          /* bf16 in (-2, 2) */
{
    uint16_t *host = malloc(n * sizeof *host);
    uint32_t s = 1;
    void *at;
    if (!host)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        host[i] = (uint16_t)((s >> 16 & 0x807f) | 0x3f00 | (s >> 8 & 0x80));
    }
    check(cudaMalloc(&at, n * sizeof *host), "cudaMalloc");
    check(cudaMemcpyAsync(at, host, n * sizeof *host, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaMemcpyAsync");
    free(host);
    return at;
}

#define SET(name, value) \
    check(cublasLtMatmulDescSetAttribute(w->op, CUBLASLT_MATMUL_DESC_##name, &(value), sizeof(value)), #name)

/* dpre[rows inner] = (dy[rows width] weight[width inner]) gelu'(pre): column-major, the right side goes first. */
static void open_way(Way *w, int i, const void *pre, void *sums)
{
    int64_t ld = INNER;
    int n = 0;
    check(cublasLtMatmulDescCreate(&w->op, CUBLAS_COMPUTE_32F, CUDA_R_32F), "descriptor");
    SET(EPILOGUE, list[i].epilogue);
    if (list[i].epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
        SET(EPILOGUE_AUX_POINTER, pre);
        SET(EPILOGUE_AUX_LD, ld);
    }
    if (list[i].epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
        SET(BIAS_POINTER, sums);
        SET(BIAS_DATA_TYPE, list[i].sums);
    }
    w->there = cublasLtMatmulAlgoGetHeuristic(lt, w->op, left, right, result, result, wish, 1, &w->found, &n) == 0 && n == 1;
}

int main(void)
{
    static Way way[WAYS];
    uint32_t align = ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;   /* a job's */
    size_t room = ROOM;
    void *to, *sums, *space;
    cudaEvent_t from, until;
    float one = 1, zero = 0;
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaEventCreateWithFlags(&from, 0), "event");
    check(cudaEventCreateWithFlags(&until, 0), "event");
    void *dy = numbers((size_t)ROWS * WIDTH), *weight = numbers((size_t)WIDTH * INNER), *pre = numbers((size_t)ROWS * INNER);
    check(cudaMalloc(&to, (size_t)ROWS * INNER * 2), "cudaMalloc");
    check(cudaMalloc(&sums, INNER * sizeof(float)), "cudaMalloc");
    check(cudaMalloc(&space, room), "cudaMalloc");
    check(cublasLtCreate(&lt), "cublasLtCreate");
    check(cublasLtMatrixLayoutCreate(&left, CUDA_R_16BF, INNER, WIDTH, INNER), "layout");
    check(cublasLtMatrixLayoutCreate(&right, CUDA_R_16BF, WIDTH, ROWS, WIDTH), "layout");
    check(cublasLtMatrixLayoutCreate(&result, CUDA_R_16BF, INNER, ROWS, INNER), "layout");
    check(cublasLtMatmulPreferenceCreate(&wish), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
          "preference");
    check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes),
          "preference");
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
        check(cublasLtMatmulPreferenceSetAttribute(wish, (cublasLtMatmulPreferenceAttributes_t)i, &align, sizeof align),
              "preference");
    for (int i = 0; i < WAYS; i++)
        open_way(&way[i], i, pre, sums);
    for (int t = -WARM; t < TIMES; t++)
        for (int i = 0; i < WAYS; i++) {
            if (!way[i].there)
                continue;
            check(cudaEventRecord(from, stream), "event");
            check((int)cublasLtMatmul(lt, way[i].op, &one, weight, left, dy, right, &zero, to, result, to, result,
                                      &way[i].found.algo, space, room, stream), list[i].what);
            check(cudaEventRecord(until, stream), "event");
            check(cudaEventSynchronize(until), "event");
            check(cudaEventElapsedTime(&way[i].ms[t < 0 ? 0 : t], from, until), "event");
        }
    for (int i = 0; i < WAYS; i++) {
        qsort(way[i].ms, TIMES, sizeof *way[i].ms, by_size);
        if (way[i].there)
            printf("%s: %.0f us\n", list[i].what, 1e3 * (double)way[i].ms[TIMES / 2]);
        else
            printf("%s: not there\n", list[i].what);
    }
    return 0;
}
