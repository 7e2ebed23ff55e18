/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu, exact or by tanh: rt/formula.h.
 */
#include "kernel.h"
#include "../formula.h"

/* Loops of a few steps each have so short chains that the processor works on several numbers at once. */

/* e^x[i], where x[i] is within the bounds of fexp() */
static inline void exp_steps(float *restrict e, const float *restrict x, long n)
{
    float magic[CHUNK];
    for (long i = 0; i < n; i++)
        e[i] = exp_rest(x[i], &magic[i]);
    for (long i = 0; i < n; i++)
        e[i] = exp_end(exp_series(e[i]), magic[i]);
}

/* x, and what erf_end() takes for erf(x[i]) */
typedef struct { float x[CHUNK], bounded[CHUNK], near[CHUNK], far[CHUNK]; } Erf;

static inline void erf_steps(Erf *e, long n)
{
    float magic[CHUNK];
    for (long i = 0; i < n; i++) {
        float a = erf_bounded(e->x[i]);
        e->bounded[i] = a;
        e->near[i] = erf_near(e->x[i]);
        e->far[i] = erf_half(a);
    }
    for (long i = 0; i < n; i++)
        e->far[i] = erf_power(e->far[i], e->bounded[i]);
    for (long i = 0; i < n; i++)
        e->far[i] = exp_rest(-e->far[i], &magic[i]);
    for (long i = 0; i < n; i++)
        e->far[i] = 1.0f - exp_near_end(exp_series(e->far[i]), magic[i]);
}

static void forward_erf(real *restrict y, const real *restrict x, long n)
{
    Erf e;
    for (long i = 0; i < n; i++)
        e.x[i] = get(x, i) * HALF;
    erf_steps(&e, n);
    for (long i = 0; i < n; i++)
        put(y, i, 0.5f * get(x, i) * (1.0f + erf_end(e.x[i], e.bounded[i], e.near[i], e.far[i])));
}

static void forward_tanh(real *restrict y, const real *restrict x, long n)
{
    float u[CHUNK], e[CHUNK];
    for (long i = 0; i < n; i++)
        u[i] = exp_high(exp_low(-twice_u(get(x, i))));
    exp_steps(e, u, n);
    for (long i = 0; i < n; i++)
        put(y, i, get(x, i) * (1.0f / (1.0f + e[i])));
}

/* dx may be dy, which is read before. */
static void backward_erf(real *dx, const real *dy, const real *x, long n)
{
    float v[CHUNK], square[CHUNK], dense[CHUNK], d[CHUNK];
    Erf e;
    for (long i = 0; i < n; i++) {
        v[i] = bounded(get(x, i));
        e.x[i] = v[i] * HALF;
        square[i] = exp_low(-0.5f * v[i] * v[i]);
        d[i] = get(dy, i);
    }
    erf_steps(&e, n);
    exp_steps(dense, square, n);
    for (long i = 0; i < n; i++)
        put(dx, i, d[i] * (0.5f * (1.0f + erf_end(e.x[i], e.bounded[i], e.near[i], e.far[i])) + v[i] * DENSE * dense[i]));
}

static void backward_tanh(real *dx, const real *dy, const real *x, long n)
{
    float v[CHUNK], u[CHUNK], e[CHUNK], d[CHUNK];
    for (long i = 0; i < n; i++) {
        v[i] = get(x, i);
        u[i] = exp_high(exp_low(-twice_u(v[i])));
        d[i] = get(dy, i);
    }
    exp_steps(e, u, n);
    for (long i = 0; i < n; i++)
        put(dx, i, d[i] * slope_by(v[i], 1.0f / (1.0f + e[i])));
}

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += CHUNK)
        if (tanh)
            forward_tanh(y + i, x + i, least(CHUNK, n - i));
        else
            forward_erf(y + i, x + i, least(CHUNK, n - i));
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += CHUNK)
        if (tanh)
            backward_tanh(dx + i, dy + i, x + i, least(CHUNK, n - i));
        else
            backward_erf(dx + i, dy + i, x + i, least(CHUNK, n - i));
}
