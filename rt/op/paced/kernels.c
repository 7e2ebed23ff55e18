/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of paced jobs: they have the names and operands of the others, and do nothing; pace.c lets the time pass.
 */
#include "../../isa.h"
#include "../../rt.h"

ISA_OF_THIS_FILE;

#pragma GCC diagnostic ignored "-Wunused-parameter"

void embedding_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows) {}
void embedding_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
    long rows) {}
void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width) {}
void position_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width,
    long rows) {}
void relative_bias_forward(Stage *st, real *y, const real *weight, long heads, long query, long key, long buckets,
    long distance, long both) {}
void relative_bias_backward(Stage *st, float *dweight, const real *dy, int acc, long heads, long query, long key,
    long buckets, long distance, long both) {}
void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows,
    long in, long out) {}
void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out) {}
void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
    long rows, long in, long out) {}
void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k,
    long ta, long tb) {}
void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch,
    long m, long n, long k, long ta, long tb) {}
void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
    const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query, long key, long width,
    long causal, float scale, float drop, int64_t site) {}
void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
    const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const float *lse, void *tmp,
    const Values *vals, int mb, int h, long batch, long heads, long query, long key, long width, long causal,
    float scale, float drop, int64_t site) {}
void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
    const Values *vals, int mb, int h, long batch, long heads, long query, long width, long causal, float scale,
    float drop, int64_t site) {}
void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
    const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals, int mb, int h, long batch,
    long heads, long query, long width, long causal, float scale, float drop, int64_t site) {}
void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight,
    const float *bias, long rows, long width, float eps) {}
void layernorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
    const float *rstd, const real *onto, long rows, long width) {}
void layernorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
    const float *rstd, int acc, long rows, long width) {}
void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width,
    float eps) {}
void rmsnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *rstd,
    const real *onto, long rows, long width) {}
void rmsnorm_backward_w(Stage *st, float *dweight, const real *dy, const real *x, const float *rstd, int acc,
    long rows, long width) {}
void softmax_forward(Stage *st, real *y, const real *x, long rows, long width) {}
void softmax_backward(Stage *st, real *dx, const real *dy, const real *y, long rows, long width) {}
void relu_forward(Stage *st, real *y, const real *x, long n) {}
void relu_backward(Stage *st, real *dx, const real *dy, const real *x, long n) {}
void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh) {}
void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh) {}
void silu_forward(Stage *st, real *y, const real *x, long n) {}
void silu_backward(Stage *st, real *dx, const real *dy, const real *x, long n) {}
void tanh_forward(Stage *st, real *y, const real *x, long n) {}
void tanh_backward(Stage *st, real *dx, const real *dy, const real *y, long n) {}
void sigmoid_forward(Stage *st, real *y, const real *x, long n) {}
void sigmoid_backward(Stage *st, real *dx, const real *dy, const real *y, long n) {}
void scale_forward(Stage *st, real *y, const real *x, long n, float factor) {}
void dropout_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch,
    long per, float drop, int64_t site) {}
void add_forward(Stage *st, real *y, const real *a, const real *b, long n) {}
void add_broadcast_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb) {}
void add_broadcast_backward(Stage *st, real *db, const real *dy, long n, long nb) {}
void mul_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb) {}
void mul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long nb) {}
void concat_forward(Stage *st, real *y, const real *a, const real *b, const real *c, const real *d, long outer,
    long na, long nb, long nc, long nd) {}
void concat_backward(Stage *st, real *da, real *db, real *dc, real *dd, const real *dy, long outer, long na, long nb,
    long nc, long nd) {}
void slice_forward(Stage *st, real *y, const real *x, long outer, long whole, long from, long count) {}
void slice_backward(Stage *st, real *dx, const real *dy, long outer, long whole, long from, long count) {}
void copy_forward(Stage *st, real *y, const real *x, long n) {}
void transpose_forward(Stage *st, real *y, const real *x, long d0, long d1, long d2, long d3, long p0, long p1,
    long p2, long p3) {}
void reduce_forward(Stage *st, real *y, const real *x, long outer, long mid, long inner, float factor) {}
void reduce_backward(Stage *st, real *dx, const real *dy, long outer, long mid, long inner, float factor) {}
void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
    long rows, long width, long ignore, int count) {}
void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
    const Values *vals, long rows, long width, long ignore, int count) {}
void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
    const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk, long ignore,
    int count) {}
void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
    const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp, const Values *vals, int h,
    int acc, long rows, long in, long out, long chunk, long ignore, int count) {}
void mse_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n) {}
void mse_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets,
    const Values *vals, long n) {}
void loss_add_forward(Stage *st, float *y, const float *a, const float *b) {}
void loss_scale_forward(Stage *st, float *y, const float *x, float factor) {}
void loss_report(Stage *st, const float *x, Values *vals, int acc) {}
void loss_seed(Stage *st, float *y) {}
void cast_forward(Stage *st, real *y, const float *x, long n) {}
void grad_add(Stage *st, real *y, const real *a, const real *b, long n) {}
void tie_add(Stage *st, float *g, const float *other, long n) {}
void norm_partial(Stage *st, double *norm, const float *g, long n, long index) {}
void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit) {}
void sgd_update(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
    float momentum, long decay) {}
void adamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip,
    const Values *vals, long n, float beta1, float beta2, float eps, long decay) {}

int kernels_start(int threads, char *why, size_t n)
{
    return 0;
}

size_t kernels_bytes(const Stage *st)
{
    return 0;
}

const char *kernels_version(void)
{
    return "paced 1";
}
