/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear with factors of 8 bits (../fp8.h): x and weight in e4m3, dy in e5m2, each scaled by a power of two that its history
 * gives.  A result is one ascending chain of products of the factors, in f32, then taken back by both scales, which rounds
 * nothing; the bias is added last.  The gradient of the bias is that of dy as it is.
 *
 * For processors this is a definition, and slow: tests compare GPUs with it.
 */
#include "../fp8.h"
#include "kernel.h"

typedef struct {
    const uint8_t *code;
    float value[256];           /* of each code */
    int scale;                  /* they are 2^scale times too large */
} Factor;

static float largest(const real *x, long n)
{
    float most = 0;
    for (long i = 0; i < n; i++) {
        float v = bits_float(float_bits(get(x, i)) & 0x7fffffff);
        most = v > most ? v : most;
    }
    return most;
}

static int bin_of(const float *amax, const real *x, long n)
{
    for (int b = FP8_BINS - 1; b >= 0; b--)
        if (amax[b] > 0)
            return b;
    return fp8_bin(largest(x, n));
}

/* `which` tensor of the history; its n codes go to `room`. */
static Factor narrow(uint8_t *room, const real *x, long n, const float *amax, int which)
{
    Fp8 type = which == FP8_DY ? E5M2 : E4M3;
    Factor f = {.code = room, .scale = fp8_scale(bin_of(amax + which * FP8_BINS, x, n), type)};
    for (int c = 0; c < 256; c++)
        f.value[c] = fp8_float((uint8_t)c, type);
    for (long i = 0; i < n; i++)
        room[i] = float_fp8(get(x, i) * fp8_power(f.scale), type);
    return f;
}

/* The sum over p of a[a0 + p as] b[b0 + p bs]. */
static float chain(const Factor *a, long a0, long as, const Factor *b, long b0, long bs, long n)
{
    float sum = 0;
    for (long p = 0; p < n; p++)
        sum += a->value[a->code[a0 + p * as]] * b->value[b->code[b0 + p * bs]];
    return sum * fp8_power(-a->scale) * fp8_power(-b->scale);
}

void linear_fp8_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const float *amax, void *tmp,
                        int h, long rows, long in, long out)
{
    Factor a = narrow(tmp, x, rows * in, amax, FP8_X);
    Factor b = narrow((uint8_t *)tmp + rows * in, weight, in * out, amax, FP8_WEIGHT);
    (void)h;
    EACH(rows * in * out >= 4 * SPAN)
    for (long i = 0; i < rows * out; i++) {
        float sum = chain(&a, i / out * in, 1, &b, i % out * in, 1, in);
        put(y, i, bias ? sum + get(bias, i % out) : sum);
    }
}

void linear_fp8_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const float *amax, void *tmp, int h,
                           long rows, long in, long out)
{
    (void)h;
    if (!dx)
        return;
    Factor a = narrow(tmp, dy, rows * out, amax, FP8_DY);
    Factor b = narrow((uint8_t *)tmp + rows * out, weight, in * out, amax, FP8_WEIGHT);
    EACH(rows * in * out >= 4 * SPAN)
    for (long i = 0; i < rows * in; i++)
        put(dx, i, chain(&a, i / in * out, 1, &b, i % in, in, out));
}

static void note(float *damax, int which, float most, int acc)
{
    int bin = fp8_bin(most);
    float *bins = damax + which * FP8_BINS;
    for (int b = 0; b < FP8_BINS; b++)
        bins[b] = (acc ? bins[b] : 0) + (b == bin);
}

void linear_fp8_backward_w(Stage *st, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                           const real *weight, const float *amax, void *tmp, int h, int acc, long rows, long in, long out)
{
    enum { ALL = FP8_TENSORS * FP8_BINS };
    Factor a = narrow(tmp, dy, rows * out, amax, FP8_DY), b = narrow((uint8_t *)tmp + rows * out, x, rows * in, amax, FP8_X);
    (void)h;
    EACH(rows * in * out >= 4 * SPAN)
    for (long i = 0; i < (dweight ? in * out : 0); i++)
        dweight[i] = chain(&a, i / in, out, &b, i % in, in, rows) + (acc ? dweight[i] : 0);
    if (dbias)
        bias_blocks(st, dbias, dy, acc, rows, out, rows);
    note(damax, FP8_X, largest(x, rows * in), acc);
    note(damax, FP8_DY, largest(dy, rows * out), acc);
    note(damax, FP8_WEIGHT, acc ? 0 : largest(weight, in * out), acc);      /* the same for all micro-batches */
    for (int i = 0; i < ALL && !acc; i++)
        damax[ALL + i] = 0;         /* accumulators have two floats a number, and a count needs one */
}

/* Both at once, as GPUs have it. */
void linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, const real *dy, const real *x,
                         const real *weight, const float *amax, void *tmp, int h_x, int h_w, int acc, long rows, long in,
                         long out)
{
    linear_fp8_backward_x(st, dx, dy, weight, amax, tmp, h_x, rows, in, out);
    linear_fp8_backward_w(st, dweight, dbias, damax, dy, x, weight, amax, tmp, h_w, acc, rows, in, out);
}

/* The Linear in front of a Gelu, whose gradient dpre has no other use. */
void gelu_linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, void *dpre, const real *dy,
                              const real *pre, const real *x, const real *weight, const float *amax, void *tmp, long tanh,
                              int h_x, int h_w, int acc, long rows, long in, long out)
{
    gelu_backward(st, dpre, dy, pre, rows * out, tanh);
    linear_fp8_backward(st, dx, dweight, dbias, damax, dpre, x, weight, amax, tmp, h_x, h_w, acc, rows, in, out);
}

void fp8_track(Stage *st, float *amax, const float *seen, long n, long history)
{
    (void)st;
    for (long i = 0; i < n; i++)
        amax[i] = seen[i] > 0 ? (float)history : amax[i] > 0 ? amax[i] - 1 : 0;
}
