/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu, exact or by tanh: rt/formula.h.
 */
#include "gelu_erf.h"

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
            erf_gelu(y + i, x + i, least(CHUNK, n - i));
}

void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += CHUNK)
        if (tanh)
            backward_tanh(dx + i, dy + i, x + i, least(CHUNK, n - i));
        else
            erf_gelu_back(dx + i, dy + i, x + i, least(CHUNK, n - i));
}
