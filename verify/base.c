/* SPDX-License-Identifier: Apache-2.0
 *
 * base.c: memory that lives until exit, names, files, and how the program ends.
 */
#include "verify.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A folder may come from anywhere: what ASCII shows of it, and ends of lines. */
char *shown(char *text)
{
    for (char *c = text; *c; c++)
        *c = *c == '\n' || (*c >= ' ' && *c <= '~') ? *c : '?';
    return text;
}

void stop(int status, const char *format, ...)
{
    char text[1 << 14];
    va_list of;
    va_start(of, format);
    vsnprintf(text, sizeof text, format, of);
    fflush(stdout);
    fprintf(stderr, "dpgen-verify: %s\n", shown(text));
    va_end(of);
    _Exit(status);              /* dpgen calls this program in a process of its own: its handlers are not ours */
}

void *blank(size_t n, size_t size)
{
    void *at = calloc(n, size);
    if (!at)
        stop(NO_MEMORY, "no memory");
    return at;
}

void *room(size_t bytes)
{
    static char *at;
    static size_t left;
    size_t want = (bytes + 15) & ~(size_t)15;
    if (want > left) {
        left = want > (1u << 20) ? want : 1u << 20;
        at = blank(1, left);
    }
    void *got = at;
    at += want;
    left -= want;
    return got;
}

void *larger(void *at, int have, int *cap, size_t size)
{
    if (have < *cap)
        return at;
    *cap = *cap ? 2 * *cap : 8;
    void *more = blank((size_t)*cap, size);
    if (have)
        memcpy(more, at, (size_t)have * size);
    free(at);
    return more;
}

/* ---- tables of numbers ------------------------------------------------------------------------------------------- */

uint64_t mixed(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

uint32_t *map_next(const Map *m, uint64_t key, uint64_t *tried)
{
    while (m->cap) {
        uint64_t k = ((key >> 32) + (*tried)++) & (m->cap - 1);
        if (m->key[k] == key && m->value[k])
            return &m->value[k];
        if (!m->value[k])
            break;
    }
    return NULL;
}

void map_add(Map *m, uint64_t key, uint32_t value)
{
    if (2 * m->n >= m->cap) {
        Map was = *m;
        m->n = 0;
        m->cap = was.cap ? 2 * was.cap : 64;
        m->key = blank(m->cap, sizeof *m->key);
        m->value = blank(m->cap, sizeof *m->value);
        for (uint64_t i = 0; i < was.cap; i++)
            if (was.value[i])
                map_add(m, was.key[i], was.value[i]);
        free(was.key);
        free(was.value);
    }
    uint64_t k = (key >> 32) & (m->cap - 1);
    while (m->value[k])
        k = (k + 1) & (m->cap - 1);
    m->key[k] = key;
    m->value[k] = value;
    m->n++;
}

/* By address: no two have the same key, since what mixes can be undone. */
static uint64_t key_of(const void *at)
{
    return mixed(0, (uint64_t)(uintptr_t)at);
}

int map_at(const Map *m, const void *key)
{
    uint32_t *value = map_next(m, key_of(key), &(uint64_t){0});
    return value ? (int)*value - 1 : -1;
}

void map_set(Map *m, const void *key, int value)
{
    uint32_t *was = map_next(m, key_of(key), &(uint64_t){0});
    if (was)
        *was = (uint32_t)value + 1;
    else
        map_add(m, key_of(key), (uint32_t)value + 1);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static Map names;
static LIST(const char *) name;

const char *name_of(const char *at, size_t n)
{
    uint64_t key = 0, tried = 0;
    for (size_t i = 0; i < n; i++)
        key = mixed(key, (unsigned char)at[i]);
    for (uint32_t *k; (k = map_next(&names, key, &tried));)
        if (!strncmp(name.at[*k - 1], at, n) && !name.at[*k - 1][n])
            return name.at[*k - 1];
    char *copy = room(n + 1);
    memcpy(copy, at, n);
    *ADD(&name) = copy;
    map_add(&names, key, (uint32_t)name.n);
    return copy;
}

char *joined_text(const char *format, ...)
{
    va_list of, again;
    va_start(of, format);
    va_copy(again, of);
    int n = vsnprintf(NULL, 0, format, of);
    char *text = room((size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(of);
    va_end(again);
    return text;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum { LARGEST = 1 << 30 };       /* no folder has such a file, and a link may lead to what never ends */

bool source_read(Source *s, const char *dir, const char *name)
{
    const char *path = joined_text("%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    LIST(char) text = {0};
    for (int c; (c = getc(f)) != EOF;) {
        if (text.n == LARGEST)
            stop(NOT_READ, "%s has more than 1 GiB", path);
        *ADD(&text) = (char)c;
    }
    if (ferror(f))
        stop(NOT_READ, "%s cannot be read", path);
    fclose(f);
    *ADD(&text) = 0;
    *s = (Source){name, text.at, (size_t)text.n - 1};
    return true;
}
