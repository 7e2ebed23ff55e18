/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of single elements: one result from one, two or three elements at the same place.  A thread takes 16 bytes of
 * each operand at once; all of these run at the speed of memory.
 */
#include "kernel.h"

typedef float (*One)(float a, float p, float q);
typedef float (*Two)(float a, float b, float p, float q);

template <One F> static __global__ void map_one(real *y, const real *x, long n, float p, float q)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        take(v, x, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(v[j], p, q);
        leave(y, v, i, n, step);
    }
}

template <Two F> static __global__ void map_two(real *y, const real *a, const real *b, long n, float p, float q)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], w[WIDE];
        take(v, a, i, n, step);
        take(w, b, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(v[j], w[j], p, q);
        leave(y, v, i, n, step);
    }
}

template <One F> static void one_in(Stage *st, real *y, const real *x, long n, float p = 0, float q = 0)
{
    LAUNCH((map_one<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, x, n, p, q);
}

template <Two F>
static void two_in(Stage *st, real *y, const real *a, const real *b, long n, float p = 0, float q = 0)
{
    LAUNCH((map_two<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, a, b, n, p, q);
}

/* y = F(a) b.  F(a), and in backward dy b, are rounded as in two calls. */
template <One F> static __global__ void gate(real *y, const real *a, const real *b, long n)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], w[WIDE];
        take(v, a, i, n, step);
        take(w, b, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(v[j], 0, 0);
        narrow(v, y);
        for (int j = 0; j < WIDE; j++)
            v[j] *= w[j];
        leave(y, v, i, n, step);
    }
}

/* SLOPE takes the operand of F, or its result. */
template <One F, Two SLOPE, bool RESULT>
static __global__ void gate_back(real *da, real *db, const real *dy, const real *a, const real *b, long n)
{
    GROUPS(i, step, WIDE, n) {
        float x[WIDE], d[WIDE], w[WIDE], v[WIDE], to_b[WIDE];
        take(x, a, i, n, step);
        take(d, dy, i, n, step);
        take(w, b, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(x[j], 0, 0);
        narrow(v, a);
        for (int j = 0; j < WIDE; j++) {
            to_b[j] = 0.0f + d[j] * v[j];       /* as a sum of one term: never -0 */
            d[j] *= w[j];
        }
        narrow(d, a);
        for (int j = 0; j < WIDE; j++)
            d[j] = SLOPE(d[j], RESULT ? v[j] : x[j], 0, 0);
        if (da)
            leave(da, d, i, n, step);
        if (db)
            leave(db, to_b, i, n, step);
    }
}

template <One F> static void gated(Stage *st, real *y, const real *a, const real *b, long n)
{
    LAUNCH((gate<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, a, b, n);
}

template <One F, Two SLOPE, bool RESULT>
static void gated_back(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n)
{
    LAUNCH((gate_back<F, SLOPE, RESULT>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, da, db, dy, a, b, n);
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

FN float relu(float x, float, float) { return x < 0 ? 0.0f : x; }
FN float relu_slope(float dy, float y, float, float) { return y > 0 ? dy : 0.0f; }
FN float gelu_by_tanh(float x, float, float) { return gelu_tanh(x); }
FN float gelu_by_tanh_slope(float dy, float x, float, float) { return dy * slope_tanh(x); }
FN float gelu_by_erf(float x, float, float) { return gelu_erf(x); }
FN float gelu_by_erf_slope(float dy, float x, float, float) { return dy * slope_erf(x); }
FN float silu(float x, float, float) { return x * fsigmoid(x); }
FN float silu_slope(float dy, float x, float, float)
{
    float s = fsigmoid(x);
    return dy * (s + x * s * (1.0f - s));
}
FN float tanh_of(float x, float, float) { return ftanh(x); }
FN float tanh_slope(float dy, float y, float, float) { return dy * (1.0f - y * y); }
FN float sigmoid_of(float x, float, float) { return fsigmoid(x); }
FN float sigmoid_slope(float dy, float y, float, float) { return dy * (y * (1.0f - y)); }
FN float times(float x, float factor, float) { return x * factor; }
FN float plus(float a, float b, float, float) { return a + b; }
FN float clip(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
FN float clip_slope(float dy, float x, float low, float high) { return x > low && x < high ? dy : 0.0f; }
FN float leaky(float x, float slope, float) { return x < 0 ? x * slope : x; }
FN float leaky_slope(float dy, float x, float slope, float) { return x > 0 ? dy : dy * slope; }
FN float elu(float x, float alpha, float) { return x > 0 ? x : alpha * exp_less_one(x); }
FN float elu_slope(float dy, float x, float alpha, float) { return x > 0 ? dy : dy * (alpha * fexp(x)); }
FN float soft_plus(float x, float, float) { return binary_loss(x, 0.0f); }
FN float soft_plus_slope(float dy, float x, float, float) { return dy * fsigmoid(x); }
FN float ramp(float x, float, float) { return x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : (x + 3.0f) / 6.0f; }
FN float ramp_slope(float dy, float x, float, float) { return x > -3.0f && x < 3.0f ? dy / 6.0f : 0.0f; }
FN float hard_swish(float x, float, float) { return x * ramp(x, 0, 0); }
FN float hard_swish_slope(float dy, float x, float, float)
{
    return x <= -3.0f ? 0.0f : x < 3.0f ? dy * ((2.0f * x + 3.0f) / 6.0f) : dy;
}
FN float soft_cap(float x, float cap, float) { return cap * ftanh(x / cap); }
FN float soft_cap_slope(float dy, float x, float cap, float)
{
    float t = ftanh(x / cap);
    return dy * (1.0f - t * t);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void relu_forward(Stage *st, real *y, const real *x, long n) { one_in<relu>(st, y, x, n); }
void relu_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<relu_slope>(st, dx, dy, y, n); }

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    if (tanh)
        one_in<gelu_by_tanh>(st, y, x, n);
    else
        one_in<gelu_by_erf>(st, y, x, n);
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    if (tanh)
        two_in<gelu_by_tanh_slope>(st, dx, dy, x, n);
    else
        two_in<gelu_by_erf_slope>(st, dx, dy, x, n);
}

void silu_forward(Stage *st, real *y, const real *x, long n) { one_in<silu>(st, y, x, n); }
void silu_backward(Stage *st, real *dx, const real *dy, const real *x, long n) { two_in<silu_slope>(st, dx, dy, x, n); }
void tanh_forward(Stage *st, real *y, const real *x, long n) { one_in<tanh_of>(st, y, x, n); }
void tanh_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<tanh_slope>(st, dx, dy, y, n); }
void sigmoid_forward(Stage *st, real *y, const real *x, long n) { one_in<sigmoid_of>(st, y, x, n); }
void sigmoid_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<sigmoid_slope>(st, dx, dy, y, n); }
void scale_forward(Stage *st, real *y, const real *x, long n, float factor) { one_in<times>(st, y, x, n, factor); }
void clip_forward(Stage *st, real *y, const real *x, long n, float low, float high) { one_in<clip>(st, y, x, n, low, high); }
void clip_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float low, float high)
{
    two_in<clip_slope>(st, dx, dy, x, n, low, high);
}
void leaky_relu_forward(Stage *st, real *y, const real *x, long n, float slope) { one_in<leaky>(st, y, x, n, slope); }
void leaky_relu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float slope)
{
    two_in<leaky_slope>(st, dx, dy, x, n, slope);
}
void elu_forward(Stage *st, real *y, const real *x, long n, float alpha) { one_in<elu>(st, y, x, n, alpha); }
void elu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float alpha)
{
    two_in<elu_slope>(st, dx, dy, x, n, alpha);
}
void softplus_forward(Stage *st, real *y, const real *x, long n) { one_in<soft_plus>(st, y, x, n); }
void softplus_backward(Stage *st, real *dx, const real *dy, const real *x, long n) { two_in<soft_plus_slope>(st, dx, dy, x, n); }
void hard_sigmoid_forward(Stage *st, real *y, const real *x, long n) { one_in<ramp>(st, y, x, n); }
void hard_sigmoid_backward(Stage *st, real *dx, const real *dy, const real *x, long n) { two_in<ramp_slope>(st, dx, dy, x, n); }
void hard_swish_forward(Stage *st, real *y, const real *x, long n) { one_in<hard_swish>(st, y, x, n); }
void hard_swish_backward(Stage *st, real *dx, const real *dy, const real *x, long n)
{
    two_in<hard_swish_slope>(st, dx, dy, x, n);
}
void add_forward(Stage *st, real *y, const real *a, const real *b, long n) { two_in<plus>(st, y, a, b, n); }
void grad_add(Stage *st, real *y, const real *a, const real *b, long n) { two_in<plus>(st, y, a, b, n); }
void softcap_forward(Stage *st, real *y, const real *x, long n, float cap) { one_in<soft_cap>(st, y, x, n, cap); }
void softcap_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float cap)
{
    two_in<soft_cap_slope>(st, dx, dy, x, n, cap);
}

/* By the number of the activation: gen/ops.def. */
void gate_forward(Stage *st, real *y, const real *a, const real *b, long n, long act)
{
    static void (*const of[])(Stage *, real *, const real *, const real *, long) = {
        gated<silu>, gated<gelu_by_erf>, gated<gelu_by_tanh>, gated<relu>, gated<sigmoid_of>,
    };
    of[act](st, y, a, b, n);
}

void gate_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long act)
{
    static void (*const of[])(Stage *, real *, real *, const real *, const real *, const real *, long) = {
        gated_back<silu, silu_slope, false>, gated_back<gelu_by_erf, gelu_by_erf_slope, false>,
        gated_back<gelu_by_tanh, gelu_by_tanh_slope, false>, gated_back<relu, relu_slope, true>,
        gated_back<sigmoid_of, sigmoid_slope, true>,
    };
    of[act](st, da, db, dy, a, b, n);
}
