/* SPDX-License-Identifier: Apache-2.0
 *
 * region.c: what stands in each byte of an arena: bytes of terms.
 *
 * Pieces ascend and do not overlap; a gap was never written.  They stand in leaves of up to 64, one behind the other, so that a
 * write moves one leaf.  A write over a piece with the same ends, as most are, moves nothing.
 *
 * Cost: the logarithm of the pieces for each operand, plus those that it touches.
 */
#include "verify.h"
#include <string.h>

enum { LEAF = 64 };
struct RegionLeaf { int n; Piece at[LEAF]; };
typedef struct { int leaf, at; } Spot;

static bool ended(const Region *r, Spot s)
{
    return s.leaf >= r->n;
}

static Piece *piece_at(const Region *r, Spot s)
{
    return &r->at[s.leaf]->at[s.at];
}

static Spot following(const Region *r, Spot s)
{
    return s.at + 1 < r->at[s.leaf]->n ? (Spot){s.leaf, s.at + 1} : (Spot){s.leaf + 1, 0};
}

/* The first piece that ends behind lo. */
static Spot find(const Region *r, int64_t lo)
{
    int a = 0, b = r->n;
    while (a < b) {             /* the first leaf whose last piece ends behind lo */
        int m = (a + b) / 2;
        const RegionLeaf *l = r->at[m];
        if (l->at[l->n - 1].hi > lo)
            b = m;
        else
            a = m + 1;
    }
    if (a == r->n)
        return (Spot){a, 0};
    int c = 0, d = r->at[a]->n - 1;
    while (c < d) {
        int m = (c + d) / 2;
        if (r->at[a]->at[m].hi > lo)
            d = m;
        else
            c = m + 1;
    }
    return (Spot){a, c};
}

static void new_leaf(Region *r, int before)
{
    *ADD(r) = NULL;
    memmove(r->at + before + 1, r->at + before, sizeof *r->at * (size_t)(r->n - 1 - before));
    r->at[before] = room(sizeof **r->at);
}

static void take_out(Region *r, Spot s)
{
    RegionLeaf *l = r->at[s.leaf];
    memmove(l->at + s.at, l->at + s.at + 1, sizeof *l->at * (size_t)(l->n - s.at - 1));
    if (--l->n == 0) {
        memmove(r->at + s.leaf, r->at + s.leaf + 1, sizeof *r->at * (size_t)(r->n - s.leaf - 1));
        r->n--;
    }
}

static void put_before(Region *r, Spot s, Piece p)
{
    if (ended(r, s)) {
        if (r->n == 0)
            new_leaf(r, 0);
        s = (Spot){r->n - 1, r->at[r->n - 1]->n};
    }
    RegionLeaf *l = r->at[s.leaf];
    if (l->n == LEAF) {
        new_leaf(r, s.leaf + 1);
        RegionLeaf *half = r->at[s.leaf + 1];
        half->n = LEAF / 2;
        l->n = LEAF / 2;
        memcpy(half->at, l->at + LEAF / 2, sizeof *l->at * LEAF / 2);
        if (s.at > LEAF / 2)
            s = (Spot){s.leaf + 1, s.at - LEAF / 2};
        l = r->at[s.leaf];
    }
    memmove(l->at + s.at + 1, l->at + s.at, sizeof *l->at * (size_t)(l->n - s.at));
    l->at[s.at] = p;
    l->n++;
}

void region_set(Region *r, Piece p)
{
    Spot s = find(r, p.lo);
    if (!ended(r, s) && piece_at(r, s)->lo == p.lo && piece_at(r, s)->hi == p.hi && p.term) {
        *piece_at(r, s) = p;
        return;
    }
    if (!ended(r, s) && piece_at(r, s)->lo < p.lo) {
        Piece *was = piece_at(r, s), behind = *was;
        was->hi = p.lo;
        s = following(r, s);
        if (behind.hi > p.hi) {
            behind.from += p.hi - behind.lo;
            behind.lo = p.hi;
            put_before(r, s, behind);
            s = find(r, p.lo);
        }
    }
    while (!ended(r, s) && piece_at(r, s)->hi <= p.hi) {
        take_out(r, s);
        s = find(r, p.lo);
    }
    if (!ended(r, s) && piece_at(r, s)->lo < p.hi) {
        Piece *was = piece_at(r, s);
        was->from += p.hi - was->lo;
        was->lo = p.hi;
    }
    if (p.term)
        put_before(r, s, p);
}

void region_bring(Region *to, const Pieces *list, int64_t by)
{
    for (int i = 0; i < list->n; i++) {
        Piece p = list->at[i];
        p.lo += by;
        p.hi += by;
        region_set(to, p);
    }
}

/* One behind the other, of one term and as it stands there, are one piece. */
static void append(Pieces *to, Piece p)
{
    Piece *last = to->n ? &to->at[to->n - 1] : NULL;
    if (last && last->hi == p.lo && last->term == p.term && (p.term == 0 || last->from + last->hi - last->lo == p.from))
        last->hi = p.hi;
    else
        *ADD(to) = p;
}

void region_get(const Region *r, int64_t lo, int64_t hi, Pieces *to)
{
    for (Spot s = find(r, lo); lo < hi; s = following(r, s)) {
        const Piece *p = ended(r, s) ? NULL : piece_at(r, s);
        if (!p || p->lo >= hi) {
            append(to, (Piece){lo, hi, 0, 0});
            return;
        }
        if (p->lo > lo)
            append(to, (Piece){lo, p->lo, 0, 0});
        int64_t from = p->lo > lo ? p->lo : lo, until = p->hi < hi ? p->hi : hi;
        append(to, (Piece){from, until, p->from + from - p->lo, p->term});
        lo = until;
    }
}

Term region_term(const Region *r, int64_t lo, int64_t hi, int64_t *hole)
{
    static Pieces list;
    Spot s = find(r, lo);
    if (!ended(r, s) && piece_at(r, s)->lo == lo && piece_at(r, s)->hi == hi)
        return term_slice(piece_at(r, s)->term, piece_at(r, s)->from, hi - lo);
    list.n = 0;
    region_get(r, lo, hi, &list);
    static LIST(Term) parts;
    parts.n = 0;
    for (int i = 0; i < list.n; i++) {
        if (list.at[i].term == 0) {
            *hole = list.at[i].lo;
            return 0;
        }
        *ADD(&parts) = term_slice(list.at[i].term, list.at[i].from, list.at[i].hi - list.at[i].lo);
    }
    return parts.n == 1 ? parts.at[0] : term_of(H_JOIN, hi - lo, parts.n, parts.at);
}
