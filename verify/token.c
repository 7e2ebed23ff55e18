/* SPDX-License-Identifier: Apache-2.0
 *
 * token.c: a C text as words.  Comments are white space; a line of the preprocessor is one too, for those of a folder name
 * headers alone, and what a header says is in calls.def.
 */
#include "verify.h"
#include <stdlib.h>
#include <string.h>

void lex_fault(const Lexer *x, const char *what)
{
    stop(NOT_READ, "%s:%d: %s", x->path, x->t.line, what);
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_line(Lexer *x)
{
    while (x->at < x->end && *x->at != '\n')
        x->at++;
}

static void skip_comment(Lexer *x)
{
    const char *from = x->at;
    for (x->at += 2; x->at + 1 < x->end && !(x->at[0] == '*' && x->at[1] == '/'); x->at++)
        x->line += *x->at == '\n';
    if (x->at + 1 >= x->end) {
        x->at = from;
        lex_fault(x, "a comment without an end");
    }
    x->at += 2;
}

static bool is_line(const char *at, const char *text)
{
    size_t n = strlen(text);
    return !strncmp(at, text, n) && at[n] == '\n';
}

/* The headers of a stage and of launch.c; what is in them is in calls.def.  SAMPLE is not defined where a job trains: lines
 * behind it are passed over, in which nothing may begin another directive, a comment or a text.  What else a line of the
 * preprocessor does would change the text behind it. */
static void skip_directive(Lexer *x)
{
    static const char *const passed[] = {"#include \"job.h\"", "#include \"parts.h\"", "#ifdef SAMPLE", "#else", "#endif"};
    bool known = false, left_out = is_line(x->at, passed[2]);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        known |= is_line(x->at, passed[i]);
    if (!strncmp(x->at, "#include \"stage", 15))
        known = is_line(x->at + 15 + strspn(x->at + 15, "0123456789"), ".h\"");
    x->t.line = x->line;
    if (!known)
        lex_fault(x, "a directive that no emitted folder has");
    for (skip_line(x); left_out && x->at < x->end; skip_line(x)) {
        x->at++;
        x->t.line = ++x->line;
        left_out = !is_line(x->at, "#else") && !is_line(x->at, "#endif");
        if (left_out && strcspn(x->at, "#\"'/%?") < strcspn(x->at, "\n"))
            lex_fault(x, "a directive that no emitted folder has");
    }
}

static void skip_space(Lexer *x)
{
    while (x->at < x->end) {
        char c = *x->at;
        if (c == '\n')
            x->line++, x->at++;
        else if (c == ' ' || c == '\t' || c == '\r')
            x->at++;
        else if (c == '/' && x->at + 1 < x->end && x->at[1] == '*')
            skip_comment(x);
        else if (c == '#')
            skip_directive(x);
        else
            return;
    }
}

static void number(Lexer *x)
{
    const char *from = x->at;
    char *end;
    bool hex = from[0] == '0' && (from[1] == 'x' || from[1] == 'X'), real = false;
    for (const char *c = from + (hex ? 2 : 0); c < x->end && (letter(*c) || digit(*c) || *c == '.' ||
         ((*c == '-' || *c == '+') && (c[-1] == 'p' || c[-1] == 'P' || (!hex && (c[-1] == 'e' || c[-1] == 'E'))))); c++)
        real |= *c == '.' || *c == 'p' || *c == 'P' || (!hex && (*c == 'e' || *c == 'E'));
    if (real) {
        x->t.kind = T_FLOAT;
        x->t.f = strtod(from, &end);
        x->at = end + (*end == 'f' || *end == 'F');
    } else {
        x->t.kind = T_INT;
        uint64_t i = strtoull(from, &end, 0);
        x->t.i = (int64_t)i;
        x->t.type = i > UINT32_MAX || (i > INT32_MAX && !hex) ? 'l' : i > INT32_MAX ? 'u' : 0;
        for (; *end && strchr("uUlL", *end); end++)
            x->t.type = x->t.type == 'l' || *end == 'l' || *end == 'L' ? 'l' : 'u';
        x->at = end;
        if (i > INT64_MAX)
            lex_fault(x, "a number beyond 64 bits");
    }
    if (x->at == from || (x->at < x->end && (letter(*x->at) || digit(*x->at))))
        lex_fault(x, "this is no number");
}

static void string(Lexer *x)
{
    const char *from = ++x->at;
    while (x->at < x->end && *x->at != '"' && *x->at != '\n')
        x->at += *x->at == '\\' && x->at + 1 < x->end ? 2 : 1;
    if (x->at >= x->end || *x->at != '"')
        lex_fault(x, "a text without an end");
    x->t.kind = T_STRING;
    x->t.text = name_of(from, (size_t)(x->at - from));
    x->at++;
}

void lex_next(Lexer *x)
{
    skip_space(x);
    x->t = (Token){.kind = T_END, .line = x->line};
    if (x->at >= x->end)
        return;
    char c = *x->at;
    if (c == '\'' || !strncmp(x->at, "//", 2) || !strncmp(x->at, "%:", 2) || !strncmp(x->at, "?\?=", 3))
        lex_fault(x, "a letter, comment or directive that no emitted folder has");
    if (letter(c)) {
        const char *from = x->at;
        while (x->at < x->end && (letter(*x->at) || digit(*x->at)))
            x->at++;
        x->t.kind = T_NAME;
        x->t.text = name_of(from, (size_t)(x->at - from));
    } else if (digit(c)) {
        number(x);
    } else if (c == '"') {
        string(x);
    } else {
        x->t.kind = T_SIGN;
        x->t.sign = c;
        x->at++;
    }
}

void lex_open(Lexer *x, const Source *s)
{
    *x = (Lexer){.path = s->path, .at = s->at, .end = s->at + s->n, .line = 1};
    if (memchr(s->at, 0, s->n) || strstr(s->at, "\\\n") || strstr(s->at, "?\?/"))
        stop(NOT_READ, "%s: a byte 0, or a line that goes on behind a backslash: no emitted folder has one", s->path);
    lex_next(x);
}

bool lex_is(const Lexer *x, char sign)
{
    return x->t.kind == T_SIGN && x->t.sign == sign;
}

bool lex_word(const Lexer *x, const char *word)
{
    return x->t.kind == T_NAME && !strcmp(x->t.text, word);
}

void lex_want(Lexer *x, char sign)
{
    if (!lex_is(x, sign))
        lex_fault(x, joined_text("'%c' must stand here", sign));
    lex_next(x);
}
