/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate: y = act(a) b (N. Shazeer, GLU Variants Improve Transformer, 2020), and SoftCap: y = cap tanh(x / cap).
 *
 * act(a), and in backward dy b, are rounded to the compute type, so that the bits are those of two calls.
 */
#include "kernel.h"
#include "../scalar.h"

enum { SILU, GELU, GELU_TANH, RELU, SIGMOID };

static inline float rounded(float v)
{
    real stored;
    put(&stored, 0, v);
    return get(&stored, 0);
}

static inline float act_of(float x, long act)
{
    switch (act) {
    case SILU: return x * fsigmoid(x);
    case GELU: return gelu_erf(x);
    case GELU_TANH: return gelu_tanh(x);
    case RELU: return x < 0 ? 0.0f : x;
    default: return fsigmoid(x);
    }
}

/* The gradient of x where that of y = act(x) is d. */
static inline float act_back(float d, float x, float y, long act)
{
    float s = fsigmoid(x);
    switch (act) {
    case SILU: return d * (s + x * s * (1.0f - s));
    case GELU: return d * slope_erf(x);
    case GELU_TANH: return d * slope_tanh(x);
    case RELU: return y > 0 ? d : 0.0f;
    default: return d * (y * (1.0f - y));
    }
}

static inline void span_forward(real *y, const real *a, const real *b, long n, long act)
{
    for (long i = 0; i < n; i++)
        put(y, i, rounded(act_of(get(a, i), act)) * get(b, i));
}

/* db is a sum of one term, as that of Mul: never -0. */
static inline void span_back(real *da, real *db, const real *dy, const real *a, const real *b, long n, int of_a, int of_b,
                             long act)
{
    for (long i = 0; i < n; i++) {
        float d = get(dy, i), x = get(a, i), v = rounded(act_of(x, act)), back = of_a ? rounded(d * get(b, i)) : 0.0f;
        if (of_b)
            put(db, i, 0.0f + d * v);
        if (of_a)
            put(da, i, act_back(back, x, v, act));
    }
}

/* Each act has a loop of its own: one with the choice inside would not run in vectors. */
#define BY_ACT(act, span, ...) \
    switch (act) { \
    case SILU: span(__VA_ARGS__, SILU); break; \
    case GELU: span(__VA_ARGS__, GELU); break; \
    case GELU_TANH: span(__VA_ARGS__, GELU_TANH); break; \
    case RELU: span(__VA_ARGS__, RELU); break; \
    default: span(__VA_ARGS__, SIGMOID); \
    }

void gate_forward(Stage *st, real *y, const real *a, const real *b, long n, long act)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += SPAN)
        BY_ACT(act, span_forward, y + i, a + i, b + i, least(SPAN, n - i))
}

void gate_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long act)
{
    EACH(n >= 4 * SPAN)
    for (long i = 0; i < n; i += SPAN)
        if (da && db)
            BY_ACT(act, span_back, da + i, db + i, dy + i, a + i, b + i, least(SPAN, n - i), 1, 1)
        else if (da)
            BY_ACT(act, span_back, da + i, NULL, dy + i, a + i, b + i, least(SPAN, n - i), 1, 0)
        else
            BY_ACT(act, span_back, NULL, db + i, dy + i, a + i, b + i, least(SPAN, n - i), 0, 1)
}

void softcap_forward(Stage *st, real *y, const real *x, long n, float cap)
{
    MAP(n, i)
        put(y, i, cap * ftanh(get(x, i) / cap));
}

void softcap_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float cap)
{
    MAP(n, i) {
        float t = ftanh(get(x, i) / cap);
        put(dx, i, get(dy, i) * (1.0f - t * t));
    }
}
