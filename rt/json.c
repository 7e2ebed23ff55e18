/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c: a strict reader of JSON (RFC 8259).
 *
 * Every function stops at the first error and leaves it in `why`; all later calls then fail, so callers look once at
 * the end of a group.  Depth is bounded, numbers that are read must be whole and fit, and no function reads past
 * `end`.  Not handled: fractions are skipped, never read; numbers are not checked against the grammar when skipped.
 */
#include <string.h>
#include "json.h"

Json json_open(const void *text, size_t n)
{
    const char *from = n ? text : "";           /* an empty file is mapped nowhere */
    return (Json){from, from, from + n, NULL};
}

static bool fault(Json *j, const char *why)
{
    if (!j->why)
        j->why = why;
    return false;
}

static char peek(Json *j)
{
    while (j->at < j->end && memchr(" \t\r\n", *j->at, 4))
        j->at++;
    return j->at < j->end ? *j->at : 0;
}

static bool take(Json *j, char c)
{
    if (j->why || peek(j) != c || j->at >= j->end)
        return false;
    j->at++;
    return true;
}

bool json_end(Json *j)
{
    if (!j->why && (peek(j), j->at < j->end))
        fault(j, "more text after the end");
    return !j->why;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Four digits; -1: they are none. */
static int four(Json *j)
{
    int u = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int digit = j->at < j->end ? hex_digit(*j->at) : -1;
        if (digit < 0)
            return -1;
        u = u << 4 | digit;
    }
    return u;
}

/* What stands behind \u as UTF-8, and the other half of a pair.  A half by itself is refused. */
static int unicode(Json *j, char to[4])
{
    int u = four(j), low = -1;
    if (u >= 0xd800 && u < 0xdc00 && j->end - j->at > 5 && j->at[0] == '\\' && j->at[1] == 'u') {
        j->at += 2;
        low = four(j);
        u = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00) : -1;
    }
    if (u < 0 || (u >= 0xd800 && u < 0xe000))
        return 0;
    int n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    static const int lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, u >>= 6)
        to[i] = (char)(0x80 | (u & 0x3f));
    to[0] = (char)(n == 1 ? u : lead[n] | u);
    return n;
}

static int escape(Json *j, char to[4])
{
    static const char from[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->end ? *j->at++ : 0;
    if (c == 'u')
        return unicode(j, to);
    const char *at = c ? strchr(from, c) : NULL;
    to[0] = at ? value[at - from] : 0;
    return at ? 1 : 0;
}

/* Next character of a string, decoded; 0: not one. */
static int character(Json *j, char to[4])
{
    char c = *j->at++;
    if (c == '\\')
        return escape(j, to);
    to[0] = c;
    return (unsigned char)c >= ' ' ? 1 : 0;
}

bool json_bytes(Json *j, char *to, size_t room, size_t *size)
{
    size_t used = 0;
    if (!take(j, '"'))
        return fault(j, "a string is expected");
    while (j->at < j->end && *j->at != '"') {
        char c[4];
        int n = character(j, c);
        if (n == 0)
            return fault(j, "a character that no string may hold");
        if (to && used + (size_t)n >= room)
            return fault(j, "a string that is too long");
        if (to)
            memcpy(to + used, c, (size_t)n);
        used += (size_t)n;
    }
    if (to)
        to[used] = 0;
    *size = used;
    return take(j, '"') || fault(j, "a string without an end");
}

bool json_string(Json *j, char *to, size_t room)
{
    size_t n;
    return json_bytes(j, to, room, &n) && (!to || !memchr(to, 0, n) || fault(j, "a character that no string may hold"));
}

bool json_integer(Json *j, int64_t *x)
{
    char c = peek(j);
    if (j->why || c < '0' || c > '9')
        return fault(j, "a whole number is expected");
    if (c == '0' && j->end - j->at > 1 && j->at[1] >= '0' && j->at[1] <= '9')
        return fault(j, "a number that starts with 0");
    for (*x = 0; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++) {
        if (*x > (INT64_MAX - 9) / 10)
            return fault(j, "a number that is too large");
        *x = *x * 10 + (*j->at - '0');
    }
    if (j->at < j->end && memchr(".eE", *j->at, 3))
        return fault(j, "a whole number is expected");
    return true;
}

static bool open_or_next(Json *j, bool *first, char open, char close)
{
    if (*first && !take(j, open))
        return fault(j, open == '{' ? "an object is expected" : "an array is expected");
    if (take(j, close))
        return false;
    if (!*first && !take(j, ','))
        return fault(j, open == '{' ? "a comma or } is expected" : "a comma or ] is expected");
    *first = false;
    return true;
}

bool json_key(Json *j, bool *first, char *key, size_t room, size_t *n)
{
    return open_or_next(j, first, '{', '}') && json_bytes(j, key, room, n) && (take(j, ':') || fault(j, "a colon is expected"));
}

bool json_member(Json *j, bool *first, char *key, size_t room)
{
    if (!open_or_next(j, first, key ? '{' : '[', key ? '}' : ']'))
        return false;
    if (!key)
        return !j->why;
    return json_string(j, key, room) && (take(j, ':') || fault(j, "a colon is expected"));
}

static bool skip_word(Json *j)
{
    const char *from = j->at;
    while (j->at < j->end && *j->at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *j->at))
        j->at++;
    return j->at > from || fault(j, "a value is expected");
}

static bool skip(Json *j, int depth)
{
    char c = peek(j);
    if (depth > JSON_DEPTH)
        return fault(j, "nesting that is too deep");
    if (c == '"')
        return json_string(j, NULL, 0);
    if (c != '{' && c != '[')
        return !j->why && skip_word(j);
    for (bool first = true; open_or_next(j, &first, c, c == '{' ? '}' : ']');)
        if ((c == '{' && (!json_string(j, NULL, 0) || !(take(j, ':') || fault(j, "a colon is expected")))) ||
            !skip(j, depth + 1))
            return false;
    return !j->why;
}

bool json_skip(Json *j)
{
    return skip(j, 0);
}
