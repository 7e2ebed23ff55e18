/* SPDX-License-Identifier: Apache-2.0
 *
 * adam.c: the update of one parameter by AdamW and NAdamW, and weights that are predicted.
 *
 *     AdamW  (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019), as PyTorch's: p -= lr decay p;
 *            m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 *            p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
 *
 *     NAdamW (T. Dozat, Incorporating Nesterov Momentum into Adam, 2016, with a constant momentum, and decay as AdamW's):
 *            instead of m / bias1, beta1 m / next + (1 - beta1) g / bias1, with next the bias1 of the next step
 *
 *     predict  newer + ahead (newer - older); `to` may be `older`
 */
#include "update.h"
#include "../formula.h"

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

void predict(Stage *st, float *to, const float *newer, const float *older, long ahead, long n)
{
    float times = (float)ahead;
    MAP(n, i)
        to[i] = newer[i] + times * (newer[i] - older[i]);
}
