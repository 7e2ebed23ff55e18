/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens.h: text to tokens and back, by a tokenizer.json of other tools.  dpgen and the program sample share these files:
 * base.h is that of dpgen, or rt/sample/base.h.
 */
#ifndef TOKENS_H
#define TOKENS_H
#include "base.h"

/* letters.c: classes of characters.  MOVES: NFC may change it; JOINS, FORWARD, APART: with the one before, with the one
 * behind, with none (Unicode Standard Annex 29) */
enum { LETTER = 1, NUMERAL = 2, SPACE = 4, MOVES = 8, MARK = 16, FLAT = 32, PUNCT = 64, OTHER = 128, JOINS = 256, FORWARD = 512,
       APART = 1024 };
int char_class(uint32_t c);
uint32_t char_lower(uint32_t c);

typedef struct { char *at; size_t n, room; } Grown;                  /* grows */
void text_put(Grown *to, const char *at, size_t n);
void text_char(Grown *to, uint32_t c);
typedef enum { NFC, NFD, NFKC, NFKD } Form;
const char *normal_text(Form f, const char *text, size_t *n);       /* normal.c: of n bytes of UTF-8, in place or not */

/* chars.c: the table of a normalizer of type Precompiled */
typedef struct { uint32_t *unit; size_t units; const char *text; size_t n; } Chars;
const char *chars_read(Chars *to, const char *base64);              /* NULL, or what is wrong */
void chars_apply(const Chars *m, const char *text, size_t n, Grown *to);

/* changes.c: the normalizer, a list of changes.  Each gets the n bytes of a text and puts what they become. */
typedef struct Change Change;
struct Change {
    void (*apply)(const Change *s, const char *text, size_t n, Grown *to);
    const char *from, *to;
    Form form;
    int class;
    bool left, right;
    Chars chars;
};
void change_form(const Change *s, const char *text, size_t n, Grown *to);
void change_drop(const Change *s, const char *text, size_t n, Grown *to);        /* characters of the class */
void change_lower(const Change *s, const char *text, size_t n, Grown *to);
void change_clean(const Change *s, const char *text, size_t n, Grown *to);       /* BERT: no controls; spaces as blanks */
void change_chinese(const Change *s, const char *text, size_t n, Grown *to);     /* BERT: blanks around ideographs */
void change_replace(const Change *s, const char *text, size_t n, Grown *to);     /* from with to */
void change_runs(const Change *s, const char *text, size_t n, Grown *to);        /* two blanks and more with to */
void change_prepend(const Change *s, const char *text, size_t n, Grown *to);
void change_strip(const Change *s, const char *text, size_t n, Grown *to);
void change_chars(const Change *s, const char *text, size_t n, Grown *to);

/* split.c: text to words */
typedef enum { SPLIT_NONE, SPLIT_GPT2, SPLIT_CL100K, SPLIT_QWEN } Pattern;
const char *pattern_text(Pattern p);                /* as tokenizer.json has it; NULL behind the last */
size_t split_word(Pattern p, const char *at, const char *end);      /* bytes of the word that begins there */

/* cut.c: the pre-tokenizer, a cut of cuts.  A word is cut by the next one. */
typedef enum { CUT_PATTERN, CUT_DIGITS, CUT_SPACES, CUT_BERT, CUT_BLANKS, CUT_PREFIX } CutKind;
typedef struct {
    CutKind kind;
    Pattern pattern;
    enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend;  /* of CUT_BLANKS, where the text has none */
    bool split;                                                     /* of CUT_BLANKS: before each of them */
} Cut;

typedef struct { const char *key; int n, value; } Entry;            /* key NULL: free */
typedef struct { Entry *at; uint32_t mask; int n, longest; } Map;   /* by n bytes */
void map_put(Map *m, const char *key, int n, int value);
int  map_get(const Map *m, const char *key, int n);                 /* -1: it has not */
/* Calls take() for each key that the text begins with, the short ones first. */
void map_prefixes(const Map *m, const char *at, const char *end, void (*take)(void *to, int n, int value), void *to);

typedef struct { uint64_t pair; int rank, id; } Merge;              /* pair 0: free; else 1 + left << 32 | right */
/* normalized: it is looked for in the text as it is then; spaces: before it and behind it belong to it */
typedef struct { const char *text; int n, id; bool normalized, spaces_before, spaces_behind; } Added;
typedef enum { BPE, WORDPIECE, UNIGRAM } ModelKind;
typedef struct Tokenizer {
    const char *path;
    ModelKind model;
    VEC(Change) change;
    VEC(Cut) cut;
    bool bytes;                 /* tokens are of bytes; else of characters */
    bool blanks;                /* blanks are U+2581 in tokens */
    bool whole;                 /* BPE: a word that is a token is not merged from pieces */
    bool fallback;              /* what no token spells becomes tokens of its bytes */
    Map vocab;
    Merge *merge;               /* BPE: by pair */
    uint32_t merge_mask;
    int byte[256];              /* the token of each byte */
    int unknown;                /* the token of what no token spells; -1: none */
    const char *continues;      /* WordPiece: how a token that continues a word begins */
    int most_characters;        /* WordPiece: of a word that is looked up */
    VEC(double) score;          /* Unigram: logarithms of probabilities */
    double least;               /* their smallest */
    VEC(Added) added;           /* found in the text before anything else */
    int most;                   /* the largest id */
    VEC(Entry) word;            /* decode.c: texts by id */
} Tokenizer;

/* read.c: of a tokenizer.json of n bytes, a zero behind them; fail()s with EXIT_MODEL at what it does not know */
Tokenizer *tokenizer_read(const char *path, const char *text, size_t n);
const char *tokenizer_normal(const Tokenizer *t, const char *text, size_t *n);     /* changes.c */

/* encode.c: the tokens of a text; name: what messages call it */
void tokenizer_encode(const Tokenizer *t, const char *name, const char *text, size_t n, Ints *to);
/* decode.c: the bytes of a token inside a text; NULL: there is no such token */
void tokenizer_words(Tokenizer *t);                 /* once, before that */
const char *tokenizer_word(const Tokenizer *t, int id, int *n);
#endif
