/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c: numbers as people read them.
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

const char *text_without(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && !strcmp(text + n - k, end) ? strf("%.*s", (int)(n - k), text) : NULL;
}

const char *count_text(int64_t n, const char *thing)
{
    return strf("%" PRId64 " %s%s", n, thing, n == 1 ? "" : strchr("sxh", thing[strlen(thing) - 1]) ? "es" : "s");
}
