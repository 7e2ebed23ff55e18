/* SPDX-License-Identifier: Apache-2.0
 *
 * changes.c: the normalizer of a tokenizer, change by change: forms of Unicode, small letters, what BERT takes away (J. Devlin
 * et al., BERT, 2018, tokenization.py), and replacements.  Each is a pass over the text.
 */
#include "tokens.h"
#include "utf8.h"
#include <string.h>

void change_form(const Change *s, const char *text, size_t n, Grown *to)
{
    const char *is = normal_text(s->form, text, &n);
    text_put(to, is, n);
}

void change_drop(const Change *s, const char *text, size_t n, Grown *to)
{
    int k;
    for (const char *at = text, *end = text + n; at < end; at += k)
        if (!(char_class(utf8_next(at, end, &k)) & s->class))
            text_put(to, at, (size_t)k);
}

/* U+0130 alone has a small letter of two characters. */
void change_lower(const Change *s, const char *text, size_t n, Grown *to)
{
    int k;
    (void)s;
    for (const char *at = text, *end = text + n; at < end; at += k) {
        uint32_t c = utf8_next(at, end, &k);
        text_char(to, char_lower(c));
        if (c == 0x130)
            text_char(to, 0x307);
    }
}

void change_clean(const Change *s, const char *text, size_t n, Grown *to)
{
    int k;
    (void)s;
    for (const char *at = text, *end = text + n; at < end; at += k) {
        uint32_t c = utf8_next(at, end, &k);
        int class = char_class(c);
        bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xfffd || (class & OTHER && !line))
            continue;
        text_put(to, class & SPACE ? " " : at, class & SPACE ? 1 : (size_t)k);
    }
}

void change_chinese(const Change *s, const char *text, size_t n, Grown *to)
{
    static const uint32_t blocks[][2] = {{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x2a6df},
                                         {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    int k;
    (void)s;
    for (const char *at = text, *end = text + n; at < end; at += k) {
        uint32_t c = utf8_next(at, end, &k);
        bool in = false;
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
            in |= c >= blocks[i][0] && c <= blocks[i][1];
        text_put(to, " ", in);
        text_put(to, at, (size_t)k);
        text_put(to, " ", in);
    }
}

void change_replace(const Change *s, const char *text, size_t n, Grown *to)
{
    size_t k = strlen(s->from), size = strlen(s->to);
    for (const char *at = text, *end = text + n; at < end;) {
        bool here = k <= (size_t)(end - at) && !memcmp(at, s->from, k);
        text_put(to, here ? s->to : at, here ? size : 1);
        at += here ? k : 1;
    }
}

void change_runs(const Change *s, const char *text, size_t n, Grown *to)
{
    size_t size = strlen(s->to);
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 0; i + k < n && text[i + k] == ' ';)
            k++;
        text_put(to, k > 1 ? s->to : &text[i], k > 1 ? size : 1);
        k += k == 0;
    }
}

void change_prepend(const Change *s, const char *text, size_t n, Grown *to)
{
    text_put(to, s->to, n > 0 ? strlen(s->to) : 0);
    text_put(to, text, n);
}

void change_strip(const Change *s, const char *text, size_t n, Grown *to)
{
    const char *from = text, *end = text + n, *behind = text;
    int k;
    while (s->left && from < end && char_class(utf8_next(from, end, &k)) & SPACE)
        from += k;
    for (const char *at = from; at < end; at += k)
        if (!(char_class(utf8_next(at, end, &k)) & SPACE) || !s->right)
            behind = at + k;
    if (behind > from)
        text_put(to, from, (size_t)(behind - from));
}

void change_chars(const Change *s, const char *text, size_t n, Grown *to)
{
    chars_apply(&s->chars, text, n, to);
}

const char *tokenizer_normal(const Tokenizer *t, const char *text, size_t *n)
{
    for (int i = 0; i < t->change.n; i++) {
        Grown to = {0};
        t->change.at[i].apply(&t->change.at[i], text, *n, &to);
        text = to.at ? to.at : "";
        *n = to.n;
    }
    return text;
}
