/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu, exact or by tanh: rt/formula.h.
 */
#include "kernel.h"
#include "../formula.h"

/* far[i] of erf(x[i] / sqrt 2), for erf_end().  A loop of its own for each step has so short chains that the processor works on
 * several numbers at once. */
static inline void far_steps(float *restrict far, const real *restrict x, long n)
{
    for (long i = 0; i < n; i++)
        far[i] = erf_power(get(x, i) * HALF);
    for (long i = 0; i < n; i++)
        far[i] = erf_far(far[i]);
}

static void gelu_erf_steps(real *restrict y, const real *restrict x, long n)
{
    float far[CHUNK];
    far_steps(far, x, n);
    for (long i = 0; i < n; i++)
        put(y, i, 0.5f * get(x, i) * (1.0f + erf_end(get(x, i) * HALF, far[i])));
}

static void slope_erf_steps(real *dx, const real *dy, const real *restrict x, long n)
{
    float far[CHUNK], v[CHUNK], dense[CHUNK];
    for (long i = 0; i < n; i++)
        v[i] = bounded(get(x, i));
    for (long i = 0; i < n; i++)
        far[i] = erf_power(v[i] * HALF);
    for (long i = 0; i < n; i++)
        far[i] = erf_far(far[i]);
    for (long i = 0; i < n; i++)
        dense[i] = fexp(-0.5f * v[i] * v[i]);
    for (long i = 0; i < n; i++)
        put(dx, i, get(dy, i) * (0.5f * (1.0f + erf_end(v[i] * HALF, far[i])) + v[i] * DENSE * dense[i]));
}

void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    if (tanh)
        MAP(n, i)
            put(y, i, gelu_tanh(get(x, i)));
    else
        EACH(n >= 4 * SPAN)
        for (long i = 0; i < n; i += CHUNK)
            gelu_erf_steps(y + i, x + i, least(CHUNK, n - i));
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    if (tanh)
        MAP(n, i)
            put(dx, i, get(dy, i) * slope_tanh(get(x, i)));
    else
        EACH(n >= 4 * SPAN)
        for (long i = 0; i < n; i += CHUNK)
            slope_erf_steps(dx + i, dy + i, x + i, least(CHUNK, n - i));
}
