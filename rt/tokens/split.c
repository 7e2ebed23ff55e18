/* SPDX-License-Identifier: Apache-2.0
 *
 * split.c: text to words, as the patterns of known tokenizers do.
 *
 * A pattern is not compiled: its text names a scanner.  All of them take the first of these that matches, GPT-2's from the
 * left column and cl100k's from the right one, as their alternatives stand:
 *
 *     's 't 're 've 'm 'll 'd                        the same, in capitals too
 *     a blank or nothing, letters                    one that is no letter, number or end of line, or nothing; letters
 *     a blank or nothing, numbers                    at most three numbers; Qwen: one
 *     a blank or nothing, others                     the same, and ends of lines behind
 *                                                    spaces up to the last end of a line in them
 *     spaces but the last, or all at the end of the text; one space
 *
 * Source: A. Radford et al., Language Models are Unsupervised Multitask Learners (GPT-2), encoder.py; OpenAI, tiktoken,
 * cl100k_base.  Cost: linear.  Not handled: other patterns, which read.c refuses.
 */
#include "tokens.h"
#include "utf8.h"
#include <string.h>

const char *pattern_text(Pattern p)
{
    static const char *const text[] = {
        [SPLIT_NONE] = "",
        [SPLIT_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
        [SPLIT_CL100K] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        [SPLIT_QWEN] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                       "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    };
    return p < sizeof text / sizeof *text ? text[p] : NULL;
}

typedef struct { uint32_t c; int n, class; } Char;      /* n 0: the end */

static Char char_at(const char *at, const char *end)
{
    Char x = {0};
    if (at >= end)
        return x;
    x.c = utf8_next(at, end, &x.n);
    x.class = char_class(x.c) & (LETTER | NUMERAL | SPACE);
    return x;
}

/* Behind the run of this class, 0 that of others, of at most `most` characters. */
static const char *run(const char *at, const char *end, int class, int most)
{
    for (Char x; most > 0 && (x = char_at(at, end)).n && x.class == class; most--)
        at += x.n;
    return at;
}

static bool breaks(uint32_t c)
{
    return c == '\r' || c == '\n';
}

/* Bytes of an ending behind an apostrophe, itself included; U+017F is a small s too. */
static size_t ending(const char *at, const char *end, bool capitals)
{
    static const char *const words[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (*at != '\'')
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]), k = 0;
        while (k < n && at + 1 + k < end && (at[1 + k] == words[i][k] || (capitals && at[1 + k] == words[i][k] - 32)))
            k++;
        if (k == n)
            return 1 + n;
    }
    return capitals && end - at > 2 && !memcmp(at + 1, "\xc5\xbf", 2) ? 3 : 0;
}

static size_t spaces(const char *at, const char *end, bool lines)
{
    const char *to = at, *last = at, *line = NULL;
    for (Char x; (x = char_at(to, end)).n && x.class == SPACE;) {
        last = to;
        to += x.n;
        if (breaks(x.c))
            line = to;
    }
    if (lines && line)
        return (size_t)(line - at);
    return (size_t)((to < end && last > at ? last : to) - at);
}

/* Behind letters, numbers or others, with a blank before them; `at`: there are none. */
static const char *behind_blank(const char *at, const char *end)
{
    const char *from = at + (*at == ' ');
    Char x = char_at(from, end);
    return !x.n || x.class == SPACE ? at : run(from, end, x.class, INT32_MAX);
}

static size_t gpt2(const char *at, const char *end)
{
    size_t n = ending(at, end, false);
    const char *to = n ? at + n : behind_blank(at, end);
    return to > at ? (size_t)(to - at) : spaces(at, end, false);
}

static size_t cl100k(const char *at, const char *end, int numbers)
{
    size_t n = ending(at, end, true);
    Char x = char_at(at, end), next = char_at(at + x.n, end);
    if (n)
        return n;
    if (x.class == LETTER || (next.class == LETTER && x.class != NUMERAL && !breaks(x.c)))
        return (size_t)(run(at + x.n, end, LETTER, INT32_MAX) - at);
    if (x.class == NUMERAL)
        return (size_t)(run(at, end, NUMERAL, numbers) - at);
    const char *from = at + (*at == ' '), *to = run(from, end, 0, INT32_MAX);
    if (to == from)
        return spaces(at, end, true);
    while (to < end && breaks((unsigned char)*to))
        to++;
    return (size_t)(to - at);
}

size_t split_word(Pattern p, const char *at, const char *end)
{
    return p == SPLIT_GPT2 ? gpt2(at, end) : p == SPLIT_CL100K ? cl100k(at, end, 3) : p == SPLIT_QWEN ? cl100k(at, end, 1)
         : (size_t)(end - at);
}
