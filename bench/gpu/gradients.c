/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients.c: is the gradient of a bias better made by the product of the weight's (BGRADB) or by a pass of our own?  And a
 * Gelu inside its product, forward and backward, or beside it?  For the Linears of GPT-2, 32 samples of 1024 tokens.
 *
 * Only older kernels of cublasLt have such epilogues on sm_90, so the rest of the product may lose what they save.  Each line:
 * the call as a job makes it, the same in two calls, in us, medians of 10, by turns.  With -DON_GPU, as tests/gpu builds it.
 */
#ifndef ON_GPU
#define ON_GPU
#endif
#include "tests/gpu/shared.h"
#include "rt/op/cuda/bias.h"
#include "rt/op/cuda/product.h"

enum { TIMES = 10, WIDEST = 3072, WORKSPACE = 32 << 20 };
#ifndef ROWS
#define ROWS 32768
#endif

static real *x, *dy, *w, *to, *pre;
static float *dw, *db;
static cudaEvent_t from, until;

static void *room(size_t n)
{
    void *at;
    settled(cudaMalloc(&at, n));
    settled(cudaMemset(at, 0x3c, n));           /* bf16 of about 0.01 */
    return at;
}

static int by_size(const void *a, const void *b)
{
    const float *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

typedef void (*Way)(int apart, long in, long out);

static void weight(int apart, long in, long out)
{
    linear_backward_w(st, dw, apart ? NULL : db, dy, x, 0, 0, ROWS, in, out);
    if (apart)
        bias_gradient(st, db, dy, 0, ROWS, out);
}

static void forward(int apart, long in, long out)
{
    if (!apart) {
        linear_gelu_forward(st, to, pre, x, w, x, 1, ROWS, in, out);
        return;
    }
    linear_forward(st, pre, x, w, x, 2, ROWS, in, out);
    gelu_forward(st, to, pre, ROWS * out, 1);
}

/* Of a Linear from `out` back to `in`. */
static void backward(int apart, long in, long out)
{
    if (!apart) {
        linear_gelu_backward(st, to, x, w, pre, 3, ROWS, out, in);
        return;
    }
    linear_backward_x(st, to, x, w, 4, ROWS, out, in);
    gelu_backward(st, to, to, pre, ROWS * out, 1);
}

static void compare(const char *what, Way run, int there, long in, long out)
{
    float us[2][TIMES];
    for (int i = -4; i < 2 * TIMES; i++) {
        settled(cudaEventRecord(from, device.compute));
        run(i & 1, in, out);
        settled(cudaEventRecord(until, device.compute));
        settled(cudaEventSynchronize(until));
        settled(cudaEventElapsedTime(&us[i & 1][i < 0 ? 0 : i / 2], from, until));
    }
    qsort(us[0], TIMES, sizeof **us, by_size), qsort(us[1], TIMES, sizeof **us, by_size);
    printf("%s %ld to %ld: %s %.0f us, in two calls %.0f us\n", what, in, out, there ? "in one" : "not in one",
           1e3 * (double)us[0][TIMES / 2], 1e3 * (double)us[1][TIMES / 2]);
}

int main(void)
{
    static const long shapes[][2] = { { 768, 2304 }, { 768, 768 }, { 768, 3072 }, { 3072, 768 } };
    shared(1);                                  /* the GPU, and a stream */
    x = room((size_t)ROWS * WIDEST * sizeof(real)), dy = room((size_t)ROWS * WIDEST * sizeof(real));
    to = room((size_t)ROWS * WIDEST * sizeof(real)), pre = room((size_t)ROWS * WIDEST * sizeof(real));
    w = room((size_t)WIDEST * WIDEST * sizeof(real)), dw = room((size_t)WIDEST * WIDEST * sizeof *dw);
    db = room(WIDEST * sizeof *db);
    device.workspace = room(WORKSPACE);
    device.workspace_bytes = WORKSPACE;
    settled(cudaEventCreateWithFlags(&from, 0));
    settled(cudaEventCreateWithFlags(&until, 0));
    for (int i = 0; i < 4; i++) {
        open_linear_backward_w(st, 0, ROWS, shapes[i][0], shapes[i][1]);
        compare("gradient of a weight and its bias,", weight, product_there(st, 0, 1), shapes[i][0], shapes[i][1]);
    }
    open_linear_gelu_forward(st, 1, ROWS, 768, 3072);
    open_linear_forward(st, 2, ROWS, 768, 3072);
    compare("a Linear and its Gelu,", forward, product_there(st, 1, 3), 768, 3072);
    open_linear_gelu_backward(st, 3, ROWS, 3072, 768);
    open_linear_backward_x(st, 4, ROWS, 3072, 768);
    compare("the gradient of a Gelu and of its Linear,", backward, product_there(st, 3, 2), 768, 3072);
    settle();
    return 0;
}
