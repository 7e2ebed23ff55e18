/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of single elements: one result from one, two or three elements at the same place.  A thread takes 16 bytes of
 * each operand at once; all of these run at the speed of memory.
 */
#include "kernel.h"

typedef float (*One)(float a, float factor);
typedef float (*Two)(float a, float b);

template <One F> static __global__ void map_one(real *y, const real *x, long n, float factor)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        take(v, x, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(v[j], factor);
        leave(y, v, i, n, step);
    }
}

template <Two F> static __global__ void map_two(real *y, const real *a, const real *b, long n)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE], w[WIDE];
        take(v, a, i, n, step);
        take(w, b, i, n, step);
        for (int j = 0; j < WIDE; j++)
            v[j] = F(v[j], w[j]);
        leave(y, v, i, n, step);
    }
}

template <One F> static void one_in(Stage *st, real *y, const real *x, long n, float factor)
{
    LAUNCH((map_one<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, x, n, factor);
}

template <Two F> static void two_in(Stage *st, real *y, const real *a, const real *b, long n)
{
    LAUNCH((map_two<F>), blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, y, a, b, n);
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

FN float relu(float x, float) { return x < 0 ? 0.0f : x; }
FN float relu_slope(float dy, float y) { return y > 0 ? dy : 0.0f; }
FN float gelu_by_tanh(float x, float) { return gelu_tanh(x); }
FN float gelu_by_tanh_slope(float dy, float x) { return dy * slope_tanh(x); }
FN float gelu_by_erf(float x, float) { return gelu_erf(x); }
FN float gelu_by_erf_slope(float dy, float x) { return dy * slope_erf(x); }
FN float silu(float x, float) { return x * fsigmoid(x); }
FN float silu_slope(float dy, float x)
{
    float s = fsigmoid(x);
    return dy * (s + x * s * (1.0f - s));
}
FN float tanh_of(float x, float) { return ftanh(x); }
FN float tanh_slope(float dy, float y) { return dy * (1.0f - y * y); }
FN float sigmoid_of(float x, float) { return fsigmoid(x); }
FN float sigmoid_slope(float dy, float y) { return dy * (y * (1.0f - y)); }
FN float times(float x, float factor) { return x * factor; }
FN float plus(float a, float b) { return a + b; }

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void relu_forward(Stage *st, real *y, const real *x, long n) { one_in<relu>(st, y, x, n, 0); }
void relu_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<relu_slope>(st, dx, dy, y, n); }

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    if (tanh)
        one_in<gelu_by_tanh>(st, y, x, n, 0);
    else
        one_in<gelu_by_erf>(st, y, x, n, 0);
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    if (tanh)
        two_in<gelu_by_tanh_slope>(st, dx, dy, x, n);
    else
        two_in<gelu_by_erf_slope>(st, dx, dy, x, n);
}

void silu_forward(Stage *st, real *y, const real *x, long n) { one_in<silu>(st, y, x, n, 0); }
void silu_backward(Stage *st, real *dx, const real *dy, const real *x, long n) { two_in<silu_slope>(st, dx, dy, x, n); }
void tanh_forward(Stage *st, real *y, const real *x, long n) { one_in<tanh_of>(st, y, x, n, 0); }
void tanh_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<tanh_slope>(st, dx, dy, y, n); }
void sigmoid_forward(Stage *st, real *y, const real *x, long n) { one_in<sigmoid_of>(st, y, x, n, 0); }
void sigmoid_backward(Stage *st, real *dx, const real *dy, const real *y, long n) { two_in<sigmoid_slope>(st, dx, dy, y, n); }
void scale_forward(Stage *st, real *y, const real *x, long n, float factor) { one_in<times>(st, y, x, n, factor); }
void add_forward(Stage *st, real *y, const real *a, const real *b, long n) { two_in<plus>(st, y, a, b, n); }
void grad_add(Stage *st, real *y, const real *a, const real *b, long n) { two_in<plus>(st, y, a, b, n); }
