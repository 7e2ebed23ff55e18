/* SPDX-License-Identifier: Apache-2.0
 *
 * relative.h: the buckets of RelativeBias (relative.c says what they are), as the kernels of every target compute them.
 */
#ifndef RELATIVE_H
#define RELATIVE_H
#include "fmath.h"

enum { EDGES = 1024 };          /* more than the 2048 buckets of one direction have */

/* Buckets of one direction: `exact` of one distance each, then `edges` edges, then the rest. */
typedef struct { long per, exact, edges, distance, both; double unit; } Buckets;

FN Buckets buckets_of(long buckets, long distance, long both)
{
    Buckets b;
    b.per = both ? buckets / 2 : buckets;
    b.exact = b.per / 2;
    b.edges = b.per - b.exact - 1;
    b.distance = distance;
    b.both = both;
    b.unit = dlog((double)distance / (double)b.exact) / (double)(b.per - b.exact);
    return b;
}

/* Edge i: the least distance that lies behind it, at most b->distance. */
FN long edge_of(const Buckets *b, long i)
{
    long low = b->exact, high = b->distance;
    while (low < high) {
        long n = (low + high) / 2;
        if (dlog((double)n / (double)b->exact) < b->unit * (double)(i + 1) - 1e-10)
            low = n + 1;
        else
            high = n;
    }
    return low;
}

/* The bucket of a key `ahead` of its query. */
FN long bucket_of(const Buckets *b, const int32_t *edge, long ahead)
{
    long base = b->both && ahead > 0 ? b->per : 0, n = ahead < 0 ? -ahead : b->both ? ahead : 0, i = 0;
    if (n < b->exact)
        return base + n;
    while (i < b->edges && n >= edge[i])
        i++;
    return base + b->exact + i;
}
#endif
