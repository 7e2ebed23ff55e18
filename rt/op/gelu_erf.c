/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu_erf.c: Gelu by the error function: rt/formula.h.
 */
#include "gelu_erf.h"
#include "../curves.h"

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

void erf_gelu(real *restrict y, const real *restrict x, long n)
{
    Erf e;
    for (long i = 0; i < n; i++)
        e.x[i] = get(x, i) * HALF;
    erf_steps(&e, n);
    for (long i = 0; i < n; i++)
        put(y, i, 0.5f * get(x, i) * (1.0f + erf_end(e.x[i], e.bounded[i], e.near[i], e.far[i])));
}

void erf_gelu_back(real *dx, const real *dy, const real *x, long n)
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
