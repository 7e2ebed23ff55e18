/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c: from runs of bytes to numbers, by hashing (FNV-1a, open addresses, at most half full).
 */
#include "tokens.h"
#include <string.h>

static uint32_t hash(const char *key, int n)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < n; i++)
        h = (h ^ (unsigned char)key[i]) * 16777619u;
    return h;
}

static Entry *find(const Map *m, const char *key, int n)
{
    uint32_t at = hash(key, n);
    Entry *e = &m->at[at & m->mask];
    while (e->key && (e->n != n || memcmp(e->key, key, (size_t)n)))
        e = &m->at[++at & m->mask];
    return e;
}

static void grow(Map *m)
{
    Map old = *m;
    m->mask = old.at ? 2 * old.mask + 1 : 1023;
    m->at = alloc(((size_t)m->mask + 1) * sizeof *m->at);
    for (uint32_t i = 0; old.at && i <= old.mask; i++)
        if (old.at[i].key)
            *find(m, old.at[i].key, old.at[i].n) = old.at[i];
}

void map_put(Map *m, const char *key, int n, int value)
{
    if (!m->at || 2 * (uint32_t)m->n >= m->mask)
        grow(m);
    Entry *e = find(m, key, n);
    m->n += !e->key;
    *e = (Entry){key, n, value};
}

int map_get(const Map *m, const char *key, int n)
{
    const Entry *e = m->at ? find(m, key, n) : NULL;
    return e && e->key ? e->value : -1;
}
