/* SPDX-License-Identifier: Apache-2.0
 *
 * RelativeBias: rt/op/relative.c.  Each block finds the edges of the buckets in shared memory: one binary search a thread.
 *
 * Backward: a block sums one bucket of one head.  For each query, the keys of a bucket are an interval.  A warp takes a query
 * and its lanes the keys, and all blocks together read dy once.
 */
#include "kernel.h"
#include "../../relative.h"

/* Columns: a thread has one (query, key), and writes all heads. */
static __global__ void spread_bias(real *y, const real *weight, long heads, long query, long key, long buckets,
                                   long distance, long both)
{
    SHARED(int32_t, edge, EDGES);
    Buckets b = buckets_of(buckets, distance, both);
    for (long i = threadIdx.x; i < b.edges; i += BLOCK)
        edge[i] = (int32_t)edge_of(&b, i);
    __syncthreads();
    GRID(i, query * key) {
        long q = quotient(i, key), k = i - q * key;
        const real *from = weight + bucket_of(&b, SHARED_AT(edge, 0), k - q) * heads;
        for (long h = 0; h < heads; h++)
            y[h * query * key + i] = from[h];
    }
}

/* The least and largest `ahead` of a bucket; empty: least > largest. */
FN void bucket_range(const Buckets *b, long bucket, long *least, long *largest)
{
    const long far = 1L << 40;
    long side = b->both && bucket >= b->per, i = side ? bucket - b->per : bucket, at = i - b->exact;
    long low = i <= b->exact ? i : edge_of(b, at - 1), high = i < b->exact ? i : at < b->edges ? edge_of(b, at) - 1 : far;
    if (side) {
        *least = low > 0 ? low : 1;
        *largest = high;
    } else {
        *least = -high;
        *largest = i == 0 && !b->both ? far : -low;
    }
}

static __global__ void gather_bias(float *dweight, const real *dy, int acc, long heads, long query, long key, long buckets,
                                   long distance, long both)
{
    long head = blockIdx.x % heads, bucket = blockIdx.x / heads, least, largest;
    int lane = threadIdx.x % WARP;
    Buckets b = buckets_of(buckets, distance, both);
    bucket_range(&b, bucket, &least, &largest);
    float sum = 0;
    for (long q = threadIdx.x / WARP; q < query; q += BLOCK / WARP) {
        long from = q + least > 0 ? q + least : 0, until = q + largest < key - 1 ? q + largest : key - 1;
        for (long k = from + lane; k <= until; k += WARP)
            sum += one(dy, (head * query + q) * key + k);
    }
    sum = team_sum<BLOCK>(sum);
    float *to = dweight + bucket * heads + head;
    if (threadIdx.x == 0)
        *to = acc ? *to + sum : sum;
}

void relative_bias_forward(Stage *st, real *y, const real *weight, long heads, long query, long key, long buckets,
                           long distance, long both)
{
    LAUNCH(spread_bias, blocks_for(query * key), (unsigned)BLOCK, st, y, weight, heads, query, key, buckets, distance, both);
}

void relative_bias_backward(Stage *st, float *dweight, const real *dy, int acc, long heads, long query, long key,
                            long buckets, long distance, long both)
{
    LAUNCH(gather_bias, (unsigned)(heads * buckets), (unsigned)BLOCK, st, dweight, dy, acc, heads, query, key, buckets,
           distance, both);
}
