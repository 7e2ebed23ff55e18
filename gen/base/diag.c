/* SPDX-License-Identifier: Apache-2.0
 *
 * diag.c: messages about mistakes.
 *
 *     gpt.yaml:14:9: error: unknown key 'n_haeds' in model
 *        14 |         n_haeds: 12
 *           |         ^~~~~~~ did you mean 'n_heads'?
 *
 * The place comes first, so that editors can jump to it.  Then come the cause, the line as it was written, and the remedy
 * after the caret.  A mistake on the command line has no line number: its "file" is the option's name, such as --set.  Text
 * that dpgen wrote itself, for a graph without a model, has neither lines nor an excerpt.  A file that is only mentioned has
 * lines, but their text is not known.
 *
 * An excerpt comes from a file that nobody has checked, and goes to a terminal.  Control characters, direction marks and
 * bytes that are no UTF-8 are shown as '?'.  A tab is shown as one space, so that the caret stands right with any tab stops.
 * Of a long line only a window around the caret is shown.  There is no colour.
 *
 * Columns count characters, as libyaml does.  A short list of ranges tells wide and combining characters apart, not the whole
 * of Unicode's tables: an unlisted one moves the caret by a cell and nothing else.
 */
#include "base.h"
#include "rt/apart.h"
#include "rt/utf8.h"
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>

enum { MOST_ERRORS = 20, MOST_TEXT = 1000, WINDOW = 100, MOST_WORD = 64 };

static struct { const char *path, *text; size_t n; } *files;
static int file_count, errors;

/* A file that is read again, for another question, is the same one.  They outlive what alloc() gives to a trial. */
int diag_file(const char *path, const char *text, size_t n)
{
    for (int i = 0; i < file_count; i++)
        if (!strcmp(files[i].path, path) && files[i].n == n && !files[i].text == !text &&
            (n == 0 || !memcmp(files[i].text, text, n)))
            return i;
    size_t name = strlen(path) + 1;
    void *more = realloc(files, ((size_t)file_count + 1) * sizeof *files);
    char *copy = more ? malloc(name + n + 1) : NULL;
    if (!copy)
        fail(EXIT_RUN, "out of memory: a file of %zu bytes", n);
    files = more;
    memcpy(copy, path, name);
    if (n)
        memcpy(copy + name, text, n);
    copy[name + n] = 0;
    files[file_count].path = copy;
    files[file_count].text = text ? copy + name : NULL;
    files[file_count].n = n;
    return file_count++;
}

Loc diag_place(int file, const char *text, const char *at)
{
    Loc loc = {file, 1, 1};
    for (const char *p = text; p < at; p++) {
        loc.col = *p == '\n' ? 1 : loc.col + 1;
        loc.line += *p == '\n';
    }
    return loc;
}

static bool known(Loc at)
{
    return at.line != 0 && at.file >= 0 && at.file < file_count;
}

const char *diag_path(Loc at)
{
    return known(at) ? files[at.file].path : "dpgen";
}

/* ---- characters -------------------------------------------------------------------------------------- */

typedef struct { uint32_t first, last; } DiagRange;

static bool within(uint32_t c, const DiagRange *r, int n)
{
    for (int i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

uint32_t diag_char(const char *at, const char *end, int *bytes)
{
    return utf8_next(at, end, bytes);
}

bool diag_unsafe(uint32_t c)
{
    static const DiagRange unsafe[] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x61c, 0x61c },
                                    { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
                                    { 0xfff9, 0xfffd }, { 0xe0000, 0xe0fff } };
    return within(c, unsafe, sizeof unsafe / sizeof *unsafe);
}

/* Print one character so that it can harm no terminal; the cells it takes. */
static int show(const char *at, const char *end, int *bytes)
{
    static const DiagRange wide[] = { { 0x1100, 0x115f }, { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff },
                                  { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x1f300, 0x1faff },
                                  { 0x20000, 0x3fffd } };
    static const DiagRange none[] = { { 0x300, 0x36f }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f } };
    uint32_t c = diag_char(at, end, bytes);
    if (diag_unsafe(c)) {
        fputc(c == '\t' ? ' ' : '?', stderr);
        return 1;
    }
    fwrite(at, 1, (size_t)*bytes, stderr);
    return within(c, none, sizeof none / sizeof *none) ? 0 : within(c, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

/* ---- the line and its caret -------------------------------------------------------------------------- */

static void line_of(Loc at, const char **from, const char **to)
{
    const char *p = files[at.file].text, *end = p + files[at.file].n, *q;
    for (int line = 1; line < at.line; line++)
        p = (q = memchr(p, '\n', (size_t)(end - p))) ? q + 1 : end;
    q = memchr(p, '\n', (size_t)(end - p));
    *from = p;
    *to = q ? q : end;
    if (*to > p && (*to)[-1] == '\r')
        --*to;
}

/* Where the word that begins at p ends: at the closing quote, or before what cannot belong to a plain scalar. */
static const char *word_end(const char *p, const char *end)
{
    const char *q = p;
    if (p < end && (*p == '"' || *p == '\'')) {
        for (q++; q < end && *q != *p; q++)
            q += *p == '"' && *q == '\\';
        return q < end ? q + 1 : end;
    }
    while (q < end && !strchr(" \t,[]{}", *q) && !(*q == ':' && (q + 1 == end || isspace((unsigned char)q[1]))))
        q++;
    return q > p ? q : p + 1;
}

static void snippet(Loc at, const char *hint)
{
    const char *from, *end, *caret, *start;
    int bytes, before = 0, under = 0, cells = 0;
    bool option = files[at.file].path[0] == '-';
    if (option && at.line > 1)          /* the end of a text without line breaks */
        at = (Loc){ at.file, 1, INT32_MAX };
    line_of(at, &from, &end);
    caret = from;
    for (int col = 1; col < at.col && caret < end; col++, caret += bytes)
        diag_char(caret, end, &bytes);
    start = caret - from > WINDOW * 3 / 4 ? caret - WINDOW / 2 : from;
    while (start > from && start < end && (*start & 0xc0) == 0x80)
        start++;
    const char *stop = word_end(caret, end), *equal = option ? memchr(caret, '=', (size_t)(end - caret)) : NULL;
    if (equal)                          /* one step of the path of --set */
        stop = caret + strcspn(caret, ".=");

    if (option)
        fprintf(stderr, "      | ");
    else
        fprintf(stderr, "%5d | ", at.line);
    if (start > from)
        before = fprintf(stderr, "... ");
    for (const char *p = start; p < end; p += bytes) {
        if (cells > WINDOW) {
            fprintf(stderr, " ...");
            break;
        }
        int width = show(p, end, &bytes);
        cells += width;
        before += p < caret ? width : 0;
        under += p >= caret && p < stop ? width : 0;
    }
    fprintf(stderr, "\n      | %*s^", before, "");
    for (int i = 1; i < under; i++)
        fputc('~', stderr);
    if (hint)
        fprintf(stderr, " %s", hint);
    fputc('\n', stderr);
}

/* ---- the messages ------------------------------------------------------------------------------------ */

static jmp_buf *trial;                  /* where a mistake leads while something is tried */
static const char *refused;             /* that mistake */
static Loc refused_at;

bool diag_accepts(void (*run)(void *ctx), void *ctx)
{
    jmp_buf here, *outer = trial;
    Room *room = mem_now();
    volatile bool good = false;
    trial = &here;
    if (setjmp(here) == 0) {
        run(ctx);
        good = true;
    }
    trial = outer;
    mem_in(room);
    return good;
}

const char *diag_refusal(void)
{
    return refused;
}

Loc diag_refused_at(void)
{
    return refused_at;
}

static void text_out(const char *form, va_list list)
{
    char text[MOST_TEXT];
    int n = vsnprintf(text, sizeof text, form, list), bytes;
    const char *end = text + (n < 0 ? 0 : n < MOST_TEXT ? n : MOST_TEXT - 1);
    for (const char *p = text; p < end; p += bytes)
        show(p, end, &bytes);
    fprintf(stderr, n < MOST_TEXT ? "\n" : " ...\n");
}

static void report(Loc at, const char *kind, const char *hint, const char *form, va_list list)
{
    if (trial) {
        char text[MOST_TEXT];
        vsnprintf(text, sizeof text, form, list);
        mem_in(NULL);
        refused = strf("%s", text);
        refused_at = at;
        longjmp(*trial, 1);
    }
    const char *path = quote_terminal(diag_path(at));
    busy_end();
    fflush(stdout);
    if (known(at) && at.line > 0 && path[0] != '-')
        fprintf(stderr, "%s:%d:%d: %s: ", path, at.line, at.col, kind);
    else
        fprintf(stderr, "%s: %s: ", path, kind);
    text_out(form, list);
    if (known(at) && at.line > 0 && files[at.file].text)
        snippet(at, hint);
    else if (hint)
        fprintf(stderr, "      | %s\n", hint);
}

void bad(Loc at, const char *hint, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    report(at, "error", hint, form, list);
    va_end(list);
    if (++errors == MOST_ERRORS) {
        fprintf(stderr, "%s: %d errors, stopped here\n", quote_terminal(diag_path(at)), errors);
        exit(EXIT_MODEL);
    }
}

void err(Loc at, const char *hint, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    report(at, "error", hint, form, list);
    va_end(list);
    exit(EXIT_MODEL);
}

void warn(Loc at, const char *form, ...)
{
    va_list list;
    if (trial)
        return;
    va_start(list, form);
    report(at, "warning", NULL, form, list);
    va_end(list);
}

void bad_stop(void)
{
    if (errors)
        exit(EXIT_MODEL);
}

void fail(int status, const char *form, ...)
{
    va_list list;
    busy_end();
    fflush(stdout);
    fprintf(stderr, "dpgen: ");
    va_start(list, form);
    text_out(form, list);
    va_end(list);
    exit(status);
}

static const char *blamed;              /* a file that claims to be what a pass makes */

void diag_blame(const char *path)
{
    blamed = path;
}

void diag_forget(void)
{
    apart_clear();
    while (file_count > 0)
        free((char *)(uintptr_t)files[--file_count].path);
    trial = NULL;
    refused = NULL;
    blamed = NULL;
    errors = 0;
}

void die_at(const char *file, int line, const char *form, ...)
{
    va_list list;
    busy_end();
    fflush(stdout);
    if (blamed)
        fprintf(stderr, "%s: error: not a plan that could run: ", quote_terminal(blamed));
    else
        fprintf(stderr, "dpgen: a bug in dpgen " DPGEN_VERSION ", %s:%d: ", file, line);
    va_start(list, form);
    text_out(form, list);
    va_end(list);
    if (blamed)
        exit(EXIT_MODEL);
    fprintf(stderr, "dpgen: please report it with the model file and the command line; nothing was written\n");
    exit(EXIT_BUG);
}

/* ---- did you mean ------------------------------------------------------------------------------------ */

/* Letters to insert, delete, replace or swap with their neighbour until a is b, capitals being equal to small letters:
 * optimal string alignment, in three rows of the usual table. */
static int distance(const char *a, const char *b)
{
    int na = (int)strlen(a), nb = (int)strlen(b), row[3][MOST_WORD + 1];
    if (na > MOST_WORD || nb > MOST_WORD)
        return INT32_MAX;
    for (int i = 0; i <= na; i++)
        for (int j = 0; j <= nb; j++) {
            int *at = &row[i % 3][j];
            if (i == 0 || j == 0) {
                *at = i + j;
                continue;
            }
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            *at = (int)min_of(row[(i + 2) % 3][j - 1] + (ca != cb), 1 + (int)min_of(row[(i + 2) % 3][j], row[i % 3][j - 1]));
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) && cb == tolower((unsigned char)a[i - 2]))
                *at = (int)min_of(*at, 1 + row[(i + 1) % 3][j - 2]);
        }
    return row[na % 3][nb];
}

const char *nearest(const char *word, const char *const *names, int n)
{
    const char *found = NULL;
    int length = word ? (int)strlen(word) : 0, best = (length + 2) / 3 + 1;
    for (int i = 0; word && i < n; i++) {
        int d = distance(word, names[i]);
        if (d < best && (d < length || d == 0)) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

const char *did_you_mean(const char *word, const char *const *names, int n, const char *otherwise)
{
    const char *near = nearest(word, names, n);
    return near ? strf("did you mean '%s'?", near) : otherwise;
}

const char *names_remedy(const char *word, const Strs *names)
{
    return did_you_mean(word, names->at, names->n,
                        names->n ? strf("there are %d names, from '%s' on", names->n, names->at[0]) : NULL);
}
