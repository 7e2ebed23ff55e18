/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c: from runs of bytes to numbers, by hashing (FNV-1a, open addresses, at most half full).
 */
#include "tokens.h"
#include <string.h>

#define BASIS 2166136261u
static uint32_t step(uint32_t h, char c)
{
    return (h ^ (unsigned char)c) * 16777619u;
}

static uint32_t hash(const char *key, int n)
{
    uint32_t h = BASIS;
    for (int i = 0; i < n; i++)
        h = step(h, key[i]);
    return h;
}

static Entry *find(const Map *m, const char *key, int n, uint32_t at)
{
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
            *find(m, old.at[i].key, old.at[i].n, hash(old.at[i].key, old.at[i].n)) = old.at[i];
}

void map_put(Map *m, const char *key, int n, int value)
{
    m->longest = n > m->longest ? n : m->longest;
    if (!m->at || 2 * (uint32_t)m->n >= m->mask)
        grow(m);
    Entry *e = find(m, key, n, hash(key, n));
    m->n += !e->key;
    *e = (Entry){key, n, value};
}

int map_get(const Map *m, const char *key, int n)
{
    const Entry *e = m->at ? find(m, key, n, hash(key, n)) : NULL;
    return e && e->key ? e->value : -1;
}

void map_prefixes(const Map *m, const char *at, const char *end, void (*take)(void *to, int n, int value), void *to)
{
    uint32_t h = BASIS;
    for (int n = 1; m->at && n <= m->longest && n <= end - at; n++) {
        h = step(h, at[n - 1]);
        const Entry *e = find(m, at, n, h);
        if (e->key)
            take(to, n, e->value);
    }
}
