/* SPDX-License-Identifier: Apache-2.0
 *
 * nadam.c: the update of one parameter by NAdamW (T. Dozat, Incorporating Nesterov Momentum into Adam, 2016, with a constant
 * momentum, and decay as AdamW's): instead of m / bias1, beta1 m / next + (1 - beta1) g / bias1, with next the bias1 of the
 * next step.
 */
#include "update.h"

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
