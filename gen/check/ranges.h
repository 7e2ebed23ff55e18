/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.h: a map from addresses to the values that mem.c expects there.
 *
 * It is a row of pieces without gaps.  A claim cuts pieces at its ends, and no cut is ever mended: a line that is replayed
 * again claims the same ranges, so the pieces are soon all there, and nothing moves any more.  Cost: the pieces of a range; one
 * that was asked for before is found at once, any other in the logarithm of the pieces.
 */
#ifndef RANGES_H
#define RANGES_H
#include "value.h"

typedef struct { Bytes from; CheckValue value; } Stretch; /* up to the next one */
typedef struct { VEC(Stretch) piece; int *hint; } Ranges;       /* hint: where an address was, by a hash of it */

void ranges_open(Ranges *r);        /* all addresses hold 0 */
void ranges_claim(Ranges *r, Bytes from, Bytes to, CheckValue value);   /* [from, to) holds it from now on */
Bytes ranges_differ(Ranges *r, Bytes from, Bytes to, CheckValue value); /* the first byte that does not; -1: none */
#endif
