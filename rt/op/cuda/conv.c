/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c: Conv, y = x * weight + bias, and its gradients.  It decides which calls are cuDNN's, and which our own kernels'
 * (conv_own.cu).
 *
 * cuDNN has those that the plan has opened, which are all in bf16: gen/cost/prepared.c.  Its result is rounded before the bias
 * is added.  The gradient of the weight is rounded too, in front of the workspace, and a kernel adds it to the f32 gradient.
 * Where the library has no plan, conv_graph.c says so at the start, and our own kernels do the call.
 */
#include "conv.h"
#include "conv_own.h"
#include "../../cuda/device.h"

/* The library takes addresses of inputs without const; it reads them only. */
static void *input(const void *address)
{
    return (void *)(uintptr_t)address;
}

static bool planned(Stage *st, int h, void *const *address, const char *call)
{
    const PreparedConv *p = sizeof(real) == sizeof(float) ? NULL : st->handle[h];
    return p && p->run(st, p, address, call);
}

void conv_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    void *const address[] = { y, input(x), input(weight) };
    if (!planned(st, h, address, "conv_forward"))
        conv_own_forward(st, y, x, weight, bias, &v);
    else if (bias)
        conv_own_bias(st, y, bias, &v);
}

void conv_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    void *const address[] = { input(dy), dx, input(weight) };
    if (!planned(st, h, address, "conv_backward_x"))
        conv_own_backward_x(st, dx, dy, weight, &v);
}

void conv_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    real *part = device_of(st)->workspace;
    void *const address[] = { input(dy), input(x), part };
    if (dweight && planned(st, h, address, "conv_backward_w"))
        conv_own_take(st, dweight, part, acc, &v);
    else if (dweight)
        conv_own_backward_w(st, dweight, dy, x, acc, &v);
    if (dbias)
        conv_own_backward_bias(st, dbias, dy, acc, &v);
}
