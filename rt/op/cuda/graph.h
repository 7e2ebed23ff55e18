/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: a graph of operations for cuDNN, written down, planned once, and queued in a step.
 *
 * A tensor is a number.  Those in memory are numbered as they are made, and plan_run() takes their addresses in that
 * order; values between two operations exist only inside the library's kernel.  An operation returns its result, so that
 * a graph reads as the formula it computes.  The first failure is kept and the rest does nothing: graph_plan() tells.
 */
#ifndef GRAPH_H
#define GRAPH_H
#include <cudnn.h>
#include <stdbool.h>
#include "../../rt.h"

#if CUDNN_VERSION < 91600
#error "cuDNN 9.16 or newer is needed (start.c says why): install it, or say make CUDNN_HOME=FOLDER"
#endif

enum { GRAPH_NODES = 24, GRAPH_TENSORS = 40, GRAPH_MEMORY = 16 };

typedef struct {
    cudnnHandle_t handle;               /* of the GPU that is here; NULL: plan only, for the chip described */
    cudnnBackendDescriptor_t chip;
    cudnnBackendDescriptor_t tensor[GRAPH_TENSORS], node[GRAPH_NODES];
    int tensors, nodes, memory;
    int64_t room;                       /* a plan may want so many bytes of workspace; 0: any */
    int64_t uid[GRAPH_MEMORY];          /* of those in memory */
    cudnnStatus_t status;
    const char *failed;                 /* what was being made */
} Graph;

/* Four dimensions: batch, head, row, column; steps in elements. */
typedef struct { int64_t size[4], step[4]; } Dims;

int graph_memory(Graph *g, Dims d, cudnnDataType_t type);   /* its address is a multiple of 16 */
int graph_number(Graph *g);                                 /* one float in the host's memory, read when queued */
int graph_value(Graph *g, Dims d, cudnnDataType_t type);

/* y = a b, for each batch and head; summed in f32. */
int graph_matmul(Graph *g, int y, int a, int b);
/* y = f(x), f(x, b), or x where t and b elsewhere; -1: not an operand.  Sizes of 1 are repeated. */
int graph_map(Graph *g, cudnnPointwiseMode_t f, int y, int x, int b, int t);
/* y = the number of x's row (axis 2) or column (3). */
int graph_index(Graph *g, int y, int x, int64_t axis);
/* y = x folded along the axes where y's size is 1. */
int graph_fold(Graph *g, cudnnReduceTensorOp_t f, int y, int x);
/* y = x with the sizes and steps of y: a transpose. */
int graph_turn(Graph *g, int y, int x);
/* A convolution of images [batch channels row column] by kernels [out in row column]: y of x and w, or of the other two
 * dx of dy and w, or dw of dy and x.  Pads in front may differ from those behind; groups follow from the sizes. */
typedef enum { CONV_FORWARD, CONV_BACKWARD_X, CONV_BACKWARD_W } ConvWay;
typedef struct { int64_t step[2], before[2], behind[2], apart[2]; } Window;
int graph_conv(Graph *g, ConvWay way, int x, int w, int y, const Window *v);

typedef struct {
    cudnnBackendDescriptor_t plan;
    int memory;
    int64_t uid[GRAPH_MEMORY];
    int64_t workspace;
    bool cores;                         /* its engine has tensor cores */
} Plan;

/* At open; allocates.  false: this library has no plan for this graph and chip. */
bool graph_plan(Graph *g, Plan *p);
/* In a step: queues.  address: of the tensors in memory and the numbers. */
void plan_run(Stage *st, const Plan *p, void *const *address, void *workspace, const char *call);
/* The library, opened for the stage's GPU and stream. */
cudnnHandle_t graph_handle(Stage *st);
#endif
