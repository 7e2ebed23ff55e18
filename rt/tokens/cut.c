/* SPDX-License-Identifier: Apache-2.0
 *
 * cut.c: the pre-tokenizer of a tokenizer, cut by cut.  What one leaves is cut by the next; behind the last it is a word, which
 * the model makes tokens of.  No word is kept: each is encoded as soon as it is there.
 */
#include "word.h"
#include "utf8.h"
#include <string.h>

typedef struct { const Tokenizer *t; Word *w; Ints *to; } Cutter;

static const char blank[] = "\xe2\x96\x81";     /* U+2581 */

static void cut(const Cutter *c, int k, const char *at, const char *end, bool first);

static void cut_pattern(const Cutter *c, int k, const char *at, const char *end, bool first)
{
    for (size_t n; at < end; at += n, first = false) {
        n = split_word(c->t->cut.at[k].pattern, at, end);
        cut(c, k + 1, at, at + n, first);
    }
}

/* Characters of class `alone` are words by themselves; those of `none` are no part of words. */
static void cut_class(const Cutter *c, int k, const char *at, const char *end, int alone, int none, bool first)
{
    const char *begin = at, *from = at;
    for (int n; at < end; at += n) {
        int class = char_class(utf8_next(at, end, &n));
        if (!(class & (alone | none)))
            continue;
        cut(c, k + 1, from, at, first && from == begin);
        if (!(class & none))
            cut(c, k + 1, at, at + n, first && at == begin);
        from = at + n;
    }
    cut(c, k + 1, from, end, first && from == begin);
}

static void cut_before_blanks(const Cutter *c, int k, const char *at, const char *end, bool first)
{
    for (const char *next; at < end; at = next, first = false) {
        for (next = at + 1; next < end && (end - next < 3 || memcmp(next, blank, 3));)
            next++;
        cut(c, k + 1, at, next, first);
    }
}

/* With blanks as U+2581, and one in front.  The room of a word is used again by the next one. */
static void cut_blanks(const Cutter *c, int k, const char *at, const char *end, bool first)
{
    const Cut *is = &c->t->cut.at[k];
    Grown *spelt = &c->w->spelt;
    size_t from = spelt->n;
    bool has = *at == ' ' || (end - at > 2 && !memcmp(at, blank, 3));
    if (!has && (is->prepend == PREPEND_ALWAYS || (is->prepend == PREPEND_FIRST && first)))
        text_put(spelt, blank, 3);
    for (; at < end; at++)
        text_put(spelt, *at == ' ' ? blank : at, *at == ' ' ? 3 : 1);
    size_t n = spelt->n - from;
    (is->split ? cut_before_blanks : cut)(c, is->split ? k : k + 1, spelt->at + from, spelt->at + from + n, first);
    spelt->n = from;
}

/* A blank in front, where there is none. */
static void cut_prefix(const Cutter *c, int k, const char *at, const char *end, bool first)
{
    Grown *spelt = &c->w->spelt;
    size_t from = spelt->n;
    text_put(spelt, " ", *at != ' ');
    text_put(spelt, at, (size_t)(end - at));
    cut(c, k + 1, spelt->at + from, spelt->at + spelt->n, first);
    spelt->n = from;
}

static void cut(const Cutter *c, int k, const char *at, const char *end, bool first)
{
    if (at == end)
        return;
    if (k == c->t->cut.n) {
        word_encode(c->t, c->w, at, (size_t)(end - at), c->to);
        return;
    }
    switch (c->t->cut.at[k].kind) {
        case CUT_PATTERN: cut_pattern(c, k, at, end, first); break;
        case CUT_DIGITS: cut_class(c, k, at, end, NUMERAL, 0, first); break;
        case CUT_SPACES: cut_class(c, k, at, end, 0, SPACE, first); break;
        case CUT_BERT: cut_class(c, k, at, end, PUNCT, SPACE, first); break;
        case CUT_BLANKS: cut_blanks(c, k, at, end, first); break;
        case CUT_PREFIX: cut_prefix(c, k, at, end, first); break;
    }
}

void cut_encode(const Tokenizer *t, Word *w, const char *text, size_t n, bool first, Ints *to)
{
    cut(&(Cutter){t, w, to}, 0, text, text + n, first);
}
