/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c: numbers as people read them; the begin, the end and the order of texts.
 */
#include "base.h"

const char *size_text(Bytes n)
{
    static const struct { Bytes unit; const char *name; } units[] = {
        {(Bytes)1 << 30, "GiB"}, {(Bytes)1 << 20, "MiB"}, {(Bytes)1 << 10, "KiB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (n >= units[i].unit)
            return strf("%.2f %s", (double)n / (double)units[i].unit, units[i].name);
    return strf("%" PRId64 " bytes", n);
}

bool text_begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

bool text_ends(const char *text, const char *with)
{
    size_t n = strlen(text), k = strlen(with);
    return n >= k && !strcmp(text + n - k, with);
}

char *text_plain(const char *text, const char *letters)
{
    char *to = strf("%s", text);
    for (char *c = to; *c; c++)
        *c = strchr(letters, *c) ? *c : '_';
    return to;
}

bool strs_has(const Strs *list, const char *text)
{
    return INDEX_OF(list->at, list->n, text) >= 0;
}

int text_index(const void *at, int n, size_t size, const char *text)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(*(const char *const *)(const void *)((const char *)at + (size_t)i * size), text))
            return i;
    return -1;
}

int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void sort_by(void *at, int n, size_t size, int (*by)(const void *, const void *))
{
    if (n > 1)
        qsort(at, (size_t)n, size, by);
}

const char *text_without(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && !strcmp(text + n - k, end) ? strf("%.*s", (int)(n - k), text) : NULL;
}

const char *text_numbered(const char *text, int64_t n)
{
    const char *at = strstr(text, "{}");
    return at ? strf("%.*s%" PRId64 "%s", (int)(at - text), text, n, at + 2) : text;
}

const char *count_text(int64_t n, const char *thing)
{
    return strf("%" PRId64 " %s%s", n, thing, n == 1 ? "" : strchr("sxh", thing[strlen(thing) - 1]) ? "es" : "s");
}
