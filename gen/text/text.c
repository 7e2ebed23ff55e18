/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: the text form of Graph and Plan, its grammar and its values.
 *
 *     file   = word " 1" NEWLINE (comment | record)*
 *     record = word " " name (" " key "=" value)* (" @" path ":" line ":" column)? NEWLINE
 *
 * Problem: a pass is tested by its input and its output.  Both need a form that a person reads, diff compares and a program
 * reads back, the same bytes each way.  A graph may also come from somewhere else.  Then it is input like any other, and a
 * fault is reported with file, line, column and a caret.
 *
 * Method: each struct has a table of fields; one loop prints by it and one reads.  A field that has its default (0, false,
 * nothing, -1 of a reference) is not printed.  References are names.  Of two things with the same name, the second is x#2.
 * Numbers are integers or hexadecimal floating point, so that nothing is rounded.
 *
 * Reading takes two rounds: the records first, because a name may be used above its own record; then their fields.
 *
 * Cost: n log n in names.  docs/text.md lists the records.
 */
#include "text.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>

/* ---- references -------------------------------------------------------------------------------------------------- */

typedef struct { const char *name; int index; } TextNamed;

ORDER(by_name, TextNamed, strcmp(x->name, y->name), order_of(x->index, y->index))

/* qsort is told everything that decides, so equal names keep their order on every C library. */
static TextNamed *sorted(const Refs *r)
{
    TextNamed *list = alloc((size_t)r->name.n * sizeof *list);
    for (int i = 0; i < r->name.n; i++)
        list[i] = (TextNamed){r->name.at[i], i};
    SORT(list, r->name.n, by_name);
    return list;
}

void refs_seal(Refs *r)
{
    TextNamed *list = sorted(r);
    for (int i = 1, same = 1; i < r->name.n; i++) {
        same = strcmp(list[i].name, list[i - 1].name) ? 1 : same + 1;
        if (same > 1)
            r->name.at[list[i].index] = strf("%s#%d", list[i].name, same);
    }
    list = sorted(r);
    r->sorted = alloc((size_t)r->name.n * sizeof *r->sorted);
    for (int i = 0; i < r->name.n; i++)
        r->sorted[i] = list[i].index;
}

static int refs_find(const Refs *r, const char *name)
{
    int low = 0, high = r->name.n;
    while (low < high) {
        int mid = low + (high - low) / 2, order = strcmp(name, r->name.at[r->sorted[mid]]);
        if (!order)
            return r->sorted[mid];
        *(order < 0 ? &high : &low) = order < 0 ? mid : mid + 1;
    }
    return -1;
}

/* ---- fields in memory -------------------------------------------------------------------------------------------- */

#define AT(type, base, field) ((type *)(void *)((char *)(base) + (field)->at))
#define FROM(type, base, field) ((type const *)(const void *)((const char *)(base) + (field)->at))

static bool applies(const Table *t, const TextField *f, const void *from)
{
    return !f->only || *(const int *)(const void *)((const char *)from + t->tag) == f->only - 1;
}

static bool is_default(const TextField *f, const void *from)
{
    switch (f->kind) {
    case V_INT:   return !*FROM(int, from, f);
    case V_WORD:  return f->first && !*FROM(int, from, f);
    case V_LONG:  return !*FROM(int64_t, from, f);
    case V_BOOL:  return !*FROM(bool, from, f);
    case V_FLOAT: return *FROM(double, from, f) == 0 && !signbit(*FROM(double, from, f));
    case V_TEXT:  return !*FROM(const char *, from, f) || !**FROM(const char *, from, f);
    case V_SHAPE: return !FROM(Shape, from, f)->n;
    case V_REF: case V_INDEX: return *FROM(int, from, f) == -1;
    default:      return !FROM(Ints, from, f)->n;
    }
}

void text_clear(const Table *t, void *to)
{
    for (const TextField *f = t->field; f->key; f++)
        if ((f->kind == V_REF || f->kind == V_INDEX) && !f->only)
            *AT(int, to, f) = -1;
        else if (f->kind == V_TEXT)
            *AT(const char *, to, f) = "";
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

void text_word(FILE *f, const char *text)
{
    for (unsigned char c; (c = (unsigned char)*text); text++)
        fprintf(f, c > 32 && c < 127 && !strchr("%=@,\"<>&'`$", c) ? "%c" : "%%%02X", c);
}

static void print_shape(FILE *f, const Shape *s)
{
    for (int i = 0; i < s->n; i++)
        fprintf(f, "%s%" PRId64, i ? "x" : "", s->d[i]);
}

static void print_ref(Printer *w, RefKind kind, int index)
{
    if (index < -1 || index >= w->ref[kind].name.n)
        die("text: reference %d of %d", index, w->ref[kind].name.n);
    text_word(w->f, index < 0 ? "-" : w->ref[kind].name.at[index]);
}

static void print_list(Printer *w, const TextField *f, const void *from)
{
    for (int i = 0; i < FROM(Ints, from, f)->n; i++) {      /* lists of all types begin alike */
        if (i)
            fputc(',', w->f);
        if (f->kind == V_REFS)
            print_ref(w, f->ref, FROM(Ints, from, f)->at[i]);
        else if (f->kind == V_TEXTS)
            text_word(w->f, FROM(Strs, from, f)->at[i]);
        else if (f->kind == V_TIMES)
            fprintf(w->f, "%" PRId64, FROM(Times, from, f)->at[i]);
        else
            fprintf(w->f, "%d", FROM(Ints, from, f)->at[i]);
    }
}

void text_fields(Printer *w, const Table *t, const void *from)
{
    for (const TextField *f = t->field; f->key; f++) {
        if (!applies(t, f, from) || is_default(f, from))
            continue;
        fprintf(w->f, " %s=", f->key);
        switch (f->kind) {
        case V_INT: case V_INDEX: fprintf(w->f, "%d", *FROM(int, from, f)); break;
        case V_LONG:  fprintf(w->f, "%" PRId64, *FROM(int64_t, from, f)); break;
        case V_BOOL:  fprintf(w->f, "1"); break;
        case V_FLOAT: fprintf(w->f, "%a", *FROM(double, from, f)); break;
        case V_TEXT:  text_word(w->f, *FROM(const char *, from, f)); break;
        case V_WORD:  fputs(f->words[*FROM(int, from, f)], w->f); break;
        case V_SHAPE: print_shape(w->f, FROM(Shape, from, f)); break;
        case V_REF:   print_ref(w, f->ref, *FROM(int, from, f)); break;
        case V_REFS: case V_INTS: case V_TIMES: case V_TEXTS: print_list(w, f, from); break;
        }
    }
}

void text_head(Printer *w, const Table *t, const char *name)
{
    fprintf(w->f, "%s ", t->word);
    text_word(w->f, name);
}

void text_end(Printer *w, Loc at)
{
    if (at.line > 0 && !w->bare) {
        fprintf(w->f, " @");
        text_word(w->f, diag_path(at));
        fprintf(w->f, ":%d:%d", at.line, at.col);
    }
    fputc('\n', w->f);
}

void text_record(Printer *w, const Table *t, const char *name, const void *from, Loc at)
{
    text_head(w, t, name);
    text_fields(w, t, from);
    text_end(w, at);
}

/* ---- from bytes to records --------------------------------------------------------------------------------------- */

Loc text_at(const Record *r, int col)
{
    return (Loc){r->at.file, r->at.line, col};
}

Loc text_value(const Record *r, const char *key)
{
    for (int i = 0; i < r->pair.n; i++)
        if (!strcmp(r->pair.at[i].key, key))
            return text_at(r, r->pair.at[i].value_col);
    return r->at;
}

static int digit(char c)
{
    const char *all = "0123456789ABCDEF", *p = c ? strchr(all, c) : NULL;
    return p ? (int)(p - all) : -1;
}

/* Undo %XX, in place. */
static void unescape(Loc at, char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        int high = digit(p[1]), low = high < 0 ? -1 : digit(p[2]);
        if (low < 0 || high * 16 + low == 0)
            err(at, "% and two digits 0-9 A-F", "a character that cannot be read");
        *to++ = (char)(high * 16 + low);
        p += 2;
    }
    *to = 0;
}

static int file_of(Scanner *s, const char *path)
{
    for (int i = 0; i < s->path.n; i++)
        if (!strcmp(s->path.at[i], path))
            return s->path_file.at[i];
    int file = 0;                               /* read already, such as the model? */
    while (strcmp(diag_path((Loc){file, 1, 1}), "dpgen") && strcmp(diag_path((Loc){file, 1, 1}), path))
        file++;
    if (strcmp(diag_path((Loc){file, 1, 1}), path))
        file = diag_file(path, NULL, 0);
    *PUSH(&s->path) = path;
    *PUSH(&s->path_file) = file;
    return file;
}

/* "@file:line:col" */
static Loc place(Scanner *s, Loc at, char *word)
{
    char *col = strrchr(word, ':'), *line = NULL;
    if (col) {
        *col = 0;
        line = strrchr(word, ':');
    }
    if (!line || line == word)
        err(at, "@file:line:column", "a place that cannot be read");
    *line = 0;
    unescape(at, word);
    return (Loc){file_of(s, word), (int)text_integer(at, line + 1, 1, INT32_MAX),
                 (int)text_integer(at, col + 1, 1, INT32_MAX)};
}

static void take_pair(Record *r, char *word, int col)
{
    char *value = strchr(word, '=');
    if (!value || value == word)
        err(text_at(r, col), "key=value", "expected key=value");
    *value++ = 0;
    *PUSH(&r->pair) = (TextPair){word, value, col, col + (int)(value - word)};
}

/* One line: words between single spaces. */
static void cut_line(Scanner *s, char *line, int number)
{
    Record r = {.at = {s->file, number, 1}};
    int n = 0;
    for (char *p = line; *p; n++) {
        size_t k = strcspn(p, " ");
        int col = (int)(p - line) + 1;
        char *next = p + k + (p[k] == ' ');
        if (!k || (p[k] && !*next))
            err(text_at(&r, col), "one space between words, none at the ends", "a space too many");
        if (r.from.line)
            err(text_at(&r, col), NULL, "nothing may follow the place");
        p[k] = 0;
        if (n == 0)
            r.word = p;
        else if (n > 1 && *p == '@')
            r.from = place(s, text_at(&r, col), p + 1);
        else if (n > 1)
            take_pair(&r, p, col);
        else {
            unescape(text_at(&r, col), p);
            r.name = p;
            r.name_col = col;
        }
        p = next;
    }
    if (n < 2)
        err(r.at, "word name key=value ...", "a record without a name");
    *PUSH(&s->record) = r;
}

void text_scan(Scanner *s, const char *path, const char *version)
{
    size_t n;
    char *text = file_read(path, "--from names a graph or a plan: docs/text.md", &n);
    s->file = diag_file(path, text, n);
    /* Bytes that no text has would end a line early or fool a terminal. */
    int line = 1, col = 1;
    for (size_t i = 0; i < n; i++, col++) {
        if (text[i] == '\n') {
            line++;
            col = 0;
        } else if ((unsigned char)text[i] < 32 || (unsigned char)text[i] > 126)
            err((Loc){s->file, line, col}, "write %XX", "a character that is not printable ASCII");
    }
    int number = 1;
    for (char *p = text; *p; number++) {
        char *end = strchr(p, '\n');
        if (!end)
            err((Loc){s->file, number, 1}, NULL, "the last line has no end: is the file whole?");
        *end = 0;
        if (number == 1 && strcmp(p, version))
            err((Loc){s->file, 1, 1}, strf("expected: %s", version), "not a file of this kind and version");
        if (number > 1 && *p && *p != '#')
            cut_line(s, p, number);
        p = end + 1;
    }
    if (number == 1)
        err((Loc){s->file, 1, 1}, strf("expected: %s", version), "the file is empty");
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* As in a model file: names become C identifiers, words of comments and of recipes. */
void text_name(Loc at, const char *name, const char *more)
{
    enum { LONGEST = 511 };
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.", *c) && !strchr(more, *c))
            err(at, strf("a name is made of letters, digits, _ .%s%s", *more ? " and " : "", more), "'%s' is no name", name);
    if (!*name || strlen(name) > LONGEST)
        err(at, strf("1 to %d", LONGEST), "a name of %zu characters", strlen(name));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int64_t text_integer(Loc at, const char *text, int64_t low, int64_t high)
{
    const char *digits = text + (*text == '-');
    errno = 0;
    long long i = strtoll(text, NULL, 10);
    if (!*digits || digits[strspn(digits, "0123456789")] || (*digits == '0' && digits[1]))
        err(at, NULL, "expected an integer, found '%s'", text);
    if (errno || i < low || i > high)
        err(at, NULL, "%s is not within %" PRId64 " .. %" PRId64, text, low, high);
    return i;
}

/* [-]0xH[.HHHH]p(+|-)D, as printf("%a") writes it: exact, and a matter of no locale. */
double text_float(Loc at, const char *text)
{
    static const char hex[] = "0123456789abcdef", *const hint = "such as 0x1.8p+3";
    const char *p = text + (*text == '-');
    uint64_t digits = 0;
    int point = 0, n = 0;
    bool good = p[0] == '0' && p[1] == 'x' && p[2];
    for (p += good ? 2 : 0; good && *p && *p != 'p'; p++) {
        const char *digit = strchr(hex, *p);
        good = *p == '.' ? !point++ : digit && ++n <= 15;
        digits = digit ? digits << 4 | (uint64_t)(digit - hex) : digits;
        point += digit && point;
    }
    if (!good || !n || *p != 'p' || (p[1] != '+' && p[1] != '-'))
        err(at, hint, "expected a floating point number, found '%s'", text);
    int power = (int)text_integer(at, p[1] == '+' ? p + 2 : p + 1, -1100, 1023);
    double x = ldexp((double)digits, power - 4 * (point > 0 ? point - 1 : 0));
    if (!isfinite(x))
        err(at, hint, "'%s' is too large", text);
    return *text == '-' ? -x : x;
}

int text_ref(Scanner *s, RefKind kind, Loc at, const char *name)
{
    static const char *const what[R_KINDS] = {"tensor", "state", "operator", "buffer", "pool", "host buffer", "routine"};
    const Refs *r = &s->ref[kind];
    int i = strcmp(name, "-") ? refs_find(r, name) : -1;
    if (i < 0 && strcmp(name, "-"))
        err(at, did_you_mean(name, r->name.at, r->name.n <= 10000 ? r->name.n : 0, NULL), "no %s is called '%s'", what[kind],
            name);
    return i;
}

static int take_word(Loc at, const TextField *f, const char *text)
{
    int n = 0;
    for (; f->words[n]; n++)
        if (!strcmp(f->words[n], text))
            return n;
    err(at, did_you_mean(text, f->words, n, NULL), "no %s is called '%s'", f->key, text);
}

static Shape take_shape(Loc at, const char *text)
{
    Shape s = {0};
    for (const char *p = text; s.n < MAXDIM; p++, at.col++) {
        size_t n = strcspn(p, "x");
        s.d[s.n++] = text_integer(at, strf("%.*s", (int)n, p), 1, (int64_t)1 << 40);
        p += n;
        at.col += (int)n;
        if (!*p)
            return s;
    }
    err(at, NULL, "more than %d axes", MAXDIM);
}

static void take_list(Scanner *s, Loc at, const TextField *f, const char *text, void *into)
{
    for (const char *p = text;; p++, at.col++) {
        size_t n = strcspn(p, ",");
        char *item = strf("%.*s", (int)n, p);
        unescape(at, item);
        if (f->kind == V_TEXTS)
            *PUSH(AT(Strs, into, f)) = item;
        else if (f->kind == V_TIMES)
            *PUSH(AT(Times, into, f)) = text_integer(at, item, 0, INT64_MAX);
        else
            *PUSH(AT(Ints, into, f)) = f->kind == V_REFS ? text_ref(s, f->ref, at, item)
                                                         : (int)text_integer(at, item, INT32_MIN, INT32_MAX);
        p += n;
        at.col += (int)n;
        if (!*p)
            return;
    }
}

static void take_value(Scanner *s, Loc at, const TextField *f, const char *text, void *into)
{
    if (f->kind >= V_REFS) {
        take_list(s, at, f, text, into);
        return;
    }
    char *word = strf("%s", text);
    unescape(at, word);
    switch (f->kind) {
    case V_INT:   *AT(int, into, f) = (int)text_integer(at, word, INT32_MIN, INT32_MAX); break;
    case V_INDEX: *AT(int, into, f) = (int)text_integer(at, word, 0, INT32_MAX); break;
    case V_LONG:  *AT(int64_t, into, f) = text_integer(at, word, INT64_MIN, INT64_MAX); break;
    case V_BOOL:  *AT(bool, into, f) = text_integer(at, word, 0, 1); break;
    case V_FLOAT: *AT(double, into, f) = text_float(at, word); break;
    case V_TEXT:  *AT(const char *, into, f) = word; break;
    case V_WORD:  *AT(int, into, f) = take_word(at, f, word); break;
    case V_SHAPE: *AT(Shape, into, f) = take_shape(at, word); break;
    default:      *AT(int, into, f) = text_ref(s, f->ref, at, word); break;
    }
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static const TextField *field_of(const Table *t, const Record *r, const TextPair *p)
{
    Strs keys = {0};
    for (const TextField *f = t->field; f->key; f++) {
        if (!strcmp(f->key, p->key))
            return f;
        *PUSH(&keys) = f->key;
    }
    err(text_at(r, p->key_col), did_you_mean(p->key, keys.at, keys.n, "docs/text.md; by an older dpgen? -d writes it anew"),
        "%s has no '%s'", t->word, p->key);
}

/* Words come first in a table: they decide which fields may follow. */
void text_take(Scanner *s, const Table *t, const Record *r, int n, void *into)
{
    uint64_t seen = 0, bit;
    for (int i = 0; i < n; i++, seen |= bit) {
        const TextPair *p = &r->pair.at[i];
        const TextField *f = field_of(t, r, p);
        bit = (uint64_t)1 << (f - t->field);
        if (seen & bit)
            err(text_at(r, p->key_col), NULL, "'%s' is given twice", p->key);
        if (!applies(t, f, into))
            err(text_at(r, p->key_col), "its kind must come first", "'%s' does not belong to this kind of %s", p->key,
                t->word);
        take_value(s, text_at(r, p->value_col), f, p->value, into);
    }
    for (const TextField *f = t->field; f->key; f++)
        if (f->kind == V_WORD && !f->first && applies(t, f, into) && !(seen & (uint64_t)1 << (f - t->field)))
            err(r->at, NULL, "%s '%s' has no %s", t->word, r->name, f->key);
}

void text_once(Scanner *s, RefKind kind, const Table *t)
{
    Refs *r = &s->ref[kind];
    VEC(const Record *) all = {0};
    for (int i = 0; i < s->record.n; i++)
        if (!strcmp(s->record.at[i].word, t->word)) {
            *PUSH(&r->name) = s->record.at[i].name;
            *PUSH(&all) = &s->record.at[i];
        }
    refs_seal(r);
    for (int i = 0; i < all.n; i++)
        if (strcmp(all.at[i]->name, r->name.at[i]))
            err(text_at(all.at[i], all.at[i]->name_col), NULL, "%s '%s' is there twice", t->word, all.at[i]->name);
}

void text_known(const Scanner *s, const Table *const *tables)
{
    for (EACH(const Record, r, s->record)) {
        Strs words = {0};
        bool known = false;
        for (const Table *const *t = tables; *t; t++) {
            known |= !strcmp((*t)->word, r->word);
            *PUSH(&words) = (*t)->word;
        }
        if (known)
            continue;
        err(r->at, did_you_mean(r->word, words.at, words.n, NULL), "no record begins with '%s'", r->word);
    }
}

/* The letters of -d, one for each pass that leaves something to print. */
const Dump dumps[] = {
    {'b', "build",  "forward operators, blocks and repeats expanded"},
    {'s', "shape",  "shapes, types, bytes, states"},
    {'g', "grad",   "backward and update operators"},
    {'f', "fuse",   "neighbours that are one call: the const Graph"},
    {'o', "order",  "computations of each device"},
    {'p', "part",   "operator -> chunk"},
    {'k', "keep",   "tensor -> keep, recompute or offload"},
    {'c', "comm",   "the whole action lists"},
    {'l', "lower",  "routines, buffers, pools"},
    {'m', "mem",    "offsets and owner intervals"},
    {'t', "sim",    "predicted times"},
    {'a', "all",    "the whole plan, for --from"},
    {0, NULL, NULL},
};
