/* SPDX-License-Identifier: Apache-2.0
 *
 * amalgam.c: several C files as one, for those who vendor code.
 *
 * Problem: files that were units of their local share one scope, and nothing but the calls of the library may be seen outside.
 * Method: a header stands where it is included first, and once.  Its prototypes of functions that are defined here become
 * static, which makes the definitions local (C11 6.2.2, 5); other prototypes go, with the comment above them.  What a source
 * has for itself (static, enum, typedef, define) gets a number where a header or an earlier source has the name.  Stages are
 * named behind a list of all these names, and keep their text byte for byte: dpgen-verify looks for it.
 *
 * It reads what the conventions of rt/ allow: declarations begin in column 0, a prototype ends on its line, and a declaration
 * has one name.  A test compiles all kernels as one file.  Not handled: two files that include one header under different
 * macros.
 */
#include "emit.h"
#include <ctype.h>

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

/* Behind the comment, literal, word or character that begins here. */
static const char *token_end(const char *at)
{
    if (text_begins(at, "/*"))
        return strstr(at, "*/") + 2;
    const char *end = at + 1;
    if (*at == '"' || *at == '\'') {
        for (; *end != *at; end++)
            end += *end == '\\';
        return end + 1;
    }
    while (is_letter(*at) && is_letter(*end))
        end++;
    return end;
}

static const char *word_at(const char *at)
{
    return strf("%.*s", (int)(token_end(at) - at), at);
}

/* ---- names of a file ------------------------------------------------------------------------------------------------- */

/* local: static ones, macros, types and constants; shown: what others may call. */
typedef struct { Strs local, shown; } Names;

/* The constants of an enum, between its braces. */
static void constants(Names *n, const char *at)
{
    for (bool name = true; *at && *at != '}'; at = token_end(at)) {
        if (name && isalpha((unsigned char)*at)) {
            *PUSH(&n->local) = word_at(at);
            name = false;
        }
        name |= *at == ',' || *at == '{';
    }
}

/* Behind what stands in brackets from here on. */
static const char *bracket_end(const char *at)
{
    int depth = 0;
    do
        depth += (*at == '(' || *at == '{' || *at == '[') - (*at == ')' || *at == '}' || *at == ']');
    while ((at = token_end(at)), *at && depth);
    return at;
}

/* The name that a declaration makes: the last word that is in no bracket, up to those of a function; or (*NAME). */
static const char *declared(const char *at, bool type)
{
    const char *word = NULL;
    for (; *at && *at != ';' && *at != '='; at = *at == '(' || *at == '[' || *at == '{' ? bracket_end(at) : token_end(at)) {
        if (text_begins(at, "__attribute__"))
            at = strchr(at, '(');
        else if (*at == '(' && at[1] == '*')
            return word_at(at + (text_begins(at, "(*const ") ? 8 : 2));
        else if (word && (*at == '(' || (*at == '{' && !type)))
            break;
        else if (is_letter(*at))
            word = at;
    }
    return word ? word_at(word) : NULL;
}

static void note(Names *n, const char *line)
{
    bool type = text_begins(line, "typedef ") || text_begins(line, "enum ");
    bool local = type || text_begins(line, "static ") || text_begins(line, "FN ");
    const char *brace = strpbrk(line, "{;"), *name;
    if (text_begins(line, "enum ") || text_begins(line, "typedef enum "))
        constants(n, brace);
    bool tag = text_begins(line, "struct ") && strcspn(line, "(") > strcspn(line, "{");
    if (text_begins(line, "enum ") || tag || (!local && *brace == ';'))
        return;
    name = declared(line, type);
    if (name)
        *PUSH(local ? &n->local : &n->shown) = name;
}

static Names names_in(const char *text)
{
    Names n = {0};
    for (const char *line = text; *line; line = next_line(line)) {
        if (text_begins(line, "/*"))
            line = strstr(line, "*/");
        else if (text_begins(line, "#define "))
            *PUSH(&n.local) = word_at(line + 8);
        else if (isalpha((unsigned char)*line) && !text_begins(line, "extern "))
            note(&n, line);
    }
    return n;
}

/* ---- the file -------------------------------------------------------------------------------------------------------- */

struct Amalgam {
    Amalgamated find;
    const void *with;
    Strs seen;                  /* files that stand in it */
    Strs fixed, shown, local;     /* names: of headers and of all calls; of calls; of sources */
    bool apart;                 /* names of this source are macros already */
};

Amalgam *amalgam_new(Amalgamated find, const void *with)
{
    Amalgam *a = alloc(sizeof *a);
    *a = (Amalgam){.find = find, .with = with};
    return a;
}

/* #include "NAME": the name, else NULL */
static const char *included(const char *line)
{
    static const char begin[] = "#include \"";
    const char *name = line + sizeof begin - 1;
    return text_begins(line, begin) ? strf("%.*s", (int)strcspn(name, "\""), name) : NULL;
}

/* The text of a file that is new; NULL: it stands there, or is left out. */
static const char *fresh(Amalgam *a, const char *file, bool *header)
{
    const char *path = file, *text = a->find(a->with, file, &path);
    if (!text || strs_has(&a->seen, path))
        return NULL;
    *PUSH(&a->seen) = path;
    *header = !strcmp(path + strlen(path) - 2, ".h");
    return text;
}

void amalgam_learn(Amalgam *a, const char *file)
{
    bool header;
    const char *text = fresh(a, file, &header);
    if (!text)
        return;
    for (const char *line = text; *line; line = next_line(line))
        if (included(line))
            amalgam_learn(a, included(line));
    Names n = names_in(text);
    APPEND(header ? &a->fixed : &a->local, n.local);
    APPEND(&a->fixed, n.shown);
    APPEND(&a->shown, n.shown);
}

Strs amalgam_names(const Amalgam *a)
{
    Strs all = {0};
    APPEND(&all, a->fixed);
    APPEND(&all, a->local);
    return all;
}

void amalgam_begin(Amalgam *a)
{
    a->seen.n = a->local.n = 0;
}

void amalgam_skip(Amalgam *a, const char *file)
{
    bool header;
    fresh(a, file, &header);
}

/* A prototype in column 0: its name, else NULL. */
static const char *prototype(const char *line)
{
    static const char *const other[] = {"static ", "typedef ", "enum ", "struct ", "union ", "extern ", "FN ", "_Static"};
    const char *end = line + strcspn(line, "\n"), *bracket = line + strcspn(line, "(\n");
    bool is = is_letter(*line) && *bracket == '(' && memchr(bracket, ';', (size_t)(end - bracket));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        is &= !text_begins(line, other[i]);
    const char *name = bracket;
    while (name > line && is_letter(name[-1]))
        name--;
    return is ? strf("%.*s", (int)(bracket - name), name) : NULL;
}

/* What an amalgam of its local has instead: of these, four prototypes. */
static bool is_left_out(const char *line)
{
    return text_begins(line, "#include <string.h>");
}

/* Lines, and comments in column 0 with what stands below them. */
static void print_header(Amalgam *a, FILE *f, const char *text)
{
    const char *held = NULL;
    for (const char *line = text, *next; *line; line = next) {
        next = next_line(line);
        const char *name = included(line), *proto = prototype(line);
        if (text_begins(line, "/*") && !held) {
            held = line;
            next = next_line(strstr(line, "*/"));
            continue;
        }
        if (!proto || strs_has(&a->shown, proto)) {
            fwrite(held ? held : line, 1, (size_t)(held ? line - held : 0), f);
            fputs(proto ? "static " : "", f);
            if (name)
                amalgam_print(a, f, name);
            else if (!is_left_out(line))
                fwrite(line, 1, (size_t)(next - line), f);
        }
        held = NULL;
    }
}

typedef struct { Strs from, to; } Renames;

static Renames renames_of(Amalgam *a, const char *text)
{
    Renames r = {0};
    Names n = names_in(text);
    if (a->apart)
        return r;
    for (int i = 0; i < n.local.n; i++) {
        const char *name = n.local.at[i], *other = name;
        if (strs_has(&r.from, name))
            continue;
        for (int k = 2; strs_has(&a->fixed, other) || strs_has(&a->local, other) ||
                        (other != name && strs_has(&n.local, other)); k++)
            other = strf("%s_%d", name, k);
        if (other != name) {
            *PUSH(&r.from) = name;
            *PUSH(&r.to) = other;
        }
    }
    APPEND(&a->local, n.local);
    APPEND(&a->local, r.to);
    return r;
}

/* Words that are no members, and no part of a comment or literal. */
static const char *print_word(FILE *f, const Renames *r, const char *at, char before)
{
    const char *end = token_end(at);
    for (int i = 0; i < r->from.n && is_letter(*at) && before != '.' && before != '>'; i++)
        if (strlen(r->from.at[i]) == (size_t)(end - at) && text_begins(at, r->from.at[i])) {
            fputs(r->to.at[i], f);
            return end;
        }
    fwrite(at, 1, (size_t)(end - at), f);
    return end;
}

static void print_source(Amalgam *a, FILE *f, const char *text)
{
    Renames r = renames_of(a, text);
    char before = '\n';
    for (const char *at = text, *end; *at; at = end) {
        const char *name = before == '\n' ? included(at) : NULL;
        if (name || (before == '\n' && is_left_out(at))) {
            if (name)
                amalgam_print(a, f, name);
            end = next_line(at);
        } else {
            end = print_word(f, &r, at, before);
        }
        before = end[-1];
    }
}

void amalgam_print(Amalgam *a, FILE *f, const char *file)
{
    bool header;
    const char *text = fresh(a, file, &header);
    if (!text)
        return;
    fprintf(f, "/* ---- %s */\n", a->seen.at[a->seen.n - 1]);
    (header ? print_header : print_source)(a, f, text);
}

void amalgam_print_apart(Amalgam *a, FILE *f, const char *header, const char *source, int number)
{
    const char *path;
    Strs all = {0};
    /* Every word of a header that is nothing but numbers under names. */
    const char *text = a->find(a->with, header, &path);
    static const char *const other[] = {"static", "const", "enum", "float", "size_t", "int64_t"};
    char before = '\n';
    for (const char *at = text, *end; *at; before = end[-1], at = end) {
        end = token_end(at);
        bool is = isalpha((unsigned char)*at) && before != '.';          /* 0x1.cp-1 */
        for (size_t i = 0; i < sizeof other / sizeof *other; i++)
            is &= strcmp(word_at(at), other[i]) != 0;
        if (is && !strs_has(&all, word_at(at)))
            *PUSH(&all) = word_at(at);
    }
    Names n = names_in(a->find(a->with, source, &path));
    APPEND(&all, n.local);
    for (int i = 0; i < all.n; i++)
        fprintf(f, "#define %s %s_of_stage%d\n", all.at[i], all.at[i], number);
    a->apart = true;
    amalgam_print(a, f, source);
    a->apart = false;
    for (int i = 0; i < all.n; i++)
        fprintf(f, "#undef %s\n", all.at[i]);
}
