/* SPDX-License-Identifier: Apache-2.0
 *
 * encode.c: the tokens of a text.
 *
 * Added tokens are found first, the longest at each place.  What lies between them is normalized, cut into words (split.c), and
 * each word is merged: of all neighbours that have a merge, those of the lowest rank become one token, the left ones first,
 * until no pair has one (R. Sennrich, B. Haddow, A. Birch, Neural Machine Translation of Rare Words with Subword Units, 2016).
 *
 * A heap holds the pairs.  A pair that has changed since it was put there is passed over.  Cost: n log n for a word of n, and
 * tokenizers without a pattern have one word for all of a text.
 */
#include "tokens.h"
#include "utf8.h"
#include <string.h>

typedef struct { int id, left, right; } Piece;          /* neighbours by number, -1 none; id -1: it was merged */
typedef struct { int rank, at, id; } Pair;
typedef struct { VEC(Piece) piece; VEC(Pair) heap; } Word;

/* ---- the heap ---------------------------------------------------------------------------------------------------------- */

static bool before(const Pair *a, const Pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void swap(Pair *a, Pair *b)
{
    Pair x = *a;
    *a = *b;
    *b = x;
}

static void push(Word *w, Pair p)
{
    int i = w->heap.n;
    *PUSH(&w->heap) = p;
    for (; i > 0 && before(&w->heap.at[i], &w->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap.at[i], &w->heap.at[(i - 1) / 2]);
}

static Pair pop(Word *w)
{
    Pair top = w->heap.at[0], *h = w->heap.at;
    int n = --w->heap.n;
    h[0] = h[n];
    for (int i = 0, k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && before(&h[k + 1], &h[k]);
        if (!before(&h[k], &h[i]))
            break;
        swap(&h[k], &h[i]);
    }
    return top;
}

/* ---- a word ------------------------------------------------------------------------------------------------------------- */

static void add_piece(Word *w, int id)
{
    int n = w->piece.n;
    *PUSH(&w->piece) = (Piece){id, n - 1, n + 1};
}

/* The pair that begins with a piece, if it has a merge. */
static void offer(const Tokenizer *t, Word *w, int at)
{
    int right = at < 0 ? -1 : w->piece.at[at].right;
    const Merge *m = right < 0 ? NULL : merge_of(t, w->piece.at[at].id, w->piece.at[right].id);
    if (m)
        push(w, (Pair){m->rank, at, m->id});
}

static void merge(const Tokenizer *t, Word *w)
{
    for (int i = 0; i < w->piece.n; i++)
        offer(t, w, i);
    while (w->heap.n > 0) {
        Pair p = pop(w);
        Piece *a = &w->piece.at[p.at];
        const Merge *m = a->id < 0 || a->right < 0 ? NULL : merge_of(t, a->id, w->piece.at[a->right].id);
        if (!m || m->id != p.id)
            continue;
        Piece *b = &w->piece.at[a->right];
        a->id = p.id;
        a->right = b->right;
        b->id = -1;
        if (a->right >= 0)
            w->piece.at[a->right].left = p.at;
        offer(t, w, a->left);
        offer(t, w, p.at);
    }
}

static void spell_char(const Tokenizer *t, Word *w, const char *at, int n)
{
    int id = t->bytes ? -1 : map_get(&t->vocab, at, n);
    if (id >= 0)
        add_piece(w, id);
    for (int i = 0; i < n && id < 0; i++)
        add_piece(w, t->byte[(unsigned char)at[i]]);
}

static void encode_word(const Tokenizer *t, Word *w, const char *at, size_t size, Ints *to)
{
    int whole = t->whole ? map_get(&t->vocab, at, (int)size) : -1, n;
    if (whole >= 0) {
        *PUSH(to) = whole;
        return;
    }
    w->piece.n = w->heap.n = 0;
    for (const char *end = at + size; at < end; at += n) {
        utf8_next(at, end, &n);
        spell_char(t, w, at, n);
    }
    w->piece.at[w->piece.n - 1].right = -1;
    merge(t, w);
    for (int i = 0; i < w->piece.n; i++)
        if (w->piece.at[i].id >= 0)
            *PUSH(to) = w->piece.at[i].id;
}

/* ---- a text ------------------------------------------------------------------------------------------------------------- */

static void encode_words(const Tokenizer *t, Word *w, const char *at, const char *end, Ints *to)
{
    for (size_t n; at < end; at += n) {
        n = split_word(t->pattern, at, end);
        encode_word(t, w, at, n, to);
    }
}

/* Digits one by one, where the tokenizer wants that: what lies between them is a text of its own. */
static void encode_digits(const Tokenizer *t, Word *w, const char *at, const char *end, Ints *to)
{
    const char *from = at;
    for (int n; at < end; at += n) {
        bool digit = char_class(utf8_next(at, end, &n)) & NUMERAL;
        if (!t->digits || !digit)
            continue;
        encode_words(t, w, from, at, to);
        encode_words(t, w, at, at + n, to);
        from = at + n;
    }
    encode_words(t, w, from, end, to);
}

/* With blanks as U+2581, and one in front; *n bytes. */
static const char *with_blanks(const Tokenizer *t, const char *text, size_t *n, bool first)
{
    static const char blank[] = "\xe2\x96\x81";
    char *room = alloc(3 * *n + 4), *to = room;
    bool has = *text == ' ' || (*n > 2 && !memcmp(text, blank, 3));
    if (t->prepend == PREPEND_ANY || (!has && (t->prepend == PREPEND_ALWAYS || (t->prepend == PREPEND_FIRST && first))))
        to = (char *)memcpy(to, blank, 3) + 3;
    for (size_t i = 0; i < *n; i++) {
        bool replace = text[i] == ' ';
        memcpy(to, replace ? blank : &text[i], replace ? 3 : 1);
        to += replace ? 3 : 1;
    }
    *n = (size_t)(to - room);
    return room;
}

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

/* A blank in front, where there is none. */
static const char *with_prefix(const char *text, size_t *n)
{
    char *room = alloc(*n + 1);
    if (*text == ' ')
        return text;
    *room = ' ';
    memcpy(room + 1, text, (*n)++);
    return room;
}

static void encode_part(const Tokenizer *t, Word *w, const char *text, size_t n, bool first, Ints *to)
{
    if (n > 0 && t->blanks)
        text = with_blanks(t, text, &n, first);
    if (n > 0 && t->prefix)
        text = with_prefix(text, &n);
    encode_digits(t, w, text, text + n, to);
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
        const char *part = !normalized && t->nfc ? normal_text(from, &k) : from;
        (normalized ? encode_part : encode_rest)(t, w, part, k, first && from == text, to);
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
    Word w = {{0}, {0}};
    check_text(t, name, text, n);
    encode_added(t, &w, false, text, n, true, to);
}
