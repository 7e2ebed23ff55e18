/* SPDX-License-Identifier: Apache-2.0
 *
 * blame.c: which keys of a config.json make a model that cannot be built.
 *
 * The model file is read before it is written, and its first mistake stands at a line of it.  The template's line names values,
 * as marks or as dims; so do the lines that make its operands.  A value comes from keys of the file, or from other values.
 * Values that the message says are those that do not fit; where it says none, all of the line are.
 */
#include "hf.h"

enum { MOST_KEYS = 4 };
typedef struct { const char *key, *value; const Node *node; } Culprit;     /* node NULL: absent, and that is its default */
typedef VEC(Culprit) Culprits;
typedef struct {
    const Config *c;
    const Strs *line;               /* of the template, by line of the model file */
    Strs text;                      /* of the model file */
    const char *message;
    char *seen;                     /* fields */
    Culprits found;
} Blame;

/* A number of the message, and no part of a name. */
static bool says(const char *message, const char *number)
{
    size_t n = strlen(number);
    for (const char *p = message; n && (p = strstr(p, number)); p++) {
        bool begins = p == message || !strchr(C_WORD ".", p[-1]), dot = p[n] == '.' && p[n + 1];
        if (begins && (!p[n] || !strchr(C_WORD, p[n + dot])))
            return true;
    }
    return false;
}

static void blame_words(Blame *b, const char *text, bool told);

/* The keys that a field has its value from; told: only if the message says it. */
static void blame_field(Blame *b, int at, bool told)
{
    const ConfigField *f = &b->c->family->fields.at[at];
    const char *value = f->name ? value_get(&b->c->values, f->name) : NULL;
    bool number = f->kind == INT || f->kind == REAL || f->kind == TEXT || f->kind == CAP || f->kind == COUNT;
    if (b->seen[at] || !value || !*value || (f->keys.n && !number && f->kind != NUMBERS && f->kind != EVERY))
        return;
    bool named = !told || (number && (says(b->message, value) || says(b->message, f->name)));
    const Culprit *key = NULL;
    b->seen[at] = true;
    for (int i = 0; i < f->keys.n; i++) {
        const Node *n = node_at(b->c->root, f->keys.at[i]);
        if (n && !(n->kind == SCALAR && !strcmp(n->text, "null")))
            key = COPY((&(Culprit){f->keys.at[i], n->kind == SCALAR ? n->text : value, n}));
    }
    int before = b->found.n;
    if (!key && f->otherwise)
        blame_words(b, f->otherwise, !named);
    if (!key && f->keys.n && b->found.n == before)
        key = COPY((&(Culprit){f->keys.at[0], value, NULL}));
    if (key && named)
        *PUSH(&b->found) = *key;
}

static void blame_words(Blame *b, const char *text, bool told)
{
    for (const char *p = text; *p; p += strspn(p, C_WORD) + !strspn(p, C_WORD))
        for (int i = 0; i < b->c->family->fields.n; i++) {
            const char *name = b->c->family->fields.at[i].name;
            if (name && strlen(name) == strspn(p, C_WORD) && !strncmp(p, name, strlen(name)))
                blame_field(b, i, told);
        }
}

/* The line that makes a value of that name, or the one above; -1: none. */
static int maker(const Blame *b, int line, const char *name, size_t n)
{
    for (int i = line - 1; i >= 0; i--) {
        const char *as = strstr(b->text.at[i], ", as: ");
        const char *p = as ? as + strspn(as + 1, ", as:[") + 1 : NULL;
        if (!strstr(b->text.at[i], "{op:"))
            return -1;
        if (n == 1 && *name == '_')
            return i;
        for (; p && *p; p += strspn(p, C_WORD), p += strspn(p, ", "))
            if (strspn(p, C_WORD) == n && !strncmp(p, name, n))
                return i;
            else if (!strspn(p, C_WORD))
                break;
    }
    return -1;
}

/* A line of the model file, with what continues it; seen: and those that make its operands, each once. */
static void blame_line(Blame *b, int line, bool told, char *seen)
{
    if (line < 0 || (seen && seen[line]++))
        return;
    const char *text = b->text.at[line], *in = strstr(text, " in: ");
    int open = 0, at = line;
    do {
        blame_words(b, b->line->at[at], told);
        for (const char *p = b->text.at[at]; *p; p++)
            open += (*p == '{') - (*p == '}');
    } while (open > 0 && ++at < b->text.n);
    if (!seen || !strstr(text, "{op:"))
        return;
    if (!in)
        blame_line(b, maker(b, line, "_", 1), told, seen);
    for (const char *p = in ? in + 5 : ""; *p && *p != ']' && *p != '}'; p += strspn(p, C_WORD "$") + !strspn(p, C_WORD "$")) {
        if (*p == ':')
            break;
        if (strspn(p, C_WORD))
            blame_line(b, maker(b, line, p, strspn(p, C_WORD)), told, seen);
    }
}

/* dims: {V: 61, P: -1: the mistake stands at a value of that name. */
static const char *named_at(const Blame *b, Loc at)
{
    const char *text = b->text.at[at.line - 1], *end = text + min_of(at.col - 1, (int64_t)strlen(text));
    while (end > text && strchr(" :", end[-1]))
        end--;
    const char *from = end;
    while (from > text && strchr(C_WORD, from[-1]))
        from--;
    return strf("%.*s", (int)(end - from), from);
}

/* Keys of the file first, and the others only if these are not two; how many those are. */
static int only_present(Blame *b)
{
    Culprits all = b->found;
    int present = 0;
    b->found = (Culprits){0};
    for (int absent = 0; absent < 2; absent++)
        for (EACH(const Culprit, k, all)) {
            if ((k->node == NULL) == absent && (!absent || present < 2))
                *PUSH(&b->found) = *k;
            present += k->node && !absent;
        }
    return present;
}

static NORETURN void report(Blame *b)
{
    const int present = only_present(b), n = (int)min_of(b->found.n, MOST_KEYS);
    const char *keys = "", *others = "";
    for (int i = 0; i < n; i++) {
        const Culprit *k = &b->found.at[i];
        keys = strf("%s%s'%s'", keys, !i ? "" : i == n - 1 ? " and " : ", ", k->key);
        if (i || !k->node)
            others = strf("%s%s'%s' is %s%s", others, *others ? ", " : "", k->key, k->value,
                          k->node ? strf(" in line %d", k->node->loc.line) : " where it is absent");
    }
    err(present ? b->found.at[0].node->loc : b->c->root->loc, *others ? others : NULL, "%s make%s no model: %s",
        n ? keys : "these keys", n == 1 ? "s" : "", b->message);
}

NORETURN void blame_text(const Config *c, const char *text, const char *message)
{
    Blame b = {.c = c, .message = message, .seen = alloc((size_t)c->family->fields.n)};
    blame_words(&b, text, false);
    report(&b);
}

NORETURN void blame_keys(const Config *c, const Strs *line, const Text *text, Loc at, const char *message)
{
    Blame b = {.c = c, .line = line, .message = message};
    for (const char *p = text->at, *end; (end = strchr(p, '\n')); p = end + 1)
        *PUSH(&b.text) = strf("%.*s", (int)(end - p), p);
    bool placed = at.line > 0 && at.line <= b.text.n && b.text.n == line->n;
    /* A value's own name; two values at least of the line that are told, or of those behind it; all of the line; all that say
     * which layers have which lines. */
    for (int round = 0; placed && round < 5 && b.found.n < (round == 2 ? 2 : 1); round++) {
        b.seen = alloc((size_t)c->family->fields.n);
        b.found.n = 0;
        if (round == 0)
            blame_words(&b, named_at(&b, at), false);
        for (int i = 0; i < b.text.n && round == 4; i++)
            blame_words(&b, strstr(b.text.at[i], " args: ") ? line->at[i] : "", false);
        if (round > 0 && round < 4)
            blame_line(&b, at.line - 1, round < 3, round == 2 ? alloc((size_t)b.text.n) : NULL);
    }
    report(&b);
}
