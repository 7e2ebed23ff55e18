/* SPDX-License-Identifier: Apache-2.0
 *
 * triples.c: a hash table of triples with linear probing, at most half full.  Order of meeting, never order of hashing,
 * reaches a caller.
 */
#include "base.h"

static MemoKey *find(MemoKey *at, int cap, int a, int b, int c)
{
    uint64_t h = (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b * 0xc2b2ae3d27d4eb4fu ^ (uint64_t)c * 0x165667b19e3779f9u;
    int i = (int)((h ^ h >> 29) & (uint64_t)(cap - 1));
    while (at[i].index && (at[i].a != a || at[i].b != b || at[i].c != c))
        i = (i + 1) & (cap - 1);
    return &at[i];
}

int memo_index(Memo *m, int a, int b, int c)
{
    if (2 * (m->n + 1) > m->cap) {
        int cap = m->cap ? 2 * m->cap : 256;
        MemoKey *at = alloc(sizeof *at * (size_t)cap);
        for (int i = 0; i < m->cap; i++)
            if (m->at[i].index)
                *find(at, cap, m->at[i].a, m->at[i].b, m->at[i].c) = m->at[i];
        m->at = at;
        m->cap = cap;
    }
    MemoKey *k = find(m->at, m->cap, a, b, c);
    if (!k->index)
        *k = (MemoKey){a, b, c, ++m->n};
    return k->index - 1;
}
