/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention whose queries, keys and values lie side by side: attend.h.
 */
#include "attend.h"

void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask,
                              const Values *vals, int mb, int h, long batch, long heads, long query, long width,
                              long causal, float scale, float drop, int64_t site)
{
    (void)h;
    long all = heads * width, row = 3 * all;
    Attention a = {qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, batch, heads, 1, query, query, width,
                   row, row, row, all, causal, scale, drop, site, 0, 0, 0, 0};
    forward(st, y, lse, &a);
}

void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv,
                               const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals,
                               int mb, int h, long batch, long heads, long query, long width, long causal, float scale,
                               float drop, int64_t site)
{
    (void)h;
    long all = heads * width, row = 3 * all;
    Attention a = {qkv, qkv + all, qkv + 2 * all, bias, mask, vals, mb, batch, heads, 1, query, query, width,
                   row, row, row, all, causal, scale, drop, site, 0, 0, 0, 0};
    Back r = {dy, y, lse, tmp, dqkv, dqkv ? dqkv + all : 0, dqkv ? dqkv + 2 * all : 0, dbias};
    backward(st, &a, &r);
}
