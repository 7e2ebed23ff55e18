/* SPDX-License-Identifier: Apache-2.0
 *
 * base.c: memory that lives until exit, names, files, and how the program ends.
 */
#include "verify.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stop(int status, const char *format, ...)
{
    va_list of;
    va_start(of, format);
    fflush(stdout);
    fputs("dpgen-verify: ", stderr);
    vfprintf(stderr, format, of);
    fputc('\n', stderr);
    va_end(of);
    fflush(stderr);
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

/* ---- names ------------------------------------------------------------------------------------------------------- */

static struct { const char **at; int n, cap; } names;

static size_t place_of(const char *at, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)at[i]) * 1099511628211u;
    size_t k = (size_t)(h ^ h >> 29) & (size_t)(names.cap - 1);
    while (names.at[k] && (strncmp(names.at[k], at, n) || names.at[k][n]))
        k = (k + 1) & (size_t)(names.cap - 1);
    return k;
}

static void spread_names(void)
{
    const char **was = names.at;
    int cap = names.cap;
    names.cap = cap ? 2 * cap : 1024;
    names.at = room(sizeof *names.at * (size_t)names.cap);
    for (int i = 0; i < cap; i++)
        if (was[i])
            names.at[place_of(was[i], strlen(was[i]))] = was[i];
}

const char *name_of(const char *at, size_t n)
{
    if (2 * names.n >= names.cap)
        spread_names();
    size_t k = place_of(at, n);
    if (!names.at[k]) {
        char *copy = room(n + 1);
        memcpy(copy, at, n);
        names.at[k] = copy;
        names.n++;
    }
    return names.at[k];
}

const char *joined_text(const char *format, ...)
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

/* ---- maps by address --------------------------------------------------------------------------------------------- */

static int slot_of(const Map *m, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    int k = (int)(h >> 40) & (m->cap - 1);
    while (m->key[k] && m->key[k] != key)
        k = (k + 1) & (m->cap - 1);
    return k;
}

int map_at(const Map *m, const void *key)
{
    if (m->cap == 0)
        return -1;
    int k = slot_of(m, key);
    return m->key[k] ? m->value[k] : -1;
}

void map_set(Map *m, const void *key, int value)
{
    if (2 * m->n >= m->cap) {
        Map was = *m;
        m->cap = was.cap ? 2 * was.cap : 64;
        m->key = room(sizeof *m->key * (size_t)m->cap);
        m->value = room(sizeof *m->value * (size_t)m->cap);
        for (int i = 0; i < was.cap; i++)
            if (was.key[i]) {
                int k = slot_of(m, was.key[i]);
                m->key[k] = was.key[i];
                m->value[k] = was.value[i];
            }
    }
    int k = slot_of(m, key);
    m->n += !m->key[k];
    m->key[k] = key;
    m->value[k] = value;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum { LARGEST = 1 << 30 };       /* no folder has such a file, and a link may lead to what never ends */

bool source_read(Source *s, const char *dir, const char *name)
{
    const char *path = joined_text("%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t cap = 1 << 16, n = 0, got;
    char *at = malloc(cap);
    while (at && (got = fread(at + n, 1, cap - n - 1, f)) > 0)
        if ((n += got) + 1 == cap) {
            char *more = realloc(at, cap *= 2);
            if (!more)
                free(at);
            at = more;
            if (n > LARGEST)
                stop(NOT_READ, "%s has more than 1 GiB", path);
        }
    if (!at || ferror(f))
        stop(NOT_READ, "%s cannot be read", path);
    fclose(f);
    at[n] = 0;
    *s = (Source){name, at, n};
    return true;
}
