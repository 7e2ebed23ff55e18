/* SPDX-License-Identifier: Apache-2.0
 *
 * Additive scores: formulas and gradients as in rt/op/additive.c.  A warp makes a score.  In backward a block owns the row of a
 * query, or of a key, a thread its columns; sums over rows are one thread a column.
 *
 * Order: along n as kernel.h says; all other sums as in rt/op/additive.c.
 */
#include "kernel.h"

struct Pairs {
    const real *q, *k;
    const int32_t *mask;
    const float *bias, *v;
    long batch, query, key, width;
    FIELD bool seen(long b, long s) const { return !mask || mask[b * key + s]; }
    /* of query row and key s, column i */
    FIELD float bent(long row, long b, long s, long i) const
    {
        return ftanh(one(q, row * width + i) + one(k, (b * key + s) * width + i) + bias[i]);
    }
};

/* v = scale a / |a|, in one block; 1 / |a| behind it. */
static __global__ void additive_weigh(float *v, const float *a, const float *scale, long width)
{
    float sum = 0;
    for (long i = threadIdx.x; i < width; i += BLOCK)
        sum += a[i] * a[i];
    float over = frsqrt(team_sum<BLOCK>(sum));
    for (long i = threadIdx.x; i < width; i += BLOCK)
        v[i] = *scale * (a[i] * over);
    if (threadIdx.x == 0)
        v[width] = over;
}

static __global__ void additive_scores(real *y, Pairs p)
{
    long r = ROW_OF(WARP);
    if (r >= p.batch * p.query * p.key)
        return;
    long row = quotient(r, p.key), s = r - row * p.key, b = quotient(row, p.query);
    float sum = 0;
    bool seen = p.seen(b, s);
    for (long i = threadIdx.x % WARP; i < p.width && seen; i += WARP)
        sum += p.v[i] * p.bent(row, b, s, i);
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        set(y, r, seen ? sum : -65504.0f);
}

void additive_forward(Stage *st, real *y, const real *q, const real *k, const int32_t *mask, const float *linear_att,
                      const float *normalize_scalar, const float *normalize_bias, void *tmp, long batch, long query, long key,
                      long width)
{
    float *v = (float *)tmp;
    LAUNCH(additive_weigh, 1u, (unsigned)BLOCK, st, v, linear_att, normalize_scalar, width);
    LAUNCH(additive_scores, (unsigned)ceil_div(batch * query * key, BLOCK / WARP), (unsigned)BLOCK, st, y,
           (Pairs{q, k, mask, normalize_bias, v, batch, query, key, width}));
}

/* A query's row: dq, and what it adds to the sum before tanh and to v. */
static __global__ void additive_queries(real *dq, float *rows, const real *dy, Pairs p)
{
    long row = blockIdx.x, b = quotient(row, p.query);
    for (long i = threadIdx.x; i < p.width; i += BLOCK) {
        float sum = 0, of_v = 0;
        for (long s = 0; s < p.key; s++)
            if (p.seen(b, s)) {
                float t = p.bent(row, b, s, i), d = one(dy, row * p.key + s);
                sum += d * p.v[i] * (1.0f - t * t);
                of_v += d * t;
            }
        rows[2 * row * p.width + i] = sum;
        rows[(2 * row + 1) * p.width + i] = of_v;
        if (dq)
            set(dq, row * p.width + i, sum);
    }
}

static __global__ void additive_keys(real *dk, const real *dy, Pairs p)
{
    long b = quotient(blockIdx.x, p.key), s = blockIdx.x - b * p.key;
    for (long i = threadIdx.x; i < p.width; i += BLOCK) {
        float sum = 0;
        for (long row = b * p.query; row < (b + 1) * p.query && p.seen(b, s); row++) {
            float t = p.bent(row, b, s, i);
            sum += one(dy, row * p.key + s) * p.v[i] * (1.0f - t * t);
        }
        set(dk, blockIdx.x * p.width + i, sum);
    }
}

/* Parameters, in one block: v holds 1 / |a| behind its end, and gets the gradient of v. */
static __global__ void additive_parameters(float *da, float *dscale, float *dbias, float *v, const float *rows, const float *a,
                                           const float *scale, int acc, long n, long width)
{
    float over = v[width], sum = 0;
    for (long i = threadIdx.x; i < width; i += BLOCK) {
        float bias = 0, of_v = 0;
        for (long r = 0; r < n; r++) {
            bias += rows[2 * r * width + i];
            of_v += rows[(2 * r + 1) * width + i];
        }
        if (dbias)
            dbias[i] = acc ? dbias[i] + bias : bias;
        v[i] = of_v;
        sum += of_v * (a[i] * over);
    }
    sum = team_sum<BLOCK>(sum);
    for (long i = threadIdx.x; da && i < width; i += BLOCK) {
        float d = *scale * over * (v[i] - sum * (a[i] * over));
        da[i] = acc ? da[i] + d : d;
    }
    if (dscale && threadIdx.x == 0)
        *dscale = acc ? *dscale + sum : sum;
}

void additive_backward(Stage *st, real *dq, real *dk, float *dlinear_att, float *dnormalize_scalar, float *dnormalize_bias,
                       const real *dy, const real *q, const real *k, const int32_t *mask, const float *linear_att,
                       const float *normalize_scalar, const float *normalize_bias, void *tmp, int acc, long batch, long query,
                       long key, long width)
{
    float *v = (float *)tmp, *rows = v + 2 * width;
    Pairs p = {q, k, mask, normalize_bias, v, batch, query, key, width};
    LAUNCH(additive_weigh, 1u, (unsigned)BLOCK, st, v, linear_att, normalize_scalar, width);
    LAUNCH(additive_queries, (unsigned)(batch * query), (unsigned)BLOCK, st, dq, rows, dy, p);
    if (dk)
        LAUNCH(additive_keys, (unsigned)(batch * key), (unsigned)BLOCK, st, dk, dy, p);
    if (dlinear_att || dnormalize_scalar || dnormalize_bias)
        LAUNCH(additive_parameters, 1u, (unsigned)BLOCK, st, dlinear_att, dnormalize_scalar, dnormalize_bias, v,
               (const float *)rows, linear_att, normalize_scalar, acc, batch * query, width);
}
