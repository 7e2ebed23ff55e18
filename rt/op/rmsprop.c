/* SPDX-License-Identifier: Apache-2.0
 *
 * rmsprop.c: the update of one parameter by RMSprop, as PyTorch's (T. Tieleman, G. Hinton, lecture 6.5 of a course, 2012):
 * v = alpha v + (1 - alpha) d^2; m = momentum m + d / (sqrt(v) + eps); p -= lr m.  Centred, a = a + (1 - alpha) (d - a) is the
 * mean of d, and sqrt(v - a^2) stands there: no less than 0, which roundings could make it.
 */
#include "update.h"

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
