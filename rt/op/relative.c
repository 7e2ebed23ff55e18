/* SPDX-License-Identifier: Apache-2.0
 *
 * RelativeBias: y[head][q][k] = weight[bucket(k - q)][head], the learned position bias of T5 (C. Raffel et al.,
 * Exploring the Limits of Transfer Learning, 2020, section 2.1; buckets as in the Hugging Face implementation).
 *
 * Distances below E get a bucket each, larger ones share buckets of logarithmic width up to `distance`; E is half
 * of the buckets of one direction.  With both = 1 keys behind the query have the upper half of the buckets; with 0
 * all of them are in bucket 0.  The bucket's edge: the least n with (n/E)^M >= (distance/E)^i, M = buckets - E, i
 * = 1 .. M-1.  Its logarithm is compared in double with room for rounding, so that an n exactly on an edge belongs
 * to the upper bucket.
 *
 * dweight: a bucket's row sums its elements query by query, key by key, ascending; threads split heads.
 */
#include "kernel.h"
#include "../relative.h"

static Buckets edges(int32_t edge[EDGES], long buckets, long distance, long both)
{
    Buckets b = buckets_of(buckets, distance, both);
    for (long i = 0; i < b.edges; i++)
        edge[i] = (int32_t)edge_of(&b, i);
    return b;
}

void relative_bias_forward(Stage *st, real *y, const real *weight, long heads, long query, long key, long buckets,
                           long distance, long both)
{
    int32_t edge[EDGES];
    Buckets b = edges(edge, buckets, distance, both);
    EACH(heads * query * key >= 1 << 15)
    for (long q = 0; q < query; q++)
        for (long k = 0; k < key; k++) {
            const real *from = weight + bucket_of(&b, edge, k - q) * heads;
            for (long h = 0; h < heads; h++)
                y[(h * query + q) * key + k] = from[h];
        }
}

void relative_bias_backward(Stage *st, float *dweight, const real *dy, int acc, long heads, long query, long key,
                            long buckets, long distance, long both)
{
    int32_t edge[EDGES];
    Buckets b = edges(edge, buckets, distance, both);
    EACH(heads * query * key >= 1 << 15)
    for (long h = 0; h < heads; h++) {
        for (long i = 0; i < buckets && !acc; i++)
            dweight[i * heads + h] = 0;
        for (long q = 0; q < query; q++)
            for (long k = 0; k < key; k++)
                dweight[bucket_of(&b, edge, k - q) * heads + h] += get(dy, (h * query + q) * key + k);
    }
}
