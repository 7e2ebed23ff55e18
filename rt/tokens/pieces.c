/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.c: the tokens of a word, from a vocabulary without merges.
 *
 * WordPiece takes the longest token that the rest of a word begins with; a word that cannot be spelt so is unknown as a whole
 * (M. Schuster, K. Nakajima, Japanese and Korean Voice Search, 2012).  Unigram takes the tokens whose probabilities have the
 * largest product (T. Kudo, Subword Regularization, 2018): the best way to each place, from left to right.  A character
 * without a token is unknown, at ten less than the least logarithm; neighbours that are unknown are one token.  Sums are made
 * in the order of the library `tokenizers`, and of equal ways the first one found stays.
 *
 * Cost: a look-up for each place and length of a token, up to the longest one.
 */
#include "word.h"
#include "utf8.h"
#include <string.h>

enum { UNKNOWN_COSTS = 10, LONGEST = 1 << 30 };

/* ---- WordPiece ---------------------------------------------------------------------------------------------------------- */

/* The longest token at `from`, and its bytes; -1: there is none. */
static int longest(const Tokenizer *t, Word *w, const char *at, size_t from, size_t n, size_t *size)
{
    size_t before = from > 0 ? strlen(t->continues) : 0, most = n - from;
    if (most > (size_t)t->vocab.longest)
        most = (size_t)t->vocab.longest;
    w->key.n = 0;
    text_put(&w->key, t->continues, before);
    text_put(&w->key, at + from, most);
    for (*size = most; *size > 0; --*size) {
        int id = from + *size < n && (at[from + *size] & 0xc0) == 0x80 ? -1
               : map_get(&t->vocab, w->key.at, (int)(before + *size));
        if (id >= 0)
            return id;
    }
    return -1;
}

static void piece_word(const Tokenizer *t, Word *w, const char *at, size_t n, Ints *to)
{
    int characters = 0, begun = to->n, id = 0;
    for (size_t i = 0; i < n; i++)
        characters += (at[i] & 0xc0) != 0x80;
    for (size_t from = 0, size; from < n && id >= 0; from += size) {
        id = characters > t->most_characters ? -1 : longest(t, w, at, from, n, &size);
        if (id >= 0)
            *PUSH(to) = id;
    }
    if (id >= 0)
        return;
    to->n = begun;
    *PUSH(to) = t->unknown;
}

/* ---- Unigram ------------------------------------------------------------------------------------------------------------ */

typedef struct { const Tokenizer *t; Word *w; size_t from, character; bool single; } Finder;

static void try_way(Word *w, size_t from, size_t to, double score, int id)
{
    Node *end = &w->node.at[to];
    double sum = score + w->node.at[from].score;
    if (end->from == SIZE_MAX || sum > end->score)
        *end = (Node){sum, from, id};
}

static void take_token(void *of, int n, int id)
{
    Finder *here = of;
    try_way(here->w, here->from, here->from + (size_t)n, here->t->score.at[id], id);
    here->single |= (size_t)n == here->character;
}

static void find_ways(const Tokenizer *t, Word *w, const char *at, size_t n)
{
    w->node.n = 0;
    for (size_t i = 0; i <= n; i++)
        *PUSH(&w->node) = (Node){0, SIZE_MAX, -1};
    for (size_t i = 0; i < n;) {
        int character;
        utf8_next(at + i, at + n, &character);
        Finder here = {t, w, i, (size_t)character, false};
        map_prefixes(&t->vocab, at + i, at + n, take_token, &here);
        if (!here.single && t->unknown < 0)
            fail(EXIT_MODEL, "%s: no token spells '%.*s', and there is no token of what is unknown", t->path, character,
                 at + i);
        if (!here.single)
            try_way(w, i, i + (size_t)character, t->least - UNKNOWN_COSTS, t->unknown);
        i += (size_t)character;
    }
}

/* What was found unknown may be a token all the same, where its neighbours are unknown too. */
static void put_unknown(const Tokenizer *t, const char *at, size_t n, Ints *to)
{
    int id = map_get(&t->vocab, at, (int)n);
    bool spelt = id < 0 && t->fallback;
    for (size_t i = 0; i < n && spelt; i++)
        spelt = t->byte[(unsigned char)at[i]] >= 0;
    for (size_t i = 0; i < n && spelt; i++)
        *PUSH(to) = t->byte[(unsigned char)at[i]];
    if (!spelt)
        *PUSH(to) = id >= 0 ? id : t->unknown;
}

static void unigram_word(const Tokenizer *t, Word *w, const char *at, size_t n, Ints *to)
{
    find_ways(t, w, at, n);
    w->found.n = 0;
    for (size_t end = n; end > 0; end = w->node.at[end].from)
        *PUSH(&w->found) = (int)end;
    for (int i = w->found.n - 1; i >= 0; i--) {
        int end = w->found.at[i], from = i + 1 < w->found.n ? w->found.at[i + 1] : 0;
        while (w->node.at[end].id == t->unknown && i > 0 && w->node.at[w->found.at[i - 1]].id == t->unknown)
            end = w->found.at[--i];
        if (w->node.at[end].id == t->unknown)
            put_unknown(t, at + from, (size_t)(end - from), to);
        else
            *PUSH(to) = w->node.at[end].id;
    }
}

/* ---- any model ----------------------------------------------------------------------------------------------------------- */

void word_encode(const Tokenizer *t, Word *w, const char *at, size_t n, Ints *to)
{
    static void (*const encode[])(const Tokenizer *, Word *, const char *, size_t, Ints *) = {
        [BPE] = bpe_word, [WORDPIECE] = piece_word, [UNIGRAM] = unigram_word};
    if (n > LONGEST)
        fail(EXIT_MODEL, "%s: a text without words, of %zu bytes: make several files of it", t->path, n);
    encode[t->model](t, w, at, n, to);
}
