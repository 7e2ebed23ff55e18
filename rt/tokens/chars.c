/* SPDX-License-Identifier: Apache-2.0
 *
 * chars.c: the table of a normalizer of type Precompiled, as SentencePiece writes it (T. Kudo, J. Richardson, SentencePiece,
 * 2018): a double array of the texts that are replaced (J. Aoe, An Efficient Digital Search Algorithm by Using a Double-Array
 * Structure, 1989), and the texts that they become, each with a zero behind it.
 *
 * The library `tokenizers` looks a cluster of characters up as one where it has less than 6 bytes, and replaces all of it by
 * what its shortest beginning becomes.  Then it looks up each character.  Clusters are those of Unicode Standard Annex 29,
 * without rules of longer ones: GB6 to GB8 and GB11 to GB13.  They make no difference to a character that is looked up by
 * itself.
 */
#include "tokens.h"
#include "utf8.h"
#include <string.h>

enum { SHORT = 6 };

static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Its bytes; n 0: it is no Base64. */
static Grown decoded(const char *from)
{
    Grown to = {0};
    uint32_t bits = 0;
    int have = 0;
    for (; digit(*from) >= 0; from++) {
        bits = bits << 6 | (uint32_t)digit(*from);
        have += 6;
        if (have >= 8) {
            have -= 8;
            text_put(&to, (char[]){(char)(bits >> have & 0xff)}, 1);
        }
    }
    to.n = from[strspn(from, "=")] ? 0 : to.n;
    return to;
}

static uint32_t word_at(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

const char *chars_read(Chars *to, const char *base64)
{
    Grown all = decoded(base64);
    size_t size = all.n >= 4 ? word_at(all.at) : 0;
    if (size < 4 || size % 4 || size > all.n - 4)
        return "is cut, or no Base64";
    to->units = size / 4;
    to->unit = alloc(size);
    for (size_t i = 0; i < to->units; i++)
        to->unit[i] = word_at(all.at + 4 + 4 * i);
    text_put(&all, "", 1);
    to->text = all.at + 4 + size;
    to->n = all.n - 5 - size;
    return NULL;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* What the shortest beginning of the text becomes; NULL: it has none. */
static const char *become(const Chars *m, const char *at, const char *end)
{
    size_t node = offset_of(m->unit[0]);
    for (; at < end && *at; at++) {
        node ^= (unsigned char)*at;
        if (node >= m->units || (m->unit[node] & 0x800000ffu) != (unsigned char)*at)
            return NULL;
        uint32_t unit = m->unit[node];
        node ^= offset_of(unit);
        if (unit >> 8 & 1) {
            size_t place = node < m->units ? m->unit[node] & 0x7fffffff : m->n + 1;
            return place <= m->n ? m->text + place : NULL;
        }
    }
    return NULL;
}

static const char *cluster_end(const char *at, const char *end)
{
    int n;
    for (uint32_t c = utf8_next(at, end, &n); (at += n) < end;) {
        uint32_t next = utf8_next(at, end, &n);
        int class = char_class(c), then = char_class(next);
        bool apart = (class | then) & APART;
        if (!(c == '\r' && next == '\n') && (apart || !(then & JOINS || class & FORWARD)))
            break;
        c = next;
    }
    return at;
}

void chars_apply(const Chars *m, const char *text, size_t n, Grown *to)
{
    for (const char *at = text, *end = text + n, *next; at < end; at = next) {
        next = cluster_end(at, end);
        const char *is = next - at < SHORT ? become(m, at, next) : NULL;
        if (is) {
            text_put(to, is, strlen(is));
            continue;
        }
        for (int k; at < next; at += k) {
            utf8_next(at, next, &k);
            is = become(m, at, at + k);
            text_put(to, is ? is : at, is ? strlen(is) : (size_t)k);
        }
    }
}
