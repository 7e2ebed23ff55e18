/* SPDX-License-Identifier: Apache-2.0
 *
 * Additive scores of queries and keys (D. Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and
 * Translate, 2015), with the normalised weight of GNMT (Y. Wu et al., 2016; T. Salimans, D. Kingma, Weight Normalization,
 * 2016):
 *
 *     y[b t s] = sum over n of v[n] tanh(q[b t n] + k[b s n] + bias[n])        v = scale a / |a|
 *
 * A key whose mask is 0 has -65504, the least number of 16 bits, and no gradient.  The tanh of each pair is never stored:
 * backward makes it again, once for dq and the parameters, once for dk.
 *
 * Order: |a|^2 and y by 16 lanes along n.  dq adds keys ascending, dk queries.  Gradients of parameters add the sums of each
 * query over its keys, queries ascending.
 *
 * Cost: batch queries keys width tanh forward, twice that backward.
 */
#include "kernel.h"
#include "../curves.h"

enum { HIDDEN = -65504 };

typedef struct { const real *q, *k; const int32_t *mask; const float *bias, *v; long batch, query, key, width; } Pairs;

/* v[width], and 1 / |a|. */
static float weigh(float *v, const float *a, float scale, long width)
{
    float square;
    SUM_OF(square, width, i, a[i] * a[i]);
    float over = frsqrt(square);
    for (long i = 0; i < width; i++)
        v[i] = scale * (a[i] * over);
    return over;
}

static int is_seen(const Pairs *p, long b, long s) { return !p->mask || p->mask[b * p->key + s]; }

/* tmp: v */
void additive_forward(Stage *st, real *y, const real *q, const real *k, const int32_t *mask, const float *linear_att,
                      const float *normalize_scalar, const float *normalize_bias, void *tmp, long batch, long query, long key,
                      long width)
{
    Pairs p = {q, k, mask, normalize_bias, tmp, batch, query, key, width};
    weigh(tmp, linear_att, *normalize_scalar, width);
    EACH(batch * query * key * width >= 1 << 12)
    for (long row = 0; row < batch * query; row++)
        for (long s = 0; s < key; s++) {
            const real *mine = q + row * width, *other = k + (row / query * key + s) * width;
            float sum = HIDDEN;
            if (is_seen(&p, row / query, s))
                SUM_OF(sum, width, i, p.v[i] * ftanh(get(mine, i) + get(other, i) + normalize_bias[i]));
            put(y, row * key + s, sum);
        }
}

/* What one pair adds: to the sum before tanh, and to v. */
static void pair_back(float *sum, float *of_v, const Pairs *p, const real *dy, long row, long s)
{
    const real *q = p->q + row * p->width, *k = p->k + (row / p->query * p->key + s) * p->width;
    float d = get(dy, row * p->key + s);
    if (!is_seen(p, row / p->query, s))
        return;
    for (long i = 0; i < p->width; i++) {
        float t = ftanh(get(q, i) + get(k, i) + p->bias[i]);
        sum[i] += d * p->v[i] * (1.0f - t * t);
        if (of_v)
            of_v[i] += d * t;
    }
}

/* From the gradient of v to those of a and scale, which go to dv and to dscale. */
static void weigh_back(float *dv, float *dscale, const float *a, float scale, float over, long width)
{
    SUM_OF(*dscale, width, i, dv[i] * (a[i] * over));
    for (long i = 0; i < width; i++)
        dv[i] = scale * over * (dv[i] - *dscale * (a[i] * over));
}

static void parameters_back(Stage *st, float *dlinear_att, float *dscale, float *dbias, const float *rows, float *dv,
                            const float *a, float scale, float over, int acc, long n, long width)
{
    EACH(n * width >= 1 << 15)
    for (long i = 0; i < width; i++) {
        float bias = 0, v = 0;
        for (long r = 0; r < n; r++) {
            bias += rows[2 * r * width + i];
            v += rows[(2 * r + 1) * width + i];
        }
        if (dbias)
            give(dbias + i, &bias, 1, acc);
        dv[i] = v;
    }
    float sum;
    weigh_back(dv, &sum, a, scale, over, width);
    if (dlinear_att)
        give(dlinear_att, dv, width, acc);
    if (dscale)
        give(dscale, &sum, 1, acc);
}

/* tmp, all f32: v, its gradient, and for each query what its keys add to the sum before tanh and to v; then dk's sums. */
void additive_backward(Stage *st, real *dq, real *dk, float *dlinear_att, float *dnormalize_scalar, float *dnormalize_bias,
                       const real *dy, const real *q, const real *k, const int32_t *mask, const float *linear_att,
                       const float *normalize_scalar, const float *normalize_bias, void *tmp, int acc, long batch, long query,
                       long key, long width)
{
    float *v = tmp, *dv = v + width, *rows = dv + width, over = weigh(v, linear_att, *normalize_scalar, width);
    Pairs p = {q, k, mask, normalize_bias, v, batch, query, key, width};
    EACH(batch * query * key * width >= 1 << 12)
    for (long row = 0; row < batch * query; row++) {
        float *sum = rows + 2 * row * width;
        memset(sum, 0, (size_t)(2 * width) * sizeof *sum);
        for (long s = 0; s < key; s++)
            pair_back(sum, sum + width, &p, dy, row, s);
        for (long i = 0; dq && i < width; i++)
            put(dq, row * width + i, sum[i]);
    }
    if (dlinear_att || dnormalize_scalar || dnormalize_bias)
        parameters_back(st, dlinear_att, dnormalize_scalar, dnormalize_bias, rows, dv, linear_att, *normalize_scalar, over,
                        acc, batch * query, width);
    EACH(batch * query * key * width >= 1 << 12)
    for (long row = 0; row < (dk ? batch * key : 0); row++) {
        float *sum = rows + row * width;        /* those of the queries have been read */
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (long t = 0; t < query; t++)
            pair_back(sum, NULL, &p, dy, row / key * query + t, row % key);
        for (long i = 0; i < width; i++)
            put(dk, row * width + i, sum[i]);
    }
}
