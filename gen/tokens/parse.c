/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c: a chat template, in a subset of the language of Jinja (jinja.palletsprojects.com, "Template Designer
 * Documentation"), as a tree.  Blanks around marks are treated as transformers asks for: the line end behind a block goes, and
 * so do blanks in front of a block that begins a line.
 *
 * Whatever can be read is read; what is not known is refused where it is computed, since templates have parts for tools that a
 * conversation without tools does not reach.
 */
#include "render.h"
#include <ctype.h>

/* An expression of so many characters beside its texts, and so many blocks in one another, fit the stack of those who read and
 * compute them. */
enum { MOST_EXPRESSION = 2000, MOST_BLOCKS = 100 };
/* end: of the mark, trim: a `-` was there, depth: of blocks */
typedef struct { const char *text, *at, *end; int file, depth; bool trim; } Reader;

#define stop(r, ...) err(diag_place((r)->file, (r)->text, (r)->at), NULL, __VA_ARGS__)

/* ---- words --------------------------------------------------------------------------------------------------------------- */

static void blanks(Reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool sees(Reader *r, const char *word)
{
    blanks(r);
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n))
        return false;
    bool letters = isalpha((unsigned char)*word);
    return !letters || r->at + n == r->end || !(isalnum((unsigned char)r->at[n]) || r->at[n] == '_');
}

static bool takes(Reader *r, const char *word)
{
    bool is = sees(r, word);
    r->at += is ? strlen(word) : 0;
    return is;
}

static void wants(Reader *r, const char *word)
{
    if (!takes(r, word))
        stop(r, "'%s' is expected here", word);
}

static const char *name(Reader *r)
{
    blanks(r);
    const char *from = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'))
        r->at++;
    if (r->at == from || isdigit((unsigned char)*from))
        stop(r, "a name is expected here");
    return strf("%.*s", (int)(r->at - from), from);
}

/* ---- expressions --------------------------------------------------------------------------------------------------------- */

static Expr *choice(Reader *r);

static Expr *new_expr(Reader *r, ExprKind kind, const char *word)
{
    Expr *e = alloc(sizeof *e);
    *e = (Expr){.kind = kind, .loc = diag_place(r->file, r->text, r->at - (word ? strlen(word) : 0)),
                 .name = word};
    return e;
}

static Expr *with(Expr *e, Expr *a, Expr *b)
{
    *PUSH(&e->of) = a;
    if (b)
        *PUSH(&e->of) = b;
    return e;
}

static Expr *text_of(Reader *r)
{
    char quote = *r->at++;
    Text t;
    FILE *f = text_open(&t);
    for (; r->at < r->end && *r->at != quote; r->at++) {
        char c = *r->at;
        if (c == '\\' && r->at + 1 < r->end) {
            c = *++r->at;
            if (!strchr("ntr\\'\"", c))
                stop(r, "an escape that is not known: \\%c", c);
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
        fputc(c, f);
    }
    text_close(&t);
    if (r->at == r->end)
        stop(r, "a text without its end");
    r->at++;
    Expr *e = new_expr(r, CONSTANT, NULL);
    e->value = value_string(t.at);
    return e;
}

/* The operands of a call, to its `)`: `key=value` has a name. */
static void operands(Reader *r, Expr *e, const char *close)
{
    while (!takes(r, close)) {
        const char *from = r->at, *word = NULL;
        blanks(r);
        if (*close == ')' && isalpha((unsigned char)*r->at)) {
            word = name(r);
            if (sees(r, "==") || !takes(r, "=")) {
                r->at = from;
                word = NULL;
            }
        }
        *PUSH(&e->names) = word;
        *PUSH(&e->of) = choice(r);
        if (!sees(r, close))
            wants(r, ",");
    }
}

static Expr *constant(Reader *r, ValueKind kind, int64_t i)
{
    Expr *e = new_expr(r, CONSTANT, NULL);
    e->value = (Value){.kind = kind, .i = i};
    return e;
}

static Expr *primary(Reader *r)
{
    blanks(r);
    if (r->at < r->end && (*r->at == '\'' || *r->at == '"'))
        return text_of(r);
    if (r->at < r->end && isdigit((unsigned char)*r->at))
        return constant(r, WHOLE, strtoll(r->at, (char **)&r->at, 10));
    if (takes(r, "(")) {
        Expr *e = choice(r);
        wants(r, ")");
        return e;
    }
    if (takes(r, "[")) {
        Expr *e = new_expr(r, LIST, NULL);
        operands(r, e, "]");
        return e;
    }
    if (takes(r, "true") || takes(r, "True"))
        return constant(r, BOOLEAN, 1);
    if (takes(r, "false") || takes(r, "False"))
        return constant(r, BOOLEAN, 0);
    if (takes(r, "none") || takes(r, "None"))
        return constant(r, NONE, 0);
    Expr *e = new_expr(r, NAMED, NULL);
    e->name = name(r);
    return e;
}

/* a[1], a['b'], a[1:], a[::-1] */
static Expr *indexed(Reader *r, Expr *e)
{
    Expr *part[3] = {NULL, NULL, NULL}, *to = new_expr(r, INDEXED, NULL);
    int n = 0;
    for (; n < 3; n++) {
        if (!sees(r, ":") && !sees(r, "]"))
            part[n] = choice(r);
        if (!takes(r, ":"))
            break;
        to->kind = SLICED;
    }
    wants(r, "]");
    *PUSH(&to->of) = e;
    for (int i = 0; i < (to->kind == SLICED ? 3 : 1); i++)
        *PUSH(&to->of) = part[i] ? part[i] : constant(r, NONE, 0);
    return to;
}

static Expr *postfix(Reader *r)
{
    Expr *e = primary(r);
    for (;;) {
        if (takes(r, ".")) {
            e = with(new_expr(r, MEMBER, name(r)), e, NULL);
        } else if (takes(r, "[")) {
            e = indexed(r, e);
        } else if (takes(r, "(")) {
            e = with(new_expr(r, CALL, NULL), e, NULL);
            *PUSH(&e->names) = NULL;
            operands(r, e, ")");
        } else if (takes(r, "|")) {
            e = with(new_expr(r, FILTER, name(r)), e, NULL);
            *PUSH(&e->names) = NULL;
            if (takes(r, "("))
                operands(r, e, ")");
        } else if (takes(r, "is")) {
            bool no = takes(r, "not");
            e = with(new_expr(r, TEST, name(r)), e, NULL);
            e = no ? with(new_expr(r, NOT, NULL), e, NULL) : e;
        } else {
            return e;
        }
    }
}

static Expr *unary(Reader *r)
{
    if (!takes(r, "-"))
        return postfix(r);
    Expr *e = new_expr(r, NEGATIVE, "-");
    return with(e, unary(r), NULL);
}

/* Operators by how closely they bind; the first of a level that is seen is taken. */
static Expr *binary(Reader *r, int level)
{
    static const char *const words[][9] = {{"or"}, {"and"}, {"==", "!=", "<=", ">=", "<", ">", "in", "not in"}, {"+", "-"},
        {"~"}, {"*", "//", "/", "%"}};
    if (level == 6)
        return unary(r);
    Expr *e = level == 2 && takes(r, "not") ? new_expr(r, NOT, "not") : NULL;
    if (e)
        return with(e, binary(r, 2), NULL);
    e = binary(r, level + 1);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; !more && i < 9 && words[level][i]; i++)
            if (takes(r, words[level][i])) {
                Expr *to = new_expr(r, BINARY, words[level][i]);
                e = with(to, e, binary(r, level + 1));
                more = true;
            }
    }
    return e;
}

static Expr *choice(Reader *r)
{
    Expr *e = binary(r, 0);
    while (takes(r, "if")) {
        Expr *when = binary(r, 0), *to = with(new_expr(r, CHOICE, NULL), when, e);
        *PUSH(&to->of) = takes(r, "else") ? choice(r) : constant(r, UNDEFINED, 0);
        e = to;
    }
    return e;
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

/* The mark at `from`: r reads inside it, and *behind is where text goes on. */
static void open_mark(Reader *r, const char *from, const char **behind)
{
    const char *close = from[1] == '{' ? "}}" : "%}", *end = from + 2;
    char quote = 0;
    int letters = 0;
    r->at = from;
    for (; *end && (quote || strncmp(end, close, 2)); end++) {
        letters += !quote;
        if (quote && *end == '\\' && end[1])
            end++;
        else if (quote ? *end == quote : *end == '\'' || *end == '"')
            quote = quote ? 0 : *end;
    }
    if (!*end)
        stop(r, "a mark without its %s", close);
    if (letters > MOST_EXPRESSION)
        stop(r, "an expression of more than %d characters beside its texts", MOST_EXPRESSION);
    r->at = from + 2 + (from[2] == '-' || from[2] == '+');
    r->trim = end[-1] == '-' && end - 1 >= r->at;
    r->end = r->trim ? end - 1 : end;
    *behind = end + 2;
}

/* Where text goes on behind a mark. */
static const char *after(const Reader *r, const char *behind, bool block)
{
    if (r->trim)
        while (isspace((unsigned char)*behind))
            behind++;
    else if (block && *behind == '\n')
        behind++;
    return behind;
}

static Step *step(Reader *r, Steps *to, StepKind kind)
{
    Step *s = alloc(sizeof *s);
    *s = (Step){.kind = kind, .loc = diag_place(r->file, r->text, r->at)};
    *PUSH(to) = s;
    return s;
}

static const char *steps(Reader *r, Steps *to, const char *from, const char *const *ends, const char **found);

static void nest(Reader *r)
{
    if (++r->depth > MOST_BLOCKS)
        stop(r, "blocks inside one another, or elif behind elif, more than %d deep", MOST_BLOCKS);
}

static void full(Reader *r)
{
    blanks(r);
    if (r->at < r->end)
        stop(r, "nothing more is expected here");
}

/* if, with its elif and else; r reads behind the word */
static const char *if_block(Reader *r, Steps *to, const char *behind)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    Step *s = step(r, to, IF);
    const char *word;
    nest(r);
    s->value = choice(r);
    full(r);
    const char *p = steps(r, &s->body, after(r, behind, true), ends, &word);
    if (!strcmp(word, "elif"))
        p = if_block(r, &s->otherwise, p);
    else if (!strcmp(word, "else"))
        p = steps(r, &s->otherwise, after(r, p, true), last, &word);
    r->depth--;
    return p;
}

static const char *for_block(Reader *r, Steps *to, const char *behind)
{
    static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    Step *s = step(r, to, FOR);
    const char *word;
    nest(r);
    do
        *PUSH(&s->names) = name(r);
    while (takes(r, ","));
    wants(r, "in");
    s->value = binary(r, 0);
    s->when = takes(r, "if") ? choice(r) : NULL;
    full(r);
    const char *p = steps(r, &s->body, after(r, behind, true), ends, &word);
    p = strcmp(word, "else") ? p : steps(r, &s->otherwise, after(r, p, true), last, &word);
    r->depth--;
    return p;
}

static const char *block(Reader *r, Steps *to, const char *behind)
{
    static const char *const answers[] = {"endgeneration", NULL}, *const macros[] = {"endmacro", NULL};
    const char *word;
    if (takes(r, "if"))
        return if_block(r, to, behind);
    if (takes(r, "for"))
        return for_block(r, to, behind);
    if (takes(r, "set")) {
        Step *s = step(r, to, SET);
        *PUSH(&s->names) = name(r);
        if (takes(r, "."))
            *PUSH(&s->names) = name(r);
        wants(r, "=");
        s->value = choice(r);
        return behind;
    }
    bool macro = takes(r, "macro");
    if (!macro && !takes(r, "generation"))
        stop(r, "a block that is not known; known are if, for, set and generation");
    Step *s = step(r, to, macro ? MACRO : ANSWER);
    r->at = macro ? r->end : r->at;
    nest(r);
    const char *p = steps(r, &s->body, after(r, behind, true), macro ? macros : answers, &word);
    r->depth--;
    return p;
}

/* Steps up to a block that begins with one of `ends`; what is behind that.  r reads behind its word. */
static const char *steps(Reader *r, Steps *to, const char *from, const char *const *ends, const char **found)
{
    for (;;) {
        const char *p = strpbrk(from, "{"), *behind;
        while (p && p[1] != '{' && p[1] != '%' && p[1] != '#')
            p = strpbrk(p + 1, "{");
        p = p ? p : from + strlen(from);
        /* The text in front of the mark at p. */
        const char *end = p;
        if (*p && p[2] == '-')
            while (end > from && isspace((unsigned char)end[-1]))
                end--;
        else if (*p && p[1] != '{' && p[2] != '+') {
            while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
            if (end > r->text && end[-1] != '\n')
                end = p;
        }
        if (end > from)
            step(r, to, TEXT)->text = strf("%.*s", (int)(end - from), from);
        r->at = r->end = p;
        if (!*p && !ends)
            return p;
        if (!*p)
            stop(r, "the template ends, and a block has no %s", ends[0]);
        if (p[1] == '#') {
            behind = strstr(p, "#}");
            if (!behind)
                stop(r, "a remark without its end");
            r->trim = behind[-1] == '-';
            from = after(r, behind + 2, true);
            continue;
        }
        open_mark(r, p, &behind);
        for (int i = 0; ends && p[1] == '%' && ends[i]; i++)
            if (takes(r, ends[i])) {
                *found = ends[i];
                return !strncmp(ends[i], "end", 3) ? after(r, behind, true) : behind;
            }
        if (p[1] == '{')
            step(r, to, PRINT)->value = choice(r);
        else
            behind = block(r, to, behind);
        bool whole = p[1] == '{' || to->at[to->n - 1]->kind == SET;
        if (whole)
            full(r);
        from = whole ? after(r, behind, p[1] == '%') : behind;
    }
}

Steps template_read(const char *path, const char *text)
{
    size_t n = strlen(text);
    text = strf("%.*s", (int)(n - (n > 0 && text[n - 1] == '\n')), text);      /* as Jinja drops the last line end */
    Reader r = {.text = text, .at = text, .end = text, .file = diag_file(path, text, strlen(text))};
    Steps all = {0};
    const char *found;
    steps(&r, &all, text, NULL, &found);
    return all;
}
