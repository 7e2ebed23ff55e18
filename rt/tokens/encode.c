/* SPDX-License-Identifier: Apache-2.0
 *
 * encode.c: the tokens of a text.  Added tokens are found first, the longest at each place.  What lies between them is
 * normalized (changes.c), cut into words (cut.c), and the model makes tokens of each word (bpe.c, pieces.c).
 */
#include "word.h"
#include "utf8.h"
#include <string.h>

static void check_text(const Tokenizer *t, const char *name, const char *text, size_t size)
{
    int n;
    for (const char *at = text, *end = text + size; at < end; at += n) {
        uint32_t c = utf8_next(at, end, &n);
        if (c == 0xfffd && n == 1)
            fail(EXIT_MODEL, "%s: byte %ld is no UTF-8, and %s is of texts; convert it with iconv", name, (long)(at - text),
                 t->path);
    }
}

/* ---- added tokens -------------------------------------------------------------------------------------------------------- */

/* The longest one that begins there. */
static const Added *added_at(const Tokenizer *t, bool normalized, const char *at, const char *end)
{
    const Added *found = NULL;
    for (int i = 0; i < t->added.n; i++) {
        const Added *a = &t->added.at[i];
        if (a->normalized == normalized && *a->text == *at && a->n <= end - at && !memcmp(a->text, at, (size_t)a->n) &&
            (!found || a->n > found->n))
            found = a;
    }
    return found;
}

/* Where the spaces begin that end at `at`, not before `from`. */
static const char *spaces_to(const char *from, const char *at)
{
    for (const char *back = at; back > from; at = back) {
        int n;
        for (back--; back > from && (*back & 0xc0) == 0x80;)
            back--;
        if (!(char_class(utf8_next(back, at, &n)) & SPACE))
            break;
    }
    return at;
}

static const char *spaces_from(const char *at, const char *end)
{
    for (int n; at < end && char_class(utf8_next(at, end, &n)) & SPACE;)
        at += n;
    return at;
}

static void encode_rest(const Tokenizer *t, Word *w, const char *text, size_t n, bool first, Ints *to);

/* What lies between tokens that are looked for before normalizing is normalized, and then searched for the others. */
static void encode_added(const Tokenizer *t, Word *w, bool normalized, const char *text, size_t n, bool first, Ints *to)
{
    const char *from = text, *end = text + n;
    for (const char *at = text; at <= end;) {
        const Added *a = at < end ? added_at(t, normalized, at, end) : NULL;
        if (!a && at++ < end)
            continue;
        const char *until = !a ? end : a->spaces_before ? spaces_to(from, at) : at;
        size_t k = until > from ? (size_t)(until - from) : 0;
        const char *part = normalized ? from : tokenizer_normal(t, from, &k);
        (normalized ? cut_encode : encode_rest)(t, w, part, k, first && from == text, to);
        if (!a)
            break;
        *PUSH(to) = a->id;
        at += a->n;
        from = a->spaces_behind ? spaces_from(at, end) : at;
    }
}

static void encode_rest(const Tokenizer *t, Word *w, const char *text, size_t n, bool first, Ints *to)
{
    encode_added(t, w, true, text, n, first, to);
}

void tokenizer_encode(const Tokenizer *t, const char *name, const char *text, size_t n, Ints *to)
{
    Word w = {.piece = {0}};
    check_text(t, name, text, n);
    encode_added(t, &w, false, text, n, true, to);
}
