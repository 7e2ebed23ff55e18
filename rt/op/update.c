/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of one parameter: p master, c its copy in the compute type (0 in f32), g gradient, m and v moments.
 * All f32.
 *
 *     Sgd    as PyTorch's: d = g + decay p; m = momentum m + d; p -= lr m
 *     SgdNesterov  the same with nesterov: p -= lr (d + momentum m)
 *     RmsProp  as PyTorch's (T. Tieleman, G. Hinton, lecture 6.5 of a course, 2012): v = alpha v + (1 - alpha)
 *            d^2; m = momentum m + d / (sqrt(v) + eps); p -= lr m.  Centred, a = a + (1 - alpha) (d - a) is the mean of d, and
 *            sqrt(v - a^2) stands there: no less than 0, which roundings could make it
 *     AdamW  (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019), as PyTorch's: p -= lr decay p;
 *            m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 *            p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
 *
 *     NAdamW (T. Dozat, Incorporating Nesterov Momentum into Adam, 2016, with a constant momentum, and decay as AdamW's):
 *            instead of m / bias1, beta1 m / next + (1 - beta1) g / bias1, with next the bias1 of the next step
 *
 *     SgdSpike  Sgd of gradients `late` updates old (A. Kosson et al., Pipelined Backpropagation at Scale, 2020): p -= lr
 *            (a m + b d), a = momentum^late, b = 1 + momentum + ... + momentum^(late-1)
 *
 *     SgdDrift  Sgd at the rate lr / late^q, q = 1 - step/anneal while above 0, of gradients `late` updates old (B. Yang et
 *            al., PipeMare: Asynchronous Pipeline Parallel DNN Training, 2019); old = c old + (1 - c) (what the update added
 *            to p), c = exp(-2 / late).  late = 0: Sgd.  predict_old  newer - behind old
 *
 *     predict  newer + ahead (newer - older); `to` may be `older`
 *
 * `clip` is the factor of gradient clipping, multiplied into g as it is read; the gradient itself stays as it is.
 *
 * The norm: each parameter gives the sum of its squares in double, in at most 256 blocks of a length that follows
 * from n alone, each by 16 lanes, blocks added ascending; partials of all parameters are added ascending.  factor
 * = min(1, limit / (norm + 1e-6)).  The norm of the whole gradient is reported in vals; those of single parameters
 * (vals: 0) are not.
 */
#include "kernel.h"
#include "../formula.h"

enum { BLOCKS = 256 };

void tie_add(Stage *st, float *g, const float *other, long n)
{
    MAP(n, i)
        g[i] += other[i];
}

static double squares(const float *g, long n)
{
    double lane[LANES] = {0};
    for (long i = 0; i < n; i += LANES)
        for (long j = 0; j < least(LANES, n - i); j++)
            lane[j] += (double)g[i + j] * (double)g[i + j];
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

void norm_partial(Stage *st, double *norm, const float *g, long n, long index)
{
    double part[BLOCKS], sum = 0;
    long each = ceil_div(n, BLOCKS * LANES) * LANES;
    EACH(n >= 1 << 15)
    for (long b = 0; b < BLOCKS; b++)
        part[b] = b * each < n ? squares(g + b * each, least(each, n - b * each)) : 0;
    for (long b = 0; b < BLOCKS; b++)
        sum += part[b];
    norm[index] = sum;
}

void norm_blocks(Stage *st, double *blocks, const float *g, long n, long each, long first)
{
    EACH(n >= 1 << 15)
    for (long b = 0; b < ceil_div(n, each); b++)
        blocks[first + b] = squares(g + b * each, least(each, n - b * each));
}

void norm_sum(Stage *st, double *norm, const double *blocks, long n, long first, long index)
{
    (void)st;
    double sum = 0;
    for (long b = 0; b < n; b++)
        sum += blocks[first + b];
    norm[index] = sum;
}

void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit)
{
    (void)st;
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += norm[i];
    double root = __builtin_sqrt(sum), factor = (double)limit / (root + 1e-6);
    *clip = factor < 1 ? (float)factor : 1.0f;
    if (vals)
        vals->norm = root;
}

static void narrow(Stage *st, real *c, const float *p, long n)
{
    MAP(n, i)
        put(c, i, p[i]);
}

void cast_forward(Stage *st, real *y, const float *x, long n)
{
    narrow(st, y, x, n);
}

void sgd_update(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    if (m)
        MAP(n, i) {
            m[i] = momentum * m[i] + (g[i] * factor + weight_decay * p[i]);
            p[i] -= lr * m[i];
        }
    else
        MAP(n, i)
            p[i] -= lr * (g[i] * factor + weight_decay * p[i]);
    if (c)
        narrow(st, c, p, n);
}

void sgd_nesterov(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
                  float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    MAP(n, i) {
        float d = g[i] * factor + weight_decay * p[i], u = momentum * m[i] + d;
        m[i] = u;
        p[i] -= lr * (d + momentum * u);
    }
    if (c)
        narrow(st, c, p, n);
}

void rmsprop_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals,
                    long n, float alpha, float eps, float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    MAP(n, i) {
        float d = g[i] * factor + weight_decay * p[i], v1 = alpha * v[i] + (1.0f - alpha) * (d * d);
        float u = (m ? momentum * m[i] : 0.0f) + d / (fsqrt(v1) + eps);
        v[i] = v1;
        if (m)
            m[i] = u;
        p[i] -= lr * u;
    }
    if (c)
        narrow(st, c, p, n);
}

void rmsprop_centred(Stage *st, float *p, real *c, const float *g, float *m, float *v, float *centre, const float *clip,
                     const Values *vals, long n, float alpha, float eps, float momentum, long decay)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    MAP(n, i) {
        float d = g[i] * factor + weight_decay * p[i], v1 = alpha * v[i] + (1.0f - alpha) * (d * d);
        float a = centre[i] + (1.0f - alpha) * (d - centre[i]), spread = v1 - a * a;
        float u = (m ? momentum * m[i] : 0.0f) + d / (fsqrt(spread > 0 ? spread : 0.0f) + eps);
        v[i] = v1;
        centre[i] = a;
        if (m)
            m[i] = u;
        p[i] -= lr * u;
    }
    if (c)
        narrow(st, c, p, n);
}

void sgd_spike(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n,
               float momentum, long decay, long late)
{
    float lr = vals->lr, weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f, a = 1.0f, b = 0.0f;
    for (; late > 0; late--) {
        a *= momentum;
        b = b * momentum + 1.0f;
    }
    MAP(n, i) {
        float d = g[i] * factor + weight_decay * p[i], u = (m ? momentum * m[i] : 0.0f) + d;
        if (m)
            m[i] = u;
        p[i] -= lr * (a * u + b * d);
    }
    if (c)
        narrow(st, c, p, n);
}

void adamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip,
                  const Values *vals, long n, float beta1, float beta2, float eps, long decay)
{
    float shrink = decay ? 1.0f - vals->lr * vals->weight_decay : 1.0f, factor = clip ? *clip : 1.0f;
    float rate = vals->lr / vals->bias1, root = fsqrt(vals->bias2);
    MAP(n, i) {
        float gradient = g[i] * factor;
        float m1 = beta1 * m[i] + (1.0f - beta1) * gradient;
        float v1 = beta2 * v[i] + (1.0f - beta2) * (gradient * gradient);
        m[i] = m1;
        v[i] = v1;
        p[i] = p[i] * shrink - rate * (m1 / (fsqrt(v1) / root + eps));
    }
    if (c)
        narrow(st, c, p, n);
}

void nadamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip,
                   const Values *vals, long n, float beta1, float beta2, float eps, long decay)
{
    float shrink = decay ? 1.0f - vals->lr * vals->weight_decay : 1.0f, factor = clip ? *clip : 1.0f, root = fsqrt(vals->bias2);
    float next = vals->lr * beta1 / (1.0f - beta1 * (1.0f - vals->bias1)), now = vals->lr * (1.0f - beta1) / vals->bias1;
    MAP(n, i) {
        float gradient = g[i] * factor;
        float m1 = beta1 * m[i] + (1.0f - beta1) * gradient;
        float v1 = beta2 * v[i] + (1.0f - beta2) * (gradient * gradient);
        m[i] = m1;
        v[i] = v1;
        p[i] = p[i] * shrink - (next * m1 + now * gradient) / (fsqrt(v1) / root + eps);
    }
    if (c)
        narrow(st, c, p, n);
}

void sgd_drift(Stage *st, float *p, real *c, const float *g, float *m, float *old, const float *clip, const Values *vals,
               long n, float momentum, long decay, long late, long anneal)
{
    float lr = drift_rate(vals->lr, vals->step, late, anneal), stays = late ? fexp(-2.0f / (float)late) : 0.0f;
    float weight_decay = decay ? vals->weight_decay : 0, factor = clip ? *clip : 1.0f;
    MAP(n, i) {
        float u = (m ? momentum * m[i] : 0.0f) + (g[i] * factor + weight_decay * p[i]), was = p[i];
        if (m)
            m[i] = u;
        p[i] = was - lr * u;
        old[i] = stays * old[i] + (1.0f - stays) * (p[i] - was);
    }
    if (c)
        narrow(st, c, p, n);
}

void predict_old(Stage *st, float *to, const float *newer, const float *old, long behind, long n)
{
    float times = (float)behind;
    MAP(n, i)
        to[i] = newer[i] - times * old[i];
}

void predict(Stage *st, float *to, const float *newer, const float *older, long ahead, long n)
{
    float times = (float)ahead;
    MAP(n, i)
        to[i] = newer[i] + times * (newer[i] - older[i]);
}
