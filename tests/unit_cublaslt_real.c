/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cublaslt_real.c: does the real cublasLt take what rt/op/cuda/product.c sets?
 *
 * The library makes descriptors, layouts, preferences and attributes of algorithms without a GPU, and holds each to its own
 * names, sizes and values; the double of it in tests/double knows only what we believe.  The four entries that want a GPU are
 * defined here in their place, and read back through the library what they are given.
 */
#include "rt/cuda/device.h"
#include "rt/op/cuda/factor.h"
#include "rt/op/cuda/start.h"
#include <cublasLt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE = 32 << 20, REAL = sizeof(real) == sizeof(float) ? CUDA_R_32F : CUDA_R_16BF };
#ifdef FAST_SUMS
enum { FAST = 1 };
#else
enum { FAST = 0 };
#endif
static int passed, failed, asked, gelus, eights;
static char address;                /* stands for a library handle, and for the workspace */

static void check(bool ok, const char *what)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "%s\n", what);
}

void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out);
void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out)
{
    (void)st, (void)dbias, (void)dy, (void)acc, (void)rows, (void)out;
}

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    (void)st, (void)y, (void)x, (void)n, (void)tanh;
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    (void)st, (void)dx, (void)dy, (void)x, (void)n, (void)tanh;
}

Units factors_make(Stage *st, Eight a, Eight b, Eight c, float *to)
{
    (void)st, (void)a, (void)b, (void)c;
    return (Units){ to, to, to };
}

void factors_note(Stage *st, float *damax, Eight of_dy, Eight of_x, Eight weight, float *to, int acc)
{
    (void)st, (void)damax, (void)of_dy, (void)of_x, (void)weight, (void)to, (void)acc;
}

void device_check(const Stage *st, cudaError_t status, const char *what)
{
    (void)st, (void)status;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* ---- in place of what wants a GPU -------------------------------------------------------------------------------- */
typedef struct { uint64_t rows, cols; int64_t ld, step; int32_t batch; uint32_t type; } Layout;

#define GET(call, object, name, to) check(call(object, name, &(to), sizeof(to), &size) == CUBLAS_STATUS_SUCCESS, #name)

static Layout layout_of(cublasLtMatrixLayout_t l)
{
    Layout x;
    size_t size;
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_ROWS, x.rows);
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_COLS, x.cols);
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_LD, x.ld);
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.step);
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, x.batch);
    GET(cublasLtMatrixLayoutGetAttribute, l, CUBLASLT_MATRIX_LAYOUT_TYPE, x.type);
    return x;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)(void *)&address;
    return CUBLAS_STATUS_SUCCESS;
}

static void check_wish(cublasLtMatmulPreference_t p)
{
    uint64_t most;
    uint32_t schemes, align;
    size_t size;
    GET(cublasLtMatmulPreferenceGetAttribute, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
    GET(cublasLtMatmulPreferenceGetAttribute, p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    GET(cublasLtMatmulPreferenceGetAttribute, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, align);
    check(most == WORKSPACE, "the workspace that is wished for");
    check(schemes == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE && align == 64, "the preference");
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wish, int most,
                                              cublasLtMatmulHeuristicResult_t *found, int *n)
{
    Layout x = layout_of(a), y = layout_of(b), z = layout_of(d);
    int32_t turn_a, turn_b;
    int8_t fast;
    uint32_t epilogue;
    const void *bias, *aux, *unit_a, *unit_b;
    int64_t ld;
    size_t size;
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSA, turn_a);
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSB, turn_b);
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    uint64_t m = turn_a ? x.cols : x.rows, k = turn_a ? x.rows : x.cols, k2 = turn_b ? y.cols : y.rows;
    check(z.rows == m && z.cols == (turn_b ? y.rows : y.cols) && k == k2, "shapes");
    check(x.ld == (int64_t)x.rows && y.ld == (int64_t)y.rows && z.ld == (int64_t)z.rows, "leading dimensions");
    check(x.batch == z.batch && y.batch == z.batch && z.step == (int64_t)(z.rows * z.cols), "batches");
    bool eight = x.type == CUDA_R_8F_E4M3 && (y.type == CUDA_R_8F_E4M3 || y.type == CUDA_R_8F_E5M2) && turn_a && !turn_b;
    check((eight || (x.type == REAL && y.type == REAL)) && (z.type == REAL || z.type == CUDA_R_32F), "types");
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, unit_a);
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, unit_b);
    check(eight == (unit_a && unit_b) && eight == (unit_a || unit_b), "what factors are worth");
    eights += eight;
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
    check(fast == (eight && FAST), "sums of factors of 8 bits");
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    GET(cublasLtMatmulDescGetAttribute, desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);
    bool has_aux = epilogue == CUBLASLT_EPILOGUE_DGELU || epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
                   epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    bool has_bias = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    check(has_bias == (bias != NULL), "the bias");
    check(has_aux == (aux != NULL) && (!has_aux || ld == (int64_t)z.rows), "the operand of a Gelu");
    gelus += has_aux;
    check(handle && c == d && most == 1, "the rest");
    check_wish(wish);
    asked++;
    *n = 1;
    *found = (cublasLtMatmulHeuristicResult_t){ .state = CUBLAS_STATUS_SUCCESS };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t *algorithm)
{
    check(handle && compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F && (int)a == REAL && a == b && c == d, "AlgoInit");
    *algorithm = (cublasLtMatmulAlgo_t){ { (uint64_t)id } };
    return CUBLAS_STATUS_SUCCESS;
}

#define HAS(name, kind, value) \
    do { \
        kind got_ = 0; \
        size_t size_; \
        check(!cublasLtMatmulAlgoConfigGetAttribute(x, CUBLASLT_ALGO_CONFIG_##name, &got_, sizeof got_, &size_) && \
              got_ == value, #name); \
    } while (0)

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *x, cublasLtMatmulHeuristicResult_t *found)
{
    check(handle && desc && a && b && c == d, "AlgoCheck");
    HAS(TILE_ID, uint32_t, 15);
    HAS(STAGES_ID, uint32_t, 8);
    HAS(SPLITK_NUM, int32_t, 3);
    HAS(REDUCTION_SCHEME, uint32_t, 2);
    HAS(CTA_SWIZZLING, uint32_t, 1);
    HAS(CUSTOM_OPTION, uint32_t, 5);
    HAS(INNER_SHAPE_ID, uint16_t, 1);
    HAS(CLUSTER_SHAPE_ID, uint16_t, 4);
    found->workspaceSize = 1000;
    return CUBLAS_STATUS_SUCCESS;
}

int main(void)
{
    Device device = { .workspace = &address, .workspace_bytes = WORKSPACE };
    Stage stage = { .device = &device }, *st = &stage;
    open_linear_forward(st, 0, 64, 32, 50257);
    open_linear_backward_x(st, 1, 64, 32, 48);
    open_linear_backward_w(st, 2, 64, 32, 48);
    for (int t = 0; t < 4; t++) {
        open_matmul_forward(st, 3 + t, 5, 7, 8, 9, t & 1, t >> 1);
        open_matmul_backward(st, 7 + t, 5, 7, 8, 9, t & 1, t >> 1);
    }
    open_linear_gelu_forward(st, 11, 64, 32, 48);
    open_linear_gelu_backward(st, 12, 64, 48, 32);
    open_linear_fp8_forward(st, 13, 64, 32, 48);
    open_linear_fp8_backward_x(st, 14, 64, 32, 48);
    open_linear_fp8_backward_w(st, 15, 64, 32, 48);
    open_linear_add_forward(st, 16, 64, 32, 48);
    check(eights == 4, "products with factors of 8 bits");
    check(asked == 4 + 4 * 3 + 6 + 4 + 2 && gelus == 3, "products that were opened");
    open_product_algorithm(st, 0, 1, 67, 15, 8, 3, 2, 1, 5, 1, 4, 1000);
    printf("unit_cublaslt_real: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
