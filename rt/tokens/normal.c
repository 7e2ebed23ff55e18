/* SPDX-License-Identifier: Apache-2.0
 *
 * normal.c: a text in normalization form C (Unicode Standard Annex 15): characters are taken apart as far as they go, marks
 * are sorted by their class, and neighbours are put together again.
 *
 * Most texts have nothing to do: letters.c says which characters may change or move.  Only such ones are looked at, with the
 * character before them.  Cost: linear, and a pass over a table for each pair of them.
 */
#include "tokens.h"
#include "utf8.h"
#include <string.h>

static const struct { uint32_t whole, first, second; bool again; } rows[] = {
#define D(whole, first, second) {whole, first, second, true},
#define X(whole, first, second) {whole, first, second, false},
#define K(first, last, class)
#include "normal.def"
#undef D
#undef X
#undef K
};
static const struct { uint32_t first, last; int class; } classes[] = {
#define D(whole, first, second)
#define X(whole, first, second)
#define K(first, last, class) {first, last, class},
#include "normal.def"
#undef D
#undef X
#undef K
};
enum { ROWS = sizeof rows / sizeof *rows, CLASSES = sizeof classes / sizeof *classes };
/* Syllables of Hangul are computed: section 3.12 of the standard. */
enum { SYLLABLE = 0xac00, LEAD = 0x1100, VOWEL = 0x1161, TAIL = 0x11a7, LEADS = 19, VOWELS = 21, TAILS = 28 };

typedef struct { uint32_t c; int class; } Mark;
typedef struct { VEC(Mark) mark; } Run;

static int class_of(uint32_t c)
{
    for (int low = 0, high = CLASSES - 1; low <= high;) {
        int mid = (low + high) / 2;
        if (c < classes[mid].first)
            high = mid - 1;
        else if (c > classes[mid].last)
            low = mid + 1;
        else
            return classes[mid].class;
    }
    return 0;
}

/* Its row; -1: it has no parts. */
static int row_of(uint32_t c)
{
    for (int low = 0, high = ROWS - 1; low <= high;) {
        int mid = (low + high) / 2;
        if (c == rows[mid].whole)
            return mid;
        if (c < rows[mid].whole)
            high = mid - 1;
        else
            low = mid + 1;
    }
    return -1;
}

/* The last part is never taken apart further, so this is a loop over first parts. */
static void take_apart(Run *r, uint32_t c)
{
    uint32_t later[8], s = c - SYLLABLE;
    int n = 0;
    for (int row; n < 8 && (row = row_of(c)) >= 0; c = rows[row].first)
        if (rows[row].second)
            later[n++] = rows[row].second;
    if (s < LEADS * VOWELS * TAILS) {
        if (s % TAILS)
            later[n++] = TAIL + s % TAILS;
        later[n++] = VOWEL + s / TAILS % VOWELS;
        c = LEAD + s / TAILS / VOWELS;
    }
    *PUSH(&r->mark) = (Mark){c, class_of(c)};
    while (n > 0) {
        n--;
        *PUSH(&r->mark) = (Mark){later[n], class_of(later[n])};
    }
}

static void sort_marks(Run *r)
{
    for (int i = 1; i < r->mark.n; i++) {
        Mark m = r->mark.at[i];
        int k = i;
        for (; m.class && k > 0 && r->mark.at[k - 1].class > m.class; k--)
            r->mark.at[k] = r->mark.at[k - 1];
        r->mark.at[k] = m;
    }
}

/* 0: they are no character together. */
static uint32_t together(uint32_t a, uint32_t b)
{
    uint32_t s = a - SYLLABLE;
    if (a - LEAD < LEADS && b - VOWEL < VOWELS)
        return SYLLABLE + ((a - LEAD) * VOWELS + (b - VOWEL)) * TAILS;
    if (s < LEADS * VOWELS * TAILS && s % TAILS == 0 && b - TAIL - 1 < TAILS - 1)
        return a + (b - TAIL);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].first == a && rows[i].second == b && rows[i].again)
            return rows[i].whole;
    return 0;
}

/* A mark joins the last starter, unless one of its class or a later one stands between them. */
static void put_together(Run *r)
{
    int starter = -1, n = 0;
    for (int i = 0; i < r->mark.n; i++) {
        Mark m = r->mark.at[i];
        bool near = starter >= 0 && (starter == n - 1 || (r->mark.at[n - 1].class < m.class && r->mark.at[n - 1].class));
        uint32_t both = near ? together(r->mark.at[starter].c, m.c) : 0;
        if (both) {
            r->mark.at[starter].c = both;
            continue;
        }
        if (m.class == 0)
            starter = n;
        r->mark.at[n++] = m;
    }
    r->mark.n = n;
}

static char *put(char *to, uint32_t c)
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    return to + n;
}

static char *put_run(char *to, Run *r, const char *at, const char *end)
{
    r->mark.n = 0;
    for (int n; at < end; at += n)
        take_apart(r, utf8_next(at, end, &n));
    sort_marks(r);
    put_together(r);
    for (int i = 0; i < r->mark.n; i++)
        to = put(to, r->mark.at[i].c);
    return to;
}

/* The first character that may change or move; the end: there is none.  *before: the one in front of it. */
static const char *find_mark(const char *at, const char *end, const char **before)
{
    *before = at;
    for (int n; at < end; at += n) {
        if (char_class(utf8_next(at, end, &n)) & MOVES)
            return at;
        *before = at;
    }
    return end;
}

const char *normal_text(const char *text, size_t *n)
{
    const char *end = text + *n, *before, *mark = find_mark(text, end, &before);
    if (mark == end)
        return text;
    char *room = alloc(3 * *n + 4), *to = room;
    Run r = {{0}};
    for (const char *at = text; at < end; at = mark, mark = find_mark(at, end, &before)) {
        const char *from = mark < end ? before : end;
        memcpy(to, at, (size_t)(from - at));
        to += from - at;
        for (int k; mark < end && char_class(utf8_next(mark, end, &k)) & MOVES;)
            mark += k;
        to = put_run(to, &r, from, mark);
    }
    *n = (size_t)(to - room);
    return room;
}
