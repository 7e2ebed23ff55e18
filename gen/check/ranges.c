/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.c: what check.h promises, on a sorted array.
 */
#include "check.h"

enum { HINT_BITS = 16 };

void ranges_open(Ranges *r)
{
    r->hint = alloc(sizeof *r->hint << HINT_BITS);
    *PUSH(&r->piece) = (Stretch){INT64_MIN, 0};
    *PUSH(&r->piece) = (Stretch){INT64_MAX, 0};           /* nothing lies behind it */
}

/* The piece with the byte `at`. */
static int find(Ranges *r, Bytes at)
{
    int *hint = &r->hint[(uint64_t)at * 0x9e3779b97f4a7c15u >> (64 - HINT_BITS)], lo = *hint, hi = r->piece.n - 1;
    if (lo < hi && r->piece.at[lo].from == at)
        return lo;
    for (lo = 0; hi - lo > 1;) {
        int mid = (lo + hi) / 2;
        *(r->piece.at[mid].from <= at ? &lo : &hi) = mid;
    }
    return *hint = lo;
}

/* Stretch i becomes two, the second from `at` on. */
static void cut(Ranges *r, int i, Bytes at)
{
    (void)PUSH(&r->piece);
    Stretch *x = &r->piece.at[i];
    memmove(x + 1, x, sizeof *x * (size_t)(r->piece.n - 1 - i));
    x[1].from = at;
}

void ranges_claim(Ranges *r, Bytes from, Bytes to, CheckValue value)
{
    int i = find(r, from);
    if (from < to && r->piece.at[i].from < from)
        cut(r, i++, from);
    for (; from < to; from = r->piece.at[++i].from) {
        if (r->piece.at[i + 1].from > to)
            cut(r, i, to);
        r->piece.at[i].value = value;
    }
}

Bytes ranges_differ(Ranges *r, Bytes from, Bytes to, CheckValue value)
{
    for (int i = find(r, from); from < to; from = r->piece.at[++i].from)
        if (r->piece.at[i].value != value)
            return from;
    return -1;
}
