/* SPDX-License-Identifier: Apache-2.0
 *
 * adam.c: the update of one parameter by AdamW.
 *
 *     AdamW  (I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019), as PyTorch's: p -= lr decay p;
 *            m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 *            p -= lr / bias1 * m / (sqrt(v) / sqrt(bias2) + eps)
 */
#include "update.h"

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
