/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.c: what ranges.h promises, on a sorted array.  Cost: logarithmic to find, linear in the ranges behind to claim.
 */
#include "ranges.h"
#include <string.h>

/* Index of the first range that ends after `at`. */
int ranges_find(const Ranges *r, Bytes at)
{
    int lo = 0, hi = r->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (r->at[mid].to <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* [from, to) holds value from now on. */
void ranges_claim(Ranges *r, Bytes from, Bytes to, Value value)
{
    int i = ranges_find(r, from), j = i, n = 0;
    Range fresh[3];
    while (j < r->n && r->at[j].from < to)
        j++;
    if (j > i && r->at[i].from < from)
        fresh[n++] = (Range){r->at[i].from, from, r->at[i].value};
    fresh[n++] = (Range){from, to, value};
    if (j > i && r->at[j - 1].to > to)
        fresh[n++] = (Range){to, r->at[j - 1].to, r->at[j - 1].value};
    int tail = r->n - j;
    for (int grow = n - (j - i); grow > 0; grow--)
        (void)PUSH(r);
    if (n != j - i)             /* mostly a buffer is where it was the last time */
        memmove(&r->at[i + n], &r->at[j], sizeof(Range) * (size_t)tail);
    memcpy(&r->at[i], fresh, sizeof(Range) * (size_t)n);
    r->n = i + n + tail;
}

/* The first byte of [from, to) that does not hold the value; -1: there is none. */
Bytes ranges_differ(const Ranges *r, Bytes from, Bytes to, Value value)
{
    for (int i = ranges_find(r, from); from < to; i++) {
        if (i >= r->n || r->at[i].from > from || r->at[i].value != value)
            return from;
        from = r->at[i].to;
    }
    return -1;
}
