/* SPDX-License-Identifier: Apache-2.0
 *
 * size.c: a decimal number and a unit, such as 24GiB, 1.5 GB or 1e9: the one reader of the model file and of options.
 */
#include "base.h"
#include <math.h>

enum { MOST_UNITS = 16 };
const Unit size_bytes[] = { { "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "KB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
    { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 }, { NULL, 0 } };

/* Digits, a fraction, an exponent, and how many characters that is, spaces behind it included; -1: it is not that. */
static double leading(const char *p, size_t *used)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(p, digits), sign;
    if (n && p[n] == '.')
        n += 1 + strspn(p + n + 1, digits);
    sign = n && (p[n] == 'e' || p[n] == 'E') ? 1 + (p[n + 1] == '-' || p[n + 1] == '+') : 0;
    if (sign && strspn(p + n + sign, digits))
        n += sign + strspn(p + n + sign, digits);
    *used = n + strspn(p + n, " ");
    return n ? number_decimal(p, n) : -1;
}

double size_read(const char *text, const Unit *units, const char *behind, const char *example, SizeFault *fault)
{
    const char *known[MOST_UNITS], *near;
    size_t used;
    int n = 0;
    double x = leading(text, &used);
    for (; units[n].name; n++) {
        known[n] = *units[n].name ? strf("%s%s", units[n].name, behind) : "";
        if (x < 0 || strcmp(text + used, known[n]))
            continue;
        if (x * units[n].factor <= 0x1p60)
            return floor(x * units[n].factor);
        *fault = (SizeFault){ strf("%s is more than can be counted", text), "at most 2^60" };
        return -1;
    }
    near = x >= 0 ? nearest(text + used, known, n) : NULL;
    fault->why = strf("'%s' is %s", text, text[0] == '-' ? "below zero" : "no number with a known unit");
    fault->hint = near ? strf("did you mean '%.*s%s'?", (int)used, text, near) : strf("write it like %s", example);
    return -1;
}
