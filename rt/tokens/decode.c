/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.c: tokens back to text.
 *
 * A token is its bytes: those that it was spelt from, the byte of <0x00> to <0xFF>, or characters with U+2581 for blanks.  One
 * of WordPiece has a blank in front, unless it continues a word.  What
 * a decoder does at the ends of a text, such as taking a first blank away, is not done, since a text is written token by token
 * behind its prompt.
 */
#include "tokens.h"
#include <stdlib.h>
#include <string.h>

static int by_id(const void *a, const void *b)
{
    int x = ((const Entry *)a)->value, y = ((const Entry *)b)->value;
    return (x > y) - (x < y);
}

static Entry of_word(const Tokenizer *t, Entry e)
{
    size_t n = strlen(t->continues);
    if (n > 0 && (size_t)e.n > n && !memcmp(e.key, t->continues, n))
        return (Entry){e.key + n, e.n - (int)n, e.value};
    return (Entry){strf(" %.*s", e.n, e.key), e.n + 1, e.value};
}

/* With blanks for U+2581, in a new place. */
static Entry without_marks(Entry e)
{
    char *to = alloc((size_t)e.n + 1);
    int n = 0;
    for (int i = 0; i < e.n; i++) {
        bool mark = e.n - i > 2 && !memcmp(e.key + i, "\xe2\x96\x81", 3);
        to[n++] = mark ? ' ' : e.key[i];
        i += mark ? 2 : 0;
    }
    return (Entry){to, n, e.value};
}

void tokenizer_words(Tokenizer *t)
{
    for (int i = 0; i < t->added.n; i++)
        *PUSH(&t->word) = (Entry){t->added.at[i].text, t->added.at[i].n, t->added.at[i].id};
    if (t->word.n > 1)
        qsort(t->word.at, (size_t)t->word.n, sizeof *t->word.at, by_id);
    int added = t->word.n;
    for (int b = 0; b < 256 && !t->bytes && t->fallback && t->byte[b] >= 0; b++)
        *PUSH(&t->word) = (Entry){memset(alloc(1), b, 1), 1, t->byte[b]};
    for (uint32_t i = 0; i <= t->vocab.mask && t->vocab.at; i++) {
        Entry e = t->vocab.at[i];
        bool known = !e.key || (added && bsearch(&e, t->word.at, (size_t)added, sizeof e, by_id));
        for (int b = 0; b < 256 && !t->bytes && t->fallback && !known; b++)
            known = t->byte[b] == e.value;
        if (!known)
            *PUSH(&t->word) = t->model == WORDPIECE ? of_word(t, e) : t->blanks ? without_marks(e) : e;
    }
    if (t->word.n > 1)
        qsort(t->word.at, (size_t)t->word.n, sizeof *t->word.at, by_id);
}

const char *tokenizer_word(const Tokenizer *t, int id, int *n)
{
    Entry key = {.value = id};
    const Entry *e = t->word.n ? bsearch(&key, t->word.at, (size_t)t->word.n, sizeof key, by_id) : NULL;
    *n = e ? e->n : 0;
    return e ? e->key : NULL;
}
