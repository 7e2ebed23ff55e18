/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens.h: text to tokens and back, by a tokenizer.json of other tools.  dpgen and the program sample share these files:
 * base.h is that of dpgen, or rt/sample/base.h.
 */
#ifndef TOKENS_H
#define TOKENS_H
#include "base.h"

/* letters.c: classes of characters */
enum { LETTER = 1, NUMERAL = 2, SPACE = 4, MOVES = 8 };
int char_class(uint32_t c);
const char *normal_text(const char *text, size_t *n);               /* normal.c: NFC of n bytes of UTF-8, in place or not */

/* split.c: text to words, each of which is encoded on its own */
typedef enum { SPLIT_NONE, SPLIT_GPT2, SPLIT_CL100K, SPLIT_QWEN } Pattern;
const char *pattern_text(Pattern p);                /* as tokenizer.json has it; NULL behind the last */
size_t split_word(Pattern p, const char *at, const char *end);      /* bytes of the word that begins there */

typedef struct { const char *key; int n, value; } Entry;            /* key NULL: free */
typedef struct { Entry *at; uint32_t mask; int n; } Map;             /* by n bytes */
void map_put(Map *m, const char *key, int n, int value);
int  map_get(const Map *m, const char *key, int n);                 /* -1: it has not */

typedef struct { uint64_t pair; int rank, id; } Merge;              /* pair 0: free; else 1 + left << 32 | right */
/* normalized: it is looked for in the text as it is then; spaces: before it and behind it belong to it */
typedef struct { const char *text; int n, id; bool normalized, spaces_before, spaces_behind; } Added;
typedef struct {
    const char *path;
    bool bytes;                 /* tokens are of bytes; else of characters, with tokens of bytes for all others */
    bool nfc, digits, whole;    /* the normalizer; digits one by one; a word that is a token is not merged from pieces */
    enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS, PREPEND_ANY } prepend;  /* a blank in front of the text, or of
                                   each part between added tokens, where it has none; or of any part */
    bool blanks;                /* blanks become U+2581 */
    bool prefix;                /* bytes: a blank in front of each part between added tokens, where it has none */
    Pattern pattern;
    Map vocab;
    Merge *merge;               /* by pair */
    uint32_t merge_mask;
    int byte[256];              /* the token of each byte */
    VEC(Added) added;           /* found in the text before anything else */
    int most;                   /* the largest id */
    VEC(Entry) word;            /* decode.c: texts by id */
} Tokenizer;

/* read.c: of a tokenizer.json of n bytes, a zero behind them; fail()s with EXIT_MODEL at what it does not know */
Tokenizer *tokenizer_read(const char *path, const char *text, size_t n);
const Merge *merge_of(const Tokenizer *t, int left, int right);
/* encode.c: the tokens of a text; name: what messages call it */
void tokenizer_encode(const Tokenizer *t, const char *name, const char *text, size_t n, Ints *to);
/* decode.c: the bytes of a token inside a text; NULL: there is no such token */
void tokenizer_words(Tokenizer *t);                 /* once, before that */
const char *tokenizer_word(const Tokenizer *t, int id, int *n);
#endif
