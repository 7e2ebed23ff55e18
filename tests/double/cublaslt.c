/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt.c: a double of the entries of cublasLt that rt/op/cuda/product.c calls, and no others: plain loops on the CPU.
 *
 *     D = epilogue(alpha op(A) op(B) + beta C)
 *
 * over column-major layouts with strided batches, in f32 and bf16.  Every element is one sum in f32 with k ascending, then
 * comes beta C, then the bias, then one rounding.  A Gelu takes the sum before it is rounded.  It
 * holds its caller to the library's rules: shapes and types that do not match are refused, and so are an algorithm of other
 * types, reductions that round in between, and an unaligned or short workspace.  Its algorithms say that they need 1 MiB, the
 * last one half, and overwrite all of it, so memory that is not the workspace's alone shows.  They give the same result, and
 * the first, which the heuristic likes best, is not the fastest.  Of a baked one id, splits and reduction are looked at; what
 * else it was given is kept.
 * Gelus want rows of whole 16 bytes.  Factors of 8 bits are taken as on sm_90: A turned and B not, multiples of 16
 * everywhere, one of the two in e5m2 at most, and both units on the device.
 * DOUBLE_CUBLAS=N: the version of the library.  DOUBLE_TARGET=N: products are planned for N multiprocessors, and no others.
 *
 * Cost: m n k multiplications, the inner loop adjacent in memory.  Not handled: alpha and beta on the device; what the runtime
 * does not use.
 */
#include "double.h"
#include "rt/real.h"
#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKSPACE = 1 << 20, LIKED = 7, FAST = 8, SMALL = 9, /* ids */
       NO_EPILOGUE = 8191 };   /* rows that it has no algorithm with an epilogue for */

typedef struct {
    cublasComputeType_t compute;
    cudaDataType_t scale, bias_type;
    int32_t transa, transb;
    uint32_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_ld;
    const void *unit_a, *unit_b;
    int32_t processors;
    int8_t fast;
} Desc;

typedef struct {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld, step;
    int32_t batch;
} Layout;

typedef struct { uint64_t workspace; uint32_t schemes, align[4]; } Wish;
typedef struct {
    int32_t id;
    cudaDataType_t a, b, c, d;
    int32_t splitk;
    uint32_t scheme, tile, stages, swizzle, custom;
    uint16_t inner, cluster;
} Algorithm;
/* The library makes one for each: a product that adds to what is there, or has an epilogue, is other code. */
typedef struct { Algorithm of; int32_t transa, transb, epilogue, adds; } Kernel;

/* The library's own structures are opaque and large enough. */
static Desc *desc_of(cublasLtMatmulDesc_t d) { return (Desc *)(void *)d; }
static const Layout *layout_of(cublasLtMatrixLayout_t l) { return (const Layout *)(const void *)l; }
static Algorithm *algorithm_of(cublasLtMatmulAlgo_t *a) { return (Algorithm *)(void *)a; }
_Static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits where the caller keeps it");

typedef struct { int name; size_t at, size; } Field;

static cublasStatus_t put_field(void *to, const Field *list, size_t n, int name, const void *value, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].name == name && list[i].size == size) {
            memcpy((char *)to + list[i].at, value, size);
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_INVALID_VALUE;
}
#define FIELD(type, field, name) { name, offsetof(type, field), sizeof(((type *)0)->field) }
#define PUT(to, list) put_field(to, list, sizeof(list) / sizeof *(list), (int)attr, buf, sizeInBytes)

/* ---- objects ------------------------------------------------------------------------------------------------------ */
size_t cublasLtGetVersion(void)
{
    const char *version = getenv("DOUBLE_CUBLAS");
    return version ? (size_t)atol(version) : CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : status == CUBLAS_STATUS_NOT_SUPPORTED ?
           "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = calloc(1, 1);
    double_take(LIBRARY);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    Desc *d = calloc(1, sizeof *d);
    if (!d)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *d = (Desc){ .compute = compute, .scale = scale, .bias_type = (cudaDataType_t)-1, .epilogue = CUBLASLT_EPILOGUE_DEFAULT };
    *desc = (cublasLtMatmulDesc_t)(void *)d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attr,
                                              const void *buf, size_t sizeInBytes)
{
    static const Field list[] = {
        FIELD(Desc, transa, CUBLASLT_MATMUL_DESC_TRANSA), FIELD(Desc, transb, CUBLASLT_MATMUL_DESC_TRANSB),
        FIELD(Desc, epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE), FIELD(Desc, bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
        FIELD(Desc, aux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), FIELD(Desc, aux_ld, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD),
        FIELD(Desc, bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), FIELD(Desc, unit_a, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER),
        FIELD(Desc, unit_b, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER),
        FIELD(Desc, processors, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET), FIELD(Desc, fast, CUBLASLT_MATMUL_DESC_FAST_ACCUM),
    };
    return PUT(desc, list);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld)
{
    Layout *l = calloc(1, sizeof *l);
    if (!l)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *l = (Layout){ .type = type, .rows = rows, .cols = cols, .ld = ld, .batch = 1 };
    *layout = (cublasLtMatrixLayout_t)(void *)l;
    return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attr,
                                                const void *buf, size_t sizeInBytes)
{
    static const Field list[] = {
        FIELD(Layout, batch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
        FIELD(Layout, step, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
    };
    return PUT(layout, list);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    Wish *w = calloc(1, sizeof *w);
    if (!w)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *w = (Wish){ .schemes = CUBLASLT_REDUCTION_SCHEME_MASK, .align = { 256, 256, 256, 256 } };
    *pref = (cublasLtMatmulPreference_t)(void *)w;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    free(pref);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void *buf,
                                                    size_t sizeInBytes)
{
    static const Field list[] = {
        FIELD(Wish, workspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES),
        FIELD(Wish, schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK),
        FIELD(Wish, align[0], CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
        FIELD(Wish, align[1], CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
        FIELD(Wish, align[2], CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
        FIELD(Wish, align[3], CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES),
    };
    return PUT(pref, list);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */
static bool fits(const Layout *l, bool turned, uint64_t rows, uint64_t cols)
{
    return l->rows == (turned ? cols : rows) && l->cols == (turned ? rows : cols);
}

static bool is_type(cudaDataType_t type)
{
    return type == CUDA_R_32F || type == CUDA_R_16BF;
}

static bool is_short(cudaDataType_t type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* What the manual asks of factors of 8 bits. */
static bool valid_short(const Desc *d, const Layout *a, const Layout *b, const Layout *r)
{
    bool types = is_short(b->type) && (a->type == CUDA_R_8F_E4M3 || b->type == CUDA_R_8F_E4M3);
    bool sizes = a->rows % 16 == 0 && a->ld % 16 == 0 && b->ld % 16 == 0 && r->rows % 16 == 0 && r->cols % 16 == 0;
    return types && sizes && d->transa == CUBLAS_OP_T && d->transb == CUBLAS_OP_N && d->unit_a && d->unit_b &&
           d->compute == CUBLAS_COMPUTE_32F && r->batch == 1 &&
           (d->epilogue == CUBLASLT_EPILOGUE_DEFAULT || (d->epilogue == CUBLASLT_EPILOGUE_BIAS && d->bias_type == CUDA_R_16BF));
}

static bool gelu(const Desc *d)
{
    return d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX || d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static bool has_aux(const Desc *d)
{
    return gelu(d) || d->epilogue == CUBLASLT_EPILOGUE_DGELU;
}

static bool has_bias(const Desc *d)
{
    return d->epilogue == CUBLASLT_EPILOGUE_BIAS || d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static bool valid(const Desc *d, const Layout *a, const Layout *b, const Layout *c, const Layout *r)
{
    uint64_t m = r->rows, n = r->cols, k = d->transa == CUBLAS_OP_T ? a->rows : a->cols;
    bool shapes = fits(a, d->transa == CUBLAS_OP_T, m, k) && fits(b, d->transb == CUBLAS_OP_T, k, n) && fits(c, false, m, n);
    bool batches = a->batch == r->batch && b->batch == r->batch && c->batch == r->batch;
    bool types = c->type == r->type && (is_short(a->type) ? valid_short(d, a, b, r) && is_type(r->type) :
                 is_type(a->type) && a->type == b->type && (r->type == CUDA_R_32F || r->type == a->type));
    bool known = d->epilogue == CUBLASLT_EPILOGUE_DEFAULT || d->epilogue == CUBLASLT_EPILOGUE_BIAS || has_aux(d);
    bool aux = !has_aux(d) || (d->aux && d->aux_ld == (int64_t)r->rows && d->aux_ld % 8 == 0 && r->batch == 1);
    bool bias = known && aux && (!has_bias(d) || (d->bias && d->bias_type == r->type));
    bool compute = d->compute == CUBLAS_COMPUTE_32F || (d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type == CUDA_R_32F);
    return compute && d->scale == CUDA_R_32F && shapes && batches && types && bias;
}

/* Rows of 16 bytes and more, as the kernels of sm_90 with a Gelu want them. */
static bool whole_units(const Layout *l)
{
    return l->ld * (l->type == CUDA_R_32F ? 4 : is_short(l->type) ? 1 : 2) % 16 == 0;
}

static Algorithm algorithm_for(int id, const Layout *a, const Layout *b, const Layout *c, const Layout *d)
{
    return (Algorithm){ .id = id, .a = a->type, .b = b->type, .c = c->type, .d = d->type, .splitk = 1,
                        .scheme = CUBLASLT_REDUCTION_SCHEME_NONE, .tile = 10 + (uint32_t)id, .stages = 20 + (uint32_t)id,
                        .swizzle = 1, .custom = 30 + (uint32_t)id, .inner = 2, .cluster = (uint16_t)id };
}

static size_t workspace_of(const Algorithm *x)
{
    return x->id == SMALL ? WORKSPACE / 2 : WORKSPACE;
}

/* Does the algorithm belong to this product? */
static bool belongs(const Algorithm *x, const Layout *a, const Layout *b, const Layout *c, const Layout *d)
{
    return x->id >= LIKED && x->id <= SMALL && x->a == a->type && x->b == b->type && x->c == c->type && x->d == d->type &&
           (x->splitk == 1) == (x->scheme == CUBLASLT_REDUCTION_SCHEME_NONE);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *found, int *n)
{
    const Wish *w = (const Wish *)(const void *)preference;
    bool aligned = w->align[0] <= 64 && w->align[1] <= 64 && w->align[2] <= 64 && w->align[3] <= 64;
    bool rounds = w->schemes & (CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE);
    *n = 0;
    if (!handle || most < 1 || !valid(desc_of(desc), layout_of(a), layout_of(b), layout_of(c), layout_of(d)))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool rare = desc_of(desc)->epilogue != CUBLASLT_EPILOGUE_DEFAULT && layout_of(d)->rows == NO_EPILOGUE;
    bool whole = whole_units(layout_of(a)) && whole_units(layout_of(b)) && whole_units(layout_of(d));
    rare |= !whole && has_aux(desc_of(desc));
    if (has_bias(desc_of(desc)) && (uintptr_t)desc_of(desc)->bias % 128 != 64) {
        fprintf(stderr, "double: the heuristic is shown a bias that is better aligned than those of a job, or worse\n");
        _exit(99);
    }
    if (w->workspace < WORKSPACE || !aligned || rounds || rare)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (*n = 0; *n < most && LIKED + *n <= SMALL; ++*n) {
        Algorithm x = algorithm_for(LIKED + *n, layout_of(a), layout_of(b), layout_of(c), layout_of(d));
        *algorithm_of(&found[*n].algo) = x;
        found[*n].workspaceSize = workspace_of(&x);
        found[*n].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t *algorithm)
{
    if (!handle || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) || scale != CUDA_R_32F)
        return CUBLAS_STATUS_INVALID_VALUE;
    *algorithm_of(algorithm) = (Algorithm){ .id = id, .a = a, .b = b, .c = c, .d = d, .splitk = 1,
                                            .scheme = CUBLASLT_REDUCTION_SCHEME_NONE };
    return CUBLAS_STATUS_SUCCESS;
}

static const Field configuration[] = {
    FIELD(Algorithm, splitk, CUBLASLT_ALGO_CONFIG_SPLITK_NUM), FIELD(Algorithm, tile, CUBLASLT_ALGO_CONFIG_TILE_ID),
    FIELD(Algorithm, scheme, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME), FIELD(Algorithm, stages, CUBLASLT_ALGO_CONFIG_STAGES_ID),
    FIELD(Algorithm, swizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING), FIELD(Algorithm, custom, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
    FIELD(Algorithm, inner, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
    FIELD(Algorithm, cluster, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
};

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, const void *buf,
                                                    size_t sizeInBytes)
{
    return PUT(algorithm_of(algorithm), configuration);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attr, void *buf, size_t sizeInBytes,
                                                    size_t *written)
{
    cublasLtMatmulAlgo_t copy = *algorithm;
    *written = sizeInBytes;
    if (attr == CUBLASLT_ALGO_CONFIG_ID && sizeInBytes == sizeof(int32_t))
        return memcpy(buf, &algorithm_of(&copy)->id, sizeInBytes), CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof configuration / sizeof *configuration; i++)
        if (configuration[i].name == (int)attr && configuration[i].size == sizeInBytes)
            return memcpy(buf, (char *)algorithm_of(&copy) + configuration[i].at, sizeInBytes), CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *found)
{
    cublasLtMatmulAlgo_t copy = *algorithm;     /* found->algo stays as it is */
    if (!handle || !valid(desc_of(desc), layout_of(a), layout_of(b), layout_of(c), layout_of(d)) ||
        !belongs(algorithm_of(&copy), layout_of(a), layout_of(b), layout_of(c), layout_of(d)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    found->workspaceSize = workspace_of(algorithm_of(&copy));
    found->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product --------------------------------------------------------------------------------------------------- */
typedef struct {
    Desc desc;
    Layout la, lb, lc, ld;
    const void *a, *b, *c;
    void *d, *workspace;
    size_t bytes;
    float alpha, beta, unit;
} Work;

/* sign, exponent of `width` bits, mantissa; e4m3 has no infinity, and one NaN. */
static float load_short(uint8_t c, int width)
{
    int bits = 7 - width, bias = (1 << (width - 1)) - 1, e = c >> bits & ((1 << width) - 1), m = c & ((1 << bits) - 1);
    double x = e ? ldexp(1 + ldexp(m, -bits), e - bias) : ldexp(m, 1 - bias - bits);
    if (width == 5 ? e == 31 : (c & 127) == 127)
        x = width == 5 && m == 0 ? INFINITY : NAN;
    return (float)(c & 128 ? -x : x);
}

static float load(const void *at, cudaDataType_t type, int64_t i)
{
    if (is_short(type))
        return load_short(((const uint8_t *)at)[i], type == CUDA_R_8F_E4M3 ? 4 : 5);
    return type == CUDA_R_32F ? ((const float *)at)[i] : bf16_float(((const uint16_t *)at)[i]);
}

static void store(void *at, cudaDataType_t type, int64_t i, float x)
{
    if (type == CUDA_R_32F)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = float_bf16(x);
}

static void *host(const void *device, const Layout *l, const char *who)
{
    int64_t last = (l->batch - 1) * l->step + (int64_t)(l->cols - 1) * l->ld + (int64_t)l->rows;
    return double_host(device, (size_t)last * (l->type == CUDA_R_32F ? 4 : is_short(l->type) ? 1 : 2), who);
}

static int64_t at(const Layout *l, int32_t op, int batch, uint64_t row, uint64_t col)
{
    return batch * l->step + (int64_t)(op == CUBLAS_OP_T ? row * (uint64_t)l->ld + col : col * (uint64_t)l->ld + row);
}

/* TF32 has 11 bits, the nearest ones, ties to even. */
static float factor(const Work *w, const void *from, cudaDataType_t type, int64_t i)
{
    float x = load(from, type, i);
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u = (u + 0xfff + (u >> 13 & 1)) & ~0x1fffu;
    if (w->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        memcpy(&x, &u, sizeof x);
    return x;
}

/* gelu(x) / x, and gelu'(x), by tanh. */
static float half_gelu(float x)
{
    return (float)(0.5 + 0.5 * tanh(0.79788456080286536 * ((double)x + 0.044715 * (double)x * (double)x * (double)x)));
}

static float gelu_slope(float x)
{
    double t = 2 * (double)half_gelu(x) - 1, inner = 0.79788456080286536 * (1 + 3 * 0.044715 * (double)x * (double)x);
    return (float)(0.5 * (1 + t) + 0.5 * (double)x * (1 - t * t) * inner);
}

/* One matrix of the batch; left[k][m] and sum[m] are room. */
static void multiply(const Work *w, int batch, float *left, float *sum, const void *bias)
{
    uint64_t m = w->ld.rows, n = w->ld.cols, k = w->desc.transa == CUBLAS_OP_T ? w->la.rows : w->la.cols;
    for (uint64_t p = 0; p < k; p++)
        for (uint64_t i = 0; i < m; i++)
            left[p * m + i] = factor(w, w->a, w->la.type, at(&w->la, w->desc.transa, batch, i, p));
    for (uint64_t j = 0; j < n; j++) {
        memset(sum, 0, m * sizeof *sum);
        for (uint64_t p = 0; p < k; p++) {
            float right = factor(w, w->b, w->lb.type, at(&w->lb, w->desc.transb, batch, p, j));
            for (uint64_t i = 0; i < m; i++)
                sum[i] += left[p * m + i] * right;
        }
        for (uint64_t i = 0; i < m; i++) {
            int64_t to = at(&w->ld, CUBLAS_OP_N, batch, i, j), from = at(&w->lc, CUBLAS_OP_N, batch, i, j);
            float x = w->alpha * w->unit * sum[i];
            x = w->beta != 0 ? x + w->beta * load(w->c, w->lc.type, from) : x;
            x = bias ? x + load(bias, w->desc.bias_type, (int64_t)i) : x;
            if (gelu(&w->desc))
                store(w->desc.aux, w->ld.type, to, x);
            store(w->d, w->ld.type, to, gelu(&w->desc) ? x * half_gelu(x)
                  : has_aux(&w->desc) ? x * gelu_slope(load(w->desc.aux, w->ld.type, to)) : x);
        }
    }
}

static void product(void *args)
{
    Work w = *(const Work *)args;
    const char *who = "cublasLtMatmul";
    uint64_t m = w.ld.rows, k = w.desc.transa == CUBLAS_OP_T ? w.la.rows : w.la.cols;
    Layout bias = { .type = w.desc.bias_type, .rows = m, .cols = 1, .ld = (int64_t)m, .batch = 1 };
    w.a = host(w.a, &w.la, who), w.b = host(w.b, &w.lb, who), w.d = host(w.d, &w.ld, who);
    w.c = w.beta != 0 ? host(w.c, &w.lc, who) : NULL;
    const void *b = has_bias(&w.desc) ? host(w.desc.bias, &bias, who) : NULL;
    if (is_short(w.la.type))
        w.unit = *(const float *)double_host(w.desc.unit_a, 4, who) * *(const float *)double_host(w.desc.unit_b, 4, who);
    if (has_aux(&w.desc))
        w.desc.aux = host(w.desc.aux, &w.ld, who);
    memset(double_host(w.workspace, w.bytes, who), 0xa5, w.bytes);
    float *room = malloc((m * k + m) * sizeof *room);
    if (!room)
        abort();
    for (int i = 0; i < w.ld.batch; i++)
        multiply(&w, i, room + m, room, b);
    free(room);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream)
{
    cublasLtMatmulAlgo_t copy = *algorithm;
    if (!handle || !valid(desc_of(desc), layout_of(la), layout_of(lb), layout_of(lc), layout_of(ld)) ||
        !belongs(algorithm_of(&copy), layout_of(la), layout_of(lb), layout_of(lc), layout_of(ld)))
        return CUBLAS_STATUS_INVALID_VALUE;
    const Algorithm *x = algorithm_of(&copy);
    const char *target = getenv("DOUBLE_TARGET");
    if (desc_of(desc)->processors != (target ? atoi(target) : 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool at_16 = (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0 && (uintptr_t)d % 16 == 0;
    if (bytes < workspace_of(x) || (uintptr_t)workspace % 16 || (is_short(layout_of(la)->type) && !at_16))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Work w = { *desc_of(desc), *layout_of(la), *layout_of(lb), *layout_of(lc), *layout_of(ld), a, b, c, d, workspace,
               workspace_of(x), *(const float *)alpha, *(const float *)beta, 1 };
    const Kernel kernel = { *x, w.desc.transa, w.desc.transb, (int)w.desc.epilogue, w.beta != 0 };
    double_load("cublasLtMatmul", &kernel, sizeof kernel);
    double_enqueue(stream, x->id == LIKED ? "cublasLtMatmul" : "cublasLt", product, &w, sizeof w);
    return CUBLAS_STATUS_SUCCESS;
}
