/* SPDX-License-Identifier: Apache-2.0
 *
 * What opcheck calls and rt/op/cuda leaves to a library: products, here plain loops, so that the bias gradient is checked
 * where Linear is; and attention and convolutions, always by the own kernels.  Any other call without a kernel does not link.
 */
#include "../../rt/op/cuda/attention_own.h"
#include "../../rt/op/cuda/bias.h"
#include "../../rt/op/cuda/conv_own.h"
#include "../../rt/op/cuda/factor.h"
#include "../../rt/op/cuda/xent.h"
#include "../../rt/real.h"
#include "../eight.h"

static float dot(const real *a, long a_step, const real *b, long b_step, long n)
{
    float sum = 0;
    for (long i = 0; i < n; i++)
        sum += get(a, i * a_step) * get(b, i * b_step);
    return sum;
}

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out)
{
    (void)st, (void)h;
    for (long i = 0; i < rows * out; i++)
        put(y, i, dot(x + i / out * in, 1, weight + i % out * in, 1, in) + (bias ? get(bias, i % out) : 0));
}

void linear_add_forward(Stage *st, real *y, const real *skip, const real *x, const real *weight, const real *bias, int h,
                        long rows, long in, long out)
{
    (void)st, (void)h;
    for (long i = 0; i < rows * out; i++)
        put(y, i, dot(x + i / out * in, 1, weight + i % out * in, 1, in) + get(skip, i) +
                  (bias ? get(bias, i % out) : 0));
}

void linear_add_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const real *onto, int h, long rows, long in,
                           long out)
{
    (void)st, (void)h;
    for (long i = 0; i < rows * in; i++)
        put(dx, i, dot(dy + i / in * out, 1, weight + i % in, in, out) + get(onto, i));
}

void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out)
{
    (void)st, (void)h;
    for (long i = 0; i < rows * in; i++)
        put(dx, i, dot(dy + i / in * out, 1, weight + i % in, in, out));
}

void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc,
                       long rows, long in, long out)
{
    (void)h;
    for (long i = 0; dweight && i < out * in; i++)
        dweight[i] = (acc ? dweight[i] : 0) + dot(dy + i / in, out, x + i % in, in, rows);
    if (dbias)
        bias_gradient(st, dbias, dy, acc, rows, out);
}

#include "../../rt/op/cuda/norm_linear.c"       /* it queues nothing itself */

/* ---- factors of 8 bits are own kernels, and both lie along the sum of n elements ------------------------------------ */

static Eight eight(void *to, const real *from, const float *amax, int which, long rows, long cols, int turned)
{
    return (Eight){.to = to, .from = from, .bins = amax + which * FP8_BINS, .rows = rows, .cols = cols, .turned = turned,
                   .type = which == FP8_DY ? E5M2 : E4M3};
}

static float eight_dot(const Eight *a, long i, const Eight *b, long j, Units u, long n)
{
    double sum = 0;
    for (long k = 0; k < n; k++) {
        int p = a->to[i * n + k], q = b->to[j * n + k];
        sum += eight_value(p & 127, a->type == E5M2) * eight_value(q & 127, b->type == E5M2) * ((p ^ q) & 128 ? -1 : 1);
    }
    return (float)(sum * (double)*u.a * (double)*u.b);
}

void linear_fp8_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const float *amax, void *tmp,
                        int h, long rows, long in, long out)
{
    uint8_t *at = tmp, *end = at + rows * in + out * in;
    Eight a = eight(at, x, amax, FP8_X, rows, in, 0), b = eight(at + rows * in, weight, amax, FP8_WEIGHT, out, in, 0);
    Units u = factors_make(st, a, b, (Eight){0}, (float *)(void *)end);
    (void)h;
    for (long i = 0; i < rows * out; i++)
        put(y, i, eight_dot(&a, i / out, &b, i % out, u, in) + (bias ? get(bias, i % out) : 0));
}

void linear_fp8_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const float *amax, void *tmp, int h,
                           long rows, long in, long out)
{
    uint8_t *at = tmp, *end = at + rows * out + out * in;
    Eight a = eight(at, dy, amax, FP8_DY, rows, out, 0), b = eight(at + rows * out, weight, amax, FP8_WEIGHT, out, in, 1);
    Units u = factors_make(st, a, b, (Eight){0}, (float *)(void *)end);
    (void)h;
    for (long i = 0; i < rows * in; i++)
        put(dx, i, eight_dot(&a, i / in, &b, i % in, u, out));
}

void linear_fp8_backward_w(Stage *st, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                           const real *weight, const float *amax, void *tmp, int h, int acc, long rows, long in, long out)
{
    uint8_t *at = tmp, *end = at + rows * out + rows * in;
    Eight a = eight(at, dy, amax, FP8_DY, rows, out, 1), b = eight(at + rows * out, x, amax, FP8_X, rows, in, 1);
    a.dbias = dbias, a.acc = acc;
    Units u = factors_make(st, a, b, (Eight){0}, (float *)(void *)end);
    (void)h;
    factors_note(st, damax, a, b, eight(0, weight, amax, FP8_WEIGHT, out, in, 0), (float *)(void *)end, acc);
    for (long i = 0; dweight && i < out * in; i++)
        dweight[i] = (acc ? dweight[i] : 0) + eight_dot(&a, i / in, &b, i % in, u, rows);
}

static void eight_both(Stage *st, real *dx, float *dweight, float *damax, Eight a, uint8_t *codes, const real *x,
                       const real *weight, const float *amax, void *tmp, long in)
{
    long rows = a.rows, out = a.cols;
    uint8_t *of_x = tmp, *of_weight = of_x + rows * in, *end = of_weight + out * in;
    Eight b = eight(of_x, x, amax, FP8_X, rows, in, 1), c = eight(of_weight, weight, amax, FP8_WEIGHT, out, in, 1);
    a.straight = codes, a.to = codes + rows * out;
    Eight straight = eight(codes, 0, amax, FP8_DY, rows, out, 0);
    Units u = factors_make(st, a, b, c, (float *)(void *)end);
    factors_note(st, damax, a, b, c, (float *)(void *)end, a.acc);
    for (long i = 0; dx && i < rows * in; i++)
        put(dx, i, eight_dot(&straight, i / in, &c, i % in, (Units){u.a, u.c, 0}, out));
    for (long i = 0; dweight && i < out * in; i++)
        dweight[i] = (a.acc ? dweight[i] : 0) + eight_dot(&a, i / in, &b, i % in, u, rows);
}

void linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                         const real *weight, const float *amax, void *tmp, int h_x, int h_w, int acc, long rows, long in,
                         long out)
{
    Eight a = eight(0, dy, amax, FP8_DY, rows, out, 1);
    (void)h_x, (void)h_w;
    a.dbias = dbias, a.acc = acc;
    eight_both(st, dx, dweight, damax, a, tmp, x, weight, amax, (uint8_t *)tmp + 2 * rows * out, in);
}

void gelu_linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, void *dpre, const real *dy,
                              const real *pre, const real *x, const real *weight, const float *amax, void *tmp, long tanh,
                              int h_x, int h_w, int acc, long rows, long in, long out)
{
    Eight a = eight(0, dy, amax, FP8_DY, rows, out, 1);
    (void)h_x, (void)h_w;
    a.dbias = dbias, a.acc = acc, a.pre = pre, a.tanh = (int)tanh;
    eight_both(st, dx, dweight, damax, a, dpre, x, weight, amax, tmp, in);
}

void linear_gelu_forward(Stage *st, real *y, real *pre, const real *x, const real *weight, const real *bias, int h, long rows,
                         long in, long out)
{
    linear_forward(st, pre, x, weight, bias, h, rows, in, out);
    gelu_forward(st, y, pre, rows * out, 1);
}

void linear_gelu_backward(Stage *st, real *dpre, const real *dy, const real *weight, const real *pre, int h, long rows, long in,
                          long out)
{
    linear_backward_x(st, dpre, dy, weight, h, rows, in, out);
    gelu_backward(st, dpre, dpre, pre, rows * in, 1);
}

void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                         const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out,
                         long chunk, long ignore, int count)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows;
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        linear_forward(st, tmp, x, weight + from * in, bias ? bias + from : 0, h, rows, in, n);
        scores_absorb(st, lse, sum, hit, (ScoreRows){tmp, n, from, n}, targets, rows, from == 0);
    }
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias,
                              const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk,
                              long ignore, int count, long top)
{
    float *sum = behind(tmp, rows * chunk), *hit = sum + rows, *aim = hit + rows, *ahead = aim + rows;
    scores_aim(st, aim, ahead, x, weight, bias, targets, vals, rows, in, 0, out);
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        linear_forward(st, tmp, x, weight + from * in, bias ? bias + from : 0, h, rows, in, n);
        scores_absorb(st, lse, sum, hit, (ScoreRows){tmp, n, from, n}, targets, rows, from == 0);
        scores_ahead(st, ahead, aim, (ScoreRows){tmp, n, from, n}, targets, vals, rows);
    }
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}

void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x,
                          const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp,
                          const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count)
{
    float *wide = sizeof(real) == sizeof(float) ? (float *)dx : behind(tmp, rows * chunk);
    for (long from = 0; from < out; from += chunk) {
        long n = out - from < chunk ? out - from : chunk;
        linear_forward(st, tmp, x, weight + from * in, bias ? bias + from : 0, h, rows, in, n);
        scores_back(st, tmp, dloss, (ScoreRows){tmp, n, from, n}, lse, targets, vals, rows, ignore, count);
        linear_backward_w(st, dweight + from * in, dbias ? dbias + from : 0, tmp, x, h, acc, rows, in, n);
        for (long i = 0; dx && i < rows * in; i++)
            wide[i] = (from ? wide[i] : 0) + dot((const real *)tmp + i / in * n, 1, weight + from * in + i % in, in, n);
    }
    if (dx && wide != (float *)dx)
        scores_narrow(st, dx, wide, rows * in);
}

/* y[i j] = a[i p] b[p j], all with steps along both of their axes. */
static void product(real *y, long y_row, long y_col, const real *a, long a_row, long a_col, const real *b, long b_row,
                    long b_col, long m, long n, long k)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            put(y, i * y_row + j * y_col, dot(a + i * a_row, a_col, b + j * b_col, b_row, k));
}

void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k,
                    long ta, long tb)
{
    (void)st, (void)h;
    for (long i = 0; i < batch; i++)
        product(y + i * m * n, n, 1, a + i * m * k, ta ? 1 : k, ta ? m : 1, b + i * k * n, tb ? 1 : n, tb ? k : 1, m, n, k);
}

void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch,
                     long m, long n, long k, long ta, long tb)
{
    (void)st, (void)h;
    long a_row = ta ? 1 : k, a_col = ta ? m : 1, b_row = tb ? 1 : n, b_col = tb ? k : 1;
    for (long i = 0; i < batch; i++) {
        const real *d = dy + i * m * n;
        if (da)
            product(da + i * m * k, a_row, a_col, d, n, 1, b + i * k * n, b_col, b_row, m, k, n);
        if (db)
            product(db + i * k * n, b_row, b_col, a + i * m * k, a_col, a_row, d, n, 1, k, n, m);
    }
}

void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                       const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query,
                       long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width;
    attention_own_forward(st, y, lse, q, k, v, all, all, bias, mask, vals, mb, batch, heads, heads, query, key, width,
                          causal, scale, drop, site);
}

void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                        const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                        const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                        long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width;
    attention_own_backward(st, dq, dk, dv, dbias, dy, y, q, k, v, all, all, bias, mask, lse, tmp, vals, mb, batch, heads,
                           heads, query, key, width, causal, scale, drop, site);
}

void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                              const Values *vals, int mb, int h, long batch, long heads, long query, long width,
                              long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width, row = 3 * all;
    attention_own_forward(st, y, lse, qkv, qkv + all, qkv + 2 * all, row, row, bias, mask, vals, mb, batch, heads, heads,
                          query, query, width, causal, scale, drop, site);
}

void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                               const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals,
                               int mb, int h, long batch, long heads, long query, long width, long causal, float scale,
                               float drop, int64_t site)
{
    (void)h;
    long all = heads * width, row = 3 * all;
    attention_own_backward(st, dqkv, dqkv ? dqkv + all : 0, dqkv ? dqkv + 2 * all : 0, dbias, dy, y, qkv, qkv + all,
                           qkv + 2 * all, row, row, bias, mask, lse, tmp, vals, mb, batch, heads, heads, query, query,
                           width, causal, scale, drop, site);
}

void attention_shared_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias,
                              const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long kv_heads,
                              long query, long key, long width, long causal, float scale, float drop, int64_t site)
{
    (void)h;
    attention_own_forward(st, y, lse, q, k, v, heads * width, kv_heads * width, bias, mask, vals, mb, batch, heads, kv_heads,
                          query, key, width, causal, scale, drop, site);
}

void attention_shared_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                               const real *q, const real *k, const real *v, const real *bias, const int32_t *mask,
                               const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads,
                               long kv_heads, long query, long key, long width, long causal, float scale, float drop,
                               int64_t site)
{
    (void)h;
    attention_own_backward(st, dq, dk, dv, dbias, dy, y, q, k, v, heads * width, kv_heads * width, bias, mask, lse, tmp, vals,
                           mb, batch, heads, kv_heads, query, key, width, causal, scale, drop, site);
}

void conv_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    (void)h;
    conv_own_forward(st, y, x, weight, bias, &v);
}

void conv_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    (void)h;
    conv_own_backward_x(st, dx, dy, weight, &v);
}

void conv_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, CONV_SIZES)
{
    Conv v = CONV_OF_CALL;
    (void)h;
    if (dweight)
        conv_own_backward_w(st, dweight, dy, x, acc, &v);
    if (dbias)
        conv_own_backward_bias(st, dbias, dy, acc, &v);
}
