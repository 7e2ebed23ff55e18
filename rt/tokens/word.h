/* SPDX-License-Identifier: Apache-2.0
 *
 * word.h: from a text without added tokens to words, and from words to tokens.
 */
#ifndef WORD_H
#define WORD_H
#include "tokens.h"

typedef struct { int id, left, right; } Piece;          /* neighbours by number, -1 none; id -1: it was merged */
typedef struct { int rank, at, id; } Pair;
typedef struct { double score; size_t from; int id; } Node;     /* the best way to a place, from where, by which token */
typedef struct { VEC(Piece) piece; VEC(Pair) heap; VEC(Node) node; Ints found; Grown spelt, key; } Word;

const Merge *merge_of(const Tokenizer *t, int left, int right);         /* read.c */
void bpe_word(const Tokenizer *t, Word *w, const char *at, size_t n, Ints *to);
/* pieces.c: by the model of the tokenizer */
void word_encode(const Tokenizer *t, Word *w, const char *at, size_t n, Ints *to);
/* cut.c: first: the text begins the whole one */
void cut_encode(const Tokenizer *t, Word *w, const char *text, size_t n, bool first, Ints *to);
#endif
