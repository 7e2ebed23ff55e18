/* SPDX-License-Identifier: Apache-2.0
 *
 * sgd.c: the update of one parameter by SGD: p master, c its copy in the compute type (0 in f32), g gradient, m momentum.
 *
 *     Sgd    as PyTorch's: d = g + decay p; m = momentum m + d; p -= lr m
 *     SgdNesterov  the same with nesterov: p -= lr (d + momentum m)
 *
 *     SgdSpike  Sgd of gradients `late` updates old (A. Kosson et al., Pipelined Backpropagation at Scale, 2020): p -= lr
 *            (a m + b d), a = momentum^late, b = 1 + momentum + ... + momentum^(late-1)
 *
 *     SgdDrift  Sgd at the rate lr / late^q, q = 1 - step/anneal while above 0, of gradients `late` updates old (B. Yang et
 *            al., PipeMare: Asynchronous Pipeline Parallel DNN Training, 2019); old = c old + (1 - c) (what the update added
 *            to p), c = exp(-2 / late).  late = 0: Sgd.  predict_old  newer - behind old
 */
#include "update.h"
#include "../scalar.h"

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
