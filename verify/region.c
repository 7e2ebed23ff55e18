/* SPDX-License-Identifier: Apache-2.0
 *
 * region.c: what stands in each byte of an arena: bytes of terms.
 *
 * Pieces ascend and do not overlap; a gap was never written.  A write over a piece with the same ends, as most are, moves
 * nothing; another one moves the pieces behind it.
 *
 * Cost: the logarithm of the pieces for each operand, plus those that it touches.
 */
#include "verify.h"
#include <string.h>

/* The first piece that ends behind lo. */
static int find(const Pieces *r, int64_t lo)
{
    int a = 0, b = r->n;
    while (a < b) {
        int m = (a + b) / 2;
        if (r->at[m].hi > lo)
            b = m;
        else
            a = m + 1;
    }
    return a;
}

/* What it covers goes; of a piece that it covers in part, what stands in front of it and behind it stays. */
void region_set(Pieces *r, Piece p)
{
    int a = find(r, p.lo), b = a, n = 0, was = r->n;
    Piece put[3];
    while (b < was && r->at[b].lo < p.hi)
        b++;
    if (a < b && r->at[a].lo < p.lo) {
        put[n] = r->at[a];
        put[n++].hi = p.lo;
    }
    put[n++] = p;
    if (a < b && r->at[b - 1].hi > p.hi) {
        put[n] = r->at[b - 1];
        put[n].from += p.hi - put[n].lo;
        put[n++].lo = p.hi;
    }
    while (r->n < was + n - (b - a))
        ADD(r);
    if (n != b - a)
        memmove(r->at + a + n, r->at + b, sizeof p * (size_t)(was - b));
    memcpy(r->at + a, put, sizeof p * (size_t)n);
    r->n = was + n - (b - a);
}

void region_bring(Pieces *to, const Pieces *list, int64_t by)
{
    for (int i = 0; i < list->n; i++) {
        Piece p = list->at[i];
        p.lo += by;
        p.hi += by;
        region_set(to, p);
    }
}

/* Pieces one behind the other, of one term and as it stands there, are one. */
Piece region_piece(const Pieces *r, int64_t lo, int64_t hi)
{
    int k = find(r, lo);
    Piece p = k < r->n && r->at[k].lo <= lo ? r->at[k++] : (Piece){lo, k < r->n ? r->at[k].lo : hi, 0, 0};
    for (; k < r->n && r->at[k].lo == p.hi && r->at[k].term == p.term; k++) {
        if (p.term && r->at[k].from != p.from + p.hi - p.lo)
            break;
        p.hi = r->at[k].hi;
    }
    return (Piece){lo, p.hi < hi ? p.hi : hi, p.from + lo - p.lo, p.term};
}

void region_get(const Pieces *r, int64_t lo, int64_t hi, Pieces *to)
{
    for (; lo < hi; lo = to->at[to->n - 1].hi)
        *ADD(to) = region_piece(r, lo, hi);
}

int64_t region_hole(const Pieces *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i].term == 0)
            return list->at[i].lo;
    return -1;
}

Term region_term(const Pieces *r, int64_t lo, int64_t hi)
{
    static Pieces list;
    static LIST(Term) parts;
    int k = find(r, lo);
    if (k < r->n && r->at[k].lo == lo && r->at[k].hi == hi)
        return term_slice(r->at[k].term, r->at[k].from, hi - lo);
    list.n = parts.n = 0;
    region_get(r, lo, hi, &list);
    if (region_hole(&list) >= 0)
        return 0;
    for (int i = 0; i < list.n; i++)
        *ADD(&parts) = term_slice(list.at[i].term, list.at[i].from, list.at[i].hi - list.at[i].lo);
    return parts.n == 1 ? parts.at[0] : term_of(H_JOIN, hi - lo, parts.n, parts.at);
}
