/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe.c: the tokens of a word, merged: of all neighbours that have a merge, those of the lowest rank become one token, the left
 * ones first, until no pair has one (R. Sennrich, B. Haddow, A. Birch, Neural Machine Translation of Rare Words with Subword
 * Units, 2016).
 *
 * A heap holds the pairs.  A pair that has changed since it was put there is passed over.  Cost: n log n for a word of n, and
 * tokenizers without a pattern have one word for all of a text.
 */
#include "word.h"
#include "utf8.h"

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

void bpe_word(const Tokenizer *t, Word *w, const char *at, size_t size, Ints *to)
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
