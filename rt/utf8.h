/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.h: characters of a text.
 */
#ifndef UTF8_H
#define UTF8_H
#include <stdint.h>

/* The next one, and its length; 0xfffd and 1: it is none. */
static inline uint32_t utf8_next(const char *at, const char *end, int *bytes)
{
    static const struct { unsigned char mask, lead; uint32_t least; } form[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 },
    };
    const unsigned char *p = (const unsigned char *)at;
    *bytes = 1;
    for (int k = 0; k < 4 && at + k < end; k++) {
        if ((p[0] & form[k].mask) != form[k].lead)
            continue;
        uint32_t c = p[0] & (unsigned char)~form[k].mask;
        for (int i = 1; i <= k; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return 0xfffd;
            c = c << 6 | (p[i] & 0x3f);
        }
        if (c < form[k].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return 0xfffd;
        *bytes = k + 1;
        return c;
    }
    return 0xfffd;
}
#endif
