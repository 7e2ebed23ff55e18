/* SPDX-License-Identifier: Apache-2.0
 *
 * normal.c: a text in a normalization form (Unicode Standard Annex 15): characters are taken apart as far as they go, marks are
 * sorted by their class, and in forms C and KC neighbours are put together again.  In forms KC and KD a character that stands
 * for others is taken apart as well.
 *
 * Most texts have nothing to do in form C: letters.c says which characters may change or move.  Only such ones are looked at,
 * with the character before them; in other forms all but ASCII.  Cost: linear, and a pass over a table for each pair of them.
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
/* What a character stands for: itself with this bit, then its parts. */
#define STANDS 0x80000000u
static const uint32_t compat[] = {
#define C(c, ...) STANDS | (c), __VA_ARGS__,
#define S(first, last, to)
#include "compat.def"
#undef C
#undef S
};
static const struct { uint32_t first, last, to; } alike[] = {
#define C(c, ...)
#define S(first, last, to) {first, last, to},
#include "compat.def"
#undef C
#undef S
};
enum { ROWS = sizeof rows / sizeof *rows, CLASSES = sizeof classes / sizeof *classes,
       COMPATS = sizeof compat / sizeof *compat };
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

/* How many characters it stands for, in *parts, or in *one. */
static int stands_for(uint32_t c, const uint32_t **parts, uint32_t *one)
{
    int n = 0;
    for (int low = 0, high = (int)(sizeof alike / sizeof *alike) - 1; low <= high;) {
        int mid = (low + high) / 2;
        if (c >= alike[mid].first && c <= alike[mid].last) {
            *one = alike[mid].to + (c - alike[mid].first);
            *parts = one;
            return 1;
        }
        if (c < alike[mid].first)
            high = mid - 1;
        else
            low = mid + 1;
    }
    for (int low = 0, high = COMPATS - 1; low <= high;) {
        int mid = (low + high) / 2, at = mid;
        while (!(compat[at] & STANDS))
            at--;
        if (c < (compat[at] & ~STANDS)) {
            high = at - 1;
        } else if (c > (compat[at] & ~STANDS)) {
            low = mid + 1;
        } else {
            *parts = &compat[at + 1];
            while (at + 1 + n < COMPATS && !(compat[at + 1 + n] & STANDS))
                n++;
            return n;
        }
    }
    return 0;
}

static void take_apart(Run *r, Form f, uint32_t c)
{
    uint32_t s = c - SYLLABLE, one;
    const uint32_t *parts;
    int n = f >= NFKC ? stands_for(c, &parts, &one) : 0, row = row_of(c);
    for (int i = 0; i < n; i++)
        take_apart(r, f, parts[i]);
    if (n > 0)
        return;
    if (row >= 0) {
        take_apart(r, f, rows[row].first);
        if (rows[row].second)
            take_apart(r, f, rows[row].second);
    } else if (s < LEADS * VOWELS * TAILS) {
        *PUSH(&r->mark) = (Mark){LEAD + s / TAILS / VOWELS, 0};
        *PUSH(&r->mark) = (Mark){VOWEL + s / TAILS % VOWELS, 0};
        if (s % TAILS)
            *PUSH(&r->mark) = (Mark){TAIL + s % TAILS, 0};
    } else {
        *PUSH(&r->mark) = (Mark){c, class_of(c)};
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
    for (int i = 0; i < ROWS && char_class(b) & MOVES; i++)
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

static void put_run(Grown *to, Run *r, Form f, const char *at, const char *end)
{
    r->mark.n = 0;
    for (int n; at < end; at += n)
        take_apart(r, f, utf8_next(at, end, &n));
    sort_marks(r);
    if (f == NFC || f == NFKC)
        put_together(r);
    for (int i = 0; i < r->mark.n; i++)
        text_char(to, r->mark.at[i].c);
}

static bool may_change(Form f, uint32_t c)
{
    return f == NFC ? char_class(c) & MOVES : c >= 0xa0;
}

/* The first character that may change or move; the end: there is none.  *before: the one in front of it. */
static const char *find_mark(Form f, const char *at, const char *end, const char **before)
{
    *before = at;
    for (int n; at < end; at += n) {
        if (may_change(f, utf8_next(at, end, &n)))
            return at;
        *before = at;
    }
    return end;
}

const char *normal_text(Form f, const char *text, size_t *n)
{
    const char *end = text + *n, *before, *mark = find_mark(f, text, end, &before);
    if (mark == end)
        return text;
    Grown to = {0};
    Run r = {{0}};
    for (const char *at = text; at < end; at = mark, mark = find_mark(f, at, end, &before)) {
        const char *from = mark < end ? before : end;
        text_put(&to, at, (size_t)(from - at));
        for (int k; mark < end && may_change(f, utf8_next(mark, end, &k));)
            mark += k;
        put_run(&to, &r, f, from, mark);
    }
    *n = to.n;
    return to.at ? to.at : "";
}
