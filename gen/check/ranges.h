/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.h: a map from ranges of addresses to the values that mem.c expects there.
 */
#ifndef RANGES_H
#define RANGES_H
#include "value.h"

typedef struct { Bytes from, to; Value value; } Range;
typedef VEC(Range) Ranges;          /* sorted, disjoint */

int ranges_find(const Ranges *r, Bytes at);         /* the first range that ends after `at` */
void ranges_claim(Ranges *r, Bytes from, Bytes to, Value value);        /* [from, to) holds it from now on */
Bytes ranges_differ(const Ranges *r, Bytes from, Bytes to, Value value);    /* the first byte that does not; -1: none */
#endif
