/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: cuDNN's backend descriptors from C.
 *
 * Problem.  cuDNN fuses a graph of operations into one kernel, and wants it as opaque descriptors: each is created, its
 * attributes are set one by one, and it is finalised.  NVIDIA's own way to write that is a C++ library.
 *
 * Method.  Six functions here, one for a kind of operation, each a handful of attributes.  A tensor's identity is its
 * number.  A plan is the first engine of the library's heuristic (mode A) that can be finalised, that the library does not
 * mark as varying in its bits, and whose workspace fits.  Where that is bounded, the heuristic of what always works comes
 * next.  A plan is a function of graph, library version and chip, not of a timing.  Cost: the library compiles each plan when
 * it is opened.
 *
 * In a step, an execution wants the addresses in one more descriptor, which cannot be filled anew once it is finalised.  So
 * there is one for each run.  It is host memory of the library, a few hundred bytes, gone before the call returns.
 *
 * Descriptors of a graph stay alive as long as its plan, which is as long as the process: a plan may refer to them. Not
 * handled: other ranks than four.
 */
#include "graph.h"
#include "../../cuda/device.h"
#include <stdio.h>
#include <stdlib.h>

typedef cudnnBackendDescriptor_t Desc;

/* ---- descriptors ------------------------------------------------------------------------------------------- */
static void note(Graph *g, cudnnStatus_t status, const char *what)
{
    if (g->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return;
    g->status = status;
    g->failed = what;
}

static Desc create(Graph *g, cudnnBackendDescriptorType_t type, const char *what)
{
    Desc d = NULL;
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendCreateDescriptor(type, &d), what);
    return d;
}

static void set(Graph *g, Desc d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *value, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendSetAttribute(d, name, type, n, value), what);
}

static void finish(Graph *g, Desc d, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendFinalize(d), what);
}

#define SET(d, name, type, value) set(g, d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, &(value), what)
#define LINK(d, name, other) SET(d, name, BACKEND_DESCRIPTOR, other)

/* ---- tensors ----------------------------------------------------------------------------------------------- */
static int tensor(Graph *g, const Dims *d, cudnnDataType_t type, bool is_value, bool is_number)
{
    static const char what[] = "a tensor";
    if (g->tensors == GRAPH_TENSORS)
        note(g, CUDNN_STATUS_BAD_PARAM, "too many tensors");
    if (g->status != CUDNN_STATUS_SUCCESS)
        return 0;
    int64_t uid = g->tensors + 1, align = is_number ? sizeof(float) : 16;
    Desc t = create(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
    SET(t, TENSOR_UNIQUE_ID, INT64, uid);
    SET(t, TENSOR_DATA_TYPE, DATA_TYPE, type);
    SET(t, TENSOR_BYTE_ALIGNMENT, INT64, align);
    SET(t, TENSOR_IS_VIRTUAL, BOOLEAN, is_value);
    SET(t, TENSOR_IS_BY_VALUE, BOOLEAN, is_number);
    set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, d->size, what);
    set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, d->step, what);
    finish(g, t, what);
    g->tensor[g->tensors] = t;
    return g->tensors++;
}

int graph_value(Graph *g, Dims d, cudnnDataType_t type)
{
    return tensor(g, &d, type, true, false);
}

static int numbered(Graph *g, int t)
{
    if (g->memory == GRAPH_MEMORY)
        note(g, CUDNN_STATUS_BAD_PARAM, "too many tensors in memory");
    else
        g->uid[g->memory++] = t + 1;
    return t;
}

int graph_memory(Graph *g, Dims d, cudnnDataType_t type)
{
    return numbered(g, tensor(g, &d, type, false, false));
}

int graph_number(Graph *g)
{
    static const Dims one = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } };
    return numbered(g, tensor(g, &one, CUDNN_DATA_FLOAT, false, true));
}

/* ---- operations -------------------------------------------------------------------------------------------- */
static int node(Graph *g, Desc d, int y, const char *what)
{
    finish(g, d, what);
    if (g->nodes == GRAPH_NODES)
        note(g, CUDNN_STATUS_BAD_PARAM, "too many operations");
    else
        g->node[g->nodes++] = d;
    return y;
}

int graph_matmul(Graph *g, int y, int a, int b)
{
    static const char what[] = "a product";
    static const cudnnDataType_t in = CUDNN_DATA_FLOAT;
    Desc how = create(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, what);
    SET(how, MATMUL_COMP_TYPE, DATA_TYPE, in);
    finish(g, how, what);
    Desc d = create(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, what);
    LINK(d, OPERATION_MATMUL_DESC, how);
    LINK(d, OPERATION_MATMUL_ADESC, g->tensor[a]);
    LINK(d, OPERATION_MATMUL_BDESC, g->tensor[b]);
    LINK(d, OPERATION_MATMUL_CDESC, g->tensor[y]);
    return node(g, d, y, what);
}

static int map(Graph *g, cudnnPointwiseMode_t f, cudnnDataType_t in, const int64_t *axis, int y, int x, int b, int t)
{
    static const char what[] = "an operation on elements";
    Desc how = create(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what);
    SET(how, POINTWISE_MODE, POINTWISE_MODE, f);
    SET(how, POINTWISE_MATH_PREC, DATA_TYPE, in);
    if (axis)
        SET(how, POINTWISE_AXIS, INT64, *axis);
    finish(g, how, what);
    Desc d = create(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, what);
    LINK(d, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    LINK(d, OPERATION_POINTWISE_XDESC, g->tensor[x]);
    if (b >= 0)
        LINK(d, OPERATION_POINTWISE_BDESC, g->tensor[b]);
    if (t >= 0)
        LINK(d, OPERATION_POINTWISE_TDESC, g->tensor[t]);
    LINK(d, OPERATION_POINTWISE_YDESC, g->tensor[y]);
    return node(g, d, y, what);
}

int graph_map(Graph *g, cudnnPointwiseMode_t f, int y, int x, int b, int t)
{
    return map(g, f, f == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT, NULL, y, x, b, t);
}

int graph_index(Graph *g, int y, int x, int64_t axis)
{
    return map(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, &axis, y, x, -1, -1);
}

int graph_fold(Graph *g, cudnnReduceTensorOp_t f, int y, int x)
{
    static const char what[] = "a reduction";
    static const cudnnDataType_t in = CUDNN_DATA_FLOAT;
    Desc how = create(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what);
    SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, f);
    SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, in);
    finish(g, how, what);
    Desc d = create(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, what);
    LINK(d, OPERATION_REDUCTION_DESC, how);
    LINK(d, OPERATION_REDUCTION_XDESC, g->tensor[x]);
    LINK(d, OPERATION_REDUCTION_YDESC, g->tensor[y]);
    return node(g, d, y, what);
}

int graph_turn(Graph *g, int y, int x)
{
    static const char what[] = "a transpose";
    Desc d = create(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, what);
    LINK(d, OPERATION_RESHAPE_XDESC, g->tensor[x]);
    LINK(d, OPERATION_RESHAPE_YDESC, g->tensor[y]);
    return node(g, d, y, what);
}

/* Names of the attributes of a way: the numbers in front of a result and of what it is added to, the window, x, w, y. */
#define CONV_WAY(type, part, x, w, y) { CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR, \
    { CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_BETA, \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##x, \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##w, CUDNN_ATTR_OPERATION_CONVOLUTION_##part##_##y } }

int graph_conv(Graph *g, ConvWay way, int x, int w, int y, const Window *v)
{
    static const struct { cudnnBackendDescriptorType_t type; cudnnBackendAttributeName_t name[6]; } ways[] = {
        CONV_WAY(FORWARD, FORWARD, X, W, Y), CONV_WAY(BACKWARD_DATA, BWD_DATA, DX, W, DY),
        CONV_WAY(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    };
    static const char what[] = "a convolution";
    static const cudnnDataType_t in = CUDNN_DATA_FLOAT;
    static const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    static const int64_t axes = 2;
    static const float factor[] = { 1, 0 };
    const int operand[] = { x, w, y }, result[] = { y, x, w };
    Desc how = create(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what);
    SET(how, CONVOLUTION_COMP_TYPE, DATA_TYPE, in);
    SET(how, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, mode);
    SET(how, CONVOLUTION_SPATIAL_DIMS, INT64, axes);
    set(g, how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, v->step, what);
    set(g, how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, v->before, what);
    set(g, how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, v->behind, what);
    set(g, how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, v->apart, what);
    finish(g, how, what);
    Desc d = create(g, ways[way].type, what);
    for (int i = 0; i < 2; i++)
        set(g, d, ways[way].name[i], CUDNN_TYPE_FLOAT, 1, &factor[i], what);
    set(g, d, ways[way].name[2], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how, what);
    for (int i = 0; i < 3; i++)
        set(g, d, ways[way].name[3 + i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->tensor[operand[i]], what);
    return node(g, d, result[way], what);
}

/* ---- the plan ---------------------------------------------------------------------------------------------- */
/* The library's choices, best first; their number. */
static int64_t choices(Graph *g, cudnnBackendHeurMode_t mode, Desc *list, int64_t most)
{
    static const char graph[] = "the graph", what[] = "the choice of an engine";
    int64_t n = 0;
    Desc all = create(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, graph);
    set(g, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->nodes, g->node, graph);
    if (g->handle)
        set(g, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle, graph);
    finish(g, all, graph);
    Desc heuristic = create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
    LINK(heuristic, ENGINEHEUR_OPERATION_GRAPH, all);
    SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, mode);
    if (g->chip)
        LINK(heuristic, ENGINEHEUR_DEVICEPROP, g->chip);
    finish(g, heuristic, what);
    for (int64_t i = 0; i < most; i++)
        list[i] = create(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, what);
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &n,
                                         list), what);
    return g->status == CUDNN_STATUS_SUCCESS ? n : 0;
}

/* Does the library note this of the engine?  It does not note of all of them that their bits differ from run to run. */
static bool noted(Graph *g, Desc choice, cudnnBackendNumericalNote_t about)
{
    static const char what[] = "the notes of an engine";
    cudnnBackendNumericalNote_t list[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0, one;
    Desc engine = create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR, what);
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine),
             what);
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, list), what);
    for (int64_t i = 0; i < n; i++)
        if (list[i] == about)
            return true;
    return false;
}

/* An engine that cannot be finalised leaves no mark in the graph: the next may. */
static bool finalised(const Graph *g, Plan *p, Desc choice)
{
    Graph trial = { .handle = g->handle, .chip = g->chip };
    static const char what[] = "the plan";
    int64_t n;
    p->plan = create(&trial, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, what);
    set(&trial, p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &choice, what);
    if (g->handle)
        set(&trial, p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle, what);
    if (g->chip)
        set(&trial, p->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->chip, what);
    finish(&trial, p->plan, what);
    if (trial.status == CUDNN_STATUS_SUCCESS)
        note(&trial, cudnnBackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                                              &p->workspace), what);
    return trial.status == CUDNN_STATUS_SUCCESS && (!g->room || p->workspace <= g->room);
}

static bool planned(Graph *g, Plan *p, cudnnBackendHeurMode_t mode)
{
    enum { MOST = 24 };         /* of a convolution those with little workspace come late */
    Desc list[MOST];
    int64_t n = choices(g, mode, list, MOST);
    for (int64_t i = 0; i < n; i++)
        if (!noted(g, list[i], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && finalised(g, p, list[i])) {
            p->cores = noted(g, list[i], CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
            return true;
        }
    return false;
}

bool graph_plan(Graph *g, Plan *p)
{
    p->memory = g->memory;
    for (int i = 0; i < g->memory; i++)
        p->uid[i] = g->uid[i];
    if (planned(g, p, CUDNN_HEUR_MODE_A) || (g->room && planned(g, p, CUDNN_HEUR_MODE_FALLBACK)))
        return true;
    note(g, CUDNN_STATUS_NOT_SUPPORTED, "no engine");
    return false;
}

/* ---- in a step --------------------------------------------------------------------------------------------- */
cudnnHandle_t graph_handle(Stage *st)
{
    Device *d = device_of(st);
    if (d->graphs)
        return d->graphs;
    size_t v = cudnnGetVersion();
    cudnnStatus_t status = v / 10000 == CUDNN_MAJOR ? cudnnCreate((cudnnHandle_t *)&d->graphs)
                                                    : CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH;
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnSetStream(d->graphs, d->compute);
    if (status == CUDNN_STATUS_SUCCESS)
        return d->graphs;
    fprintf(stderr, "cuDNN %zu.%zu.%zu does not start: %s; this folder was compiled for cuDNN %d: install that, for this "
            "driver's CUDA\n", v / 10000, v / 100 % 100, v % 100, cudnnGetErrorString(status), CUDNN_MAJOR);
    exit(6);
}

void plan_run(Stage *st, const Plan *p, void *const *address, void *workspace, const char *call)
{
    Graph run = { .handle = device_of(st)->graphs };
    Desc d = create(&run, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, call);
    set(&run, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p->memory, p->uid, call);
    set(&run, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p->memory, address, call);
    set(&run, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace, call);
    finish(&run, d, call);
    stream_of(st);                      /* the library has it: what is gathered goes first */
    if (run.status == CUDNN_STATUS_SUCCESS)
        note(&run, cudnnBackendExecute(run.handle, p->plan, d), call);
    if (d)
        cudnnBackendDestroyDescriptor(d);
    if (run.status != CUDNN_STATUS_SUCCESS) {
        char text[128];
        snprintf(text, sizeof text, "%s: cuDNN: %s", call, cudnnGetErrorString(run.status));
        device_check(st, cudaErrorUnknown, text);
    }
    device_check(st, cudaSuccess, call);
}
