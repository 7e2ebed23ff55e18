/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c: matrix products by cublasLt.
 *
 * Problem.  A step calls the same few dozen products, with literal sizes, thousands of times.  cublasLt wants descriptors of
 * them and an algorithm; its heuristic guesses one, and a profile can measure one.
 *
 * Method.  product_open() makes descriptors and picks the algorithm once; product_run() sets one address and queues.  The
 * algorithm is the heuristic's first result that fits the stage's workspace.  After an open_product_algorithm() in the
 * stage's source, it is the measured one, given by its attributes.  Those are the library's own numbers.  Another version or
 * GPU may not know them; the job then ends, and does not compute other bits.
 *
 * Layout.  The library's matrices are column-major.  A row-major c[m n] = a b is, read so, the column-major
 *
 *     c'[n m] = b' a'        with c' = c^T, leading dimension n,
 *
 * so the right side goes first.  A plain b[k n] is b' [n k] as it lies there.  One stored transposed, b[n k], reads as [k n]
 * and is marked as transposed; a likewise.  A bias of n elements runs down every column of c', as the library wants it.
 *
 * Bits.  They are a function of shape, types, algorithm, library version and GPU.  The heuristic sees shapes, the alignment
 * of every tensor in an arena and the workspace's size, never an address or the time.  Every plan with these sizes therefore
 * gets the same algorithm; acc is not among its inputs.  f32 is computed in f32: the compute type rules out the shorter types
 * of tensor cores, unless the job was compiled with TF32.  bf16 and factors of 8 bits are summed in f32.  Sums that are split
 * over k rest in the workspace as f32 and are added in a separate step in a fixed order.  Adding in the result's type would
 * round in between, so no such split is taken.
 *
 * Not handled: leading dimensions other than dense; an algorithm for each of acc = 0 and 1.
 */
#include "product.h"
#include "start.h"
#include "../../cuda/device.h"
#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef TF32     /* factors of f32 are rounded to 11 bits; sums are f32 */
static const cublasComputeType_t compute_type = CUBLAS_COMPUTE_32F_FAST_TF32;
#else
static const cublasComputeType_t compute_type = CUBLAS_COMPUTE_32F;
#endif
enum { TENSOR_ALIGN = 64 };     /* of every tensor in an arena: what generated offsets are multiples of */

typedef struct {
    Recipe r;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, result;     /* as the library sees them: left is our b */
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;                               /* bytes that the algorithm needs */
    cublasStatus_t missing;                         /* why there is no algorithm; CUBLAS_STATUS_SUCCESS: there is */
    int used;                                       /* it has run: a call of two parts may want one of them */
    Dry dry;
} Product;

/* ---- failures ---------------------------------------------------------------------------------------------- */
static void version(char *text, size_t n)
{
    size_t v = cublasLtGetVersion();
    snprintf(text, n, "cuBLAS %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

static void run_dry(Stage *st, void *of);

/* Before the first step: this machine cannot run this folder. */
static void refuse(const Recipe *r, const char *what, cublasStatus_t status)
{
    char library[64];
    version(library, sizeof library);
    fprintf(stderr, "%s: a product of %ld x %ld by %ld x %ld (batch %ld): %s: %s of %s on this GPU; measure and generate "
            "again here: dpgen profile MODEL\n", r->call, r->m, r->k, r->k, r->n, r->batch, what,
            cublasLtGetStatusName(status), library);
    exit(6);
}

static void want(cublasStatus_t status, const char *what, const Recipe *r)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        refuse(r, what, status);
}

/* ---- descriptors ------------------------------------------------------------------------------------------- */
#define SET(desc, name, value) \
    want(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_##name, &(value), sizeof(value)), #name, r)

static cudaDataType_t real_type(void)
{
    return sizeof(real) == sizeof(float) ? CUDA_R_32F : CUDA_R_16BF;
}

/* Of our a and b. */
static cudaDataType_t type_a(const Recipe *r)
{
    return r->factors == FACTORS_E5M2 ? CUDA_R_8F_E5M2 : r->factors ? CUDA_R_8F_E4M3 : real_type();
}

static cudaDataType_t type_b(const Recipe *r)
{
    return r->factors ? CUDA_R_8F_E4M3 : real_type();
}

static cudaDataType_t type_c(const Recipe *r)
{
    return r->wide ? CUDA_R_32F : real_type();
}

/* A dense row-major rows x cols, or a batch of them, as its column-major transpose. */
static cublasLtMatrixLayout_t layout(const Recipe *r, cudaDataType_t type, long rows, long cols)
{
    cublasLtMatrixLayout_t l;
    int32_t count = (int32_t)r->batch;
    int64_t step = (int64_t)rows * cols;
    want(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)cols, (uint64_t)rows, cols), "a layout", r);
    want(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a batch", r);
    want(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step), "a batch",
         r);
    return l;
}

static int has_bias(const Recipe *r)
{
    return r->epilogue == EPILOGUE_BIAS || r->epilogue == EPILOGUE_GELU_BIAS;
}

static int has_aux(const Recipe *r)
{
    return r->epilogue >= EPILOGUE_GELU;
}

#ifdef SPARE
/* Multiprocessors that the products of a job may count on: devices.spare. */
static void leave_spare(cublasLtMatmulDesc_t desc, const Recipe *r)
{
    int gpu = 0, all = 0;
    int known = cudaGetDevice(&gpu) == cudaSuccess &&
                cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess;
    int32_t left = all - SPARE;
    want(known && left > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED, "devices.spare", r);
    SET(desc, SM_COUNT_TARGET, left);
}
#else
#define leave_spare(desc, r) ((void)(desc), (void)(r))
#endif

#ifdef FAST_SUMS        /* compute: fp8-fast */
static const int8_t fast_sums = 1;
#else
static const int8_t fast_sums = 0;
#endif

static cublasLtMatmulDesc_t describe(const Recipe *r)
{
    static const cublasLtEpilogue_t epilogues[] = {
        [EPILOGUE_NONE] = CUBLASLT_EPILOGUE_DEFAULT, [EPILOGUE_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [EPILOGUE_GELU] = CUBLASLT_EPILOGUE_GELU_AUX, [EPILOGUE_GELU_BIAS] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        [EPILOGUE_SLOPE] = CUBLASLT_EPILOGUE_DGELU,
    };
    cublasLtMatmulDesc_t desc;
    cublasOperation_t left = r->tb ? CUBLAS_OP_T : CUBLAS_OP_N, right = r->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType_t bias = r->wide ? CUDA_R_32F : real_type();
    int64_t aux = r->n;
    want(cublasLtMatmulDescCreate(&desc, compute_type, CUDA_R_32F), "a descriptor", r);
    SET(desc, TRANSA, left);
    SET(desc, TRANSB, right);
    SET(desc, EPILOGUE, epilogues[r->epilogue]);
    if (r->factors)
        SET(desc, FAST_ACCUM, fast_sums);
    leave_spare(desc, r);
    if (has_bias(r)) {
        SET(desc, BIAS_DATA_TYPE, bias);
    }
    if (has_aux(r))
        SET(desc, EPILOGUE_AUX_LD, aux);
    return desc;
}

/* ---- algorithms -------------------------------------------------------------------------------------------- */
static cublasLtMatmulPreference_t preference(const Stage *st, const Recipe *r)
{
    cublasLtMatmulPreference_t p;
    uint64_t most = device_of(st)->workspace_bytes;
    uint32_t align = TENSOR_ALIGN, schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct { cublasLtMatmulPreferenceAttributes_t name; const void *value; size_t size; } list[] = {
        { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most },
        { CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof align },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof align },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof align },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof align },
    };
    want(cublasLtMatmulPreferenceCreate(&p), "a preference", r);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        want(cublasLtMatmulPreferenceSetAttribute(p, list[i].name, list[i].value, list[i].size), "a preference", r);
    return p;
}

/* A unit of the library's a, which is our b, and of its b. */
static void set_units(const Product *p, const void *unit_a, const void *unit_b)
{
    const Recipe *r = &p->r;
    SET(p->desc, A_SCALE_POINTER, unit_b);
    SET(p->desc, B_SCALE_POINTER, unit_a);
}

/* The first `most` guesses of the heuristic, and how many there are.  It looks how the address of a bias is aligned: as those
 * of the arena, and no better. */
static cublasStatus_t guess(const Stage *st, const Product *p, cublasLtMatmulHeuristicResult_t *found, int most, int *n)
{
    const void *some = (const char *)device_of(st)->workspace + TENSOR_ALIGN;
    cublasLtMatmulPreference_t wish = preference(st, &p->r);
    if (has_bias(&p->r))
        want(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &some, sizeof some), "a bias", &p->r);
    if (has_aux(&p->r))
        want(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &some, sizeof some),
             "the operand of a Gelu", &p->r);
    if (p->r.factors)
        set_units(p, some, some);
    cublasStatus_t s = cublasLtMatmulAlgoGetHeuristic(device_of(st)->products, p->desc, p->left, p->right, p->result, p->result,
                                                      wish, most, found, n);
    cublasLtMatmulPreferenceDestroy(wish);
    return s;
}

static void choose(const Stage *st, Product *p)
{
    cublasLtMatmulHeuristicResult_t found = { .workspaceSize = 0 };
    int n = 0;
    p->missing = guess(st, p, &found, 1, &n);
    if (p->missing == CUBLAS_STATUS_SUCCESS)
        p->missing = n == 1 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
    if (p->r.epilogue == EPILOGUE_NONE)         /* with another, it may be that nobody calls it */
        want(p->missing, "no algorithm", &p->r);
    p->algorithm = found.algo;
    p->workspace = found.workspaceSize;
}

static void start(Stage *st, const Recipe *r)
{
    if (cublasLtGetVersion() / 10000 != CUBLAS_VER_MAJOR)
        refuse(r, "this folder was compiled for another version", CUBLAS_STATUS_NOT_INITIALIZED);
    want(cublasLtCreate((cublasLtHandle_t *)&device_of(st)->products), "the library does not start", r);
}

void product_open(Stage *st, int h, int part, Recipe r)
{
    Device *d = device_of(st);
    cudaDataType_t a = type_a(&r), b = type_b(&r), out = type_c(&r);
    if (!d->products)
        start(st, &r);
    if (!st->handle[h] && !(st->handle[h] = calloc(PARTS, sizeof(Product))))
        refuse(&r, "no memory", CUBLAS_STATUS_ALLOC_FAILED);
    Product *p = (Product *)st->handle[h] + part;
    p->r = r;
    p->used = 0;
    if (!p->dry.run) {
        p->dry = (Dry){ run_dry, p, d->dry };
        d->dry = &p->dry;
    }
    p->desc = describe(&r);
    p->left = r.tb ? layout(&r, b, r.n, r.k) : layout(&r, b, r.k, r.n);
    p->right = r.ta ? layout(&r, a, r.k, r.m) : layout(&r, a, r.m, r.k);
    p->result = layout(&r, out, r.m, r.n);
    choose(st, p);
}

/* ---- measured algorithms ----------------------------------------------------------------------------------- */
/* The attributes of an algorithm beside its id, and how many bytes the library has for each. */
static const struct { cublasLtMatmulAlgoConfigAttributes_t name; size_t at, size; } attributes[] = {
    { CUBLASLT_ALGO_CONFIG_TILE_ID, offsetof(Choice, tile), 4 },
    { CUBLASLT_ALGO_CONFIG_STAGES_ID, offsetof(Choice, stages), 4 },
    { CUBLASLT_ALGO_CONFIG_SPLITK_NUM, offsetof(Choice, splitk), 4 },
    { CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, offsetof(Choice, reduction), 4 },
    { CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, offsetof(Choice, swizzle), 4 },
    { CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, offsetof(Choice, custom), 4 },
    { CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, offsetof(Choice, inner), 2 },
    { CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, offsetof(Choice, cluster), 2 },
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes, MOST_GUESSES = 16 };

static int *value_of(Choice *c, int i)
{
    return (int *)(void *)((char *)c + attributes[i].at);
}

/* The algorithm of these numbers, and the workspace that it needs, if the library has one and it does this product. */
static cublasStatus_t remake(const Stage *st, const Product *p, Choice c, cublasLtMatmulAlgo_t *algorithm, size_t *bytes)
{
    cudaDataType_t a = type_a(&p->r), b = type_b(&p->r), out = type_c(&p->r);
    cublasLtHandle_t library = device_of(st)->products;
    cublasLtMatmulHeuristicResult_t found = { .workspaceSize = 0 };
    cublasStatus_t s = cublasLtMatmulAlgoInit(library, compute_type, CUDA_R_32F, b, a, out, out, c.id, algorithm);
    for (int i = 0; i < ATTRIBUTES && s == CUBLAS_STATUS_SUCCESS; i++) {
        uint16_t narrow = (uint16_t)*value_of(&c, i);
        const void *value = attributes[i].size == sizeof narrow ? (const void *)&narrow : value_of(&c, i);
        s = cublasLtMatmulAlgoConfigSetAttribute(algorithm, attributes[i].name, value, attributes[i].size);
    }
    if (s == CUBLAS_STATUS_SUCCESS)
        s = cublasLtMatmulAlgoCheck(library, p->desc, p->left, p->right, p->result, p->result, algorithm, &found);
    *bytes = found.workspaceSize;
    return s;
}

/* In place of what the heuristic says.  workspace: what was planned for it. */
void open_product_algorithm(Stage *st, int h, int part, int id, int tile, int stages, int splitk, int reduction,
                            int swizzle, int custom, int inner, int cluster, long workspace)
{
    Product *p = (Product *)st->handle[h] + part;
    if (!st->handle[h] || !p->desc) {           /* a profile of other kernels, which --elsewhere lets pass */
        fprintf(stderr, "the profile has an algorithm for product %d of a call that has none of that number; measure and "
                "generate again here: dpgen profile MODEL\n", part);
        exit(6);
    }
    const Choice c = { id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster, workspace };
    want(remake(st, p, c, &p->algorithm, &p->workspace), "the algorithm of the profile is not known", &p->r);
    if (p->workspace > (size_t)workspace || p->workspace > device_of(st)->workspace_bytes)
        refuse(&p->r, "the algorithm of the profile wants more workspace than is planned", CUBLAS_STATUS_NOT_SUPPORTED);
    p->missing = CUBLAS_STATUS_SUCCESS;
}

/* The numbers of an algorithm; 0: they cannot be had, or a source cannot hold them. */
static int numbers(const cublasLtMatmulAlgo_t *algorithm, Choice *c)
{
    size_t n;
    cublasStatus_t s = cublasLtMatmulAlgoConfigGetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_ID, &c->id, sizeof c->id, &n);
    int least = c->id;
    for (int i = 0; i < ATTRIBUTES && s == CUBLAS_STATUS_SUCCESS; i++) {
        uint16_t narrow = 0;
        int is_narrow = attributes[i].size == sizeof narrow, *value = value_of(c, i);
        s = cublasLtMatmulAlgoConfigGetAttribute(algorithm, attributes[i].name, is_narrow ? (void *)&narrow : value,
                                                 attributes[i].size, &n);
        *value = is_narrow ? narrow : *value;
        least = *value < least ? *value : least;
    }
    return s == CUBLAS_STATUS_SUCCESS && least >= 0;
}

int product_choices(Stage *st, int h, int part, Choice *list, int most)
{
    const Product *p = (const Product *)st->handle[h] + part;
    cublasLtMatmulHeuristicResult_t found[MOST_GUESSES];
    if (!st->handle[h] || !p->used)
        return 0;
    int n = 0, kept = 0;
    if (guess(st, p, found, most < MOST_GUESSES ? most : MOST_GUESSES, &n) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < n; i++) {
        Choice *c = &list[kept];
        cublasLtMatmulAlgo_t again;
        size_t bytes = 0;
        int same = found[i].state == CUBLAS_STATUS_SUCCESS && numbers(&found[i].algo, c) &&
                   remake(st, p, *c, &again, &bytes) == CUBLAS_STATUS_SUCCESS;
        c->workspace = (long)bytes;
        kept += same && bytes <= device_of(st)->workspace_bytes;
    }
    return kept;
}

/* ---- in a step --------------------------------------------------------------------------------------------- */
static void stop(const Stage *st, const Recipe *r, cublasStatus_t status)
{
    char text[128];
    snprintf(text, sizeof text, "%s: cublasLtMatmul: %s", r->call, cublasLtGetStatusName(status));
    device_check(st, cudaErrorUnknown, text);
}

/* term: what is added, or NULL. */
static void multiply(Stage *st, Product *p, void *c, const void *a, const void *b, const void *bias, const void *term)
{
    const Device *d = device_of(st);
    const Recipe *r = &p->r;
    const float one = 1, old = term ? 1 : 0;
    want(p->missing, "no algorithm", r);
    if (has_bias(r))
        SET(p->desc, BIAS_POINTER, bias);
    cublasStatus_t status = cublasLtMatmul(d->products, p->desc, &one, b, p->left, a, p->right, &old, term ? term : c,
                                           p->result, c, p->result, &p->algorithm, d->workspace, p->workspace, stream_of(st));
    if (status != CUBLAS_STATUS_SUCCESS)
        stop(st, r, status);
    device_check(st, cudaSuccess, r->call);
}

void product_add(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, const void *term)
{
    Product *p = (Product *)st->handle[h] + part;
    p->used = 1;
    multiply(st, p, c, a, b, bias, term);
}

void product_run(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, int acc)
{
    product_add(st, h, part, c, a, b, bias, acc ? c : NULL);
}

void product_gelu(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, const void *aux)
{
    Product *p = (Product *)st->handle[h] + part;
    const Recipe *r = &p->r;
    SET(p->desc, EPILOGUE_AUX_POINTER, aux);
    product_run(st, h, part, c, a, b, bias, 0);
}

void product_scaled(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, int acc,
                    const float *unit_a, const float *unit_b)
{
    set_units((const Product *)st->handle[h] + part, unit_a, unit_b);
    product_run(st, h, part, c, a, b, bias, acc);
}

int product_there(const Stage *st, int h, int part)
{
    return ((const Product *)st->handle[h] + part)->missing == CUBLAS_STATUS_SUCCESS;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Both operands at the arena's begin, and the result behind them or, where only the workspace has room for it in a step, there
 * too: nobody reads it.  A product that adds to c is other code than one that stores it: a step's first micro-batch stores, and
 * the second would load code. */
static void run_dry(Stage *st, void *of)
{
    Product *p = of;
    const Recipe *r = &p->r;
    size_t in = (size_t)(r->batch * r->k) * larger((size_t)r->m, (size_t)r->n) * sizeof(real), room = room_of(st);
    size_t out = (size_t)(r->batch * r->m * r->n) * (r->wide ? sizeof(float) : sizeof(real));
    in = (in + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
    void *to = (char *)st->arena + (in + out <= room ? in : 0);
    if (has_aux(r))
        SET(p->desc, EPILOGUE_AUX_POINTER, to);
    if (r->factors)
        set_units(p, st->arena, st->arena);
    if (p->missing == CUBLAS_STATUS_SUCCESS && larger(in, out) <= room)
        for (int acc = r->adds; acc <= (r->wide || r->adds); acc++)
            multiply(st, p, to, st->arena, st->arena, st->arena, acc ? to : NULL);
}
