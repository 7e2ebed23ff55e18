/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn.c: a double of the entries of cuDNN that rt/op/cuda/graph.c calls: any graph of its operations, computed on the CPU.
 *
 * Method.  A descriptor keeps what is set, by name, and takes nothing more once it is finalised, as the library's do.  A run
 * goes through the operations in their order.  Every tensor is an array of f32 by its own sizes and steps; a value in bf16 is
 * rounded when it is made, so types count.  A transpose is what the library calls a reshape: the same memory under other sizes
 * and steps.  Sums go in ascending order.
 *
 * The workspace it asks for is what the library asks for attention on sm_90, and all of it is overwritten.  For a convolution
 * it offers an engine first that no workspace is large enough for.  Which graphs the library has an engine for is not known
 * here: tests/cudnn_plans.c asks the library itself.
 *
 *   DOUBLE_ATTENTION=N   bytes of workspace that attention wants beside those, as another version may
 *   DOUBLE_CORES=1       engines whose bits do not vary have tensor cores
 *
 * Not handled: what graph.c does not use; ranks other than four.
 */
#include "double.h"
#include "rt/real.h"
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 12, MOST = 32 };        /* of a descriptor; operations, tensors in memory */

typedef struct { cudnnBackendAttributeName_t name; int64_t n; void *at; } Attribute;
typedef struct {
    cudnnBackendDescriptorType_t type;
    bool done;
    int n;
    Attribute attribute[ATTRIBUTES];
} Desc;

struct cudnnContext { cudaStream_t stream; };

static _Noreturn void broken(const char *what)
{
    fprintf(stderr, "double: cuDNN: %s\n", what);
    _Exit(99);
}

static void *room(size_t n)
{
    void *at = calloc(n ? n : 1, 1);
    if (!at)
        broken("no memory");
    return at;
}

/* ---- descriptors -------------------------------------------------------------------------------------------------- */
size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : status == CUDNN_STATUS_BAD_PARAM ?
           "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = room(sizeof **handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *to)
{
    Desc *d = *to = room(sizeof *d);
    d->type = type;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t from)
{
    Desc *d = from;
    for (int i = 0; i < d->n; i++)
        free(d->attribute[i].at);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    return type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_VOID_PTR ||
           type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? 8 : type == CUDNN_TYPE_BOOLEAN ? sizeof(bool) : sizeof(int);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    Desc *d = to;
    if (d->done || d->n == ATTRIBUTES || n < 1)
        return CUDNN_STATUS_BAD_PARAM;
    Attribute *a = &d->attribute[d->n++];
    *a = (Attribute){ name, n, room((size_t)n * size_of(type)) };
    memcpy(a->at, values, (size_t)n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

static const Attribute *find(const Desc *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < d->n; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

static const Desc *link_of(const Desc *d, cudnnBackendAttributeName_t name)
{
    const Attribute *a = find(d, name);
    return a ? *(Desc *const *)a->at : NULL;
}

/* Of the attributes that an enum or a boolean is. */
static int word_of(const Desc *d, cudnnBackendAttributeName_t name)
{
    const Attribute *a = find(d, name);
    return a ? *(const int *)a->at : -1;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------ */
typedef struct { int64_t uid, size[4], step[4], extent; cudnnDataType_t type; bool value, number; } Tensor;

static Tensor tensor_of(const Desc *d)
{
    Tensor t = { .uid = *(const int64_t *)find(d, CUDNN_ATTR_TENSOR_UNIQUE_ID)->at, .extent = 1 };
    t.type = (cudnnDataType_t)word_of(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
    t.value = *(const bool *)find(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL)->at;
    t.number = *(const bool *)find(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)->at;
    memcpy(t.size, find(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->at, sizeof t.size);
    memcpy(t.step, find(d, CUDNN_ATTR_TENSOR_STRIDES)->at, sizeof t.step);
    for (int i = 0; i < 4; i++)
        t.extent += (t.size[i] - 1) * t.step[i];
    return t;
}

/* Where element number i of the sizes `by` stands in t; sizes of 1 are repeated. */
static int64_t place(const Tensor *t, const Tensor *by, int64_t i)
{
    int64_t at = 0;
    for (int axis = 3; axis >= 0; axis--) {
        at += t->size[axis] == 1 ? 0 : i % by->size[axis] * t->step[axis];
        i /= by->size[axis];
    }
    return at;
}

static int64_t elements(const Tensor *t)
{
    return t->size[0] * t->size[1] * t->size[2] * t->size[3];
}

/* ---- a run -------------------------------------------------------------------------------------------------------- */
typedef struct { const Desc *plan; int n; int64_t uid[MOST]; void *at[MOST]; float number[MOST]; void *workspace; } Work;

/* What is known of a tensor in this run. */
typedef struct { int64_t uid; Tensor t; float *x; } Known;
typedef struct { const Work *w; Known known[4 * MOST]; int n; } Run;

static size_t bytes_of(const Tensor *t)
{
    return (size_t)t->extent * (t->type == CUDNN_DATA_BFLOAT16 ? 2 : 4);
}

static void *memory_of(const Run *r, const Tensor *t)
{
    for (int i = 0; i < r->w->n; i++)
        if (r->w->uid[i] == t->uid)
            return double_host(r->w->at[i], bytes_of(t), "cudnnBackendExecute");
    broken("a tensor in memory has no address");
}

static Known *new(Run *r, const Tensor *t)
{
    if (r->n == 4 * MOST)
        broken("too many tensors");
    r->known[r->n] = (Known){ t->uid, *t, room((size_t)t->extent * sizeof(float)) };
    return &r->known[r->n++];
}

/* An operand: made before, or read from memory now. */
static const Known *operand(Run *r, const Desc *op, cudnnBackendAttributeName_t name)
{
    const Desc *d = link_of(op, name);
    if (!d)
        return NULL;
    Tensor t = tensor_of(d);
    for (int i = 0; i < r->n; i++)
        if (r->known[i].uid == t.uid)
            return &r->known[i];
    if (t.value)
        broken("an operation comes before what makes its operand");
    Known *k = new(r, &t);
    for (int i = 0; t.number && i < r->w->n; i++)
        if (r->w->uid[i] == t.uid)
            k->x[0] = r->w->number[i];
    const void *from = t.number ? NULL : memory_of(r, &t);
    for (int64_t i = 0; from && i < elements(&t); i++) {
        int64_t at = place(&t, &t, i);
        k->x[at] = t.type == CUDNN_DATA_BFLOAT16 ? bf16_float(((const uint16_t *)from)[at]) : ((const float *)from)[at];
    }
    return k;
}

/* A result was made: round it to its type, and write it where it has memory. */
static void made(const Run *r, const Known *y)
{
    void *to = y->t.value ? NULL : memory_of(r, &y->t);
    for (int64_t i = 0; i < elements(&y->t); i++) {
        int64_t at = place(&y->t, &y->t, i);
        if (y->t.type == CUDNN_DATA_BFLOAT16)
            y->x[at] = bf16_float(float_bf16(y->x[at]));
        if (to && y->t.type == CUDNN_DATA_BFLOAT16)
            ((uint16_t *)to)[at] = float_bf16(y->x[at]);
        else if (to)
            ((float *)to)[at] = y->x[at];
    }
}

/* The pair of sample and head whose part of t goes into pair number i of c: heads of t are repeated. */
static int64_t pair_of(const Tensor *t, const Tensor *c, int64_t i)
{
    if (t->size[0] != c->size[0] || c->size[1] % t->size[1])
        broken("the heads of a product do not match");
    return i / c->size[1] * t->size[1] + i % c->size[1] / (c->size[1] / t->size[1]);
}

static void multiply(Run *r, const Desc *op)
{
    const Known *a = operand(r, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC), *b = operand(r, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    Tensor t = tensor_of(link_of(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    int64_t m = t.size[2], n = t.size[3], k = a->t.size[3];
    if (a->t.size[2] != m || b->t.size[2] != k || b->t.size[3] != n)
        broken("the sizes of a product do not match");
    Known *c = new(r, &t);
    for (int64_t i = 0; i < elements(&t); i++) {
        int64_t pair = i / (m * n), row = i / n % m, column = i % n;
        int64_t x = place(&a->t, &a->t, (pair_of(&a->t, &t, pair) * m + row) * k);
        int64_t y = place(&b->t, &b->t, pair_of(&b->t, &t, pair) * k * n + column);
        float sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += a->x[x + p * a->t.step[3]] * b->x[y + p * b->t.step[2]];
        c->x[place(&t, &t, i)] = sum;
    }
    made(r, c);
}

static float apply(cudnnPointwiseMode_t f, float x, float b, bool t)
{
    switch (f) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_EXP: return expf(x);
    case CUDNN_POINTWISE_LOG: return logf(x);
    case CUDNN_POINTWISE_CMP_GE: return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT: return t ? x : b;
    default: broken("an operation that it does not know");
    }
}

static void map(Run *r, const Desc *op)
{
    const Desc *how = link_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const Attribute *axis = find(how, CUDNN_ATTR_POINTWISE_AXIS);
    cudnnPointwiseMode_t f = (cudnnPointwiseMode_t)word_of(how, CUDNN_ATTR_POINTWISE_MODE);
    const Known *x = operand(r, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const Known *b = operand(r, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    const Known *s = operand(r, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    Tensor t = tensor_of(link_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    Known *y = new(r, &t);
    for (int64_t i = 0; i < elements(&t); i++) {
        float *to = &y->x[place(&t, &t, i)];
        if (f == CUDNN_POINTWISE_GEN_INDEX)
            *to = (float)(*(const int64_t *)axis->at == 3 ? i % t.size[3] : i / t.size[3] % t.size[2]);
        else
            *to = apply(f, x->x[place(&x->t, &t, i)], b ? b->x[place(&b->t, &t, i)] : 0, s && s->x[place(&s->t, &t, i)] != 0);
    }
    made(r, y);
}

static void fold(Run *r, const Desc *op)
{
    const Known *x = operand(r, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const Desc *how = link_of(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    bool most = word_of(how, CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    Tensor t = tensor_of(link_of(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    Known *y = new(r, &t);
    for (int64_t i = 0; most && i < y->t.extent; i++)
        y->x[i] = -INFINITY;
    for (int64_t i = 0; i < elements(&x->t); i++) {
        float *to = &y->x[place(&t, &x->t, i)], v = x->x[place(&x->t, &x->t, i)];
        *to = !most ? *to + v : v > *to ? v : *to;
    }
    made(r, y);
}

static void turn(Run *r, const Desc *op)
{
    const Known *x = operand(r, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    Tensor t = tensor_of(link_of(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    if (t.extent != x->t.extent || elements(&t) != elements(&x->t))
        broken("a reshape changes the number of elements");
    Known *y = new(r, &t);
    memcpy(y->x, x->x, (size_t)t.extent * sizeof(float));
    made(r, y);
}

/* ---- convolutions --------------------------------------------------------------------------------------------------- */
#define CONV_WAY(type, part, x, w, y, of) { CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR, \
    CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_CONV_DESC, { CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##x, \
    CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##w, CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##y }, of }
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, name[3];
    int result;                 /* of x, w, y */
} ways[] = { CONV_WAY(FORWARD, FORWARD, X, W, Y, 2), CONV_WAY(BACKWARD_DATA, BWD_DATA, DX, W, DY, 0),
             CONV_WAY(BACKWARD_FILTER, BWD_FILTER, X, DW, DY, 1) };
enum { WAYS = sizeof ways / sizeof *ways };

static int way_of(const Desc *op)
{
    for (int i = 0; i < WAYS; i++)
        if (ways[i].type == op->type)
            return i;
    return -1;
}

static int64_t number_of(const Desc *d, cudnnBackendAttributeName_t name, int axis)
{
    return ((const int64_t *)find(d, name)->at)[axis];
}

static void check_sizes(const Desc *how, const Tensor t[3])
{
    bool same = t[0].size[0] == t[2].size[0] && t[1].size[0] == t[2].size[1] && t[0].size[1] % t[1].size[1] == 0;
    for (int axis = 0; axis < 2; axis++) {
        int64_t before = number_of(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axis);
        int64_t after = number_of(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, axis);
        int64_t reach = number_of(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, axis) * (t[1].size[2 + axis] - 1) + 1;
        int64_t step = number_of(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, axis);
        same &= before >= 0 && after >= 0 && (t[0].size[2 + axis] + before + after - reach) / step + 1 == t[2].size[2 + axis];
    }
    if (!same)
        broken("the sizes of a convolution do not match");
}

static int64_t element(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a * t->step[0] + b * t->step[1] + c * t->step[2] + d * t->step[3];
}

/* The window of a convolution along both axes. */
typedef struct { int64_t stride[2], dilation[2], before[2]; } Window;

static Window window_of(const Desc *how)
{
    Window w;
    for (int axis = 0; axis < 2; axis++) {
        w.stride[axis] = number_of(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, axis);
        w.dilation[axis] = number_of(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, axis);
        w.before[axis] = number_of(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axis);
    }
    return w;
}

/* The products of element (sample, o, p, q) of y: of each tap, all channels. */
static void its_products(float *const at[3], int result, const Tensor t[3], const Window *w, const int64_t y[4])
{
    int64_t out = t[2].size[1] / (t[0].size[1] / t[1].size[1]), first = y[1] / out * t[1].size[1];
    int64_t step[3] = {t[0].step[1], t[1].step[1], 0};
    int left = (result + 1) % 3, right = (result + 2) % 3;
    for (int64_t a = 0; a < t[1].size[2]; a++)
        for (int64_t b = 0; b < t[1].size[3]; b++) {
            int64_t row = y[2] * w->stride[0] + a * w->dilation[0] - w->before[0];
            int64_t column = y[3] * w->stride[1] + b * w->dilation[1] - w->before[1];
            if (row < 0 || row >= t[0].size[2] || column < 0 || column >= t[0].size[3])
                continue;
            float *of[3] = {at[0] + element(&t[0], y[0], first, row, column), at[1] + element(&t[1], y[1], 0, a, b),
                            at[2] + element(&t[2], y[0], y[1], y[2], y[3])};
            for (int64_t c = 0; c < t[1].size[1]; c++)
                of[result][c * step[result]] += of[left][c * step[left]] * of[right][c * step[right]];
        }
}

static void each_product(float *const at[3], int result, const Tensor t[3], const Desc *how)
{
    Window w = window_of(how);
    for (int64_t i = 0; i < elements(&t[2]); i++) {
        int64_t rest = i, y[4];
        for (int axis = 3; axis >= 0; rest /= t[2].size[axis--])
            y[axis] = rest % t[2].size[axis];
        its_products(at, result, t, &w, y);
    }
}

static void convolve(Run *r, const Desc *op)
{
    int way = way_of(op), result = ways[way].result;
    float *at[3];
    Tensor t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = tensor_of(link_of(op, ways[way].name[i]));
        if (i != result)
            at[i] = operand(r, op, ways[way].name[i])->x;
    }
    check_sizes(link_of(op, ways[way].window), t);
    Known *k = new(r, &t[result]);
    at[result] = k->x;
    each_product(at, result, t, link_of(op, ways[way].window));
    made(r, k);
}

static const struct { cudnnBackendDescriptorType_t type; void (*run)(Run *, const Desc *); } operations[] = {
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, convolve },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, convolve },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, convolve },
    { CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, multiply },
    { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, map },
    { CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, fold },
    { CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, turn },
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* The operations of a plan. */
static const Attribute *program(const Desc *plan)
{
    const Desc *choice = link_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return find(link_of(choice, CUDNN_ATTR_ENGINECFG_ENGINE), CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

/* 256, or what dS takes where a graph transposes it. */
static int64_t workspace_of(const Desc *plan)
{
    const Attribute *list = program(plan);
    const Desc *choice = link_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Attribute *large = find(choice, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
    int64_t most = large ? *(const int64_t *)large->at : 256;
    for (int64_t i = 0; i < list->n; i++) {
        const Desc *op = ((Desc *const *)list->at)[i];
        if (op->type != CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
            continue;
        Tensor x = tensor_of(link_of(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
        int64_t rows = (x.size[2] + 63) / 64 * 64, columns = (x.size[3] + 127) / 128 * 128;
        int64_t n = x.size[0] * x.size[1] * rows * columns * 2 + 256;
        most = x.value && n > most ? n : most;
    }
    const char *more = getenv("DOUBLE_ATTENTION");
    return more && list->n > 1 ? most + atol(more) : most;
}

static void perform(void *args)
{
    Run r = { .w = args };
    const Attribute *list = program(r.w->plan);
    size_t n = (size_t)workspace_of(r.w->plan);
    void *workspace = double_host(r.w->workspace, n, "cudnnBackendExecute");
    memset(workspace, 0xa5, n);
    for (int64_t i = 0; i < list->n; i++) {
        const Desc *op = ((Desc *const *)list->at)[i];
        for (int k = 0; k < OPERATIONS; k++)
            if (operations[k].type == op->type)
                operations[k].run(&r, op);
    }
    memset(workspace, 0xa5, n);         /* no result lies there */
    for (int i = 0; i < r.n; i++)
        free(r.known[i].x);
}

/* ---- plans -------------------------------------------------------------------------------------------------------- */
/* The first choice is an engine whose bits vary, and must not be taken; of a convolution the second wants a workspace that is
 * too large. */
static cudnnStatus_t choose(const Desc *heuristic, int64_t most, int64_t *n, Desc **choice)
{
    static const int varies = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, cores = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    static const int64_t large = INT64_C(1) << 40;
    const Desc *graph = link_of(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const Desc *op = *(Desc *const *)find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)->at;
    int64_t want = way_of(op) >= 0 ? 3 : 2;
    *n = most < want ? most : want;
    for (int64_t i = 0; i < *n; i++) {
        cudnnBackendSetAttribute(choice[i], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
        if (i == 1 && want == 3)
            cudnnBackendSetAttribute(choice[i], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &large);
        if (i == 0)
            cudnnBackendSetAttribute(choice[i], CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 1, &varies);
        else if (getenv("DOUBLE_CORES"))
            cudnnBackendSetAttribute(choice[i], CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 1, &cores);
        choice[i]->done = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t notes(const Desc *engine, int64_t *n, int *list)
{
    const Attribute *a = find(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
    *n = a != NULL;
    if (a)
        *list = *(const int *)a->at;
    return CUDNN_STATUS_SUCCESS;
}

/* The engine of a choice: here, its notes. */
static cudnnStatus_t engine_of(const Desc *choice, Desc *engine)
{
    int list;
    int64_t n;
    notes(choice, &n, &list);
    if (n)
        cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, n, &list);
    engine->done = true;
    return CUDNN_STATUS_SUCCESS;
}

/* Only what is complete may be used by another. */
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t to)
{
    Desc *d = to;
    const Attribute *ops = find(d, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (d->done)
        return CUDNN_STATUS_BAD_PARAM;
    for (int64_t i = 0; ops && i < ops->n; i++)
        if (!((Desc *const *)ops->at)[i]->done)
            return CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && (!ops || !find(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE)))
        return CUDNN_STATUS_BAD_PARAM;
    d->done = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t *n, void *values)
{
    const Desc *d = from;
    if (!d->done || most < 1)
        return CUDNN_STATUS_BAD_PARAM;
    (void)type;
    *n = 1;
    switch ((int)name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return choose(d, most, n, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE: return engine_of(d, *(Desc **)values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return notes(d, n, values);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: *(int64_t *)values = workspace_of(d); return CUDNN_STATUS_SUCCESS;
    default: return CUDNN_STATUS_NOT_SUPPORTED;
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    const Attribute *uid = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const Attribute *at = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const Attribute *workspace = find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (*(uintptr_t *)workspace->at % 256)
        broken("a workspace that is at no multiple of 256");
    Work w = { .plan = plan, .n = (int)uid->n, .workspace = *(void *const *)workspace->at };
    const Attribute *note = find(link_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
    if (note && *(const int *)note->at == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
        broken("an engine whose bits vary");
    if (uid->n != at->n || uid->n > MOST || !((Desc *)plan)->done || !((Desc *)pack)->done)
        return CUDNN_STATUS_BAD_PARAM;
    memcpy(w.uid, uid->at, (size_t)uid->n * sizeof *w.uid);
    memcpy(w.at, at->at, (size_t)at->n * sizeof *w.at);
    const Attribute *list = program(plan);
    for (int64_t i = 0; i < list->n; i++) {             /* numbers are read now, memory when the stream gets there */
        const Desc *op = ((Desc *const *)list->at)[i], *b = link_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        Tensor t = b ? tensor_of(b) : (Tensor){ 0 };
        for (int k = 0; t.number && k < w.n; k++)
            if (w.uid[k] == t.uid)
                w.number[k] = *(const float *)w.at[k];
    }
    double_load("cudnnBackendExecute", &plan, sizeof plan);
    double_enqueue(handle->stream, "cudnnBackendExecute", perform, &w, sizeof w);
    return CUDNN_STATUS_SUCCESS;
}
