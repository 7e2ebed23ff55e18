/* SPDX-License-Identifier: Apache-2.0
 *
 * The recurrent part of an LSTM: all steps of a micro-batch in one call (S. Hochreiter, J. Schmidhuber, Long Short-Term Memory,
 * 1997; F. Gers et al., Learning to Forget, 2000).
 *
 * x[batch time 4 hidden] is what the inputs give to the gates i, f, g, o, and h the result of the step before, at first 0:
 *
 *     z = x + (h weight^T + bias)    i, f, o = sigmoid(z)    g = tanh(z)    c = f c + i g    y = h = o tanh(c)
 *
 * `reverse` begins at the last step.  Where mask is 0, y is 0, and h and c stay: so padding at the end changes nothing in
 * either direction.  c is f32, and gates are kept as they are after sigmoid and tanh.
 *
 * `drop` of the weight is dropped once a micro-batch, for all its steps (S. Merity et al., Regularizing and Optimizing LSTM
 * Language Models, 2017): the weight times factors of Philox is rounded to the compute type, and the gradient times the same
 * factors is added up.
 *
 * Backward carries dh and dc against the steps.  The gradient of the weight is one product over all steps of dz, which is dx,
 * with h of the step before, which is laid out in scratch first.
 *
 * Order: h weight^T and dz weight are those of steps.c; the bias is added to the finished chain, then x.
 * Gradients of weight and bias add samples ascending, in each its steps ascending.
 *
 * Cost: a product of batch rows a step each way, and one of all rows.  Not handled: states carried from one batch to the next.
 */
#include "steps.h"
#include "../philox.h"
#include "../curves.h"

typedef struct { const int32_t *mask; long batch, time, hidden, reverse; } Steps;

/* Sample b's row in the n-th step. */
static long row_of(const Steps *s, long b, long n) { return b * s->time + (s->reverse ? s->time - 1 - n : n); }
static int is_on(const Steps *s, long row) { return !s->mask || s->mask[row]; }

enum { PIECE = 1024 };
typedef struct { const Values *vals; int mb; float drop; int64_t site; } Dropped;

static int is_dropped(const Dropped *d) { return d->drop != 0 && !d->vals->eval; }

/* The weight as the steps read it; `to` if some of it is dropped. */
static const real *left_of(Stage *st, real *to, const real *weight, const Dropped *by, long n)
{
    if (!is_dropped(by))
        return weight;
    Drop d = drop_of(by->vals, by->mb, by->drop, by->site);
    EACH(n >= 1 << 14)
    for (long from = 0; from < n; from += PIECE) {
        float factor[PIECE];
        long m = least(PIECE, n - from);
        drop_factors(factor, &d, from, m);
        for (long i = 0; i < m; i++)
            put(to, from + i, get(weight, from + i) * factor[i]);
    }
    return to;
}

/* a = a gate, as it is kept too.  A loop of its own for each of the two functions: so both run in vectors. */
static inline void gate_on(float *a, real *gate, const real *x, const float *z, const real *bias, long n, int candidate)
{
    for (long u = 0; u < n; u++)
        a[u] = z[u] + (bias ? get(bias, u) : 0.0f);
    for (long u = 0; u < n; u++) {
        float v = get(x, u) + a[u];
        a[u] = candidate ? ftanh(v) : fsigmoid(v);
        put(gate, u, a[u]);
    }
}

/* One step of one sample: z [4 hidden] is h weight^T. */
static void step_on(real *y, float *c, real *gates, real *h, const real *x, const float *z, const float *before,
                    const real *bias, long hidden)
{
    for (long from = 0; from < hidden; from += CHUNK) {
        float a[4][CHUNK];
        long n = least(CHUNK, hidden - from);
        for (long k = 0; k < 4; k++) {
            long j = k * hidden + from;
            const real *by = bias ? bias + j : NULL;
            if (k == 2)
                gate_on(a[k], gates + j, x + j, z + j, by, n, 1);
            else
                gate_on(a[k], gates + j, x + j, z + j, by, n, 0);
        }
        for (long u = 0; u < n; u++) {
            float now = a[1][u] * (before ? before[from + u] : 0.0f) + a[0][u] * a[2][u];
            c[from + u] = now;
            put(y, from + u, a[3][u] * ftanh(now));
        }
    }
    memcpy(h, y, (size_t)hidden * sizeof *h);
}

static void step_off(real *y, float *c, real *gates, const float *before, long hidden)
{
    memset(y, 0, (size_t)hidden * sizeof *y);
    memset(gates, 0, (size_t)(4 * hidden) * sizeof *gates);
    if (before)
        memcpy(c, before, (size_t)hidden * sizeof *c);
    else
        memset(c, 0, (size_t)hidden * sizeof *c);
}

/* tmp: z, f32 [batch 4 hidden]; h [batch hidden]; what is left of the weight. */
void recur_forward(Stage *st, real *y, float *c, real *gates, const real *x, const int32_t *mask, const real *weight,
                   const real *bias, void *tmp, const Values *vals, int mb, int h, long batch, long time, long hidden,
                   long reverse, float drop, int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    float *z = tmp;
    real *last = (real *)(z + batch * 4 * hidden);
    weight = left_of(st, last + batch * hidden, weight, &(Dropped){vals, mb, drop, site}, 4 * hidden * hidden);
    memset(tmp, 0, (size_t)(batch * 4 * hidden) * sizeof *z + (size_t)(batch * hidden) * sizeof *last);
    for (long n = 0; n < time; n++) {
        if (n)
            steps_forward(st, h, n == 1, z, last, weight, batch, 4 * hidden, hidden);
        EACH(batch * hidden >= 1 << 11)
        for (long b = 0; b < batch; b++) {
            long at = row_of(&s, b, n);
            const float *before = n ? c + row_of(&s, b, n - 1) * hidden : NULL;
            if (is_on(&s, at))
                step_on(y + at * hidden, c + at * hidden, gates + at * 4 * hidden, last + b * hidden, x + at * 4 * hidden,
                        z + b * 4 * hidden, before, bias, hidden);
            else
                step_off(y + at * hidden, c + at * hidden, gates + at * 4 * hidden, before, hidden);
        }
    }
}

/* One step back of one sample: dz from what comes to h, here and from the next step, and to c.  e is the gradient of c. */
static void step_back(real *dz, float *dc, const float *dh, const real *dy, const float *c, const float *before,
                      const real *gates, long hidden)
{
    for (long from = 0; from < hidden; from += CHUNK) {
        float e[CHUNK];
        long end = least(from + CHUNK, hidden);
        for (long u = from, j = 3 * hidden; u < end; u++) {
            float t = ftanh(c[u]), d = dh[u] + get(dy, u), o = get(gates, j + u);
            e[u - from] = dc[u] + d * o * (1.0f - t * t);
            put(dz, j + u, d * t * o * (1.0f - o));
        }
        for (long u = from, j = 2 * hidden; u < end; u++) {
            float i = get(gates, u), g = get(gates, j + u);
            put(dz, u, e[u - from] * g * i * (1.0f - i));
            put(dz, j + u, e[u - from] * i * (1.0f - g * g));
        }
        for (long u = from; u < end; u++) {
            float f = get(gates, hidden + u);
            put(dz, hidden + u, e[u - from] * (before ? before[u] : 0.0f) * f * (1.0f - f));
            dc[u] = e[u - from] * f;
        }
    }
}

/* tmp: dh, dc and the next dh, f32 [batch hidden] each; what is left of the weight. */
void recur_backward(Stage *st, real *dx, const real *dy, const float *c, const real *gates, const int32_t *mask,
                    const real *weight, void *tmp, const Values *vals, int mb, long batch, long time, long hidden,
                    long reverse, float drop, int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    float *dh = tmp, *dc = dh + batch * hidden, *next = dc + batch * hidden;
    weight = left_of(st, (real *)(next + batch * hidden), weight, &(Dropped){vals, mb, drop, site}, 4 * hidden * hidden);
    memset(tmp, 0, (size_t)(2 * batch * hidden) * sizeof *dh);
    for (long n = time - 1; n >= 0; n--) {
        EACH(batch * hidden >= 1 << 11)
        for (long b = 0; b < batch; b++) {
            long at = row_of(&s, b, n);
            if (is_on(&s, at))
                step_back(dx + at * 4 * hidden, dc + b * hidden, dh + b * hidden, dy + at * hidden, c + at * hidden,
                          n ? c + row_of(&s, b, n - 1) * hidden : NULL, gates + at * 4 * hidden, hidden);
            else
                memset(dx + at * 4 * hidden, 0, (size_t)(4 * hidden) * sizeof *dx);
        }
        if (n)
            steps_back(st, next, dx + row_of(&s, 0, n) * 4 * hidden, time * 4 * hidden, weight, batch, hidden, 4 * hidden);
        for (long b = 0; n && b < batch; b++)
            if (is_on(&s, row_of(&s, b, n)))
                memcpy(dh + b * hidden, next + b * hidden, (size_t)hidden * sizeof *dh);
    }
}

/* before[batch time hidden] = h of the step before each. */
static void lay_out(Stage *st, real *before, const real *y, const Steps *s)
{
    EACH(s->batch * s->time * s->hidden >= 1 << 14)
    for (long b = 0; b < s->batch; b++) {
        const real *h = NULL;
        for (long n = 0; n < s->time; n++) {
            long at = row_of(s, b, n);
            if (h)
                memcpy(before + at * s->hidden, h, (size_t)s->hidden * sizeof *h);
            else
                memset(before + at * s->hidden, 0, (size_t)s->hidden * sizeof *h);
            h = is_on(s, at) ? y + at * s->hidden : h;
        }
    }
}

/* dweight = the same factors times `product`, or adds them. */
static void give_left(Stage *st, float *dweight, const float *product, const Dropped *by, int acc, long n)
{
    Drop d = drop_of(by->vals, by->mb, by->drop, by->site);
    EACH(n >= 1 << 14)
    for (long from = 0; from < n; from += PIECE) {
        float factor[PIECE];
        long m = least(PIECE, n - from);
        drop_factors(factor, &d, from, m);
        for (long i = 0; i < m; i++) {
            float v = product[from + i] * factor[i];
            dweight[from + i] = acc ? dweight[from + i] + v : v;
        }
    }
}

/* tmp: the gradient of what is left of the weight, f32, if some of it is dropped; [batch time hidden] */
void recur_backward_w(Stage *st, float *dweight, float *dbias, const real *dx, const real *y, const int32_t *mask, void *tmp,
                      const Values *vals, int mb, int acc, long batch, long time, long hidden, long reverse, float drop,
                      int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    Dropped by = {vals, mb, drop, site};
    long n = 4 * hidden * hidden;
    float *product = is_dropped(&by) ? tmp : dweight;
    real *before = is_dropped(&by) ? (real *)((float *)tmp + n) : tmp;
    if (dweight) {
        lay_out(st, before, y, &s);
        steps_gradient(st, product, dx, before, acc && product == dweight, 4 * hidden, hidden, batch * time);
    }
    if (dweight && product != dweight)
        give_left(st, dweight, product, &by, acc, n);
    if (dbias)
        bias_blocks(st, dbias, dx, acc, batch * time, 4 * hidden, batch * time);
}
