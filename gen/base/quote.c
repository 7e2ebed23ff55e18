/* SPDX-License-Identifier: Apache-2.0
 *
 * quote.c: one function for each language that a text can land in.
 *
 * A model file, a graph or plan as text, a profile and the command line all hold texts that somebody else wrote.  Readers
 * refuse most of what has no business there; these functions stand behind them, where the text is printed.  A character
 * that the language cannot show becomes '?', or an escape where the language has one.
 *
 * JSON: RFC 8259, section 7.  Bytes above 0x7f pass as they are.  '<' is escaped although JSON does not ask for it, so
 * that the same string may stand inside a <script> without ending it.
 */
#include "base.h"

void json_text(FILE *f, const char *text)
{
    static const char special[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        const char *at = strchr(special, c);
        if (at)
            fprintf(f, "\\%c", escape[at - special]);
        else if (c < 0x20 || c == 0x7f || c == '<')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

const char *quote_json(const char *text)
{
    Text t;
    json_text(text_open(&t), text);
    return text_close(&t);
}

static bool is_ascii(unsigned char c)
{
    return c >= 32 && c < 127;
}

const char *quote_c(const char *text)
{
    Text t;
    if (!text)
        return "0";
    FILE *f = text_open(&t);
    fputc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        fprintf(f, is_ascii(*c) && !strchr("\"\\?", *c) ? "%c" : "\\%03o", *c);
    fputc('"', f);
    return text_close(&t);
}

/* No end of a comment, none inside, and no backslash, which before a line's end would join the next one. */
const char *quote_comment(const char *text)
{
    char *out = strf("%s", text);
    for (char *c = out; *c; c++) {
        bool mark = c > out && ((c[-1] == '*' && *c == '/') || (c[-1] == '/' && *c == '*'));
        if (!is_ascii((unsigned char)*c) || *c == '\\' || mark)
            *c = '?';
    }
    return out;
}

const char *quote_html(const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    Text t;
    FILE *f = text_open(&t);
    int bytes;
    for (const char *p = text, *end = text + strlen(text); p < end; p += bytes) {
        uint32_t c = diag_char(p, end, &bytes);
        const char *at = c < 128 ? strchr(special, (int)c) : NULL;
        if (at)
            fputs(entity[at - special], f);
        else if (c < 128)
            fputc(diag_unsafe(c) && c != '\n' ? '?' : (int)c, f);
        else
            fprintf(f, diag_unsafe(c) ? "?" : "&#%u;", (unsigned)c);
    }
    return text_close(&t);
}

static const char *quoted(const char *text, const char *dollar)
{
    Text t;
    FILE *f = text_open(&t);
    fputc('\'', f);
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            fputs("'\\''", f);
        else if (*c == '$')
            fputs(dollar, f);
        else
            fputc(*c, f);
    fputc('\'', f);
    return text_close(&t);
}

const char *quote_shell(const char *text)
{
    return *text && !text[strspn(text, C_WORD "./:=,+@%-")] ? text : quoted(text, "$");
}

const char *quote_recipe(const char *text)
{
    char *out = strf("%s", text);
    for (char *c = out; *c; c++)
        if (!is_ascii((unsigned char)*c))
            *c = '?';
    return quoted(out, "$$");
}

const char *quote_terminal(const char *text)
{
    char *out = strf("%s", text), *to = out;
    int bytes;
    for (const char *p = text, *end = text + strlen(text); p < end; p += bytes) {
        bool unsafe = diag_unsafe(diag_char(p, end, &bytes));
        memcpy(to, unsafe ? "?" : p, unsafe ? 1 : (size_t)bytes);
        to += unsafe ? 1 : bytes;
    }
    *to = 0;
    return out;
}
